"""A proxy of the rollout's own: found, given its environment, started among others, waited for."""

from pathlib import Path

from conformance.gauge.check import Check, Inconclusive
from conformance.gauge.covers import covers
from conformance.scenarios.rebuild.sessions import Session
from conformance.scenarios.spawn.rollouts import (
    MODEL,
    PROFILE,
    SOON_SECONDS,
    VARIABLES,
    answer_soon,
    is_lost,
    records_of,
    rollouts,
    stage_of,
    text_of,
)
from conformance.systems.routing import CLOSED_ADDRESS
from conformance.systems.runner import PRESET, RunnerUnderTest

OTHERS_MEANWHILE = 4
"""So many whole rollouts take longer than a harness takes to come."""


@covers("SPN-004", "SPN-005", "SPN-006")
async def test_each_variable_of_a_profile_is_derived_on_its_own(
    runner: RunnerUnderTest, tmp_path: Path, check: Check
) -> None:
    preset = next(iter(PRESET))
    async with rollouts(runner, tmp_path) as asked:
        asked.profile.write_text(f"{PROFILE}    api_key: ${{{preset}}}\n", encoding="utf-8")
        variables = {**VARIABLES, "GAUGE_PARSER": "{tool_parser}"}
        proxy = await asked.come("proxy", await asked.begin(proxy=asked.spawn(variables=variables)))
        check.need("SPN-004", proxy is not None, expected="a proxy", seen="none was started")
        env = {} if proxy is None else proxy.env
        seen = {name: env.get(name) for name in (*variables, preset)}
        due = {"GAUGE_TARGET": MODEL, "GAUGE_ENGINE": f"{CLOSED_ADDRESS}/v1", "GAUGE_PARSER": None, **PRESET}
        check.equal("SPN-004", expected=due, seen=seen, where="one inherited, one that cannot be had")
        variables = {**variables, preset: "given", "GAUGE_PARSER": "{tool_parser}"}
        await asked.begin(proxy=asked.spawn(variables=variables, tool_parser="hermes"))
        env = (await asked.next("proxy")).env
        seen = {name: env.get(name) for name in (*variables, preset)}
        check.equal("SPN-005", expected="given", seen=seen[preset], where=f"{preset}, inherited as {PRESET[preset]!r}")
        check.equal("SPN-004", expected={**due, "GAUGE_PARSER": "hermes", preset: "given"}, seen=seen)
        variables = {"GAUGE_TARGET": "{model}", "GAUGE_ENGINE": "{reasoning_parser}"}
        answer = await (await asked.begin(proxy=asked.spawn(variables=variables))).answer()
        ok = is_lost(answer) and "GAUGE_ENGINE" in answer["reason"] and "GAUGE_TARGET" not in answer["reason"]
        check("SPN-006", ok, expected="failed, naming GAUGE_ENGINE alone", seen=answer["reason"])


@covers("SPN-008", "SPN-009")
async def test_starts_beyond_the_limit_wait_for_their_turn(
    runner: RunnerUnderTest, tmp_path: Path, check: Check
) -> None:
    most, in_all = 2, 5
    async with rollouts(runner, tmp_path) as asked:
        for _ in range(in_all):
            await asked.begin(proxy=asked.spawn(starts_in_flight=most))
        over, came = [], 0
        for number in range(in_all):
            try:
                proxy = await asked.next("proxy", SOON_SECONDS)
            except Inconclusive:
                break
            came += 1
            await asked.another_goes_by()
            starting = asked.puppets.here("proxy") - asked.puppets.here("harness")
            over += [starting] if starting > most else []
            # The first ones die of it, the others come up: either way somebody else gets the place.
            if number < most:
                await proxy.do("leave", code=3)
            else:
                await proxy.do("listen")
                await asked.next("harness")
        check.equal("SPN-008", expected=[], seen=over, where=f"starts in flight, of which {most} are allowed")
        check.equal("SPN-009", expected=in_all, seen=came, where="starts that got their turn")


