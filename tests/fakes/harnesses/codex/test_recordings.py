"""The fake's own requests against what the real Codex sent.

A scripted server plays the model's part of a recording; each request of the fake must then have the recorded form:
method, path, header names in order and case, key order, types, nulls, roles, literal values, tools by name, and every
id where it stood. Text lengths and tool schemas are free, and so is the order of the client metadata, which the real
one takes out of a hash map. All but ``codex_exec`` and ``codex_err500`` tell what the server answered.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

import pytest

from fakes.harnesses.codex import Codex
from tests.fakes.harnesses.codex.answers import Agents, Turn, call, streamed, text
from tests.fakes.harnesses.codex.comparison import RECORDINGS, answers, as_seen, differences, recorded
from tests.fakes.harnesses.conftest import Reply, Serve, error

pytestmark = pytest.mark.anyio

CONVERSATIONS = {
    "plain": "plain",
    "one call": "codex_exec",
    "parallel tools": "parallel",
    "reasoning": "reasoning",
    "subagents": "subagent",
    "subagents that overlap": "subagents_parallel",
    "a subagent that nobody waits for": "subagent_not_waited_for",
    "a subagent that fails": "subagent_fails",
    "every call that handles subagents": "subagent_calls",
    "a subagent with its parent's history": "n/a: not recorded",
    "compaction": "compact",
    "a second compaction": "compact_twice",
    "compaction before a turn": "compact_before_a_turn",
    "compaction that overflows": "compact_overflow",
    "compaction answered by a call": "compact_by_a_call",
    "compaction that fails": "compact_400",
    "compaction inside a subagent": "n/a: not recorded",
    "resumed": "resume",
    "retry after a cut stream": "cut_text",
    "retry after a stream cut behind a call": "cut_after_a_call",
    "a stream without its end": "end_without_completed",
    "a response that failed": "failed_in_band",
    "a rate limit in the stream": "rate_limit_in_band",
    "overflow": "overflow_400",
    "overflow in the stream": "overflow_in_band",
    "a cut by the output limit": "incomplete",
    "an answer that is no stream": "no_stream",
    "retry after 500 and 429": "codex_err500",
    "retries after 500 until they end": "e500_all",
    "retries after dropped connections until they end": "drop_all",
    "retries after 404 until they end": "e404_all",
    "429": "e429",
    "429 with Retry-After": "e429_retry_after",
    "503 with Retry-After": "e503_retry_after",
    "503 of an overloaded server": "e503_overloaded",
    "calls that cannot be run": "bad_calls",
    "ids of every sort": "ids",
    "items with more and less than usual": "items",
    "parts with more and less than usual": "parts",
    "empty texts": "empty_texts",
    "comments and [DONE]": "done_and_pings",
    "an event with half of a surrogate pair": "lone_surrogate",
    "silence in a stream": "n/a: not recorded",
}
"""Which recording shows what the fake plays; of what has none the client's public source tells, or it is a guess."""

ENDS_IN_ERROR = {
    "e429", "e404_all", "e500_all", "drop_all", "e503_overloaded", "incomplete", "overflow_400", "overflow_in_band",
    "compact_400",
}  # fmt: skip
COMPACTING = {name for name in CONVERSATIONS.values() if name.startswith("compact")}
RESUMED = {"resume", "compact_before_a_turn"}
OF_AGENTS = {name for name in CONVERSATIONS.values() if name.startswith("subagent")}
SPACE: dict[str, Any] = {"namespace": "multi_agent_v1"}


def client(name: str, url: str) -> Codex:
    """As the recorded one was configured."""
    compact_at = 5000 if name in COMPACTING else None
    headers = {"x-session-id": "abc-123"}
    return Codex(url, http_headers=headers, request_retries=2, stream_retries=1, compact_at=compact_at)


def script(name: str) -> list[Reply]:
    if name == "codex_exec":
        return [streamed(call("exec_command", '{"cmd": "echo hi"}', "1")), streamed(text("Done."))]
    if name == "codex_err500":
        return [error(500), error(429, **{"Retry-After": "1"}), streamed(text("Done."))]
    return answers(name)


