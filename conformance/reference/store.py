"""The record store on disk: what a capture proxy keeps, and how any process on the directory finds it again.

``<log dir>/sessions/<sha256 of the session id>/<uuid>.json``, one file a record. Beside the records lie marks, which
are empty files: ``incomplete`` (a record of this session was lost) and ``<uuid>.undelivered`` (the client had gone
before it had the whole answer). Everything here blocks, and belongs into a thread.
"""

import hashlib
import logging
import os
import stat
import threading
import time
import uuid
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

from conformance.reference.capture import jsontext
from conformance.reference.capture.jsontext import JSONObject

log = logging.getLogger(__name__)

LOST_MARK = "incomplete"
UNDELIVERED_SUFFIX = ".undelivered"
SCHEMA_VERSION = 1

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_END = datetime(9999, 1, 1, tzinfo=UTC)
"""A record from after this is from no clock, and nothing could be recorded after it."""


@dataclass(frozen=True)
class Kept:
    """What the store needs to know of one record file."""

    captured_at: str
    uuid: str
    session_id: str
    parent_session_id: str | None


@dataclass
class _Session:
    """What this process knows of a session's folder: how many records lie there, the latest time, the parent.

    ``rooted`` tells that the folder itself is known to be on the disk. ``lock`` is held while what others wrote is read
    again, which may take seconds, and no other session is to wait for that.
    """

    lock: threading.Lock = field(default_factory=threading.Lock)
    files: int = 0
    latest: int = 0
    parent: str | None = None
    rooted: bool = False


class Store:
    """Records of all sessions below one log directory."""

    def __init__(self, log_dir: Path) -> None:
        self.root = log_dir / "sessions"
        self._lock = threading.Lock()
        self._last_time = 0
        # A clock that never steps: the wall clock once, and from then on the monotonic one.
        self._offset = time.time_ns() - time.monotonic_ns()
        self._known: dict[str, _Session] = {}
        self._lost: dict[str, str | None] = {}
        self._rows: dict[Path, tuple[tuple[int, int, int], Kept | None]] = {}
        self._damaged: set[Path] = set()

    def prepare(self) -> None:
        """Make the folder; raises OSError if it cannot be used."""
        self.root.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not os.access(self.root, os.R_OK | os.W_OK | os.X_OK):
            raise PermissionError(13, "no permission to write", str(self.root))

    def now(self) -> int:
        """Microseconds since the epoch, on the clock that ``captured_at`` is taken from."""
        return (self._offset + time.monotonic_ns()) // 1000

    def folder(self, session_id: str) -> Path:
        """A session's folder. The hash keeps ids apart, inside the directory, and out of file names."""
        return self.root / hashlib.sha256(session_id.encode("utf-8", "surrogatepass")).hexdigest()

    def keep(self, record: JSONObject) -> str:
        """Write a record so that it survives the death of this process; returns its uuid, raises OSError or
        ValueError (a value that JSON cannot hold).

        Sets ``uuid``, ``captured_at`` (after all that this process or this session recorded before, whatever the
        clock does) and the parent that the session settled on.
        """
        folder = self.folder(record["session_id"])
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        record["uuid"] = str(uuid.uuid4())
        session = self._known.setdefault(record["session_id"], _Session())
        with session.lock:
            self._look_again(session, folder)
            session.parent = session.parent or record["parent_session_id"]
            record["parent_session_id"] = session.parent
            record["captured_at"] = self._next_time(session)
        try:
            _write_durably(folder, f"{record['uuid']}.json", jsontext.write(record))
        except (OSError, ValueError):
            with session.lock:
                session.files -= 1
            raise
        if not session.rooted:
            _sync(self.root)
            session.rooted = True
        return str(record["uuid"])

    def mark_lost(self, session_id: str, parent_session_id: str | None) -> None:
        """Say for good that a record of this session could not be written; raises OSError."""
        folder = self.folder(session_id)
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        _touch(folder / LOST_MARK)
        _sync(self.root)
        self._lost[session_id] = parent_session_id

    def mark_undelivered(self, session_id: str, record_uuid: str) -> None:
        """Say that the client did not get the whole answer of a record; raises OSError."""
        _touch(self.folder(session_id) / f"{record_uuid}{UNDELIVERED_SUFFIX}")

    def sessions(self) -> list[JSONObject]:
        """A row for each session with a readable record or a known loss, by the time of its first record.

        Raises OSError if the store itself cannot be read.
        """
        found: list[tuple[str, str, JSONObject]] = []
        for folder in self._folders():
            records = self.records(folder)
            if records:
                found.append((records[0].captured_at, records[0].session_id, self._row(folder, records)))
        listed = {row["session_id"] for _, _, row in found}
        lost = [
            {"session_id": session_id, "parent_session_id": parent, "incomplete": True}
            for session_id, parent in sorted(self._lost.items())
            if session_id not in listed
        ]
        return [row for _, _, row in sorted(found, key=lambda each: each[:2])] + lost

    def envelope(self, session_id: str) -> bytes | None:
        """The envelope of a session as JSON text, its records as they stand on disk; None if it is unknown.

        Raises OSError if the store itself cannot be read: that is no empty session.
        """
        self.root.stat()
        folder = self.folder(session_id)
        records = self.records(folder)
        lost = self._has_lost(folder)
        if not records and not lost:
            return None
        head = {
            "schema_version": SCHEMA_VERSION,
            "session_id": session_id,
            "incomplete": lost,
            "undelivered": [kept.uuid for kept in records if (folder / f"{kept.uuid}{UNDELIVERED_SUFFIX}").exists()],
        }
        texts = [(folder / f"{kept.uuid}.json").read_bytes() for kept in records]
        return jsontext.write(head)[:-1] + b',"completions":[' + b",".join(texts) + b"]}"

    def records(self, folder: Path) -> list[Kept]:
        """The readable records of a folder by (captured_at, uuid). What is not a record of it hides nothing else."""
        kept = [self._read(folder / name) for name in _record_names(folder)]
        own = [each for each in kept if each is not None and self.folder(each.session_id) == folder]
        return sorted(own, key=lambda each: (each.captured_at, each.uuid))

    def _folders(self) -> list[Path]:
        with os.scandir(self.root) as entries:
            return [self.root / entry.name for entry in entries if entry.is_dir(follow_symlinks=False)]

    def _row(self, folder: Path, records: list[Kept]) -> JSONObject:
        parent = next((kept.parent_session_id for kept in records if kept.parent_session_id is not None), None)
        row: JSONObject = {"session_id": records[0].session_id, "parent_session_id": parent}
        return row | ({"incomplete": True} if self._has_lost(folder) else {})

    def _has_lost(self, folder: Path) -> bool:
        """Whether a record was lost, or a file is there, read before, that may have been one."""
        return (folder / LOST_MARK).exists() or any(folder / name in self._damaged for name in _record_names(folder))

    def _look_again(self, session: _Session, folder: Path) -> None:
        """Read the session again if another process has written to it, and count the record that is to come."""
        files = len(_record_names(folder))
        if files > session.files:
            for kept in self.records(folder):
                session.latest = max(session.latest, _microseconds(kept.captured_at))
                session.parent = session.parent or kept.parent_session_id
            session.files = files
        session.files += 1

    def _next_time(self, session: _Session) -> str:
        with self._lock:
            self._last_time = max(self.now(), self._last_time + 1, session.latest + 1)
            session.latest = self._last_time
        return timestamp(session.latest)

    def _read(self, path: Path) -> Kept | None:
        """A record file, read once for each state it is found in; None if it is none, which is told once."""
        try:
            status = path.lstat()
            signature = (status.st_mtime_ns, status.st_size, status.st_ino)
            known = self._rows.get(path)
            if known is not None and known[0] == signature:
                return known[1]
            kept = _parsed(path, status)
        except FileNotFoundError:
            return None
        except OSError as error:  # it may be a record, and readable again later
            if path not in self._damaged:
                log.warning("%s in %s cannot be read: %s", path.name, path.parent.name[:12], error.strerror)
            self._damaged.add(path)
            return None
        except ValueError as error:
            log.warning("%s in %s is passed over: %s", path.name, path.parent.name[:12], str(error)[:200])
            kept = None
            if isinstance(error, DamagedFile):
                self._damaged.add(path)
        if kept is not None:
            self._damaged.discard(path)
        self._rows[path] = (signature, kept)
        return kept