@covers("SPN-010", "SPN-011", "SPN-014")
async def test_a_harness_runs_when_its_proxy_accepts_connections_and_no_sooner(
    runner: RunnerUnderTest, tmp_path: Path, check: Check
) -> None:
    async with rollouts(runner, tmp_path) as asked:
        slow = await asked.begin()
        proxy = await asked.next("proxy")
        for _ in range(OTHERS_MEANWHILE):
            await asked.another_goes_by()
        early = asked.puppets.waiting("harness")
        check.need("SPN-010", early == 0, expected="no harness before the proxy listens", seen=early)
        # While the slow one takes its time, a whole other rollout goes by behind a proxy of its own.
        other, _, its_harness = await asked.raised()
        await its_harness.do("leave")
        await other.answer()
        check("SPN-011", not proxy.gone, expected="a proxy that is given its time", seen="it was ended")
        check.equal("SPN-010", expected=0, seen=asked.puppets.waiting("harness"), where="harnesses before it listens")
        await proxy.do("say", text="I have come up.\n")
        await proxy.do("listen")
        harness = await asked.next("harness")
        await harness.do("leave")
        answer = await slow.answer()
        check("SPN-011", answer["error"] is None or stage_of(answer) == "collect", expected="run", seen=answer["error"])
        text = text_of(answer["proxy_log"])
        check("SPN-014", "I have come up.\n" in (text or ""), expected="what the proxy wrote", seen=text)


@covers("SPN-012", "SPN-013")
async def test_a_proxy_that_never_comes_up_is_told_with_what_it_said(
    runner: RunnerUnderTest, tmp_path: Path, check: Check
) -> None:
    async with rollouts(runner, tmp_path) as asked:
        going = await asked.begin(proxy=asked.spawn(deadline_seconds=3600))
        proxy = await asked.next("proxy")
        await proxy.do("leave", code=78, say="error: no such engine\n")
        answer = await answer_soon(going)
        error = answer["error"] or {}
        seen = [is_lost(answer), error.get("exit_code"), "no such engine" in error.get("tail", "")]
        check.equal("SPN-012", expected=[True, 78, True], seen=seen, where="lost, exit code, its last words")
        late = await asked.begin(proxy=asked.spawn(deadline_seconds=1))
        never = await asked.come("proxy", late)
        answer = await answer_soon(late)
        seen = [is_lost(answer), stage_of(answer), never is None or await never.is_gone()]
        check.equal("SPN-013", expected=[True, "ready", True], seen=seen, where="lost, stage, proxy gone")
        came = [puppet.told["role"] for puppet in asked.puppets.all]
        check("SPN-012", "harness" not in came, expected="no harness without a proxy", seen=came)


@covers("SPN-015", "SPN-016", "SPN-017")
async def test_rollouts_side_by_side_share_neither_port_nor_folder_nor_id(
    runner: RunnerUnderTest, tmp_path: Path, check: Check
) -> None:
    async with rollouts(runner, tmp_path) as asked:
        # All of them in one folder: what an earlier attempt left there is not theirs.
        folder = str(tmp_path / "shared")
        going = [await asked.begin(folder=folder) for _ in range(4)]
        proxies = [await asked.next("proxy") for _ in going]
        for name in ("--port", "--rl-log-dir"):
            seen = sorted(str(proxy.argument(name)) for proxy in proxies)
            check("SPN-016", len(set(seen)) == len(going), expected=f"{len(going)} of {name}", seen=seen)
        ids = []
        sessions = {}
        for proxy in proxies:
            await proxy.do("listen")
            harness = await asked.next("harness")
            base_url, session, _ = harness.told["arguments"]
            ids.append(session)
            sessions[session] = Session(session)
            sessions[session].turns(2)
            due = f"http://127.0.0.1:{proxy.argument('--port')}"
            check.equal("SPN-016", expected=due, seen=base_url, where="where the harness is sent")
            await proxy.do("write", files=records_of(sessions[session], proxy.log_dir))
            await harness.do("leave")
        check("SPN-015", len(set(ids)) == len(ids) and all(ids), expected="an id each", seen=ids)
        answers = [await one.answer() for one in going]
        for answer in answers:
            session = answer["session_id"]
            held = sorted({one["session_id"] for one in answer["trajectories"]})
            check.equal("SPN-017", expected=[session], seen=held, where="sessions in a rollout")
        check.equal("SPN-015", expected=sorted(ids), seen=sorted(answer["session_id"] or "" for answer in answers))


@covers("SPN-007")
async def test_a_program_is_found_beside_the_interpreter_whatever_path_says(
    runner: RunnerUnderTest, tmp_path: Path, check: Check
) -> None:
    command = runner.proxy_command
    if "/" in command[0]:
        raise Inconclusive(f"the runner's proxy command is the path {command[0]}, which nobody looks for")
    async with rollouts(runner, tmp_path) as asked:
        # A profile of no routes: the right program says so, the decoy on PATH says nothing and ends with 99.
        asked.profile.write_text("routes: {}\n", encoding="utf-8")
        going = await asked.begin(proxy=asked.spawn(command=command, variables={}))
        error = (await going.answer())["error"] or {}
        ok = error.get("stage") == "ready" and error.get("exit_code") != 99 and "routes" in error.get("tail", "")
        check("SPN-007", ok, expected="the program beside the interpreter, refusing its profile", seen=error)
