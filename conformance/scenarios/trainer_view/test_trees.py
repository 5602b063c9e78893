"""The sequences of a tree of sessions: each its own, and the root's first."""

from itertools import permutations

from conformance.gauge.check import Check
from conformance.gauge.covers import covers
from conformance.scenarios.rebuild.sessions import Session
from conformance.scenarios.trainer_view.test_sequences import accounted
from conformance.systems.rebuild import RebuildUnderTest


@covers("TRV-001", "TRV-002", "TRV-013")
async def test_each_session_has_sequences_of_its_own(rebuild: RebuildUnderTest, check: Check) -> None:
    root = Session("view-m-root")
    child = Session("view-z-child", parent=root.session_id)
    below = Session("view-a-grandchild", parent=child.session_id)
    root.turns(2)
    child.turns(3)
    below.turns(4)
    for order in permutations((root, child, below)):
        answer = await rebuild.ask({"sessions": [session.envelope() for session in order]})
        where = ", ".join(session.session_id for session in order)
        check.that("TRV-001", accounted(answer, *order), where)
        for session in order:
            own = [one for one in answer["trajectories"] if one["session_id"] == session.session_id]
            named = {uuid for one in own for uuid in one["record_uuids"]}
            strays = sorted(named - session.truth().keys())
            check("TRV-002", not strays, expected="its own calls", seen={"of others": strays}, where=where)
            sampled = {value for one in own for value in _log_probs(one)}
            due = {value for made in session.made for value in made.truth.log_probs}
            check("TRV-002", sampled == due, expected=f"{len(due)} tokens", seen=f"{len(sampled)} tokens", where=where)
        seen = answer["trajectories"][0]["session_id"] if answer["trajectories"] else None
        check.equal("TRV-013", expected=root.session_id, seen=seen, where=where)


def _log_probs(trajectory: dict[str, list[float | None]]) -> list[float]:
    return [value for value in trajectory["log_probs"] if value is not None]
