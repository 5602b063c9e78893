"""The records of a source, read one at a time: each becomes a turn, or what it broke, and is let go of."""

from array import array
from dataclasses import dataclass, field
from typing import Any

from conformance.reference.rebuild.errors import Rule, TraceError
from conformance.reference.rebuild.repeats import Cut, Repeats
from conformance.reference.rebuild.tokens import TokenTree
from conformance.reference.rebuild.turns import Keys, Turn
from conformance.reference.rebuild.validate import check_message, turn_of

Place = tuple[str, str]


@dataclass(frozen=True)
class Attempt:
    """What a call asked whose record is not valid, in normal and in exact numbers, where it sorts, what it broke."""

    request: "array[int]"
    exact: "array[int]"
    tools_key: int
    has_tools: bool
    agent: tuple[str | None, ...]
    place: Place
    error: TraceError


@dataclass(frozen=True)
class Broken:
    """A record that is not valid: its error, and what can be read of its generated turn and of what it asked."""

    error: TraceError
    answer: int | None
    attempt: Attempt | None


@dataclass(frozen=True)
class Entry:
    """What became of one record. ``index`` is its number in the source, ``parent`` the session it names as parent."""

    place: Place
    index: int
    found: Turn | Broken
    parent: str | None


@dataclass
class Session:
    """What was read of one session, in no order; ``incomplete`` says that some of its records are lost.

    ``listed_parent`` is what a list of sessions names, and counts where no record does. ``undelivered`` are uuids of
    records whose answers did not reach their client: no fault of theirs, and whoever went on with one had it.
    """

    session_id: str
    keys: Keys
    entries: list[Entry] = field(default_factory=list)
    listed_parent: str | None = None
    incomplete: bool = False
    undelivered: set[str] = field(default_factory=set)

    @property
    def parent(self) -> str | None:
        """The first parent that a record names, in the contract's order."""
        named = [(*entry.place, entry.parent) for entry in self.entries if entry.parent is not None]
        return (min(named)[2] if named else None) or self.listed_parent


class Reader:
    """Reads the records of one source, which share one tree of tokens and one numbering of messages."""

    def __init__(self) -> None:
        self.keys = Keys()
        self.tree = TokenTree()
        self.repeats = Repeats(self.tree)

    def session(self, session_id: str) -> Session:
        return Session(session_id, self.keys)

    def add(self, session: Session, record: Any) -> None:
        """Whatever the record is: what it breaks is kept in its place."""
        index = len(session.entries)
        try:
            found: Turn | Broken = turn_of(record, session.session_id, self.keys, self.tree)
        except TraceError as error:
            found = self._broken(record, error, index)
        foreign = isinstance(found, Broken) and found.error.rule == Rule.SESSION_ID
        session.entries.append(Entry(raw_place(record), index, found, None if foreign else _parent(record)))

    def add_cut(self, session: Session, cut: Cut) -> bool:
        """False where the record breaks a rule, so that all of it is needed to say what it was."""
        try:
            turn = turn_of(cut.record, session.session_id, self.keys, self.tree, cut)
        except TraceError:
            return False
        self.repeats.remember(cut, turn.exact)
        session.entries.append(Entry(raw_place(cut.record), len(session.entries), turn, _parent(cut.record)))
        return True

    def _broken(self, record: Any, error: TraceError, index: int) -> Broken:
        """A record without a usable uuid is named by its number in the source, ``#0`` for the first."""
        named = TraceError(error.rule, error.message, error.record_uuid or f"#{index}")
        attempt = None if named.rule == Rule.SESSION_ID else self._attempt(record, named)
        return Broken(named, self._answer(record), attempt)

    def _answer(self, record: Any) -> int | None:
        try:
            return self.keys.of_message(record["messages"][-1], check_message)[1]
        except (TraceError, LookupError, TypeError):
            return None

    def _attempt(self, record: Any, error: TraceError) -> Attempt | None:
        try:
            asked = [self.keys.of_message(message, check_message) for message in _request(record["messages"])]
            tools, extras = record.get("tools"), record.get("x_trackgauge") or {}
            ids = [extras.get(key) or None for key in ("native_session_id", "agent_id")]
            agent = tuple(one if isinstance(one, str) else None for one in ids)
            exact, normal = (array("I", (pair[which] for pair in asked)) for which in (0, 1))
            return Attempt(normal, exact, self.keys.of_value(tools), bool(tools), agent, raw_place(record), error)
        except (TraceError, LookupError, TypeError, AttributeError):
            return None


@dataclass
class Sessions:
    """What a source holds; ``faults`` are parts of it that could not be read as sessions at all.

    ``alone`` tells that one session was asked for and not a tree, so that its parent may be elsewhere.
    """

    found: dict[str, Session] = field(default_factory=dict)
    reader: Reader = field(default_factory=Reader)
    faults: list[TraceError] = field(default_factory=list)
    alone: bool = False

    def session(self, session_id: str) -> Session:
        """The session of that id, whichever part of the source names it first."""
        return self.found.setdefault(session_id, self.reader.session(session_id))


def raw_place(record: Any) -> Place:
    """Where a record sorts, whatever it is."""
    known = record if isinstance(record, dict) else {}
    return str(known.get("captured_at")), str(known.get("uuid"))


def _parent(record: Any) -> str | None:
    named = record.get("parent_session_id") if isinstance(record, dict) else None
    return named if isinstance(named, str) and named.strip() else None


def _request(messages: list[Any]) -> list[Any]:
    """All but the generated turn, which a record lacks where the engine gave no choice."""
    return messages[:-1] if messages[-1]["role"] == "assistant" else messages
