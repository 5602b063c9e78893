"""What is remembered of chains: by whom, in what order, for how long, and what the disk gives back."""

import asyncio
import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeVar

import pytest

from conformance.reference.capture.continuity.chains import Spoken, Turn
from conformance.reference.capture.continuity.learning import Learned, learned
from conformance.reference.capture.continuity.memory import Memory
from conformance.reference.capture.continuity.sameness import digests_of
from conformance.reference.capture.work import Workers
from conformance.reference.store import Store

pytestmark = pytest.mark.unit

JSON = Any
T = TypeVar("T")
USER = {"role": "user", "content": "hi"}


def answer(text: str) -> JSON:
    return {"role": "assistant", "content": text}


def record(messages: list[JSON], prompt: list[int], generation: list[int], **changes: JSON) -> JSON:
    """A valid record of session ``s``, as the store takes it."""
    extras = {"native_session_id": None, "agent_id": None, "stop_reason": None, "rendering": "r"}
    extras |= changes.pop("extras", {})
    return {
        "schema_version": 1,
        "session_id": "s",
        "parent_session_id": None,
        "messages": messages,
        "prompt_token_ids": prompt,
        "generation_token_ids": generation,
        "finish_reason": "stop",
        "is_valid": True,
        "x_trackgauge": extras,
        **changes,
    }


def entry(messages: list[JSON], prompt: list[int], generation: list[int], uuid: str, **changes: JSON) -> Learned:
    found = learned({**record(messages, prompt, generation, **changes), "uuid": uuid})
    assert found is not None
    return found


def spoken(*messages: JSON) -> Spoken:
    return Spoken(messages, digests_of(messages))


@pytest.fixture
def store(tmp_path: Path) -> Store:
    store = Store(tmp_path)
    store.prepare()
    return store


def within(store: Store, work: Callable[[Memory], Awaitable[T]], limit: int = 10_000) -> T:
    """Work on a memory that is new, in an event loop of its own."""

    async def run() -> T:
        workers = Workers(2)
        try:
            return await work(Memory(store, workers, limit))
        finally:
            workers.close()

    return asyncio.run(run())


def before(memory: Memory, *messages: JSON, session: str = "s") -> Awaitable[Turn | None]:
    return memory.turn_before((session, None, None), spoken(*messages))


def test_a_call_continues_the_longest_conversation_that_it_extends(store: Store) -> None:
    async def work(memory: Memory) -> list[JSON]:
        memory.keep(entry([USER, answer("a")], [1, 2], [3], "u1"))
        memory.keep(entry([USER, answer("a"), USER, answer("b")], [1, 2, 3, 4], [5], "u2"))
        found = [
            await before(memory, USER, answer("a"), USER),
            await before(memory, USER, answer("a"), USER, answer("b"), USER),
        ]
        return [None if turn is None else turn.history() for turn in found]

    assert within(store, work) == [[1, 2, 3], [1, 2, 3, 4, 5]]


@pytest.mark.parametrize(
    "messages",
    [
        [USER],
        [USER, answer("a")],
        [USER, answer("other"), USER],
        [USER, answer("a"), answer("b"), USER],
        [USER, answer("a"), USER, answer("unknown"), USER],
        [{"role": "user", "content": "other"}, answer("a"), USER],
    ],
    ids=["first", "no-more", "edited", "two-answers", "later-answer-unknown", "task-edited"],
)
def test_what_does_not_extend_a_known_answer_continues_nothing(store: Store, messages: list[JSON]) -> None:
    async def work(memory: Memory) -> Turn | None:
        memory.keep(entry([USER, answer("a")], [1, 2], [3], "u1"))
        return await before(memory, *messages)

    assert within(store, work) is None


