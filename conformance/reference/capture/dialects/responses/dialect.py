"""The dialect of ``/v1/responses``, as the proxy drives it."""

import threading
import time
from collections.abc import Iterator

from conformance.reference.capture.dialects.responses.answer import Ending, ending, output_items, usage
from conformance.reference.capture.dialects.responses.errors import stream_error
from conformance.reference.capture.dialects.responses.relay import ResponsesRelay
from conformance.reference.capture.dialects.responses.request import Translated, translated
from conformance.reference.capture.dialects.responses.telling import Telling
from conformance.reference.capture.dialects.responses.tools import Offered
from conformance.reference.capture.errors import Refusal
from conformance.reference.capture.jsontext import JSONObject
from conformance.reference.capture.requests import Call
from conformance.reference.capture.streams import PING as COMMENT


class Responses:
    """One call of the dialect: its events are counted, so every call has a dialect of its own."""

    ending_frames = 1
    """The terminal event."""

    def __init__(self) -> None:
        self._created_at = int(time.time())
        self._telling = Telling(Translated({}, {}, Offered()), self._created_at)
        # Pings come from the event loop while a thread makes the answer.
        self._counting = threading.Lock()
        self._counted = False

    def chat_request(self, body: JSONObject) -> JSONObject:
        """The request in chat form; a stream is to end with its usage."""
        request = translated(body)
        self._telling = Telling(request, self._created_at)
        options: JSONObject = {"stream_options": {"include_usage": True}} if body.get("stream") else {}
        return request.chat | options

    @property
    def ping(self) -> bytes:
        """The events that say the response is in progress; a comment once its other events are counted."""
        with self._counting:
            return COMMENT if self._counted else self._telling.progress()

    def answer(self, view: JSONObject, call: Call) -> JSONObject:
        """The response as one JSON object."""
        end, output = self._ended(view)
        return self._telling.response(end, output, usage(view.get("usage")))

    def frames(self, view: JSONObject, call: Call) -> Iterator[bytes]:
        """The same response as events."""
        with self._counting:
            self._counted = True
        end, output = self._ended(view)
        events = self._telling.events
        if not events.begun:
            yield self._telling.opening(view.get("id"))
        for index, item in enumerate(output):
            yield from events.whole_item(index, item)
        yield self._telling.terminal(end, output, usage(view.get("usage")))

    def relay(self, call: Call) -> ResponsesRelay:
        """Tells an answer that is not captured as it comes."""
        return ResponsesRelay(self._telling)

    def error(self, refusal: Refusal) -> JSONObject:
        """OpenAI's error object."""
        return refusal.body

    def error_frame(self, refusal: Refusal) -> bytes:
        """The terminal event of a response that failed."""
        return self._telling.terminal(Ending("failed", error=stream_error(refusal)), [])

    def _ended(self, view: JSONObject) -> tuple[Ending, list[JSONObject]]:
        self._telling.named(view.get("id"))
        choice: JSONObject = view["choices"][0] if view["choices"] else {}
        return ending(choice.get("finish_reason")), output_items(choice, self._telling.items())
