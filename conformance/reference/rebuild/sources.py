"""Where the records come from: an envelope, a list of envelopes, a log directory or a capture proxy's address."""

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import quote
from urllib.request import ProxyHandler, build_opener

from conformance.contract.rebuilds import Source
from conformance.contract.records import SCHEMA_VERSION
from conformance.reference.rebuild.errors import Rule, TraceError

TIMEOUT_SECONDS = 60.0
INCOMPLETE_MARK = "incomplete"


@dataclass
class Session:
    """The raw records of one session, in no order; ``incomplete`` says that the proxy lost some."""

    session_id: str
    records: list[Any]
    parent: str | None = None
    incomplete: bool = False


@dataclass
class Sessions:
    """What a source holds; ``faults`` are parts of it that could not be read as sessions at all.

    ``alone`` tells that one session was asked for and not a tree, so that its parent may be elsewhere.
    """

    found: dict[str, Session] = field(default_factory=dict)
    faults: list[TraceError] = field(default_factory=list)
    alone: bool = False

    def add(self, session: Session) -> None:
        known = self.found.setdefault(session.session_id, session)
        if known is not session:
            known.records += session.records
            known.parent = known.parent or session.parent
            known.incomplete = known.incomplete or session.incomplete


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
        return _from_directory(Path(source.log_dir))
    if source.url is not None:
        return _from_proxy(source.url.rstrip("/"))
    sessions = Sessions(alone=True)
    sessions.add(session_of(source.envelope))
    return sessions


def session_of(envelope: Any) -> Session:
    """One envelope as a session. Raises TraceError where it is no envelope of this contract."""
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
    return Session(session_id, list(records), _parent(records), envelope.get("incomplete") is True)


def _parent(records: Iterable[Any]) -> str | None:
    """The first parent that a record names, in the contract's order."""
    named = [
        (str(record.get("captured_at")), str(record.get("uuid")), record["parent_session_id"])
        for record in records
        if isinstance(record, dict) and isinstance(record.get("parent_session_id"), str)
    ]
    return min(named)[2] or None if named else None


def _from_envelopes(envelopes: Iterable[Any]) -> Sessions:
    sessions = Sessions()
    for envelope in envelopes:
        try:
            sessions.add(session_of(envelope))
        except TraceError as error:
            sessions.faults.append(error)
    return sessions


def _from_directory(log_dir: Path) -> Sessions:
    """Records count by the session they name, wherever they lie; what is no record hides nothing else."""
    sessions = Sessions()
    root = log_dir / "sessions"
    try:
        files = sorted(root.glob("*/*.json"))
        marks = {mark.parent.name for mark in root.glob(f"*/{INCOMPLETE_MARK}")}
    except (OSError, ValueError) as error:
        raise TraceError(Rule.SOURCE, f"the log directory cannot be read: {error}") from None
    for file in files:
        record = _record_in(file)
        if record is not None:
            sessions.add(Session(record["session_id"], [record]))
    for session in sessions.found.values():
        folder = sha256(session.session_id.encode("utf-8", "surrogatepass")).hexdigest()
        session.parent = _parent(session.records)
        session.incomplete = folder in marks
        marks.discard(folder)
    if marks:
        sessions.faults.append(TraceError(Rule.SOURCE, "a session lost records and none of it is left"))
    return sessions


def _record_in(file: Path) -> dict[str, Any] | None:
    try:
        record = json.loads(file.read_bytes())
    except (OSError, ValueError, RecursionError):
        return None
    if not isinstance(record, dict) or not isinstance(record.get("session_id"), str):
        return None
    return record if record["session_id"].strip() else None


def _from_proxy(base: str) -> Sessions:
    listing = _get(f"{base}/v1/sessions")
    rows = listing.get("sessions") if isinstance(listing, dict) else None
    if not isinstance(rows, list):
        raise TraceError(Rule.SOURCE, "/v1/sessions answered without a list of sessions")
    sessions = Sessions()
    for row in rows:
        try:
            sessions.add(_session_at(base, row))
        except TraceError as error:
            sessions.faults.append(error)
    return sessions


def _session_at(base: str, row: Any) -> Session:
    session_id = row.get("session_id") if isinstance(row, dict) else None
    if not isinstance(session_id, str):
        raise TraceError(Rule.SOURCE, "a row of /v1/sessions has no session_id")
    session = session_of(_get(f"{base}/v1/sessions/{quote(session_id, safe='', errors='surrogatepass')}/completions"))
    parent = row.get("parent_session_id")
    session.parent = session.parent or (parent if isinstance(parent, str) else None)
    session.incomplete = session.incomplete or row.get("incomplete") is True
    return session


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