class DamagedFile(ValueError):
    """Raised when a record file is no JSON: it may have been a record."""


def timestamp(microseconds: int) -> str:
    """A time since the epoch in the one form that sorts as text: UTC, six digits, ``+00:00``."""
    return (_EPOCH + timedelta(microseconds=microseconds)).isoformat(timespec="microseconds")


def _parsed(path: Path, status: os.stat_result) -> Kept:
    """Raises ValueError unless the file is a record that may be handed out as it stands."""
    if not stat.S_ISREG(status.st_mode):
        raise ValueError("not a regular file")
    try:
        record = jsontext.read(path.read_bytes())
    except ValueError as error:
        raise DamagedFile(str(error)) from None
    if not isinstance(record, dict) or record.get("schema_version") != SCHEMA_VERSION:
        raise ValueError("not a record of a known version")
    parent = record.get("parent_session_id")
    names = [record.get("captured_at"), record.get("uuid"), record.get("session_id")]
    if not all(isinstance(name, str) and name for name in names) or not isinstance(parent, str | None):
        raise ValueError("not a record: a name or time is missing")
    if record["uuid"] != path.stem:
        raise ValueError("the file is named after another record")
    return Kept(record["captured_at"], record["uuid"], record["session_id"], parent)


def _record_names(folder: Path) -> list[str]:
    try:
        return [name for name in os.listdir(folder) if name.endswith(".json")]
    except FileNotFoundError:
        return []


def _microseconds(captured_at: str) -> int:
    try:
        found = datetime.fromisoformat(captured_at)
        return (found - _EPOCH) // _MICROSECOND if found < _END else 0
    except (ValueError, TypeError):
        return 0


def _write_durably(folder: Path, name: str, text: bytes) -> None:
    """Complete or absent, private from its first moment, and on the disk when this returns."""
    hidden = folder / f".{name}.tmp"
    try:
        file = os.open(hidden, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            _write_all(file, text)
            os.fsync(file)
        finally:
            os.close(file)
        os.rename(hidden, folder / name)
    except OSError:
        hidden.unlink(missing_ok=True)
        raise
    _sync(folder)


def _write_all(file: int, text: bytes) -> None:
    rest = memoryview(text)
    while rest:
        rest = rest[os.write(file, rest) :]


def _touch(path: Path) -> None:
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600))
    _sync(path.parent)


def _sync(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
