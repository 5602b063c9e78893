"""A proxy that runs already: which addresses are taken, what it excludes, and what becomes of one that is not there."""

from pathlib import Path
from typing import Any

from conformance.gauge.check import Check
from conformance.gauge.covers import covers
from conformance.gauge.scene import Scene
from conformance.scenarios.spawn.rollouts import SHELL, answer_soon, is_lost, rollouts, stage_of
from conformance.systems.routing import CLOSED_ADDRESS
from conformance.systems.runner import RunnerUnderTest

JSON = Any

NO_ADDRESSES = (
    "https://127.0.0.1:4000",
    "http://127.0.0.1:4000/v1",
    "http://127.0.0.1:4000?a=b",
    "http://127.0.0.1:4000?",
    "http://127.0.0.1",
    "127.0.0.1:4000",
    "http://user@127.0.0.1:4000",
    "",
)


@covers("SPN-025", "SPN-026")
async def test_an_address_is_a_host_and_a_port_and_excludes_a_spawn(
    runner: RunnerUnderTest, scene: Scene, tmp_path: Path, check: Check
) -> None:
    async with rollouts(runner, tmp_path) as asked:
        for address in NO_ADDRESSES:
            answer = await (await asked.begin(proxy={"attach": address}, harness=SHELL)).answer()
            refused = [stage_of(answer), is_lost(answer)]
            check.equal("SPN-025", expected=["request", True], seen=refused, where=f"attach to {address!r}")
        for address in (scene.proxy.url, f"{scene.proxy.url}/"):
            going = await asked.begin(proxy={"attach": address})
            harness = await asked.next("harness")
            told = harness.told["arguments"][0]
            check.equal("SPN-025", expected=scene.proxy.url, seen=told, where=f"attached to {address!r}")
            await harness.do("leave")
            await going.answer()
        going = await asked.begin(proxy={"attach": scene.proxy.url, **asked.spawn()}, harness=SHELL)
        answer = await asked.answer_behind_any_proxy(going)
        seen: JSON = [stage_of(answer), is_lost(answer), asked.puppets.here("proxy")]
        check.equal("SPN-026", expected=["request", True, 0], seen=seen, where="attach and spawn")


@covers("SPN-027")
async def test_a_proxy_that_cannot_be_reached_ends_the_rollout_withheld_and_soon(
    runner: RunnerUnderTest, tmp_path: Path, check: Check
) -> None:
    async with rollouts(runner, tmp_path) as asked:
        answer = await answer_soon(await asked.begin(proxy={"attach": CLOSED_ADDRESS}, harness=SHELL))
        seen = {key: answer[key] for key in ("outcome", "withheld", "reward")}
        check("SPN-027", is_lost(answer), expected="failed, withheld, no reward", seen=seen)
        check("SPN-027", CLOSED_ADDRESS in (answer["reason"] or ""), expected="its address", seen=answer["reason"])
