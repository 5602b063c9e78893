"""What the model said in each recording, and how the fake is set up to be told the same."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from fakes.harnesses.claude_code import DEFAULT_MODEL, ClaudeCode, Environment
from tests.fakes.harnesses.claude_code.messages import (
    Block,
    Script,
    bash,
    buffered,
    event,
    events,
    refuses,
    says,
    stream,
    text,
    think,
    use,
)
from tests.fakes.harnesses.conftest import Reply

PATH = "/project/a.txt"
WRITE = says(text("I write the file."), use("toolu_01AAA", "Write", {"file_path": PATH, "content": "hi\n"}))
LIST = says(use("toolu_01BBB", "Bash", {"command": "ls -1", "description": "List files"}))
DONE = says(text("Done."))
OVERLOADED = refuses(529, "Overloaded", "overloaded_error")


@dataclass(frozen=True)
class Play:
    """One conversation. ``recordings`` follow one another; ``fails`` says that the real process ended with status 1.

    Sub-agents stand in ``agents`` by prompt, in the order in which the recording first shows them. ``concurrent``: the
    order of requests between agents, and of the results of sub-agents, is not to be held against the fake.
    """

    root: list[Reply]
    client: Callable[[str], ClaudeCode]
    recordings: tuple[str, ...] = ()
    agents: dict[str, list[Reply]] = field(default_factory=dict)
    follow_ups: tuple[str, ...] = ()
    fails: bool = False
    concurrent: bool = False

    def script(self) -> Script:
        return Script(list(self.root), {prompt: list(replies) for prompt, replies in self.agents.items()})


def fake(path: str = "", model: str = "mock-model", **env: Any) -> Callable[[str], ClaudeCode]:
    return lambda url: ClaudeCode(url + path, model=model, env=Environment(**env))


def agent(call_id: str, kind: str, prompt: str, *, behind: bool = False) -> Block:
    given = {"subagent_type": kind, "description": "Look", "prompt": prompt, "run_in_background": behind}
    return use(call_id, "Agent", given)


def plays() -> dict[str, Play]:
    """Every recorded conversation, by the name of its (first) recording."""
    return {**_plain(), **_broken(), **_with_agents(), **_odd(), **_long()}


def _plain() -> dict[str, Play]:
    custom = {"x-rollout-id": "r1", "X-Foo": "bar baz"}
    prefix = fake("/ng-rollout/abc-123", api_key=None, auth_token="dummy", custom_headers=custom)
    first = [think("Thinking.."), text("turn 1."), bash("toolu_mt1_bfe7", "echo 1")]
    second = [think("Thinking.."), text("turn 2."), bash("toolu_mt2_bfe7", "echo 2")]
    return {
        "basic": Play([WRITE, LIST, DONE], fake(model=DEFAULT_MODEL)),
        "det_1": Play([WRITE, LIST, DONE], fake()),
        "prefix": Play([WRITE, LIST, DONE], prefix),
        "multi_a": Play(
            [says(*first), DONE, says(*first), says(*second), DONE],
            fake(),
            recordings=("multi_a", "multi_b"),
            follow_ups=("second prompt",),
        ),
        "websearch": Play([says(use("toolu_w1", "WebSearch", {"query": "cats and so"})), DONE, DONE], fake()),
        "streamexec": Play([says(bash("toolu_se1", "sleep 2.5 && ls"), text("Then I talk on.")), DONE], fake()),
    }


def _broken() -> dict[str, Play]:
    ask = says(bash("toolu_q1", "echo before"))
    started = events([text("Cut.")])[:1]
    again = bash("toolu_d2", "echo after it")
    overload = event("error", error={"type": "overloaded_error", "message": "Overloaded"})
    failures = [
        *(Reply(status=500), OVERLOADED, refuses(429, "slow", "rate_limit_error", retry_after="1")),
        *(Reply(status=status) for status in (503, 502, 408, 409)),
    ]
    return {
        "drop1": Play([ask, stream(started, cut=True), buffered(again), DONE], fake()),
        "eof1": Play([ask, stream(started), buffered(again), DONE], fake()),
        "sse1": Play([ask, stream([*started, overload]), says(again), DONE], fake()),
        "e404": Play([refuses(404, "mock 404")], fake(), fails=True),
        "jsonreply": Play([buffered(text("plain json"))], fake()),
        "retry500": Play([*failures, says(bash("toolu_r1", "echo ok")), DONE], fake()),
        "fallbackmodel": Play([OVERLOADED] * 4 + [DONE], fake(fallback_model="fb-model")),
    }


def _with_agents() -> dict[str, Play]:
    one = [says(text("I am one."), bash("toolu_SUBONE_b", "echo of-a-sub")), DONE]
    two = [says(text("I am two."), bash("toolu_SUBTWO_b", "echo of-a-sub")), DONE]
    both = [agent("toolu_A2", "general-purpose", "Do the second."), agent("toolu_A3", "Explore", "Look around.")]
    return {
        "subagent": Play(
            [says(text("Delegate."), agent("toolu_A1", "general-purpose", "Do the first.")), says(*both), DONE],
            fake(),
            agents={"Do the first.": one, "Do the second.": one, "Look around.": two},
            concurrent=True,
        ),
        "nested": Play(
            [says(agent("toolu_o1", "general-purpose", "Do the outer.")), DONE],
            fake(),
            agents={
                "Do the outer.": [says(agent("toolu_in1", "general-purpose", "Do the inner.")), DONE],
                "Do the inner.": [DONE],
            },
        ),
        "bgagent": Play(
            [
                says(agent("toolu_bg1", "general-purpose", "Go on alone.", behind=True)),
                says(bash("toolu_bg2", "sleep 3; echo done")),
                DONE,
            ],
            fake(),
            agents={"Go on alone.": [says(bash("toolu_bg_in", "sleep 1; echo inside")), DONE]},
            concurrent=True,
        ),
    }


def _odd() -> dict[str, Play]:
    parallel = [
        bash("toolu_p1", "sleep 0.3 && echo one", description="one"),
        bash("toolu_p2", "echo two", description="two"),
        use("toolu_p3", "Read", {"file_path": "/does/not/exist"}),
    ]
    inputs = [
        use("toolu_i1", "Write", {"content": "a  \nb\t\n", "file_path": PATH}),
        use("toolu_i2", "Read", {"limit": "5", "file_path": PATH}),
        use("toolu_i3", "Edit", {"file_path": PATH, "old_string": "a", "new_string": "c"}),
        use(
            "toolu_i4",
            "Bash",
            '{"description": "d", "command": "echo x", "run_in_background": "false", "timeout": 1000.0}',
        ),
        use("toolu_i5", "Bash", {"cmd": "echo wrong key"}),
        use("toolu_i6", "NoSuchTool", {"b": 1, "a": 2}),
        use("toolu_i7", "Bash", '{"command": "echo cut o'),
        use("toolu_i8", "TaskList", ""),
        use("toolu_i9", "Bash", {"command": "echo of an extra key", "zzz": "is not known", "description": "d"}),
        bash("chatcmpl-tool-abc123", "exit 1"),
        bash("toolu_dup", "echo dup1"),
        bash("toolu_dup", "echo dup2"),
        bash("call weird/id:1", "echo weird-id"),
    ]
    thinking = [
        [think("I think of this. "), text("So I look."), bash("toolu_t1", "echo one")],
        [think("Without signature.", ""), bash("toolu_t2", "echo two")],
        [think("  White space around.\n", ""), bash("toolu_t3", "echo three")],
        [think("One more"), think("Two."), bash("toolu_t4", "echo four")],
        [{"type": "redacted_thinking", "data": "ZGF0"}, bash("toolu_t5", "echo five")],
        [think("Only this.")],
    ]
    return {
        "parallel": Play(
            [
                says(text("Three things at the time.."), *parallel),
                says(text("First text. "), text("Second text. "), bash("toolu_p4", "echo four")),
                says(text(""), bash("toolu_p5", "echo five")),
                says(text("\n\n"), bash("toolu_p6", "echo six")),
                says(bash("toolu_p7", "echo seven"), text("Text after the call")),
                DONE,
            ],
            fake(),
        ),
        "inputs": Play([*(says(call) for call in inputs), DONE], fake()),
        "thinking": Play([*(says(*blocks) for blocks in thinking), DONE], fake()),
        "maxtok": Play(
            [
                says(text("Cut short "), stop_reason="max_tokens"),
                says(text("and once more"), stop_reason="max_tokens"),
                says(use("toolu_m1", "Bash", '{"command": "echo a'), stop_reason="max_tokens"),
                says(),
                says(text("I will not."), stop_reason="refusal"),
            ],
            fake(),
            fails=True,
        ),
    }


def _long() -> dict[str, Play]:
    huge = {"input_tokens": 230_000, "output_tokens": 20, "cache_read_input_tokens": 0}
    talk = [
        says(text(f"Step {n}"), bash(f"toolu_ac{n}", f"echo {n}"), usage=huge if n == 3 else None) for n in (1, 2, 3)
    ]
    go_on = [says(bash(f"toolu_ac{n}", f"echo {n}")) for n in (4, 5, 6)]
    steps = [says(text(f"Step {n}"), bash(f"toolu_tl{n}", f"echo {n}")) for n in (1, 2)]
    too_long = refuses(400, "prompt is too long: 210000 tokens > 200000 maximum", "invalid_request_error")
    return {
        "autocompact5": Play([*talk, *go_on, DONE], fake()),
        "toolong": Play([*steps, too_long, says(text("We took two steps.")), DONE], fake()),
        "v_sonnet45": Play(
            [*(says(bash(f"toolu_l{n:02}", f"echo {n}")) for n in range(24)), DONE], fake(model="claude-sonnet-4-5")
        ),
    }
