"""Chat completions: the engine's own dialect, so next to nothing is translated."""

from collections.abc import Iterator

from conformance.reference.capture.errors import Refusal
from conformance.reference.capture.jsontext import JSONObject
from conformance.reference.capture.requests import Call
from conformance.reference.capture.streams import PING, chat_stream, error_frame


class Chat:
    """The dialect of ``/v1/chat/completions``."""

    ping = PING
    ending_frames = 3
    """The finish, the usage and the end of a stream."""

    def chat_request(self, body: JSONObject) -> JSONObject:
        """The client's own request."""
        return body

    def answer(self, view: JSONObject, call: Call) -> JSONObject:
        """The engine's own answer."""
        return view

    def frames(self, view: JSONObject, call: Call) -> Iterator[bytes]:
        """The answer told in chat chunks."""
        return chat_stream(view, usage_chunk=call.asked.usage_chunk)

    def relay(self, call: Call) -> None:
        """The engine's bytes are the client's."""

    def error(self, refusal: Refusal) -> JSONObject:
        """OpenAI's error object."""
        return refusal.body

    def error_frame(self, refusal: Refusal) -> bytes:
        """The error object as a chunk."""
        return error_frame(refusal.body)


CHAT = Chat()
