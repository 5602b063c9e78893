"""What a rebuild makes of a live session: its answer, and the engine's own account of each call in it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from conformance.gauge.check import Inconclusive
from conformance.gauge.scene import Scene
from conformance.oracle import records
from conformance.oracle.matching import match
from conformance.oracle.rollouts import Answer, Sampled, sampled
from conformance.systems.rebuild import RebuildUnderTest

JSON = Any
Row = Mapping[str, JSON]


@dataclass(frozen=True)
class Rebuilt:
    """``told`` are the calls of the session with their ledger rows, in the order of the records."""

    answer: Answer
    truth: dict[str, Sampled]
    told: Sequence[tuple[Sampled, Row]]

    def calls(self, **row: JSON) -> list[Sampled]:
        """The calls whose ledger rows have these values, such as ``turn=0, attempt=1`` or ``rule="title"``."""
        return [call for call, of in self.told if all(of[key] == value for key, value in row.items())]

    def only(self, **row: JSON) -> Sampled:
        """The one call with these values; raises Inconclusive if it is not one."""
        found = self.calls(**row)
        if len(found) != 1:
            raise Inconclusive(f"{len(found)} calls were recorded with {row}, not one")
        return found[0]

    def last_attempts(self, turns: int) -> list[Sampled]:
        """Of each of the first turns, the call that the engine was asked last."""
        found = [self.calls(turn=turn, rule=None) for turn in range(turns)]
        if not all(found):
            raise Inconclusive(f"calls recorded, turn by turn: {[len(calls) for calls in found]}")
        return [calls[-1] for calls in found]


async def rebuilt(
    scene: Scene, rebuild: RebuildUnderTest, session: str = "", *, split: Sequence[str] = (), **keys: JSON
) -> Rebuilt:
    """A session of this scene as the rebuild under test takes it. ``keys`` go into its envelope.

    Raises Inconclusive where the records are not what the engine sampled: no rebuild is to blame for that.
    """
    identity = session or scene.session()
    captured = await scene.records(identity)
    rows = await scene.ledger()
    lawful = records.law(captured, rows)
    if not captured or not lawful:
        raise Inconclusive(f"the records of {identity} are not what was sampled: {lawful.seen or 'there are none'}")
    envelope = {"schema_version": 1, "session_id": identity, "completions": captured, **keys}
    truth = sampled(record for record in captured if record["is_valid"])
    row_of = {record["uuid"]: row for record, row in match(captured, rows).pairs}
    told = [(call, row_of[uuid]) for uuid, call in truth.items()]
    return Rebuilt(await rebuild.ask({"envelope": envelope}, split=split), truth, told)
