"""When opencode's fake compacts, what it shows of its history, and what goes on."""

from typing import Any

import pytest

from fakes.harnesses.chat_answers import Message
from fakes.harnesses.opencode import OpenCode
from fakes.harnesses.opencode_history import History, budget_for, history_of, kept_from
from fakes.harnesses.opencode_texts import COMPACTED
from tests.fakes.harnesses.conftest import Serve, error
from tests.fakes.harnesses.opencode.conftest import DONE, OVERFLOW, SUMMARY, Answer, Script, kind_of, streamed

pytestmark = pytest.mark.anyio

LIMITS: dict[str, Any] = {"context": 16000, "output": 2000, "title": False}
BASH = '{"command": "true  # ⟦000001:00:0002⟧"}'


def look(usage: int | None) -> Answer:
    return streamed("⟦000001:00:0001⟧ Hm.", [("c1", "bash", BASH)], usage=usage)


async def kinds(serve: Serve, script: Script, **options: Any) -> list[str]:
    async with serve(answering=script) as server:
        await OpenCode(server.url, **options).run("Fix it.")
    return [kind_of(seen.json()) for seen in server.seen]


@pytest.mark.parametrize(
    ("usage", "limits", "compacted"),
    [
        pytest.param(14000, LIMITS, True, id="at the limit"),
        pytest.param(13999, LIMITS, False, id="below it"),
        pytest.param(None, LIMITS, False, id="no usage told"),
        pytest.param(10**6, {"title": False}, False, id="no limit declared"),
        pytest.param(36000, {"title": False, "context": 68000, "output": 64000}, True, id="output counts up to 32000"),
    ],
)
async def test_it_compacts_when_the_reported_usage_leaves_no_room_for_the_output(
    serve: Serve, usage: int | None, limits: dict[str, Any], compacted: bool
) -> None:
    found = await kinds(serve, Script([[look(usage), DONE]]), **limits)
    assert found == (["main", "summary", "main"] if compacted else ["main", "main"])


async def test_an_answer_that_fills_the_window_is_compacted_and_goes_on(serve: Serve) -> None:
    assert await kinds(serve, Script([[streamed("Done.", usage=15000), DONE]]), **LIMITS) == ["main", "summary", "main"]


async def test_the_summary_call_shows_every_tag_and_its_answer_opens_the_new_history(serve: Serve) -> None:
    results = {"bash": "y" * 20000}
    async with serve(answering=Script([[look(15000), DONE]])) as server:
        await OpenCode(server.url, tool_results=results, **LIMITS).run("⟦000001:00:0000⟧ Fix it.")
    _, summary, main = (seen.json() for seen in server.seen)
    shown = summary["messages"][1]["content"]
    assert all(f"⟦000001:00:000{turn}⟧" in shown for turn in range(3))
    assert len(shown) < 3000
    assert [message["role"] for message in main["messages"]] == ["system", "user", "assistant", "user"]
    assert main["messages"][2]["content"] == "What was done."


async def test_a_summary_that_does_not_come_ends_the_run_and_keeps_the_history(serve: Serve) -> None:
    async with serve(answering=Script([[look(15000)]], summaries=[error(400)])) as server:
        talk = await OpenCode(server.url, **LIMITS).run("Fix it.")
    assert talk.ended == "error"
    assert [message["role"] for message in talk.messages] == ["system", "user", "assistant", "tool"]


async def test_a_summary_that_overflows_ends_the_run(serve: Serve) -> None:
    assert await kinds(serve, Script([[OVERFLOW]], summaries=[OVERFLOW]), title=False) == ["main", "summary"]


async def test_a_summary_is_retried_like_a_turn(serve: Serve) -> None:
    script = Script([[look(15000), DONE]], summaries=[error(500), SUMMARY])
    assert await kinds(serve, script, **LIMITS) == ["main", "summary", "summary", "main"]


async def test_an_overflow_after_a_second_message_asks_that_message_again(serve: Serve) -> None:
    async with serve(answering=Script([[DONE, OVERFLOW, DONE]])) as server:
        talk = await OpenCode(server.url, title=False).run("Fix it.", follow_ups=["And now?"])
    assert talk.ended == "answered"
    assert server.seen[-1].json()["messages"][1:] == [
        {"role": "user", "content": COMPACTED},
        {"role": "assistant", "content": "What was done."},
        {"role": "user", "content": "And now?"},
    ]


async def test_a_second_compaction_shows_the_first_summary(serve: Serve) -> None:
    script = Script([[look(15000), look(15000), DONE]], summaries=[SUMMARY, SUMMARY])
    async with serve(answering=script) as server:
        await OpenCode(server.url, **LIMITS).run("Fix it.")
    second = [seen.json() for seen in server.seen if kind_of(seen.json()) == "summary"][1]
    assert "What was done." in second["messages"][1]["content"]


def _steps(*sizes: int) -> list[tuple[Message, ...]]:
    return [({"role": "user" if n == 0 else "assistant", "content": "x" * 4 * size},) for n, size in enumerate(sizes)]


@pytest.mark.parametrize(
    ("sizes", "first"),
    [((100, 900, 900, 900), 2), ((100, 900, 3000), 3), ((100, 900, 900), 3), ((3000, 900), 1)],
    ids=["the newest that fit", "the newest too long", "everything fits", "all but the prompt"],
)
def test_of_the_newest_steps_those_survive_that_fit_the_budget(sizes: tuple[int, ...], first: int) -> None:
    assert kept_from(_steps(*sizes), 2000) == first


def test_the_budget_is_a_quarter_of_the_window_within_bounds() -> None:
    assert [budget_for(usable) for usable in (0, 14000, 24576, 10**6)] == [2000, 3500, 6144, 8000]


def test_a_history_is_read_back_from_what_was_sent_of_it() -> None:
    tail: list[tuple[Message, ...]] = [
        ({"role": "assistant", "content": "a"}, {"role": "tool", "tool_call_id": "c", "content": "r"}),
        ({"role": "user", "content": "b"},),
    ]
    for summary in (None, {"role": "assistant", "content": "s"}):
        history = History("system", tail, summary)
        assert history_of(history.messages()) == history
