"""The APIs of clients that the proxy speaks, and what each of them has to provide.

The engine is always asked for a chat completion. A dialect turns the client's request into that, and the engine's
answer into its own.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Protocol

from conformance.reference.capture.errors import Refusal
from conformance.reference.capture.jsontext import JSONObject

if TYPE_CHECKING:
    from conformance.reference.capture.requests import Call


class Relay(Protocol):
    """One answer that is translated while the engine streams it; for calls that are not captured."""

    def chunk(self, chunk: JSONObject) -> bytes:
        """What the client gets for one chat chunk, maybe nothing."""
        ...

    def end(self) -> bytes:
        """What the client gets once the engine's stream is complete; raises Refusal if no finish was among it."""
        ...


class Dialect(Protocol):
    """Translates between one API and chat completions. Knows nothing of sessions, engines and records."""

    @property
    def ping(self) -> bytes:
        """The next sign of life on a stream that has no content yet; events that are counted differ each time."""
        ...

    @property
    def ending_frames(self) -> int:
        """How many of the last frames of a stream are kept back until the client is known to be there.

        No client may take an answer for complete that lacks them.
        """
        ...

    def chat_request(self, body: JSONObject) -> JSONObject:
        """The client's request as a chat request, ``stream`` and ``stream_options`` included; raises Refusal.

        The session key is gone; ``model`` and ``stream`` are known to be good.
        """
        ...

    def answer(self, view: JSONObject, call: "Call") -> JSONObject:
        """The buffered answer. ``view`` is a chat completion without what the proxy alone asked for."""
        ...

    def frames(self, view: JSONObject, call: "Call") -> Iterator[bytes]:
        """The same answer as the frames of a stream."""
        ...

    def relay(self, call: "Call") -> Relay | None:
        """A translator for an answer that the engine streams; None where the engine's bytes are the client's."""
        ...

    def error(self, refusal: Refusal) -> JSONObject:
        """The body of an error response."""
        ...

    def error_frame(self, refusal: Refusal) -> bytes:
        """An error on a stream that has begun. Nothing follows it, so the stream cannot be taken for complete."""
        ...
