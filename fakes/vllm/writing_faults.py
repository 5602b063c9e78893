"""Faults of the way an answer is written: errors, cuts, stalls, odd framing."""

from collections.abc import Callable
from dataclasses import dataclass, field

import orjson

from fakes.vllm.errors import ENGINE_DEAD, OVERLOADED, envelope
from fakes.vllm.sample import Fault

BAD_HTML = b"<html><body><h1>502 Bad Gateway</h1></body></html>"


@dataclass(slots=True)
class Writing:
    """How an answer is written when it is not written as usual.

    ``spoiled``: the client cannot have got the answer, so the ledger says ``cut``. ``again_at`` is the gate at which an
    answer that comes twice comes again; null is at once.
    """

    status: int = 200
    headers: list[tuple[str, str]] = field(default_factory=list)
    body: bytes | None = None
    content_type: str | None = None
    closes_before_headers: bool = False
    cuts: bool = False
    ends_early: bool = False
    breaks_json: bool = False
    unreadable: bool = False
    error_event: bool = False
    at_token: int | None = None
    python_json: bool = False
    comments: bool = False
    one_byte_a_write: bool = False
    one_write: bool = False
    gzip: bool = False
    delay: float = 0.0
    stalls_at: str | None = None
    closes_after: bool = False
    answers_twice: bool = False
    again_at: str | None = None

    @property
    def spoiled(self) -> bool:
        return self.unreadable or self.cuts or self.ends_early or self.breaks_json or self.error_event


def _http_error(fault: Fault, streamed: bool) -> Writing:
    """``raw`` as the body, else an error in vLLM's own form."""
    status = fault.status or 500
    if fault.raw is not None:
        return Writing(status=status, headers=list(fault.headers.items()), body=fault.raw.encode())
    if status == 503:
        error = envelope(OVERLOADED, "Service Unavailable", None, status)
    elif status >= 500:
        error = envelope(ENGINE_DEAD, "InternalServerError", None, status)
    else:
        error = envelope("The request was refused.", "BadRequestError", None, status)
    return Writing(status=status, headers=list(fault.headers.items()), body=orjson.dumps(error))


def _not_json(fault: Fault, streamed: bool) -> Writing:
    raw = fault.raw.encode() if fault.raw is not None else BAD_HTML
    headers = list(fault.headers.items())
    typed = any(name.lower() == "content-type" for name, _ in headers)
    kind = None if typed else "text/html; charset=utf-8"
    return Writing(status=fault.status or 200, headers=headers, body=raw, content_type=kind, unreadable=True)


def _seconds(fault: Fault) -> float:
    return float(fault.raw) if fault.raw else 0.2


ON_WRITING: dict[str, Callable[[Fault, bool], Writing]] = {
    "http_error": _http_error,
    "not_json": _not_json,
    "close_before_headers": lambda fault, streamed: Writing(closes_before_headers=True, cuts=True),
    "cut_stream": lambda fault, streamed: Writing(cuts=True, at_token=fault.at_token),
    "cut_clean": lambda fault, streamed: Writing(ends_early=True, at_token=fault.at_token),
    "bad_json": lambda fault, streamed: Writing(breaks_json=True, at_token=fault.at_token),
    "error_event": lambda fault, streamed: Writing(error_event=True, at_token=fault.at_token),
    "keepalive_comments": lambda fault, streamed: Writing(comments=True),
    "split_bytes": lambda fault, streamed: Writing(one_byte_a_write=True),
    "joined_events": lambda fault, streamed: Writing(one_write=True),
    "gzip": lambda fault, streamed: Writing(gzip=True),
    "slow_headers": lambda fault, streamed: Writing(delay=_seconds(fault)),
    "stall": lambda fault, streamed: Writing(stalls_at=fault.raw or "stall", at_token=fault.at_token),
    "close_after": lambda fault, streamed: Writing(closes_after=True),
    "answered_twice": lambda fault, streamed: Writing(answers_twice=True, again_at=fault.raw),
}


def writing_of(fault: Fault | None, streamed: bool) -> Writing:
    """How the answer is to be written; as usual without a fault."""
    make = ON_WRITING.get(fault.name) if fault is not None else None
    return make(fault, streamed) if make is not None and fault is not None else Writing()