def test_of_equal_answers_the_latest_that_reached_its_client_is_taken(store: Store) -> None:
    async def work(memory: Memory) -> list[int]:
        first = memory.keep(entry([USER, answer("a")], [1, 2], [3], "u1"))
        memory.keep(entry([USER, answer("a")], [1, 2], [4], "u2"))
        lost = memory.keep(entry([USER, answer("a")], [1, 2], [5], "u3"))
        lost.delivered = False
        found = await before(memory, USER, answer("a"), USER)
        assert found is not None
        assert found is not first
        return found.history()

    assert within(store, work) == [1, 2, 4]


@pytest.mark.parametrize("key", ["reasoning", "reasoning_content"])
def test_of_answers_in_the_same_words_the_one_is_taken_whose_thoughts_the_history_tells(store: Store, key: str) -> None:
    async def work(memory: Memory) -> list[list[int]]:
        for number, thought in ((3, "one\n"), (4, "two"), (5, None)):
            extras = {"reasoning": thought}
            memory.keep(entry([USER, answer("a")], [1, 2], [number], f"first {number}", extras=extras))
            memory.keep(entry([USER, answer("a"), USER, answer("b")], [1, 2, number, 6], [7], f"second {number}"))
        found = []
        for told in ({key: "one"}, {key: "two "}, {}, {key: " "}, {key: "three"}):
            opening = [USER, {**answer("a"), **told}, USER]
            for messages in (opening, [*opening, answer("b"), USER]):
                turn = await before(memory, *messages)
                assert turn is not None
                found.append(turn.history())
        return found

    taken = (3, 4, 5, 5, 5)
    assert within(store, work) == [ids for number in taken for ids in ([1, 2, number], [1, 2, number, 6, 7])]


@pytest.mark.parametrize("changed", range(5))
def test_a_prompt_with_one_other_token_anywhere_in_its_history_begins_another_chain(store: Store, changed: int) -> None:
    async def work(memory: Memory) -> list[bool]:
        memory.keep(entry([USER, answer("a")], [1, 2], [3], "u1"))
        memory.keep(entry([USER, answer("a"), USER, answer("b")], [1, 2, 3, 4], [5], "u2"))
        said = [USER, answer("a"), USER, answer("b"), USER, answer("c")]
        prompts = ([1, 2, 3, 4, 5], [1, 2, 3, 4, 5, 6], [1, 2, 3, 4])
        other = [token + 10 * (at == changed) for at, token in enumerate([1, 2, 3, 4, 5, 6])]
        turns = [memory.keep(entry(said, prompt, [7], f"{prompt}")) for prompt in (*prompts, other)]
        return [turn.parent is not None and turn.parent.uuid == "u2" for turn in turns]

    assert within(store, work) == [True, True, False, False]


