"""What a fake client sent and got, byte for byte, and how it ended. The JSON form is versioned (``v``)."""

import base64
import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue

Ended = Literal["complete", "cut", "abandoned", "refused", "timeout"]
Headers = tuple[tuple[str, str], ...]


class _Told:
    """How a request or a response is looked at."""

    if TYPE_CHECKING:
        headers: Headers
        body_text: str
        body_bytes_b64: str | None

    @property
    def body(self) -> bytes:
        return self.body_text.encode() if self.body_bytes_b64 is None else base64.b64decode(self.body_bytes_b64)

    def json_body(self) -> Any:
        """The body parsed as JSON. Raises ``ValueError`` when it is not JSON."""
        return json.loads(self.body)

    def header(self, name: str) -> str | None:
        """The first header of this name, in any case; None when there is none."""
        lowered = name.lower()
        return next((value for key, value in self.headers if key.lower() == lowered), None)


class Sent(BaseModel, _Told):
    """A request as it went out. ``body_bytes_b64`` stands in for ``body_text`` only when the body is not UTF-8."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    method: str
    path: str
    headers: Headers
    body_text: str = ""
    body_bytes_b64: str | None = None


class Received(BaseModel, _Told):
    """What came back, as far as it came: a cut body stands here up to the cut, its content coding undone."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    status: int
    headers: Headers
    body_text: str = ""
    body_bytes_b64: str | None = None

    @property
    def is_stream(self) -> bool:
        return (self.header("content-type") or "").startswith("text/event-stream")


class Exchange(BaseModel):
    """One request and what became of it.

    ``ended`` speaks of HTTP framing alone: ``complete`` the whole response arrived; ``cut`` the connection broke before
    that; ``abandoned`` this client left; ``refused`` no connection; ``timeout`` the client's own patience ran out.
    Whether a *stream* came to its end is told by its events. ``planned_wait`` is what the real client would have waited
    before this request, in unscaled seconds; None where it sends at once. ``attempt`` counts earlier sends of
    the same call.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    n: int = Field(ge=0)
    request: Sent
    response: Received | None
    ended: Ended
    streamed: bool
    planned_wait: float | None = None
    attempt: int = 0
    answer: dict[str, JsonValue] | None = None
    error: str | None = None

    @property
    def status(self) -> int | None:
        return None if self.response is None else self.response.status

    @property
    def ok(self) -> bool:
        """The whole of a 2xx response arrived."""
        return self.ended == "complete" and self.status is not None and 200 <= self.status < 300


class Exchanges(BaseModel):
    """Everything one client said in one conversation, in the order it was sent."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    v: Literal[1] = 1
    harness: str
    version: str
    session: str | None
    conversation: str
    exchanges: tuple[Exchange, ...]

    def to_json(self) -> bytes:
        return json.dumps(self.model_dump(), indent=1).encode()


def schema() -> dict[str, Any]:
    """The JSON Schema of ``Exchanges``."""
    return Exchanges.model_json_schema()


def sent(method: str, path: str, headers: Sequence[tuple[str, str]], body: bytes) -> Sent:
    text, raw = _text(body)
    return Sent(method=method, path=path, headers=tuple(headers), body_text=text, body_bytes_b64=raw)


def received(status: int, headers: Sequence[tuple[str, str]], body: bytes) -> Received:
    text, raw = _text(body)
    return Received(status=status, headers=tuple(headers), body_text=text, body_bytes_b64=raw)


def _text(body: bytes) -> tuple[str, str | None]:
    try:
        return body.decode(), None
    except UnicodeDecodeError:
        return "", base64.b64encode(body).decode()


def header_pairs(headers: Mapping[str, str] | Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    """Either way of writing headers as pairs in order."""
    return list(headers.items()) if isinstance(headers, Mapping) else list(headers)
