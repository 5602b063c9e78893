"""How opencode's fake retries, titles and limits itself, where the facts say more than a recording shows."""

import json
from typing import Any

import pytest

from fakes.harnesses.opencode import OpenCode
from tests.fakes.harnesses.conftest import Reply, Seen, Serve, error
from tests.fakes.harnesses.opencode.conftest import DONE, TITLE, Script, kind_of, streamed

pytestmark = pytest.mark.anyio

BASH = '{"command": "echo hi", "description": "b"}'
LOOK = streamed("Hm.", [("c1", "bash", BASH)])
CUT = streamed("Hm.", [("c1", "bash", '{"com')], how="cut", finish=None)
ERROR_EVENT = streamed("Hm.", events=['{"error": {"message": "it broke"}}'])


def main_calls(seen: list[Seen]) -> list[Seen]:
    return [one for one in seen if kind_of(one.json()) == "main"]


def history(seen: list[Seen]) -> list[dict[str, Any]]:
    """What the last main call says after the system prompt and the first user message."""
    messages: list[dict[str, Any]] = main_calls(seen)[-1].json()["messages"]
    return messages[2:]


@pytest.mark.parametrize(
    ("failure", "last_wait"),
    [
        pytest.param(error(500), 32.0, id="500"),
        pytest.param(error(503), 32.0, id="503"),
        pytest.param(error(429), 32.0, id="429"),
        pytest.param(Reply(how="drop"), 30.0, id="drop"),
        pytest.param(CUT, 30.0, id="cut stream"),
        pytest.param(ERROR_EVENT, 30.0, id="error event"),
    ],
)
async def test_it_sends_six_times_with_doubled_waits_and_the_same_bytes(
    serve: Serve, failure: Reply, last_wait: float
) -> None:
    async with serve(failure) as server:
        talk = await OpenCode(server.url, title=False, time_scale=0.0001).run("Fix it.")
    assert talk.ended == "error"
    assert [exchange.planned_wait for exchange in talk.exchanges] == [None, 2.0, 4.0, 8.0, 16.0, last_wait]
    assert [exchange.attempt for exchange in talk.exchanges] == [0, 1, 2, 3, 4, 5]
    assert len({(seen.body, *seen.headers) for seen in server.seen}) == 1


@pytest.mark.parametrize("status", [400, 401, 404, 422])
async def test_a_client_error_is_not_retried(serve: Serve, status: int) -> None:
    async with serve(error(status)) as server:
        talk = await OpenCode(server.url, title=False).run("Fix it.")
    assert (talk.ended, len(server.seen)) == ("error", 1)


@pytest.mark.parametrize(
    ("headers", "wait"),
    [
        ({"Retry-After": "3"}, 3.0),
        ({"retry-after-ms": "250", "Retry-After": "3"}, 0.25),
        ({"Retry-After": "soon"}, 2.0),
    ],
    ids=["seconds", "milliseconds first", "no number"],
)
async def test_the_servers_own_wait_is_kept(serve: Serve, headers: dict[str, str], wait: float) -> None:
    async with serve(error(429, **headers), DONE) as server:
        talk = await OpenCode(server.url, title=False).run("Fix it.")
    assert [exchange.planned_wait for exchange in talk.exchanges] == [None, wait]


async def test_silence_is_a_timeout_and_is_retried(serve: Serve) -> None:
    async with serve(Reply(how="silent"), DONE) as server:
        talk = await OpenCode(server.url, title=False, timeout_scale=0.001).run("Fix it.")
    assert [exchange.ended for exchange in talk.exchanges] == ["timeout", "complete"]
    assert talk.ended == "answered"


async def test_after_a_cut_stream_only_the_successful_attempt_is_history(serve: Serve) -> None:
    async with serve(CUT, LOOK, DONE) as server:
        talk = await OpenCode(server.url, title=False).run("Fix it.")
    assert [exchange.ended for exchange in talk.exchanges] == ["cut", "complete", "complete"]
    assert [message["role"] for message in history(server.seen)] == ["assistant", "tool"]


async def test_an_error_event_before_anything_was_said_leaves_nothing(serve: Serve) -> None:
    bare = Reply(chunks=(b'data: {"error": {"message": "no"}}\n\n',), content_type="text/event-stream")
    async with serve(bare, LOOK, DONE) as server:
        await OpenCode(server.url, title=False).run("Fix it.")
    assert [message["role"] for message in history(server.seen)] == ["assistant", "tool"]


async def test_an_answer_that_is_no_stream_ends_the_run(serve: Serve) -> None:
    async with serve(Reply(body=b'{"choices": []}')) as server:
        talk = await OpenCode(server.url, title=False).run("Fix it.")
    assert (talk.ended, len(server.seen)) == ("error", 1)
    assert "no stream" in (talk.error or "")


async def test_a_title_is_asked_for_before_the_first_turn_and_never_again(serve: Serve) -> None:
    async with serve(answering=Script([[LOOK, DONE, DONE, DONE]], titles=[TITLE])) as server:
        agent = OpenCode(server.url)
        talk = await agent.run("Fix it.", follow_ups=["And now?"])
        again = await agent.run("Once more.", before=talk)
    kinds = [kind_of(exchange.request.json_body()) for exchange in talk.exchanges]
    assert kinds == ["title", "main", "main", "main"]
    assert [exchange.n for exchange in talk.exchanges] == [0, 1, 2, 3]
    assert len({exchange.request.header("x-session-id") for exchange in (*talk.exchanges, *again.exchanges)}) == 1
    assert [kind_of(exchange.request.json_body()) for exchange in again.exchanges] == ["main"]


