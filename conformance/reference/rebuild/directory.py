"""The records of a log directory, one file at a time: they count by the session they name, wherever they lie."""

import json
import os
from hashlib import sha256
from pathlib import Path
from typing import Any

from conformance.reference.rebuild.errors import Rule, TraceError
from conformance.reference.rebuild.reading import Session, Sessions

INCOMPLETE_MARK = "incomplete"
UNDELIVERED_SUFFIX = ".undelivered"


def from_directory(log_dir: Path) -> Sessions:
    """What is no record hides nothing else; a damaged file may have been one, so that its session lost records."""
    sessions = Sessions()
    root = log_dir / "sessions"
    if not log_dir.is_dir():
        raise TraceError(Rule.SOURCE, f"the log directory {ascii(str(log_dir))[:200]} is no directory")
    try:
        files = sorted((file for file in root.glob("*/*.json") if file.is_file()), key=_written)
        lossy = {mark.parent.name for mark in root.glob(f"*/{INCOMPLETE_MARK}")} | _closed(root)
        undelivered = _undelivered(root)
    except (OSError, ValueError) as error:
        raise TraceError(Rule.SOURCE, f"the log directory cannot be read: {error}") from None
    homes: dict[str, set[str]] = {}
    raw = bytearray()  # one for all: a thousand buffers, each a little larger than the last, leave the heap in holes
    for file in files:
        try:
            read_into(raw, file)
            session = _take(raw, sessions)
        except (OSError, ValueError, RecursionError):
            lossy.add(file.parent.name)
            continue
        if session is not None:
            homes.setdefault(session.session_id, set()).add(file.parent.name)
    for session in sessions.found.values():
        folders = homes[session.session_id] | {_folder_of(session.session_id)}
        session.incomplete = not lossy.isdisjoint(folders)
        session.undelivered.update(*(undelivered.get(folder, ()) for folder in folders))
    known = {_folder_of(session_id) for session_id in homes}.union(*homes.values())
    if lossy - known:
        sessions.faults.append(TraceError(Rule.SOURCE, "a session lost records and none of it is left"))
    return sessions


def _closed(root: Path) -> set[str]:
    """Folders that cannot be looked into: glob passes over them, and records may lie in each."""
    closed = set()
    for folder in root.iterdir() if root.is_dir() else ():
        try:
            if folder.is_dir():
                os.listdir(folder)
        except OSError:
            closed.add(folder.name)
    return closed


def _undelivered(root: Path) -> dict[str, list[str]]:
    """By folder the uuids of the records whose answers did not reach their client, as marks beside them say."""
    found: dict[str, list[str]] = {}
    for mark in root.glob(f"*/*{UNDELIVERED_SUFFIX}"):
        found.setdefault(mark.parent.name, []).append(mark.name.removesuffix(UNDELIVERED_SUFFIX))
    return found


def _written(file: Path) -> tuple[int, str]:
    """In the order of their writing each record repeats the one before; what the rebuild says does not depend on it."""
    return file.stat().st_mtime_ns, str(file)


def _folder_of(session_id: str) -> str:
    return sha256(session_id.encode("utf-8", "surrogatepass")).hexdigest()


def read_into(raw: bytearray, file: Path) -> None:
    """Makes ``raw`` the bytes of a file. Raises OSError."""
    with file.open("rb", buffering=0) as opened:
        size = os.fstat(opened.fileno()).st_size
        del raw[size:]
        raw.extend(bytes(size - len(raw)))
        read = 0
        with memoryview(raw) as view:
            while read < size and (more := opened.readinto(view[read:])):
                read += more
        del raw[read:]
        raw += opened.read()


def _take(raw: bytearray, sessions: Sessions) -> Session | None:
    """The session to which the text added a record; null where it holds something else.

    ValueError: it is damaged, or a record that does not say whose it is.
    """
    cut = sessions.reader.repeats.cut(raw)
    if cut is not None and _is_record(cut.record):
        session = sessions.session(cut.record["session_id"])
        if sessions.reader.add_cut(session, cut):
            return session
    record = json.loads(raw)
    if not _is_record(record):
        if isinstance(record, dict) and "generation_token_ids" in record:
            raise ValueError("a record without a session")
        return None
    session = sessions.session(record["session_id"])
    sessions.reader.add(session, record)
    return session


def _is_record(value: Any) -> bool:
    """Whether anything may be said of it at all: it names a session."""
    named = value.get("session_id") if isinstance(value, dict) else None
    return isinstance(named, str) and bool(named.strip())
