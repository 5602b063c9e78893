"""The real OpenHands SDK through the proxy: one session for the whole rollout, in the body."""

import subprocess

import pytest

from fakes.harnesses.openhands_sdk import OpenHandsSDK
from fakes.harnesses.tools import Arguments
from harness_shims import openhands_sdk
from tests.real_harness.stage import MODEL, Stage

pytestmark = pytest.mark.real_harness

HARNESS = "openhands-sdk"


def executed(arguments: Arguments) -> str:
    return subprocess.run(["bash", "-c", arguments["command"]], capture_output=True, text=True, check=True).stdout


def test_commands_and_a_subagent_are_captured_in_one_session(stage: Stage) -> None:
    stage.script("openhands_sdk")
    session = f"sdk-{stage.run}"
    launch = openhands_sdk.launch(
        stage.program, stage.url, MODEL, stage.task, session=session, subagents=True, **stage.setting()
    )
    played = stage.play(launch)
    assert "child\\n[" in played.said
    assert len(played.named_by("x-litellm-session-id")) == 2
    stage.judge([session])
    agent = OpenHandsSDK(stage.proxy.url, session=f"{session}-fake", model=MODEL, subagents=True)
    assert stage.compare(played.exchanges, stage.play_fake(agent)) == []


def test_a_condensed_history_is_withheld_and_costs_no_record(stage: Stage) -> None:
    stage.script("openhands_sdk_condenser")
    session = f"sdk-{stage.run}"
    launch = openhands_sdk.launch(
        stage.program, stage.url, MODEL, stage.task, session=session, condense_at=10, **stage.setting()
    )
    played = stage.play(launch)
    assert sum("tools" not in exchange.request.json_body() for exchange in played.exchanges) == 1, "it did not condense"
    (answer,) = stage.judge([session])
    assert answer["withheld"]
    results = {"terminal": executed}
    agent = OpenHandsSDK(stage.proxy.url, session=f"{session}-fake", model=MODEL, condense_at=10, tool_results=results)
    assert stage.compare(played.exchanges, stage.play_fake(agent)) == []