async def test_a_title_still_under_way_neither_delays_the_turns_nor_outlives_them(serve: Serve) -> None:
    async with serve(answering=Script([[LOOK, DONE]], titles=[Reply(how="silent")])) as server:
        talk = await OpenCode(server.url, title_grace=0).run("Fix it.")
    assert talk.ended == "answered"
    assert [exchange.ended for exchange in talk.exchanges] == ["abandoned", "complete", "complete"]


async def test_a_title_that_fails_is_asked_for_three_times_and_changes_nothing_else(serve: Serve) -> None:
    async with serve(answering=Script([[LOOK, DONE]], titles=[error(500)] * 4)) as server:
        talk = await OpenCode(server.url).run("Fix it.")
    assert talk.ended == "answered"
    titles = [exchange for exchange in talk.exchanges if kind_of(exchange.request.json_body()) == "title"]
    assert [exchange.planned_wait for exchange in titles] == [None, 2.0, 4.0]
    assert len({exchange.request.body for exchange in titles}) == 1
    assert len(talk.exchanges) == 5


async def test_a_title_whose_stream_breaks_is_given_up(serve: Serve) -> None:
    async with serve(answering=Script([[DONE]], titles=[CUT, TITLE])) as server:
        await OpenCode(server.url).run("Fix it.")
    assert [kind_of(seen.json()) for seen in server.seen].count("title") == 1


@pytest.mark.parametrize(("limit", "asked"), [(None, 32000), (131072, 32000), (4096, 4096)])
async def test_the_output_limit_is_asked_for_up_to_32000(serve: Serve, limit: int | None, asked: int) -> None:
    async with serve(answering=Script([[DONE]])) as server:
        await OpenCode(server.url, output=limit).run("Fix it.")
    assert [seen.json()["max_tokens"] for seen in server.seen] == [asked, asked]


async def test_options_stand_before_the_messages_and_numbers_as_javascript_writes_them(serve: Serve) -> None:
    options = {"seed": 7, "chat_template_kwargs": {"enable_thinking": False}, "return_token_ids": True}
    async with serve(answering=Script([[DONE]])) as server:
        await OpenCode(server.url, title=False, temperature=1.0, top_p=0.95, options=options).run("Fix it.")
    body = server.seen[0].body.decode()
    assert list(json.loads(body))[2:8] == ["temperature", "top_p", *options, "messages"]
    assert '"temperature":1,"top_p":0.95,' in body


async def test_only_the_main_agent_has_a_temperature_while_options_go_with_every_call(serve: Serve) -> None:
    task = '{"description": "a", "prompt": "Look.", "subagent_type": "general"}'
    script = Script([[streamed("x", [("t1", "task", task)], usage=900), DONE], [DONE]])
    async with serve(answering=script) as server:
        agent = OpenCode(server.url, temperature=0.7, options={"seed": 7}, context=1000, output=200)
        assert (await agent.run("Fix it.")).ended == "answered"
    bodies = [seen.json() for seen in server.seen]
    assert [kind_of(body) for body in bodies] == ["title", "main", "main", "summary", "main"]
    assert ["temperature" in body for body in bodies] == [False, True, False, False, True]
    assert {body["seed"] for body in bodies} == {7}


async def test_configured_headers_win_over_the_session_but_not_over_the_affinity(serve: Serve) -> None:
    async with serve(answering=Script([[DONE]])) as server:
        agent = OpenCode(server.url, session="ses_mine", headers={"X-Session-Id": "other", "X-Extra": "1"})
        talk = await agent.run("Fix it.")
    own = [(name, value) for name, value in server.seen[0].headers if name.startswith("x-")]
    assert own == [("x-extra", "1"), ("x-session-affinity", "ses_mine"), ("x-session-id", "other")]
    assert (talk.session, talk.conversation) == ("other", "ses_mine")


async def test_a_session_id_has_the_recorded_form_and_is_its_own(serve: Serve) -> None:
    async with serve(answering=Script([[DONE], [DONE]])) as server:
        ids = [(await OpenCode(server.url, title=False).run("Fix it.")).session or "" for _ in range(2)]
    assert [len(id_) for id_ in ids] == [30, 30]
    assert ids[0] != ids[1]
    assert all(id_.startswith("ses_") for id_ in ids)


@pytest.mark.parametrize(
    ("task", "sent"),
    [("Fix it.", '"Fix it."'), ('Say "hi".', '"Say \\"hi\\"."'), ("Fix!", "Fix!")],
    ids=["space", "quotes", "one word"],
)
async def test_a_prompt_on_the_command_line_is_quoted(serve: Serve, task: str, sent: str) -> None:
    async with serve(answering=Script([[DONE]])) as server:
        await OpenCode(server.url, argv=True).run(task)
    assert {seen.json()["messages"][-1]["content"] for seen in server.seen} == {sent}


async def test_streams_without_end_go_on_until_the_turns_are_used_up(serve: Serve) -> None:
    async with serve(streamed("Hm.", finish=None)) as server:
        talk = await OpenCode(server.url, title=False).run("Fix it.", max_turns=4)
    assert talk.ended == "max_turns"
    assert [message["role"] for message in history(server.seen)] == ["assistant"] * 3


async def test_an_empty_answer_ends_the_message_and_leaves_no_trace(serve: Serve) -> None:
    async with serve(streamed(), DONE) as server:
        talk = await OpenCode(server.url, title=False).run("Fix it.", follow_ups=["And now?"])
    assert talk.ended == "answered"
    assert history(server.seen) == [{"role": "user", "content": "And now?"}]


async def test_a_text_cut_by_the_output_limit_ends_the_message(serve: Serve) -> None:
    async with serve(streamed("Hm", finish="length")) as server:
        talk = await OpenCode(server.url, title=False).run("Fix it.")
    assert (talk.ended, len(server.seen)) == ("answered", 1)
