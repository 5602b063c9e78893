"""The real Claude Code through the proxy: one session in a custom header, its sub-agents told by their agent id."""

from collections.abc import Sequence
from dataclasses import dataclass

import pytest

from fakes.harnesses.claude_code import ClaudeCode, Environment
from fakes.harnesses.conversation import Conversation
from harness_shims import claude_code
from tests.real_harness.stage import MODEL, Played, Stage

pytestmark = pytest.mark.real_harness

HARNESS = "claude-code"


@dataclass(frozen=True)
class Fake:
    """The fake under the same settings, each of ``follow_ups`` said by a process of its own."""

    stage: Stage
    session: str
    follow_ups: Sequence[str] = ()

    async def run(self, task: str) -> Conversation:
        headers = {claude_code.HEADER: f"{self.session}-fake"}
        environment = Environment(custom_headers=headers, haiku_model=MODEL, subagent_model=MODEL)
        agent = ClaudeCode(self.stage.proxy.url, model=MODEL, env=environment)
        return await agent.run(task, follow_ups=self.follow_ups)


def play(stage: Stage, session: str, *follow_ups: str) -> Played:
    """Not with a dead end for the rest of the network: under one it leaves out the probe at its start."""
    setting = stage.setting(elsewhere=None)
    played = []
    for number, prompt in enumerate((stage.task, *follow_ups)):
        arguments = ("--continue",) if number else ()
        launch = claude_code.launch(
            stage.program, stage.url, MODEL, prompt, session=session, arguments=arguments, **setting
        )
        played.append(stage.play(launch))
        assert '"is_error":false' in played[-1].output
    return Played(played[-1].output, [exchange for one in played for exchange in one.exchanges])


def test_commands_and_a_subagent_are_captured_in_one_session(stage: Stage) -> None:
    stage.script("claude_code")
    session = f"claude-{stage.run}"
    played = play(stage, session)
    assert '"three"' in played.said
    assert '"child"' in played.said
    assert len(played.named_by("x-claude-code-agent-id")) == 1
    stage.judge([session])
    assert stage.compare(played.exchanges, stage.play_fake(Fake(stage, session))) == []


def test_a_compaction_by_hand_is_withheld_and_costs_no_record(stage: Stage) -> None:
    stage.script("claude_code_compaction")
    session = f"claude-{stage.run}"
    follow_ups = ("/compact", "Go on.")
    played = play(stage, session, *follow_ups)
    (answer,) = stage.judge([session])
    assert answer["withheld"]
    assert stage.compare(played.exchanges, stage.play_fake(Fake(stage, session, follow_ups))) == []


def test_nothing_is_asked_of_the_rest_of_the_network(stage: Stage) -> None:
    stage.script("claude_code_compaction")
    session = f"claude-{stage.run}"
    launch = claude_code.launch(stage.program, stage.url, MODEL, stage.task, session=session, **stage.setting())
    stage.play(launch)
    stage.judge([session])
    assert stage.strays == []
