"""The habits of the Gym fork that no recording shows, as facts about it say."""

import hashlib
import socket
from typing import Any

import pytest

from fakes.harnesses.openhands_nv import OpenHandsNV
from tests.fakes.harnesses.conftest import Reply, Serve, completion, error

pytestmark = pytest.mark.anyio

LOOK = completion("Hm.", [("c1", "execute_bash", '{"command": "echo hi  # ⟦000001:00:0001⟧"}')])
FINISH = completion(None, [("c2", "finish", '{"message": "Done."}')])


@pytest.mark.parametrize("status", [400, 429, 500, 502, 503])
async def test_no_error_status_is_ever_retried(serve: Serve, status: int) -> None:
    async with serve(error(status), FINISH) as server:
        talk = await OpenHandsNV(server.url).run("Fix it.")
    assert (talk.ended, talk.error) == ("error", "it broke")
    assert [exchange.status for exchange in talk.exchanges] == [status]


async def test_a_dropped_connection_is_resent_every_half_second_with_the_same_body(serve: Serve) -> None:
    drop = Reply(how="drop")
    async with serve(drop, drop, drop, FINISH) as server:
        talk = await OpenHandsNV(server.url).run("Fix it.")
    assert talk.ended == "finished"
    assert [exchange.planned_wait for exchange in talk.exchanges] == [None, 0.5, 0.5, 0.5]
    assert [exchange.attempt for exchange in talk.exchanges] == [0, 1, 2, 3]
    assert len({seen.body for seen in server.seen}) == 1


async def test_the_endless_resend_is_given_up_and_said_so() -> None:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{bound.getsockname()[1]}"
        talk = await OpenHandsNV(url, max_resends=2).run("Fix it.")
    assert talk.ended == "gave_up"
    assert [exchange.ended for exchange in talk.exchanges] == ["refused"] * 3


@pytest.mark.parametrize(
    ("reply", "ended"),
    [
        pytest.param(Reply(body=FINISH.body, how="cut"), "cut", id="cut"),
        pytest.param(Reply(how="silent"), "timeout", id="silent"),
    ],
)
async def test_an_answer_that_broke_off_ends_the_run(serve: Serve, reply: Reply, ended: str) -> None:
    async with serve(reply, FINISH) as server:
        talk = await OpenHandsNV(server.url, patience=0.3).run("Fix it.")
    assert talk.ended == "error"
    assert [exchange.ended for exchange in talk.exchanges] == [ended]


@pytest.mark.parametrize(
    "reply",
    [
        pytest.param(completion(None), id="neither text nor call"),
        pytest.param(completion("x", prompt_token_ids=[1], generation_token_ids=[2]), id="ids without log probs"),
        pytest.param(Reply(body=b"{}"), id="no choice"),
        pytest.param(Reply(body=b"<html>"), id="not JSON"),
    ],
)
async def test_an_answer_it_cannot_use_ends_the_run_with_an_error(serve: Serve, reply: Reply) -> None:
    async with serve(reply) as server:
        talk = await OpenHandsNV(server.url).run("Fix it.")
    assert talk.ended == "error"
    assert talk.error
    assert len(server.seen) == 1


async def test_plain_text_is_answered_by_a_made_up_user(serve: Serve) -> None:
    async with serve(completion("I think."), completion("  \n"), FINISH) as server:
        talk = await OpenHandsNV(server.url).run("Fix it.")
    assert talk.ended == "finished"
    roles = [(message["role"], message["content"]) for message in server.seen[2].json()["messages"]]
    assert [role for role, _ in roles] == ["system", "user", "assistant", "user", "assistant", "user"]
    assert roles[2] == ("assistant", "I think.")
    assert roles[4] == ("assistant", "")


async def test_only_the_cookies_of_the_last_answer_are_sent(serve: Serve) -> None:
    baked = Reply(body=LOOK.body, headers=(("Set-Cookie", "who=me; Path=/"),))
    async with serve(baked, LOOK, FINISH) as server:
        await OpenHandsNV(server.url).run("Fix it.")
    assert [dict(seen.headers).get("Cookie") for seen in server.seen] == [None, "who=me", None]
    assert [name for name, _ in server.seen[1].headers][-2:] == ["Cookie", "Content-Length"]


async def test_reasoning_is_lost_and_arguments_are_kept_byte_for_byte(serve: Serve) -> None:
    raw = '{ "command":"echo 1","timeout" : 1.0 }'
    reply = completion("x", [("c1", "execute_bash", raw)], reasoning="Hm.", reasoning_content="Hm.")
    async with serve(reply, FINISH) as server:
        await OpenHandsNV(server.url).run("Fix it.")
    turn = server.seen[1].json()["messages"][2]
    assert list(turn) == ["content", "role", "tool_calls"]
    assert turn["tool_calls"][0]["function"]["arguments"] == raw


async def test_completion_kwargs_override_in_place_but_model_and_seed_come_last(serve: Serve) -> None:
    kwargs: dict[str, Any] = {"temperature": 0.25, "metadata": {"a": 1}, "model": "other", "seed": 5}
    async with serve(FINISH) as server:
        await OpenHandsNV(server.url, session="s", model="m", top_k=20, completion_kwargs=kwargs).run("Fix it.")
    body = server.seen[0].json()
    assert (body["temperature"], body["model"], body["seed"], body["metadata"]) == (0.25, "m", None, {"a": 1})
    assert b'"top_k":20.0' in server.seen[0].body
    assert list(body)[1] == "temperature"


async def test_the_seed_moves_on_with_every_answer_and_stays_for_a_resend(serve: Serve) -> None:
    async with serve(LOOK, Reply(how="drop"), LOOK, FINISH) as server:
        await OpenHandsNV(server.url, sampling_seed=7).run("Fix it.")

    def seed(ordinal: int) -> int:
        digest = hashlib.sha256(f"nemo-gym/model-call/v1:7:{ordinal}".encode()).digest()
        return int.from_bytes(digest[:8], "big") & (2**63 - 1)

    assert [seen.json()["seed"] for seen in server.seen] == [seed(0), seed(1), seed(1), seed(2)]


async def test_it_stops_where_the_scenario_says(serve: Serve) -> None:
    async with serve(LOOK) as server:
        talk = await OpenHandsNV(server.url).run("Fix it.", max_turns=3)
    assert talk.ended == "max_turns"
    assert len(talk.answers) == len(server.seen) == 3


async def test_a_tool_answers_as_the_scenario_wants(serve: Serve) -> None:
    async with serve(LOOK, FINISH) as server:
        await OpenHandsNV(server.url, tool_results={"execute_bash": lambda given: given["command"][:4]}).run("Fix it.")
    assert server.seen[1].json()["messages"][3]["content"] == "echo"
