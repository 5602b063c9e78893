"""Generations that the engine broke off, or will not say how they ended."""

from conformance.gauge.check import Check
from conformance.gauge.covers import covers
from conformance.gauge.scene import Scene
from conformance.scenarios.validity.answers import Case, odd, play

FINISH = "/choices/0/finish_reason"

CASES = (
    Case("VAL-023", "abort", {"name": "abort"}),
    Case("VAL-023", "abort of a whole answer", odd(FINISH, "abort")),
    Case("VAL-023", "error", odd(FINISH, "error")),
    Case("VAL-023", "null", {"name": "null_finish"}),
)


@covers("VAL-023", "VAL-024")
async def test_a_torn_generation_is_told_from_a_finished_one(scene: Scene, check: Check) -> None:
    for played in await play(scene, CASES):
        given = None if played.case.what == "null" else played.case.what.partition(" ")[0]
        seen = played.record.get("finish_reason", "no record")
        check.equal("VAL-023", expected=given, seen=seen, where=played.where)
        if not played.records:
            check.nothing("VAL-024", "record")
            continue
        reason = (played.record.get("x_trackgauge") or {}).get("invalid_reason")
        flagged = not played.says_valid or (isinstance(reason, str) and bool(reason))
        check("VAL-024", flagged, expected="invalid, or an invalid_reason", seen=reason, where=played.where)
