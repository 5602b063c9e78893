"""One response as it is told: its name, its state, and its events so far."""

import uuid

from conformance.reference.capture.dialects.responses.answer import Ending, Items
from conformance.reference.capture.dialects.responses.request import Translated
from conformance.reference.capture.dialects.responses.stream import Events
from conformance.reference.capture.jsontext import JSON, JSONObject

IN_PROGRESS = Ending("in_progress")


class Telling:
    """Tells one response, once. ``created_at`` is in seconds since the epoch.

    A response is named after the engine's id, so that a record can be found by it; one that had to be named before
    the engine answered keeps the name it was given.
    """

    def __init__(self, request: Translated, created_at: int) -> None:
        self._request = request
        self._created_at = created_at
        self._name: str | None = None
        self.events = Events()

    def named(self, engine_id: JSON) -> str:
        """The response's name, which never changes once it was asked for."""
        if self._name is None:
            self._name = engine_id if isinstance(engine_id, str) and engine_id else uuid.uuid4().hex
        return self._name

    def items(self) -> Items:
        """A maker of its output items."""
        return Items(self.named(None), self._request.offer.namespaced)

    def opening(self, engine_id: JSON) -> bytes:
        """The first events."""
        self.named(engine_id)
        return self.events.opening(self.response(IN_PROGRESS))

    def progress(self) -> bytes:
        """A sign of life; the first one opens the stream."""
        return self.events.progress(self.response(IN_PROGRESS)) if self.events.begun else self.opening(None)

    def terminal(self, end: Ending, output: list[JSONObject], usage: JSON = None) -> bytes:
        """The last event."""
        return self.events.event(f"response.{end.status}", response=self.response(end, output, usage))

    def response(self, end: Ending, output: list[JSONObject] | None = None, usage: JSON = None) -> JSONObject:
        """The response in the state that ``end`` says."""
        return {
            "id": f"resp_{self.named(None)}",
            "object": "response",
            "created_at": self._created_at,
            "status": end.status,
            "background": False,
            "error": end.error,
            "incomplete_details": end.incomplete_details,
            "output": output or [],
            "usage": usage,
            **self._request.settings,
        }
