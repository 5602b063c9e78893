"""Which session a call belongs to."""

import logging
from collections.abc import Iterable
from dataclasses import dataclass

from conformance.reference.capture.jsontext import JSON

log = logging.getLogger(__name__)

SESSION_KEY = "proxy_x_session_id"
"""The explicit session id: a header and a top-level key of the body."""

NATIVE_HEADERS = ("x-session-id", "x-claude-code-session-id", "session-id", "x-litellm-session-id")
"""The headers in which harnesses send an id of their own, first wins."""

PARENT_HEADER = "x-parent-session-id"
KEY_MARKER = "sycap-session:"
BLANKS = " \t"
"""What HTTP lets stand around a value; any other blank is part of the id, and ids that differ never meet."""

Headers = Iterable[tuple[bytes, bytes]]
"""Header names in lower case, and values, as they came."""


@dataclass(frozen=True)
class Caller:
    """Whose call this is. ``parent_session_id`` is in the id space of ``session_id``."""

    session_id: str
    parent_session_id: str | None = None
    native_session_id: str | None = None
    native_parent_id: str | None = None
    agent_id: str | None = None
    parent_agent_id: str | None = None


def identify(headers: Headers, body_value: JSON) -> Caller | None:
    """The caller of one request, or None for a call that belongs to no session."""
    sent = _first_values(headers)
    explicit = sent.get(SESSION_KEY) or _non_blank(body_value)
    native = next((sent[name] for name in NATIVE_HEADERS if name in sent), None)
    marked = _marked_key(sent)
    session_id = explicit or native or marked
    if session_id is None:
        return None
    _tell_disagreement(sent, body_value, marked)
    parent = sent.get(PARENT_HEADER)
    agent_id = sent.get("x-claude-code-agent-id")
    parent_agent_id = sent.get("x-claude-code-parent-agent-id")
    if explicit is None or native is None:
        return Caller(session_id, parent, agent_id=agent_id, parent_agent_id=parent_agent_id)
    # The parent header is the harness's own, so it speaks of the harness's ids, not of the explicit one.
    parent_session_id = parent if native == explicit else None
    return Caller(explicit, parent_session_id, native, parent, agent_id, parent_agent_id)


def decoded(value: bytes) -> str:
    """The text of an id that came as raw bytes, in a header or a path: UTF-8, else Latin-1."""
    for encoding, errors in (("utf-8", "strict"), ("utf-8", "surrogatepass")):
        try:
            return value.decode(encoding, errors)
        except UnicodeDecodeError:
            continue
    return value.decode("latin-1")


def _first_values(headers: Headers) -> dict[str, str]:
    """The first non-blank value of each header."""
    values: dict[str, str] = {}
    for raw_name, raw_value in headers:
        value = decoded(raw_value).strip(BLANKS)
        if value.strip():
            values.setdefault(raw_name.decode("latin-1").lower(), value)
    return values


def _non_blank(value: JSON) -> str | None:
    return value if isinstance(value, str) and value.strip() else None


def _marked_key(sent: dict[str, str]) -> str | None:
    """The id in an API key made for it. Any other key is a credential and is never looked at again."""
    scheme, _, bearer = sent.get("authorization", "").partition(" ")
    keys = [bearer.strip(BLANKS) if scheme.lower() == "bearer" else "", sent.get("x-api-key", "")]
    for key in keys:
        if key.startswith(KEY_MARKER):
            return _non_blank(key[len(KEY_MARKER) :])
    return None


def _tell_disagreement(sent: dict[str, str], body_value: JSON, marked: str | None) -> None:
    """Name the sources, never their values: an id may have come out of an API key."""
    sources = {f"header {SESSION_KEY}": sent.get(SESSION_KEY), f"body {SESSION_KEY}": _non_blank(body_value)}
    sources |= {f"header {name}": sent.get(name) for name in NATIVE_HEADERS}
    sources |= {"the API key": marked}
    named = {source: value for source, value in sources.items() if value is not None}
    if len(set(named.values())) > 1:
        log.warning("session ids disagree between %s; the first one named is used", ", ".join(named))
