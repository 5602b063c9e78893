"""The habits of the OpenHands SDK that no recording shows, as facts about it say."""

import json

import pytest

from fakes.harnesses.openhands_sdk import MALFORMED, OpenHandsSDK
from fakes.harnesses.openhands_sdk_client import RetryPolicy
from tests.fakes.harnesses.conftest import Reply, Serve, completion, error

pytestmark = pytest.mark.anyio

LOOK = completion("Hm.", [("c1", "terminal", '{"command": "echo hi"}')])
FINISH = completion(None, [("c2", "finish", '{"message": "Done."}')])
QUICK = RetryPolicy(multiplier=0, low=0.01)


@pytest.mark.parametrize(
    "failure",
    [error(429), error(500, **{"Retry-After": "1"}), error(502), error(503), Reply(how="drop")],
    ids=["429", "500", "502", "503", "drop"],
)
async def test_it_sends_five_times_with_growing_planned_waits_and_the_same_bytes(serve: Serve, failure: Reply) -> None:
    async with serve(failure) as server:
        talk = await OpenHandsSDK(server.url, time_scale=0.001).run("Fix it.")
    assert talk.ended == "error"
    assert [exchange.planned_wait for exchange in talk.exchanges] == [None, 8.0, 16.0, 32.0, 64.0]
    assert len({(seen.body, *seen.headers) for seen in server.seen}) == 1


@pytest.mark.parametrize("status", [400, 401, 404, 422])
async def test_a_client_error_is_not_retried(serve: Serve, status: int) -> None:
    async with serve(error(status)) as server:
        talk = await OpenHandsSDK(server.url).run("Fix it.")
    assert talk.ended == "error"
    assert len(server.seen) == 1


async def test_silence_is_a_timeout_and_is_retried(serve: Serve) -> None:
    async with serve(Reply(how="silent"), FINISH) as server:
        talk = await OpenHandsSDK(server.url, retry=QUICK, timeout_scale=0.001).run("Fix it.")
    assert [exchange.ended for exchange in talk.exchanges] == ["timeout", "complete"]


async def test_an_overflow_without_condenser_ends_the_run(serve: Serve) -> None:
    async with serve(error(400, "maximum context length is 10 tokens")) as server:
        talk = await OpenHandsSDK(server.url).run("Fix it.")
    assert talk.ended == "error"
    assert len(server.seen) == 1


async def test_an_overflow_that_condensing_cannot_cure_ends_the_run(serve: Serve) -> None:
    overflow = error(400, "maximum context length is 10 tokens")
    async with serve(LOOK, overflow, completion("Summary."), overflow) as server:
        talk = await OpenHandsSDK(server.url, condense_at=80).run("Fix it.")
    assert talk.ended == "error"
    assert len(server.seen) == 4


@pytest.mark.parametrize(("content", "kept"), [(None, ""), ("", [{"type": "text", "text": ""}])], ids=["null", "empty"])
async def test_an_empty_answer_is_nudged(serve: Serve, content: str | None, kept: object) -> None:
    async with serve(completion(content), FINISH) as server:
        talk = await OpenHandsSDK(server.url).run("Fix it.")
    assert talk.ended == "finished"
    messages = server.seen[1].json()["messages"]
    assert [message["role"] for message in messages] == ["system", "user", "assistant", "user"]
    assert messages[2] == {"content": kept, "role": "assistant"}


async def test_plain_text_ends_the_run_unless_the_user_goes_on(serve: Serve) -> None:
    async with serve(completion("Yes."), completion("Yes again.")) as server:
        talk = await OpenHandsSDK(server.url).run("Fix it.", follow_ups=["And now?"])
    assert talk.ended == "answered"
    assert server.seen[1].json()["messages"][3]["content"] == [{"type": "text", "text": "And now?"}]
    assert len(server.seen) == 2


async def test_malformed_arguments_are_rewritten_and_told_to_the_model(serve: Serve) -> None:
    bad = completion("x", [("c1", "terminal", "{broken"), ("c2", "terminal", '{"command": "echo b"}')])
    async with serve(bad, FINISH) as server:
        await OpenHandsSDK(server.url).run("Fix it.")
    turn, failed, ran = server.seen[1].json()["messages"][2:]
    rewritten = json.loads(turn["tool_calls"][0]["function"]["arguments"])
    assert rewritten[MALFORMED] is True
    assert list(rewritten) == [MALFORMED, "error"]
    assert failed["content"][0]["text"].startswith("Error")
    assert ran["content"][0]["text"] == "b\n[exit code 0]"