def test_a_rewrite_is_known_again_and_no_other_spelling_with_it(store: Store) -> None:
    lines = {"role": "assistant", "content": "a\nb"}
    blocks = {**lines, "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}

    async def work(memory: Memory) -> list[bool]:
        memory.keep(entry([USER, lines], [1, 2], [3], "u1"))
        told = (blocks, blocks, {**lines, "content": "ab"}, lines)
        return [await before(memory, USER, message, USER) is not None for message in told]

    assert within(store, work) == [True, True, False, True]


def test_a_prompt_that_leaves_the_chain_begins_another(store: Store) -> None:
    async def work(memory: Memory) -> tuple[bool, list[int]]:
        first = memory.keep(entry([USER, answer("a")], [1, 2], [3], "u1"))
        later = memory.keep(entry([USER, answer("a"), USER, answer("b")], [9, 9, 9, 4], [5], "u2"), first)
        return later.parent is None, later.history()

    assert within(store, work) == (True, [9, 9, 9, 4, 5])


def test_callers_of_one_session_are_told_apart(store: Store) -> None:
    async def work(memory: Memory) -> list[bool]:
        memory.keep(entry([USER, answer("a")], [1, 2], [3], "u1", extras={"agent_id": "one"}))
        messages = spoken(USER, answer("a"), USER)
        keys = [("s", None, "one"), ("s", None, "other"), ("s", None, None), ("s", "native", "one")]
        return [await memory.turn_before(key, messages) is not None for key in keys]

    assert within(store, work) == [True, False, False, False]


@pytest.mark.parametrize("times", [1, 5])
def test_the_disk_gives_back_what_another_process_kept(store: Store, times: int) -> None:
    store.keep(record([USER, answer("a")], [1, 2], [3]))
    store.keep(record([USER, answer("a"), USER, answer("b")], [1, 2, 3, 4], [5]))

    async def work(memory: Memory) -> tuple[set[tuple[int, ...]], JSON]:
        asked = [before(memory, USER, answer("a"), USER, answer("b"), USER) for _ in range(times)]
        found = [turn for turn in await asyncio.gather(*asked) if turn is not None]
        return {tuple(turn.history()) for turn in found}, memory.told()["turns"]

    assert within(store, work) == ({(1, 2, 3, 4, 5)}, 2)


def test_the_disk_is_asked_again_when_a_history_holds_what_is_not_known(store: Store) -> None:
    async def work(memory: Memory) -> list[bool]:
        memory.keep(entry([USER, answer("a")], [1, 2], [3], "u1"))
        messages = [USER, answer("a"), USER, answer("b"), USER]
        early = await before(memory, *messages)
        store.keep(record(messages[:-1], [1, 2, 3, 4], [5]))
        return [early is None, await before(memory, *messages) is not None]

    assert within(store, work) == [True, True]


def test_an_answer_in_the_same_words_that_another_process_gave_later_is_the_latest(store: Store) -> None:
    async def work(memory: Memory) -> list[int]:
        memory.keep(entry([USER, answer("a")], [1, 2], [3], "u1"))
        store.keep(record([USER, answer("a")], [1, 2], [4]))
        found = await before(memory, USER, answer("a"), USER)
        assert found is not None
        return found.history()

    assert within(store, work) == [1, 2, 4]


def test_a_turn_whose_chain_was_forgotten_while_it_was_sampled_is_still_found(store: Store) -> None:
    first = store.keep(record([USER, answer("a")], [1, 2], [3]))

    async def work(memory: Memory) -> list[list[int]]:
        turn = await before(memory, USER, answer("a"), USER)
        assert turn is not None
        assert turn.uuid == first
        for number in range(9):
            memory.keep(entry([USER, answer("a")], [1], [number], f"u{number}", session_id=f"s{number}"))
        assert memory.told()["evicted"]
        messages = [USER, answer("a"), USER, answer("b")]
        memory.keep(entry(messages, [1, 2, 3, 4], [5], store.keep(record(messages, [1, 2, 3, 4], [5]))), turn)
        found = [await before(memory, *messages[:2], USER), await before(memory, *messages, USER)]
        return [[] if one is None else one.history() for one in found]

    assert within(store, work, limit=1_200) == [[1, 2, 3], [1, 2, 3, 4, 5]]


def test_sessions_of_which_nothing_is_known_do_not_fill_the_memory(store: Store) -> None:
    async def work(memory: Memory) -> bool:
        for number in range(200):
            await before(memory, USER, answer("a"), USER, session=f"unknown {number}")
            memory.passed_over(f"invalid {number}", "u")
        return memory.told()["sessions"] < 20 and memory.weight <= 2_000

    assert within(store, work, limit=2_000)


def test_one_session_that_fills_the_memory_forgets_its_chains_and_is_not_read_again(store: Store) -> None:
    first = store.keep(record([USER, answer("a")], [1, 2], [3]))

    async def work(memory: Memory) -> tuple[bool, bool, list[int]]:
        memory.keep(entry([USER, answer("a")], [1, 2], [3], first))
        for number in range(40):
            memory.keep(entry([{**USER, "content": f"{number}"}, answer("a")], [1, number], [3], f"u{number}"))
        light = memory.weight <= 2_000 and memory.told()["evicted"] > 0
        forgotten = await before(memory, USER, answer("a"), USER) is None
        memory.keep(entry([USER, answer("a"), USER, answer("b")], [1, 2, 9], [5], "later"))
        found = await before(memory, USER, answer("a"), USER, answer("b"), USER)
        return light, forgotten, [] if found is None else found.history()

    assert within(store, work, limit=2_000) == (True, True, [1, 2, 9, 5])


@pytest.mark.parametrize(
    "told",
    [
        {"content": [{"type": "image_url", "image_url": {"url": "data:" + "x" * 80_000}}]},
        {"content": [{"type": "text", "text": "x" * 80_000}]},
        {"role": "assistant", "tool_calls": [{"id": "c", "function": {"name": "n", "arguments": "x" * 80_000}}]},
    ],
    ids=["picture", "parts", "arguments"],
)
def test_what_messages_hold_weighs_wherever_it_stands(store: Store, told: JSON) -> None:
    async def work(memory: Memory) -> int:
        memory.keep(entry([{**USER, **told}, answer("a")], [1, 2], [3], "u1"))
        return memory.weight

    assert within(store, work, limit=100_000) > 10_000


def test_damage_on_the_disk_costs_only_what_it_hit(store: Store) -> None:
    good = store.keep(record([USER, answer("a")], [1, 2], [3]))
    folder = store.folder("s")
    (folder / "torn.json").write_bytes((folder / f"{good}.json").read_bytes()[:60])
    (folder / "foreign.json").write_text('{"session_id": "s", "uuid": "foreign", "is_valid": true}')
    (folder / "list.json").write_text("[]")
    os.mkfifo(folder / "pipe.json")
    store.keep(record([USER, answer("b")], [1, 2], [3], is_valid=False))
    store.keep(record([USER, answer("c")], [1, 2], [2**70]))
    store.keep(record([USER, answer("d")], [1, 2], [3], extras={"plain_reason": "prompt_differs"}))

    async def work(memory: Memory) -> list[bool]:
        return [await before(memory, USER, answer(text), USER) is not None for text in "abcd"]

    assert within(store, work) == [True, False, False, False]


def test_memory_is_bounded_and_what_was_forgotten_comes_back_from_the_disk(store: Store) -> None:
    for number in range(40):
        store.keep(record([USER, answer("a")], [1, number], [3], session_id=f"s{number}"))

    async def work(memory: Memory) -> tuple[bool, JSON, bool]:
        fits = True
        for number in range(40):
            found = await before(memory, USER, answer("a"), USER, session=f"s{number}")
            fits = fits and found is not None and memory.weight <= 2_000
        again = await before(memory, USER, answer("a"), USER, session="s0")
        return fits, memory.told()["sessions"] < 12, again is not None and again.history() == [1, 0, 3]

    assert within(store, work, limit=2_000) == (True, True, True)


@pytest.mark.parametrize(
    "odd",
    [
        {"role": "assistant", "content": 7},
        {"role": "assistant", "content": [7]},
        {"role": "assistant", "tool_calls": [{"id": "c"}]},
        {"role": "assistant", "tool_calls": 7},
        {"role": "tool", "content": "x"},
        {"content": "x"},
        {"role": "assistant", "tool_calls": [{"id": "c", "function": {"name": "n", "arguments": {"a": 1}}}]},
    ],
    ids=["number", "list", "half-call", "no-calls", "no-id", "no-role", "parsed-arguments"],
)
def test_messages_of_no_known_shape_are_themselves_and_nothing_else(store: Store, odd: JSON) -> None:
    async def work(memory: Memory) -> list[bool]:
        memory.keep(entry([odd, USER, answer("a")], [1, 2], [3], "u1"))
        same = await before(memory, odd, USER, answer("a"), USER)
        other = await before(memory, {**odd, "content": "y"}, USER, answer("a"), USER)
        return [same is not None, other is not None]

    assert within(store, work) == [True, False]
