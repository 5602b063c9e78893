"""The habits of Codex that its recorded requests alone do not show: waits, equal bytes, silence, leaving."""

import asyncio
from dataclasses import dataclass
from itertools import pairwise

import orjson
import pytest

from fakes.harnesses.codex import Codex
from fakes.harnesses.codex_ids import kept_id, new_thread_id
from tests.fakes.harnesses.codex.answers import Turn, agents_in, call, execute, frames, streamed, text
from tests.fakes.harnesses.codex.comparison import recorded
from tests.fakes.harnesses.codex.test_recordings import DONE, SPACE, SPAWN, Play, serving
from tests.fakes.harnesses.conftest import Reply, ScriptedServer, Seen, Serve, error

pytestmark = pytest.mark.anyio

ANSWER = streamed(text("Done."))


def waits_of(name: str) -> list[float]:
    """The seconds between the requests of a recording."""
    times = [request["t"] for request in recorded(name)]
    return [later - earlier for earlier, later in pairwise(times)]


@pytest.mark.parametrize(
    ("failure", "name"),
    [
        pytest.param(error(500), "e500_all", id="500"),
        pytest.param(Reply(how="drop"), "drop_all", id="dropped"),
        pytest.param(error(404), "e404_all", id="404"),
        pytest.param(streamed(text("x"), end=None), "end_without_completed", id="a stream without its end"),
        pytest.param(error(429, **{"Retry-After": "3"}), "e429_retry_after", id="429"),
        pytest.param(error(503, **{"Retry-After": "3"}), "e503_retry_after", id="503"),
    ],
)
async def test_it_plans_the_waits_that_were_recorded(serve: Serve, failure: Reply, name: str) -> None:
    often = len(recorded(name)) - (0 if name.endswith("all") else 1)
    async with serve(*[failure] * often, ANSWER) as server:
        talk = await Codex(server.url, request_retries=2, stream_retries=1).run("Fix it.")
    planned = [exchange.planned_wait for exchange in talk.exchanges]
    assert planned[0] is None
    # The real one adds a tenth either way, and takes its time to send.
    for plan, seen in zip(planned[1:], waits_of(name), strict=True):
        assert plan is not None
        assert plan * 0.89 <= seen <= plan * 1.1 + 0.15
    assert [exchange.attempt for exchange in talk.exchanges] == list(range(len(planned)))


async def test_by_default_it_asks_thirty_times(serve: Serve) -> None:
    async with serve(error(500)) as server:
        talk = await Codex(server.url, time_scale=0.001).run("Fix it.")
    assert talk.ended == "error"
    assert len(server.seen) == 30
    planned = [exchange.planned_wait for exchange in talk.exchanges]
    assert planned[:10] == [None, 0.2, 0.4, 0.8, 1.6, 0.2, 0.2, 0.4, 0.8, 1.6]
    assert planned[5::5] == pytest.approx([0.2, 0.4, 0.8, 1.6, 3.2])


async def test_a_repeated_request_has_the_same_bytes_and_a_reconnect_has_not(serve: Serve) -> None:
    async with serve(error(500), error(500), streamed(end=None), ANSWER) as server:
        await Codex(server.url).run("Fix it.")
    first, again, third, reconnect = server.seen
    assert first.body == again.body == third.body
    assert reconnect.body != first.body
    # It differs in nothing but the order of the client metadata.
    assert orjson.loads(reconnect.body) == orjson.loads(first.body)
    assert all(seen.headers == first.headers for seen in server.seen[:3])


@pytest.mark.parametrize("status", [400, 429])
async def test_what_it_takes_for_final_is_not_repeated(serve: Serve, status: int) -> None:
    async with serve(error(status)) as server:
        talk = await Codex(server.url).run("Fix it.")
    assert talk.ended == "error"
    assert len(server.seen) == 1


@pytest.mark.parametrize(
    "code", ["context_length_exceeded", "insufficient_quota", "invalid_prompt", "server_is_overloaded", "slow_down"]
)
async def test_a_response_that_failed_for_good_ends_the_run(serve: Serve, code: str) -> None:
    failed = streamed(text("Half."), end="failed", error={"code": code, "message": "No."})
    async with serve(failed) as server:
        talk = await Codex(server.url).run("Fix it.")
    assert (talk.ended, talk.error) == ("error", "No.")
    assert len(server.seen) == 1


