"""The Anthropic Messages API: ``/v1/messages`` and ``/v1/messages/count_tokens``."""

import uuid
from collections.abc import Iterator

from conformance.reference.capture.dialects.messages.answer import message_of
from conformance.reference.capture.dialects.messages.errors import error_event, error_of
from conformance.reference.capture.dialects.messages.relay import MessageRelay
from conformance.reference.capture.dialects.messages.request import chat_request
from conformance.reference.capture.dialects.messages.stream import event, message_stream
from conformance.reference.capture.errors import Refusal
from conformance.reference.capture.jsontext import JSONObject
from conformance.reference.capture.requests import Call


class Messages:
    """The dialect. ``counting`` is for requests that only want their prompt counted."""

    ping = event({"type": "ping"})
    ending_frames = 3
    """The end of the last block: Claude Code acts on a block that has ended, whatever becomes of the message."""

    def __init__(self, *, counting: bool = False) -> None:
        self._counting = counting

    def chat_request(self, body: JSONObject) -> JSONObject:
        """The conversation, tools and sampling in chat form."""
        return chat_request(body, counting=self._counting)

    def answer(self, view: JSONObject, call: Call) -> JSONObject:
        """The message."""
        return message_of(_headed(view, call))

    def frames(self, view: JSONObject, call: Call) -> Iterator[bytes]:
        """The message told in events."""
        return message_stream(_headed(view, call))

    def relay(self, call: Call) -> MessageRelay:
        """A message that is told while it is generated."""
        return MessageRelay(call.request["model"])

    def error(self, refusal: Refusal) -> JSONObject:
        """Anthropic's error object."""
        return error_of(refusal)

    def error_frame(self, refusal: Refusal) -> bytes:
        """The error object as an event."""
        return error_event(refusal)


def _headed(view: JSONObject, call: Call) -> JSONObject:
    """The answer under the name that the client called the model by, and with an id, should the engine have given none.

    Claude Code leaves the thinking of any other model out of the history it sends next.
    """
    return view | {"id": view.get("id") or f"msg_{uuid.uuid4().hex}", "model": call.request["model"]}


MESSAGES = Messages()
COUNTING = Messages(counting=True)