@pytest.mark.parametrize("name", sorted(set(CONVERSATIONS.values()) - OF_AGENTS - {"n/a: not recorded"}))
async def test_the_fake_sends_what_the_real_client_sent(serve: Serve, name: str) -> None:
    async with serve(*script(name)) as server:
        codex = client(name, server.url)
        talk = await codex.run("Fix it.", follow_ups=["And now?"] if name in RESUMED else [])
    assert talk.ended == ("error" if name in ENDS_IN_ERROR else "answered"), talk.error
    assert differences([as_seen(one) for one in server.seen], recorded(name)) == []
    told = [exchange.request for exchange in talk.all_exchanges]
    assert [(one.method, one.path, list(one.headers), one.body) for one in told] == [
        (one.method, one.path, one.headers, one.body) for one in server.seen
    ]


@dataclass(frozen=True)
class Play:
    """What each agent's model answers; ``root`` is the root's, the others are named by a word of their task."""

    root: list[Turn]
    others: dict[str, list[Turn]] = field(default_factory=dict)


def spawn(task: str, call_id: str) -> dict[str, Any]:
    return call("spawn_agent", f'{{"message": "{task}"}}', call_id, **SPACE)


def wait(agents: list[str], call_id: str, timeout: str = ', "timeout_ms": 20000') -> dict[str, Any]:
    targets = ", ".join(f'"{one}"' for one in agents)
    return call("wait_agent", f'{{"targets": [{targets}]{timeout}}}', call_id, **SPACE)


def looks(word: str, call_id: str) -> Turn:
    return Turn(streamed(call("exec_command", f'{{"cmd": "echo {word}"}}', call_id)))


NO = b'{"error": {"message": "no", "type": "x", "param": null, "code": null}}'
DONE = Turn(streamed(text("Done.")))
SPAWN = Turn(streamed(spawn("CHILDTASK look", "p_1")))
WAIT = Turn(lambda ids: streamed(wait(ids, "p_2")))


def last(said: str, **more: Any) -> Turn:
    return Turn(streamed(text(said)), last=True, **more)


def plays() -> dict[str, Play]:
    """The recordings with sub-agents; what ran beside each other is put in the order it was recorded in."""
    second = spawn("CHILDTASK2 look", "p_2")
    both = Turn(streamed(spawn("CHILDTASK1 look", "p_1"), second))
    odd: list[Turn] = [
        Turn(streamed(call("spawn_agent", "{}", "p_0", **SPACE))),
        SPAWN,
        Turn(lambda ids: streamed(wait(ids, "p_2", ""))),
        Turn(
            lambda ids: streamed(
                call("send_input", f'{{"target": "{ids[0]}", "message": "MORE please"}}', "p_3", **SPACE)
            )
        ),
        Turn(lambda ids: streamed(wait(ids, "p_4", ""))),
        Turn(lambda ids: streamed(call("close_agent", f'{{"target": "{ids[0]}"}}', "p_5", **SPACE))),
        Turn(streamed(wait(["nope"], "p_6", ""))),
        Turn(streamed(call("spawn_agent", '{"message": "CHILDTASK"}', "p_7"))),
        Turn(streamed(wait([], "p_8", ""))),
        DONE,
    ]
    return {
        "subagent": Play(
            [SPAWN, WAIT, DONE], {"CHILDTASK": [looks("child", "c_1"), last("child done", after=[("root", 2)])]}
        ),
        "subagents_parallel": Play(
            [
                both,
                Turn(lambda ids: streamed(wait(ids, "p_3"))),
                Turn(streamed(text("Done.")), gone=["CHILDTASK2"]),
                DONE,
            ],
            {
                "CHILDTASK1": [looks("c1", "c1_1"), last("c1 done", after=[("root", 2)])],
                "CHILDTASK2": [looks("c2", "c2_1"), last("c2 done", after=[("root", 3)])],
            },
        ),
        "subagent_not_waited_for": Play(
            [SPAWN, Turn(streamed(call("exec_command", '{"cmd": "sleep 0.4"}', "p_2")), gone=["CHILDTASK"]), DONE],
            {"CHILDTASK": [looks("child", "c_1"), last("child done", after=[("root", 2)])]},
        ),
        "subagent_fails": Play([SPAWN, WAIT, DONE], {"CHILDTASK": [Turn(Reply(400, NO), after=[("root", 2)])]}),
        "subagent_calls": Play(
            odd,
            {
                "CHILDTASK": [
                    Turn(streamed(text("child done")), after=[("root", 3)]),
                    Turn(streamed(text("child again")), after=[("root", 5)]),
                ]
            },
        ),
    }