async def test_the_calls_of_a_cut_stream_are_run_and_their_answers_sent_with_the_reconnect(serve: Serve) -> None:
    cut = streamed(execute("echo hi", "c1"), end=None, how="cut")
    async with serve(cut, streamed(execute("echo ho", "c2")), ANSWER) as server:
        talk = await Codex(server.url).run("Fix it.")
    assert talk.ended == "answered"
    assert [exchange.ended for exchange in talk.exchanges] == ["cut", "complete", "complete"]
    called = [item["call_id"] for item in server.seen[2].json()["input"] if item["type"] == "function_call_output"]
    assert called == ["c1", "c2"]
    assert [exchange.attempt for exchange in talk.exchanges] == [0, 1, 0]


@dataclass
class Silent(ScriptedServer):
    """Begins a stream and then only comments, until the client leaves; afterwards it answers."""

    async def _answer(self, reply: Reply, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        if len(self.seen) > 1:
            return await super()._answer(reply, reader, writer)
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n" + frames()[0])
        left = asyncio.create_task(reader.read(1))
        while not left.done():
            writer.write(b": ping\n\n")
            await asyncio.wait([left], timeout=0.005)
        left.exception()
        return False


async def test_comments_do_not_keep_a_stream_alive() -> None:
    silent = Silent([ANSWER])
    server = await asyncio.start_server(silent.serve, "127.0.0.1", 0)
    async with server:
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        talk = await Codex(url, timeout_scale=0.005).run("Fix it.")
        server.close()
    assert [exchange.ended for exchange in talk.exchanges] == ["timeout", "complete"]
    assert talk.exchanges[0].error == "idle timeout waiting for SSE"
    assert talk.ended == "answered"


async def test_the_session_goes_as_a_header_of_the_provider_with_every_call() -> None:
    play = Play([SPAWN, Turn(lambda ids: streamed(call("wait_agent", {"targets": ids}, "p_2", **SPACE))), DONE])
    play.others["CHILDTASK"] = [Turn(streamed(text("Yes.")))]
    async with serving(play) as server:
        talk = await Codex(server.url, session="s-1", http_headers={"X-Own": "é"}).run("Fix it.")
    assert {seen.headers[0] for seen in server.seen} == {("X-Own", "é".encode().decode("latin-1"))}
    assert {seen.headers[1] for seen in server.seen} == {("proxy_x_session_id", "s-1")}
    assert (talk.session, talk.children[0].session) == ("s-1", "s-1")
    assert talk.children[0].conversation == agents_in(server.seen[-1])[0]
    assert talk.children[0].ended == "answered"


async def test_a_scenario_may_say_which_ids_the_subagents_get(serve: Serve) -> None:
    known = new_thread_id()
    play = Play([SPAWN, Turn(streamed(call("wait_agent", {"targets": [known]}, "p_2", **SPACE))), DONE])
    play.others["CHILDTASK"] = [Turn(streamed(text("Yes.")))]
    async with serving(play) as server:
        talk = await Codex(server.url, agent_threads=[known]).run("Fix it.")
    assert agents_in(server.seen[-1]) == [known]
    assert [child.conversation for child in talk.children] == [known]


async def test_a_subagent_that_still_works_when_its_parent_is_done_is_left() -> None:
    play = Play([SPAWN, Turn(streamed(text("Done.")), after=[("CHILDTASK", 1)])])
    play.others["CHILDTASK"] = [Turn(streamed(text("Late.")), after=[("root", 3)])]
    async with serving(play) as server:
        talk = await Codex(server.url).run("Fix it.")
    assert talk.ended == "answered"
    [child] = talk.children
    assert (child.ended, child.error) == ("error", "interrupted")
    assert [exchange.ended for exchange in child.exchanges] == ["abandoned"]


async def test_a_subagent_with_its_parent_s_history_is_refused_loudly(serve: Serve) -> None:
    forked = call("spawn_agent", {"message": "Look.", "fork_context": True}, "p_1", **SPACE)
    async with serve(streamed(forked)) as server:
        with pytest.raises(NotImplementedError, match="fork_context"):
            await Codex(server.url).run("Fix it.")


async def test_a_compaction_keeps_the_user_s_words_and_the_model_s_summary(serve: Serve) -> None:
    tag, later = "⟦000007:00:0000⟧", "⟦000007:00:0002⟧"
    full = streamed(execute(f"echo hi  # {later}", "c1"), tokens=9000)
    async with serve(full, streamed(text(f"{later} So far.")), ANSWER) as server:
        await Codex(server.url, compact_at=5000).run(f"{tag} Fix it.")
    summary, after = (seen.json()["input"] for seen in server.seen[1:])
    assert "id" not in summary[-1]
    said = [part["text"] for item in after for part in item["content"]]
    assert [one for one in said if "⟦" in one] == [f"{tag} Fix it.", next(one for one in said if later in one)]
    assert said[-1].endswith(f"{later} So far.")
    assert not any(item["type"] == "function_call" for item in after)


async def test_a_long_output_fills_the_window_before_the_server_counts_it(serve: Serve) -> None:
    long = streamed(execute("echo", "c1"), tokens=20)
    async with serve(long, streamed(text("Short.")), ANSWER) as server:
        await Codex(server.url, compact_at=5000, tool_results={"exec_command": "y" * 40_000}).run("Fix it.")
    assert [seen.json()["tools"] == [] for seen in server.seen] == [False, True, False]


async def test_tool_results_take_the_place_of_the_tool_s_own(serve: Serve) -> None:
    calls = streamed(execute("echo a", "c1"), execute("echo b", "c2"))
    results = {"exec_command": lambda arguments: str(arguments["cmd"]).upper()}
    async with serve(calls, ANSWER) as server:
        await Codex(server.url, tool_results=results).run("Fix it.")
    assert outputs(server.seen[1]) == ["ECHO A", "ECHO B"]


async def test_an_echo_is_played_and_a_comment_behind_it_is_not_said(serve: Serve) -> None:
    async with serve(
        streamed(execute("echo 'a  b'  # ⟦000007:00:0001⟧", "c1"), execute("echo '", "c2")), ANSWER
    ) as server:
        await Codex(server.url).run("Fix it.")
    first, second = outputs(server.seen[1])
    assert first.endswith("Process exited with code 0\nOriginal token count: 2\nOutput:\na  b\n")
    assert "Process exited with code 2" in second


async def test_the_conversation_tells_the_history_and_the_answers_in_chat_form(serve: Serve) -> None:
    thought = {"type": "reasoning", "id": "rs_1", "summary": [], "content": [{"type": "reasoning_text", "text": "Hm."}]}
    async with serve(streamed(thought, text("Look."), execute("echo hi", "c1")), ANSWER) as server:
        talk = await Codex(server.url).run("Fix it.")
    assert talk.messages[:-1] == server.seen[1].json()["input"]
    function = {"name": "exec_command", "arguments": '{"cmd":"echo hi"}'}
    assert talk.answers == [
        {
            "role": "assistant",
            "content": "Look.",
            "reasoning": "Hm.",
            "tool_calls": [{"id": "c1", "type": "function", "function": function}],
        },
        {"role": "assistant", "content": "Done."},
    ]


async def test_it_gives_up_where_the_scenario_says(serve: Serve) -> None:
    async with serve(streamed(execute("echo", "c1"))) as server:
        talk = await Codex(server.url).run("Fix it.", max_turns=3)
    assert talk.ended == "max_turns"
    assert len(server.seen) == 3


async def test_a_server_that_is_not_there_is_an_error_and_no_exception() -> None:
    talk = await Codex("http://127.0.0.1:1", request_retries=1, stream_retries=1, time_scale=0.0001).run("Fix it.")
    assert talk.ended == "error"
    assert [exchange.ended for exchange in talk.exchanges] == ["refused"] * 4


def test_ids_rise_with_time_and_are_of_version_7() -> None:
    ids = [new_thread_id() for _ in range(50)]
    assert len(set(ids)) == 50
    assert {id_[14] for id_ in ids} == {"7"}
    assert {id_[19] for id_ in ids} <= set("89ab")
    assert [id_[:13] for id_ in ids] == sorted(id_[:13] for id_ in ids)


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("fc_1", "fc_1"),
        ("a-b_1", "a-b_1"),
        ("msg__", "msg__"),
        ("x_y_z", "x_y_z"),
        ("fc_é", "fc_é"),
        ("_x", None),
        ("ab_", None),
        ("chatcmpl-1", None),
    ],
)
def test_an_id_of_two_parts_is_kept_and_any_other_dropped(given: str, kept: str | None) -> None:
    assert kept_id("function_call", given) == kept
    assert str(kept_id("message", "")).startswith("msg_")


def outputs(seen: Seen) -> list[str]:
    return [item["output"] for item in seen.json()["input"] if item["type"] == "function_call_output"]
