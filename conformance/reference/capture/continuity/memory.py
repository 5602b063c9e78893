"""All chains that this process knows, of all callers: bounded, and filled again from the records on the disk."""

from collections import OrderedDict
from collections.abc import Iterable

from conformance.reference.capture.continuity.chains import Chains, Spoken, Turn
from conformance.reference.capture.continuity.learning import Key, Learned
from conformance.reference.capture.continuity.recall import unread
from conformance.reference.capture.jsontext import JSONObject
from conformance.reference.capture.work import Workers
from conformance.reference.store import Store

LIMIT = 32 * 1024 * 1024
"""In tokens, and what messages weigh beside them; some hundred megabytes."""

SESSION_WEIGHT = 200
"""Of one of which nothing is known that could be continued."""


class _Session:
    """The chains of one session's callers, and which of its records they were made of."""

    def __init__(self) -> None:
        self.chains: dict[Key, Chains] = {}
        self.turns: dict[str, Turn] = {}
        self.read: set[str] = set()
        self.weight = SESSION_WEIGHT

    def forgotten(self) -> int:
        """Forget all chains, but not which records were read; returns how much lighter the session is."""
        freed, self.weight = self.weight - SESSION_WEIGHT, SESSION_WEIGHT
        self.chains.clear()
        self.turns.clear()
        return freed


class Memory:
    """Belongs to the event loop's thread. The session that was asked for longest ago makes room first."""

    def __init__(self, store: Store, workers: Workers, limit: int = LIMIT) -> None:
        self._store = store
        self._workers = workers
        self._limit = limit
        self._sessions: OrderedDict[str, _Session] = OrderedDict()
        self._count = 0
        self.weight = 0
        self.evicted = 0

    async def turn_before(self, key: Key, spoken: Spoken) -> Turn | None:
        """The turn that these messages continue: no assistant speaks in them that is not on its chain.

        What another process has answered meanwhile, be it in the same words, is on the disk, which is asked first.
        """
        if not spoken.has_answers:
            return None
        await self._recall(str(key[0]))
        return self._found(key, spoken)

    def keep(self, entry: Learned, before: Turn | None = None) -> Turn:
        """Remember a record. It goes on from ``before``, or from whatever it continues in words and tokens."""
        session = self._session(str(entry.key[0]))
        if entry.uuid in session.turns:
            # Another call has read it from the disk in the moment between.
            return session.turns[entry.uuid]
        session.read.add(entry.uuid)
        chains = session.chains.setdefault(entry.key, Chains())
        parent = self._parent(chains, entry, before)
        turn = self._turn(entry, parent)
        weight = chains.weight
        chains.add(turn)
        session.turns[entry.uuid] = turn
        session.weight += chains.weight - weight
        self.weight += chains.weight - weight
        self._make_room()
        return turn

    def passed_over(self, session_id: str, record_uuid: str) -> None:
        """A record that nothing can be continued from has been seen."""
        self._session(session_id).read.add(record_uuid)

    def told(self) -> JSONObject:
        """How much is remembered."""
        turns = sum(len(session.turns) for session in self._sessions.values())
        return {"sessions": len(self._sessions), "turns": turns, "weight": self.weight, "evicted": self.evicted}

    def _found(self, key: Key, spoken: Spoken) -> Turn | None:
        session = self._sessions.get(str(key[0]))
        if session is None or key not in session.chains:
            return None
        self._sessions.move_to_end(str(key[0]))
        matches = session.chains[key].matches(spoken)
        return matches[0] if matches and not spoken.answered_after(matches[0].depth) else None

    async def _recall(self, session_id: str) -> None:
        known = frozenset(self._session(session_id).read)
        names, entries = await self._workers.run(lambda: unread(self._store, session_id, known))
        read = self._session(session_id).read
        for entry in entries:
            # Another call may have read it meanwhile.
            if entry.uuid not in read:
                self.keep(entry)
        self._session(session_id).read.update(names)

    def _session(self, session_id: str) -> _Session:
        session = self._sessions.get(session_id)
        if session is None:
            session = self._sessions[session_id] = _Session()
            self.weight += session.weight
            self._make_room()
        self._sessions.move_to_end(session_id)
        return session

    def _parent(self, chains: Chains, entry: Learned, before: Turn | None) -> Turn | None:
        # While the engine was at work, the session may have made room for another, and ``before`` with it.
        kept = before is not None and self._session(str(entry.key[0])).turns.get(before.uuid) is before
        candidates: Iterable[Turn] = (before,) if before is not None and kept else chains.matches(entry.request)
        return next((turn for turn in candidates if turn.opens(entry.prompt)), None)

    def _turn(self, entry: Learned, parent: Turn | None) -> Turn:
        known_messages = 0 if parent is None else parent.depth
        known_ids = 0 if parent is None else parent.length
        self._count += 1
        return Turn(
            parent=parent,
            messages=entry.messages[known_messages:],
            digests=entry.digests[known_messages:],
            ids=entry.prompt[known_ids:] + entry.generation,
            generated=len(entry.generation),
            self_ended=entry.self_ended,
            rendering=entry.rendering,
            depth=len(entry.messages),
            number=self._count,
            uuid=entry.uuid,
            reasoning=entry.reasoning,
            delivered=entry.delivered,
        )

    def _make_room(self) -> None:
        while self.weight > self._limit and len(self._sessions) > 1:
            _, session = self._sessions.popitem(last=False)
            self.weight -= session.weight
            self.evicted += 1
        if self.weight > self._limit:
            # One session fills it all, and its records would only fill it again.
            for session in self._sessions.values():
                self.weight -= session.forgotten()
                self.evicted += 1