async def test_asking_for_ids_makes_it_need_them(serve: Serve) -> None:
    body = json.loads(FINISH.body)
    body["choices"][0]["token_ids"] = [2]
    whole = Reply(body=json.dumps(body | {"prompt_token_ids": [1]}).encode())
    async with serve(whole) as server:
        ask = {"return_token_ids": True}
        assert (await OpenHandsSDK(server.url, extra_body=ask).run("Fix it.")).ended == "finished"
    async with serve(FINISH) as server:
        talk = await OpenHandsSDK(server.url, extra_body=ask).run("Fix it.")
    assert talk.ended == "error"
    assert "prompt_token_ids" in (talk.error or "")


async def test_sampling_takes_the_place_of_reasoning_effort_and_cache_key(serve: Serve) -> None:
    async with serve(FINISH) as server:
        agent = OpenHandsSDK(server.url, sampling={"temperature": 1.0, "top_p": 0.95, "top_k": 20.0})
        await agent.run("Fix it.")
    assert list(server.seen[0].json()) == ["messages", "model", "temperature", "tools", "top_k", "top_p"]


async def test_the_users_own_litellm_session_is_overridden(serve: Serve) -> None:
    async with serve(FINISH) as server:
        agent = OpenHandsSDK(server.url, conversation="mine", extra_headers={"x-litellm-session-id": "other"})
        await agent.run("Fix it.")
    assert [value for name, value in server.seen[0].headers if name == "x-litellm-session-id"] == ["mine"]


async def test_a_text_call_is_rewritten_on_resend(serve: Serve) -> None:
    text = "ok\n<function=terminal>\n<parameter=command>echo hi</parameter>\n"
    async with serve(completion(text), completion("<function=finish>\n")) as server:
        await OpenHandsSDK(server.url, native=False).run("Fix it.")
    messages = server.seen[1].json()["messages"]
    assert messages[2]["content"] == ("ok\n\n<function=terminal>\n<parameter=command>echo hi</parameter>\n</function>")
    assert messages[3]["content"].endswith("hi\n[exit code 0]")


async def test_streamed_calls_drive_the_loop_and_a_cut_stream_is_sent_again(serve: Serve) -> None:
    call = '{"index":0,"id":"c1","function":{"name":"finish","arguments":"{}"}}'
    chunks = tuple(
        f'data: {{"choices":[{{"delta":{piece},"finish_reason":{finish}}}]}}\n\n'.encode()
        for piece, finish in [(f'{{"tool_calls":[{call}]}}', "null"), ("{}", '"tool_calls"')]
    )
    whole = Reply(chunks=(*chunks, b"data: [DONE]\n\n"), content_type="text/event-stream")
    cut = Reply(chunks=chunks[:1], content_type="text/event-stream", how="cut")
    async with serve(cut, whole) as server:
        talk = await OpenHandsSDK(server.url, stream=True, retry=QUICK).run("Fix it.")
    assert talk.ended == "finished"
    assert [(exchange.ended, exchange.streamed) for exchange in talk.exchanges] == [("cut", True), ("complete", True)]


async def test_a_sub_agents_answer_reaches_its_parent_and_its_failure_too(serve: Serve) -> None:
    tasks = [("t1", "task", '{"prompt": "One."}'), ("t2", "task", '{"prompt": "Two."}')]
    async with serve(completion("x", tasks), FINISH, error(400), FINISH) as server:
        talk = await OpenHandsSDK(server.url, subagents=True, session="s").run("Fix it.")
    assert talk.ended == "finished"
    assert [child.ended for child in talk.children] == ["finished", "error"]
    results = server.seen[3].json()["messages"][3:]
    assert [part["text"] for part in results[0]["content"]][1] == "Done."
    assert "400" in results[1]["content"][1]["text"]
    assert [exchange.n for exchange in talk.all_exchanges] == [0, 1, 2, 3]
    assert {seen.json()["proxy_x_session_id"] for seen in server.seen} == {"s"}
