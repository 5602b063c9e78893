"""opencode's fake and the fake engine together: tags live through titles, subagents, bad calls and compactions."""

from collections.abc import Iterator
from typing import Any

import pytest

from fakes.harnesses.opencode import OpenCode
from fakes.vllm import tokenizer
from fakes.vllm.app import build_world
from fakes.vllm.tags import format_tag
from tests.fakes.vllm.wire.serving_here import Served, serving

pytestmark = pytest.mark.anyio

TITLE = {"name": "title", "when": {"tools": "none", "roles": ["system", "user", "user"]}, "text": "A title"}
SUMMARY = {"name": "summary", "when": {"tools": "none", "roles": ["system", "user"]}, "text": "{tag} What was done."}


@pytest.fixture(scope="module")
def fake() -> Iterator[Served]:
    with serving(build_world(tokenizer.load())) as served:
        yield served


def bash(note: str) -> dict[str, Any]:
    return {"name": "bash", "arguments": {"command": f"true  # {note}", "description": "Look"}}


def task(kind: str, scope: str) -> dict[str, Any]:
    prompt = f"{{tag:{scope}}} Look."
    return {"name": "task", "arguments": {"description": "{tag}", "prompt": prompt, "subagent_type": kind}}


async def play(fake: Served, run: int, scopes: dict[str, Any], **options: Any) -> tuple[Any, list[tuple[Any, ...]]]:
    fake.put(f"/_fake/tenants/oc{run}", {"models": ["policy_model"], "max_model_len": 32768})
    book = {"about": "A test.", "scopes": scopes, "side_calls": [TITLE, SUMMARY], "sampling": "drifting"}
    fake.put(f"/_fake/tenants/oc{run}/runs/{run}", book)
    talk = await OpenCode(f"{fake.url}/t/oc{run}", **options).run(f"{format_tag(run, 0, 0)} Fix it.")
    rows = fake.rows(f"tenant=oc{run}&run={run}")
    assert [row["seq"] for row in rows if row["off_script"]] == []
    return talk, [(row["rule"], row["scope"], row["turn"], row["attempt"]) for row in rows]


async def test_a_title_two_subagents_and_a_bad_call_stay_on_script(fake: Served) -> None:
    broken = {"name": "bash", "arguments": '{"command": "true'}
    scopes = {
        "main": {"turns": [{"calls": [task("general", "one"), task("explore", "two")]}, {"text": "{tag} Done."}]},
        "one": {
            "turns": [{"calls": [bash("{tag}")]}, {"text": "{tag} I try.", "calls": [broken]}, {"text": "{tag} Ok"}]
        },
        "two": {"turns": [{"text": "{tag} Nothing there."}]},
    }
    talk, rows = await play(fake, 1, scopes)
    assert (talk.ended, [child.ended for child in talk.children]) == ("answered", ["answered", "answered"])
    turns = [(0, 0), (0, 1), (1, 0), (1, 1), (1, 2), (2, 0)]
    assert sorted(row[1:] for row in rows if row[0] is None) == [(scope, turn, 0) for scope, turn in turns]
    assert [row for row in rows if row[0] is not None] == [("title", 0, None, 0)]


async def test_a_compaction_keeps_the_tags_and_the_next_turn_follows(fake: Served) -> None:
    turns = [*({"calls": [bash("{tag}")]} for _ in range(3)), {"text": "{tag} Done."}]
    window: dict[str, Any] = {
        "context": 7000,
        "output": 4000,
        "tool_results": {"bash": "one word after another " * 260},
    }
    talk, rows = await play(fake, 2, {"main": {"turns": turns}}, title=False, **window)
    assert talk.ended == "answered", talk.error
    assert rows == [(None, 0, 0, 0), (None, 0, 1, 0), (None, 0, 2, 0), ("summary", 0, None, 0), (None, 0, 3, 0)]
    assert [message["role"] for message in talk.exchanges[-1].request.json_body()["messages"]] == [
        *("system", "user", "assistant"),
        *("assistant", "tool"),
        "user",
    ]
