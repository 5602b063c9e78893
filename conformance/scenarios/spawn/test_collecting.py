"""What is collected, and when: from the disk, after the proxy is gone, and never at the cost of reward or patch."""

import json
from pathlib import Path
from typing import Any

from conformance.gauge.check import Check
from conformance.gauge.covers import covers
from conformance.oracle import triples
from conformance.scenarios.rebuild.sessions import Session
from conformance.scenarios.spawn.rollouts import SHELL, records_of, rollouts, verdict
from conformance.systems.runner import RunnerUnderTest

JSON = Any

PATCH = "--- a/header.h\n+++ b/header.h\n@@ -1 +1 @@\n-int größe;\n+int size;\n"
BROKEN = {
    "nothing": {},
    "no records": {"sessions/x/list.json": "[1]", "sessions/x/torn.json": '{"session_id": "a", "uu'},
    "no tokens": {"sessions/x/a.json": '{"session_id": "a", "uuid": "u", "schema_version": 1}'},
}


@covers("SPN-036", "SPN-002")
async def test_records_are_read_when_the_proxy_has_written_its_last(
    runner: RunnerUnderTest, tmp_path: Path, check: Check
) -> None:
    async with rollouts(runner, tmp_path) as asked:
        going, proxy, harness = await asked.raised()
        session = Session(harness.told["arguments"][1])
        turns = session.turns(3)
        files = list(records_of(session, proxy.log_dir).items())
        await proxy.do("write", files=dict(files[:1]))
        await proxy.do("write_when_told_to_end", files=dict(files[1:]))
        await harness.do("leave")
        answer = await going.answer()
        check.that("SPN-036", triples.one_clean_chain(answer, [turn.truth for turn in turns]))
        check.equal("SPN-002", expected=session.session_id, seen=answer["session_id"], where="the minted id")
        held = [one["session_id"] for one in answer["trajectories"]]
        check.equal("SPN-002", expected=[session.session_id], seen=held, where="sessions of the rollout")


@covers("SPN-035", "SPN-038")
async def test_a_collection_that_fails_keeps_what_the_harness_came_to(
    runner: RunnerUnderTest, tmp_path: Path, check: Check
) -> None:
    async with rollouts(runner, tmp_path) as asked:
        left = {"patch": "fix.patch", "metrics": "out/metrics.json"}
        for where, files in BROKEN.items():
            going, proxy, harness = await asked.raised(
                harness=asked.harness(**left), evaluation=verdict(1.0, tests_passed=7)
            )
            await proxy.do("write", files={f"{proxy.log_dir}/{name}": text for name, text in files.items()})
            await harness.do("write", files={"fix.patch": PATCH, "out/metrics.json": json.dumps({"steps": 12})})
            await harness.do("leave")
            answer = await going.answer()
            seen = {key: answer[key] for key in ("outcome", "withheld", "reward", "patch", "metrics")}
            due = {
                "outcome": "failed",
                "withheld": True,
                "reward": 1.0,
                "patch": PATCH,
                "metrics": {"steps": 12, "tests_passed": 7},
            }
            check.equal("SPN-035", expected=due, seen=seen, where=where)
            check("SPN-035", bool(answer["error"] or answer["reason"]), expected="a reason", seen=answer["reason"])
        for said in ("", "no verdict", '{"reward": true}', '{"reward": NaN}'):
            evaluation = {"command": ["echo", said]}
            answer = await (await asked.begin(proxy={}, harness=SHELL, evaluation=evaluation)).answer()
            check.equal("SPN-038", expected=None, seen=answer["reward"], where=f"an evaluation that says {said!r}")
            check("SPN-038", bool(answer["warnings"]), expected="a warning", seen=answer["warnings"], where=said)


@covers("SPN-037")
async def test_a_line_that_is_no_request_is_answered_and_the_next_is_read(
    runner: RunnerUnderTest, tmp_path: Path, check: Check
) -> None:
    good = {"v": 1, "folder": str(tmp_path), "model": "m", "harness": SHELL}
    lines: tuple[JSON, ...] = ({"model": 7}, {"harness": {}}, {"colour": "red"}, {"v": 99}, {"op": "dance"})
    for number, bad in enumerate(lines):
        identity = f"bad-{number}-{tmp_path.name}"
        going = await runner.send({**good, **bad, "id": identity}, answers_to=identity)
        assert going is not None
        answer = await going.answer()
        key = next(iter(bad))
        seen = [answer["outcome"], answer["withheld"], key in (answer["reason"] or "")]
        check.equal("SPN-037", expected=["failed", True, True], seen=seen, where=f"{bad}: outcome, withheld, names it")
    async with rollouts(runner, tmp_path) as asked:
        answer = await (await asked.begin(proxy={}, harness=SHELL)).answer()
        check.equal("SPN-037", expected=0, seen=(answer["harness"] or {}).get("exit_code"), where="the next one")
