"""Where the records come from: an envelope, a list of envelopes, a log directory or a capture proxy's address."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import quote
from urllib.request import ProxyHandler, build_opener

from conformance.contract.rebuilds import Source
from conformance.contract.records import SCHEMA_VERSION
from conformance.reference.rebuild.directory import from_directory
from conformance.reference.rebuild.errors import Rule, TraceError
from conformance.reference.rebuild.reading import Session, Sessions

TIMEOUT_SECONDS = 60.0


def read(source: Source) -> Sessions:
    """The sessions of a source. Raises TraceError where it is none of the four, or cannot be reached."""
    given = [key for key in ("envelope", "sessions", "log_dir", "url") if getattr(source, key) is not None]
    if len(given) != 1:
        seen = ", ".join(given) or "none"
        raise TraceError(Rule.SOURCE, f"source needs exactly one of envelope, sessions, log_dir, url; seen {seen}")
    if "" in (source.log_dir, source.url):
        raise TraceError(Rule.SOURCE, f"source.{given[0]} must not be empty")
    if source.sessions is not None:
        return _from_envelopes(source.sessions)
    if source.log_dir is not None:
        return from_directory(Path(source.log_dir))
    if source.url is not None:
        return _from_proxy(source.url.rstrip("/"))
    sessions = Sessions(alone=True)
    add_envelope(sessions, source.envelope)
    return sessions


def add_envelope(sessions: Sessions, envelope: Any) -> Session:
    """Takes in the records of one envelope. Raises TraceError where it is no envelope of this contract."""
    if not isinstance(envelope, dict):
        raise TraceError(Rule.ENVELOPE, f"an envelope must be an object, seen {type(envelope).__name__}")
    version = envelope.get("schema_version")
    if type(version) is not int or version != SCHEMA_VERSION:
        raise TraceError(Rule.ENVELOPE, f"envelope schema_version must be {SCHEMA_VERSION}")
    session_id = envelope.get("session_id")
    if not isinstance(session_id, str) or not session_id.strip():
        raise TraceError(Rule.ENVELOPE, "envelope session_id must be a non-blank string")
    records = envelope.get("completions")
    if not isinstance(records, list):
        raise TraceError(Rule.ENVELOPE, f"envelope completions must be a list, seen {type(records).__name__}")
    session = sessions.session(session_id)
    for record in records:
        sessions.reader.add(session, record)
    session.incomplete = session.incomplete or envelope.get("incomplete") is True
    marked = envelope.get("undelivered")
    if isinstance(marked, list):
        session.undelivered.update(uuid for uuid in marked if isinstance(uuid, str))
    return session


def _from_envelopes(envelopes: Iterable[Any]) -> Sessions:
    sessions = Sessions()
    for envelope in envelopes:
        try:
            add_envelope(sessions, envelope)
        except TraceError as error:
            sessions.faults.append(error)
    return sessions


def _from_proxy(base: str) -> Sessions:
    listing = _get(f"{base}/v1/sessions")
    rows = listing.get("sessions") if isinstance(listing, dict) else None
    if not isinstance(rows, list):
        raise TraceError(Rule.SOURCE, "/v1/sessions answered without a list of sessions")
    sessions = Sessions()
    for row in rows:
        try:
            _add_session_at(sessions, base, row)
        except TraceError as error:
            sessions.faults.append(error)
    return sessions


def _add_session_at(sessions: Sessions, base: str, row: Any) -> None:
    session_id = row.get("session_id") if isinstance(row, dict) else None
    if not isinstance(session_id, str):
        raise TraceError(Rule.SOURCE, "a row of /v1/sessions has no session_id")
    page = f"{base}/v1/sessions/{quote(session_id, safe='', errors='surrogatepass')}/completions"
    envelope = _get(page)
    if isinstance(envelope, dict) and envelope.get("session_id") != session_id:
        raise TraceError(Rule.ENVELOPE, f"session {ascii(session_id)[:80]} was asked for, and another was handed out")
    session = add_envelope(sessions, envelope)
    parent = row.get("parent_session_id")
    session.listed_parent = parent if isinstance(parent, str) else None
    session.incomplete = session.incomplete or row.get("incomplete") is True


def _get(url: str) -> Any:
    if not url.startswith(("http://", "https://")):
        raise TraceError(Rule.SOURCE, f"source.url must start with http:// or https://, seen {ascii(url)[:80]}")
    opener = build_opener(ProxyHandler({}))
    try:
        with opener.open(url, timeout=TIMEOUT_SECONDS) as response:
            return json.loads(response.read())
    except HTTPError as error:
        error.close()
        raise TraceError(Rule.SOURCE, f"the proxy answered {error.code} where its sessions were asked for") from None
    except (URLError, OSError, ValueError, RecursionError) as error:
        raise TraceError(Rule.SOURCE, f"the proxy's sessions cannot be read: {error}") from None
