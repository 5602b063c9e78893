"""The real opencode through the proxy: its session in its own header, its sub-agents in sessions of their own."""

import subprocess

import pytest

from fakes.harnesses.opencode import OpenCode
from fakes.harnesses.tools import Arguments
from harness_shims import opencode
from harness_shims.launching import DUMMY_KEY
from tests.real_harness.stage import MODEL, Played, Stage

pytestmark = pytest.mark.real_harness

HARNESS = "opencode"


def play(stage: Stage, limits: dict[str, int]) -> Played:
    launch = opencode.launch(stage.program, stage.url, MODEL, stage.task, limits=limits, **stage.setting())
    return stage.play(launch)


def fake(stage: Stage, context: int, output: int) -> OpenCode:
    return OpenCode(
        stage.proxy.url,
        model=MODEL,
        context=context,
        output=output,
        argv=True,
        api_key=DUMMY_KEY,
        tool_results={"bash": bash},
    )


def bash(arguments: Arguments) -> str:
    done = subprocess.run(["bash", "-c", arguments["command"]], capture_output=True, text=True, check=True)
    return done.stdout


def limits_of(max_model_len: int) -> dict[str, int]:
    found = opencode.limit(max_model_len)
    assert found is not None
    return found


def test_commands_a_subagent_and_a_title_are_captured(stage: Stage) -> None:
    stage.script("opencode")
    limits = limits_of(131_072)
    played = play(stage, limits)
    assert "three\\n" in played.said
    assert "child\\n" in played.said
    root, child = stage.judge(played.named_by("x-session-id"))
    assert (root["outcome"], child["outcome"]) == ("clean", "clean")
    assert [excluded["why"] for excluded in root["excluded"]] == ["side_call"]
    assert stage.compare(played.exchanges, stage.play_fake(fake(stage, **limits))) == []


def test_a_compaction_is_withheld_and_costs_no_record(stage: Stage) -> None:
    stage.script("opencode_compaction")
    limits = limits_of(16_384)
    played = play(stage, limits)
    assert "What did we do so far?" in played.said, "it did not compact"
    (answer,) = stage.judge(played.named_by("x-session-id"))
    assert answer["withheld"]
    # The fake's own prompts are shorter, so it has to have less room to be driven to the same point.
    assert stage.compare(played.exchanges, stage.play_fake(fake(stage, 8_192, limits["output"]))) == []
