"""Claude Code's fake and the fake engine, with the reference proxy between them: the tags of all agents stay alive."""

from collections.abc import Iterator
from typing import Any

import pytest

from fakes.harnesses import claude_code_texts as texts
from fakes.harnesses.claude_code import ClaudeCode, Environment
from fakes.harnesses.conversation import Conversation
from fakes.vllm import tokenizer
from fakes.vllm.app import build_world
from fakes.vllm.tags import format_tag
from tests.fakes.vllm.wire.serving_here import Served, serving
from tests.reference.capture.running import Proxy, route

pytestmark = pytest.mark.anyio

SEARCH = {
    "name": "search",
    "when": {"last_user_contains": texts.WEB_SEARCH.format(query="")},
    "text": "Found nothing.",
}
SUMMARY = {"name": "summary", "when": {"last_user_contains": texts.COMPACT}, "text": "{tag} What was done."}
RUNS = range(1, 5)


@pytest.fixture(scope="module")
def engine() -> Iterator[Served]:
    with serving(build_world(tokenizer.load())) as served:
        yield served


@pytest.fixture(scope="module")
def proxy(engine: Served, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    routes = {f"policy{run}": route(f"{engine.url}/t/cc{run}/v1", target="policy_model") for run in RUNS}
    with Proxy(tmp_path_factory.mktemp("proxy"), {"routes": routes}) as running:
        yield f"http://127.0.0.1:{running.port}"


def bash(note: str = "{tag}") -> dict[str, Any]:
    return {"name": "Bash", "arguments": {"command": f"true  # {note}", "description": "Look"}}


def agent(scope: str, kind: str = "general-purpose", *, behind: bool = False) -> dict[str, Any]:
    prompt = f"{{tag:{scope}}} Look."
    given = {"description": "{tag}", "prompt": prompt, "subagent_type": kind, "run_in_background": behind}
    return {"name": "Agent", "arguments": given}


async def play(
    engine: Served, proxy: str, run: int, scopes: dict[str, Any], *, length: int = 65536, **options: Any
) -> tuple[Conversation, list[tuple[Any, ...]]]:
    tenant = f"/_fake/tenants/cc{run}"
    engine.put(tenant, {"models": ["policy_model"], "max_model_len": length})
    book = {"about": "A test.", "scopes": scopes, "side_calls": [SEARCH, SUMMARY], "sampling": "drifting"}
    engine.put(f"{tenant}/runs/{run}", book)
    env = options.pop("env", Environment(subagent_model=f"policy{run}", max_output_tokens=4000))
    fake = ClaudeCode(proxy, model=f"policy{run}", env=env, **options)
    talk = await fake.run(f"{format_tag(run, 0, 0)} Fix it.")
    rows = engine.rows(f"tenant=cc{run}&run={run}")
    assert [row["seq"] for row in rows if row["off_script"]] == []
    return talk, [(row["rule"], row["scope"], row["turn"], row["attempt"], row["state"]) for row in rows]


async def test_agents_and_a_search_stay_on_script(engine: Served, proxy: str) -> None:
    search = {"name": "WebSearch", "arguments": {"query": "cats {tag}"}}
    scopes = {
        "main": {
            "turns": [
                {"text": "{tag} I ask two.", "calls": [agent("one"), agent("two", "Explore")]},
                {"text": "{tag} And the web.", "calls": [search, bash("x")]},
                {"text": "{tag} Done."},
            ]
        },
        "one": {"turns": [{"calls": [bash()]}, {"calls": [agent("deep")]}, {"text": "{tag} One."}]},
        "two": {"turns": [{"text": "{tag} Two."}]},
        "deep": {"turns": [{"text": "{tag} Deep."}]},
    }
    talk, rows = await play(engine, proxy, 1, scopes)
    assert talk.ended == "answered", talk.error
    turns = [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2), (2, 0), (3, 0)]
    assert sorted(row[1:4] for row in rows if row[0] is None) == [(scope, turn, 0) for scope, turn in turns]
    assert [row[0] for row in rows if row[0] is not None] == ["search"]


async def test_an_agent_behind_the_scenes_stays_on_script(engine: Served, proxy: str) -> None:
    wait = {"name": "Bash", "arguments": {"command": "sleep 5; echo ok  # {tag}"}}
    scopes = {
        "main": {"turns": [{"calls": [agent("one", behind=True)]}, {"calls": [wait]}, {"text": "{tag} Done."}]},
        "one": {"turns": [{"calls": [bash()]}, {"text": "{tag} One."}]},
    }
    talk, rows = await play(engine, proxy, 2, scopes)
    assert talk.ended == "answered", talk.error
    assert sorted(row[1:4] for row in rows) == [(0, 0, 0), (0, 1, 0), (0, 2, 0), (1, 0, 0), (1, 1, 0)]
    assert "<task-notification>" in talk.exchanges[-1].request.body_text


async def test_a_compaction_keeps_the_tags_and_the_next_turn_follows(engine: Served, proxy: str) -> None:
    scopes = {"main": {"turns": [*({"calls": [bash()]} for _ in range(4)), {"text": "{tag} Done."}]}}
    long = {"Bash": "one word after another " * 400}
    env = Environment(max_output_tokens=1000)
    talk, rows = await play(engine, proxy, 3, scopes, length=7500, env=env, tool_results=long)
    assert talk.ended == "answered", talk.error
    rules = [(rule, turn) for rule, _, turn, _, state in rows if state == "finished"]
    assert rules == [(None, 0), (None, 1), (None, 2), ("summary", None), (None, 3), (None, 4)]


async def test_an_answer_that_the_engine_cuts_is_asked_for_again_as_the_same_turn(engine: Served, proxy: str) -> None:
    cut = {"text": "{tag} A text that is cut.", "fault": {"name": "cut_stream", "at_token": 3}}
    scopes = {"main": {"turns": [{"calls": [bash()]}, cut]}}
    talk, rows = await play(engine, proxy, 4, scopes)
    assert talk.ended == "answered", talk.error
    assert [row[1:] for row in rows] == [(0, 0, 0, "finished"), (0, 1, 0, "cut"), (0, 1, 1, "finished")]
    assert talk.messages[-1]["content"][0]["text"] == f"{format_tag(4, 0, 2)} A text that is cut."