@asynccontextmanager
async def serving(play: Play) -> AsyncIterator[Agents]:
    agents = Agents(scripts={**play.others, "root": play.root})
    server = await asyncio.start_server(agents.serve, "127.0.0.1", 0)
    agents.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    async with server:
        yield agents
        server.close()


@pytest.mark.parametrize("name", sorted(OF_AGENTS))
async def test_the_fake_s_agents_send_what_the_real_ones_sent(name: str) -> None:
    async with serving(plays()[name]) as server:
        talk = await client(name, server.url).run("PARENT fix it.")
    assert talk.ended == "answered", talk.error
    assert differences([as_seen(one) for one in server.seen], recorded(name)) == []
    assert len(talk.all_exchanges) == len(server.seen)
    assert [exchange.n for exchange in talk.all_exchanges] == list(range(len(server.seen)))


def test_every_recording_is_played() -> None:
    assert set(CONVERSATIONS.values()) - {"n/a: not recorded"} == {path.stem for path in RECORDINGS.glob("*.json")}
    assert set(plays()) == OF_AGENTS


def with_change(change: str) -> list[dict[str, Any]]:
    """The recorded requests of a conversation with one small difference."""
    requests = deepcopy(recorded("compact"))
    request, body = requests[1], requests[1]["body_shape"]
    history = body["input"]
    names = [name for name, _ in request["headers"]]
    match change:
        case "another path":
            request["path"] = "/responses"
        case "header order":
            request["headers"] = request["headers"][::-1]
        case "header case":
            request["headers"][names.index("accept")][0] = "Accept"
        case "a header less":
            del request["headers"][names.index("originator")]
        case "another agent in a header":
            request["headers"][names.index("user-agent")][1] = "codex_tui/0.171.0"
        case "metadata keys":
            at = names.index("x-codex-turn-metadata")
            request["headers"][at][1] = request["headers"][at][1].replace("window_number", "window")
        case "key order":
            requests[1]["body_shape"] = dict(reversed(body.items()))
        case "a key less":
            del body["store"]
        case "null for absent":
            body["instructions"] = None
        case "another type":
            body["parallel_tool_calls"] = 1
        case "another literal":
            body["tool_choice"] = "required"
        case "a tool less":
            body["tools"] = body["tools"][:-1]
        case "role":
            history[0]["role"] = "system"
        case "string for parts":
            history[0]["content"] = "text"
        case "an item less":
            del history[-1]
        case "arguments written anew":
            history[-2]["arguments"] = '{"cmd":"echo one"}'
        case "another call id":
            history[-1]["call_id"] = "call_2"
        case "a new id for an old item":
            history[3]["id"] = history[3]["id"].replace("7", "8", 1)
        case "an id of another version":
            history[0]["id"] = requests[0]["body_shape"]["input"][0]["id"] = history[1]["id"].replace("1", "2", 1)
        case "metadata of the client":
            body["client_metadata"]["turn_id"] = body["client_metadata"]["thread_id"]
        case "a request less":
            del requests[1]
    return requests


CHANGES = [
    "another path", "header order", "header case", "a header less", "another agent in a header", "metadata keys",
    "key order", "a key less", "null for absent", "another type", "another literal", "a tool less", "role",
    "string for parts", "an item less", "arguments written anew", "another call id", "a new id for an old item",
    "an id of another version", "metadata of the client", "a request less",
]  # fmt: skip


@pytest.mark.parametrize("change", CHANGES)
def test_the_comparison_sees_every_kind_of_difference(change: str) -> None:
    assert differences(recorded("compact"), recorded("compact")) == []
    assert differences(with_change(change), recorded("compact")) != []
