"""The real Codex through the proxy: one session in a header of its provider; sub-agents are threads of their own."""

import asyncio
import subprocess
from typing import Any

import pytest

from fakes.harnesses.codex import Codex
from fakes.harnesses.conversation import Conversation
from harness_shims import codex
from harness_shims.launching import DUMMY_KEY
from tests.real_harness.stage import MODEL, TENANT, Played, Stage

pytestmark = pytest.mark.real_harness

HARNESS = "codex"


def play(stage: Stage, session: str, compact_at: int | None = None) -> Played:
    launch = codex.launch(
        stage.program, stage.url, MODEL, stage.task, session=session, compact_at=compact_at, **stage.setting()
    )
    return stage.play(launch)


def fake(stage: Stage, session: str, **settings: Any) -> Codex:
    return Codex(
        stage.proxy.url,
        session=f"{session}-fake",
        model=MODEL,
        api_key=DUMMY_KEY,
        request_retries=codex.REQUEST_RETRIES,
        stream_retries=codex.STREAM_RETRIES,
        **settings,
    )


def test_commands_are_captured_as_one_clean_chain(stage: Stage) -> None:
    stage.script("codex")
    session = f"codex-{stage.run}"
    played = play(stage, session)
    assert "three\\n" in played.said
    (answer,) = stage.judge([session])
    assert (answer["outcome"], [len(one["record_uuids"]) for one in answer["trajectories"]]) == ("clean", [3])
    assert stage.compare(played.exchanges, stage.play_fake(fake(stage, session))) == []


def test_a_compaction_is_withheld_and_costs_no_record(stage: Stage) -> None:
    stage.script("codex_compaction")
    session = f"codex-{stage.run}"
    played = play(stage, session, compact_at=14_000)
    assert any(not exchange.request.json_body().get("tools") for exchange in played.exchanges), "it did not compact"
    (answer,) = stage.judge([session])
    assert answer["withheld"]
    # The fake's own prompts are shorter, so it has to have less room to be driven to the same point.
    agent = fake(stage, session, compact_at=2_400, tool_results={"exec_command": executed})
    assert stage.compare(played.exchanges, stage.play_fake(agent)) == []


def executed(arguments: dict[str, Any]) -> str:
    done = subprocess.run(["bash", "-c", arguments["cmd"]], capture_output=True, text=True, check=True)
    return f"Process exited with code 0\nOutput:\n{done.stdout}"


class LetThrough:
    """The fake, whose parent is let through the gate once its sub-agent is done, as the real one's is."""

    def __init__(self, stage: Stage, session: str) -> None:
        self._stage, self._session = stage, session

    async def run(self, task: str) -> Conversation:
        done = asyncio.Event()

        async def opening() -> None:
            await done.wait()
            await open_gate(self._stage, self._stage.fake_run)

        opened = asyncio.create_task(opening())
        conversation = await fake(self._stage, self._session, child_ended=done.set).run(task)
        await opened
        return conversation


async def open_gate(stage: Stage, run: int) -> None:
    """When the parent's first answer and both of the child's are out."""
    await stage.engine.wait("finished", run=run, count=3, seconds=60)
    await stage.engine.open_gate(TENANT, f"child-is-done-{run:06d}")


def test_a_subagent_is_captured_beside_its_parent(stage: Stage) -> None:
    stage.script("codex_subagent")
    session = f"codex-{stage.run}"
    with stage.meanwhile(open_gate(stage, stage.run)):
        played = play(stage, session)
    assert "subagent_notification" in played.said
    assert len(played.named_by("thread-id")) == 2
    stage.judge([session])
    assert stage.compare(played.exchanges, stage.play_fake(LetThrough(stage, session))) == []
