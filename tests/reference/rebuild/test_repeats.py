"""Records read without what they repeat are the records that a parser reads."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conformance.reference.rebuild.directory import read_into
from conformance.reference.rebuild.errors import TraceError
from conformance.reference.rebuild.reading import Reader
from conformance.reference.rebuild.repeats import Cut
from conformance.reference.rebuild.tokens import Tokens
from conformance.reference.rebuild.turns import Turn
from conformance.reference.rebuild.validate import turn_of
from tests.reference.rebuild.making import JSON, call, record, result, said, system, two_turns, user


def compact(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()


def read(reader: Reader, raw: bytes) -> tuple[Turn | None, Cut | None]:
    """The turn as the cut gives it, remembered for the next; null where the cut refuses or the record is bad."""
    cut = reader.repeats.cut(raw)
    if cut is None:
        return None, None
    try:
        turn = turn_of(cut.record, "s", reader.keys, reader.tree, cut)
    except TraceError:
        return None, cut
    reader.repeats.remember(cut, turn.exact)
    return turn, cut


def is_the_record(turn: Turn, parsed: JSON) -> None:
    assert turn.prompt == parsed["prompt_token_ids"]
    assert list(turn.messages) == parsed["messages"]
    assert Tokens(turn.history_end) == parsed["prompt_token_ids"] + parsed["generation_token_ids"]
    assert (turn.tools, turn.generation, turn.log_probs) == (
        parsed["tools"],
        parsed["generation_token_ids"],
        parsed["generation_log_probs"],
    )


def test_a_record_that_goes_on_from_another_is_cut_to_what_is_new() -> None:
    reader, turns = Reader(), two_turns()
    read(reader, compact(turns[0]))
    turn, cut = read(reader, compact(turns[1]))
    assert turn is not None
    assert cut is not None
    assert (len(cut.known), len(cut.new)) == (3, 2)
    is_the_record(turn, turns[1])


def test_a_conversation_is_known_again_however_long_it_was_while_others_had_their_turns() -> None:
    """Each keeps one text that grows, so that the records of one do not drive out those of another."""
    reader = Reader()
    chains = [[said("a", call("{}", call_id=f"{name}{n}")) for n in range(9)] for name in "abcd"]
    for chain in chains:
        for n in range(1, 9):
            history = [m for turn in chain[:n] for m in (turn, result("x", turn["tool_calls"][0]["id"]))]
            made = record(n, [system(), user("Go."), *history[:-1]], [1, 2, *range(10, 10 + n)], [7])
            read(reader, compact(made))
    for chain in chains:
        history = [m for turn in chain for m in (turn, result("x", turn["tool_calls"][0]["id"]))]
        made = record(9, [system(), user("Go."), *history[:-1]], [1, 2, *range(10, 19)], [7])
        turn, cut = read(reader, compact(made))
        assert turn is not None
        assert cut is not None
        assert len(cut.new) == 2
        is_the_record(turn, made)


def test_a_shorter_record_after_a_longer_one_is_read_to_its_own_end(tmp_path: Path) -> None:
    raw = bytearray()
    for text in (b"", b"x" * 5_000, b"short", b"", b"y" * 70_000, b"z" * 69_999):
        (tmp_path / "file").write_bytes(text)
        read_into(raw, tmp_path / "file")
        assert raw == text


ODD_TEXTS = ["", "ünïcödé 🙂", "\ud83d", '"messages":[', '"prompt_token_ids":[1,2]', "]", "},{", "\\", "\u2028"]
SPELLINGS = [
    {"separators": (",", ":")},
    {},
    {"indent": 1},
    {"separators": (",", ":"), "ensure_ascii": False},
    {"sort_keys": True},
]


@settings(max_examples=250, deadline=None)
@given(st.data())
def test_whatever_is_cut_equals_what_is_parsed(data: st.DataObject) -> None:
    """Records that share beginnings of messages and prompts, in any order, in any spelling of JSON."""
    reader = Reader()
    text = st.sampled_from(ODD_TEXTS)
    for n in range(data.draw(st.integers(1, 6))):
        length = data.draw(st.integers(0, 4))
        messages = [system(), user(ODD_TEXTS[1])]
        for k in range(length):
            turn = said(data.draw(text), call("{}", call_id=f"c{k}"))
            messages += [turn | {"prompt_token_ids": [1]} if data.draw(st.booleans()) else turn, result("x", f"c{k}")]
        prompt = [10, 11, *data.draw(st.lists(st.sampled_from([1, 12, 123]), max_size=5))]
        made = record(n, [*messages, said(data.draw(text))], prompt, [7])
        spelling: Any = data.draw(st.sampled_from(SPELLINGS))
        raw = json.dumps(made, **spelling).encode("utf-8", "surrogatepass")
        turn_read, _ = read(reader, raw)
        if turn_read is not None:
            is_the_record(turn_read, json.loads(raw))


GOOD = compact(two_turns()[1])


@pytest.mark.parametrize(
    "raw",
    [
        GOOD.replace(b"4,5]", b"4,5,]"),
        GOOD.replace(b"4,5]", b"4,,5]"),
        GOOD.replace(b"4,5]", b"4 5]"),
        GOOD.replace(b"4,5]", b"4,05]"),
        GOOD.replace(b"4,5]", b"4,5.0]"),
        GOOD.replace(b"4,5]", b"4,true]"),
        GOOD.replace(b"4,5]", b"4,-5]"),
        GOOD.replace(b"4,5]", b"4,9223372036854775808]"),
        GOOD.replace(b"4,5]", b"4,[5]]"),
        GOOD.replace(b"[1,2,3,10,11,4,5]", b"[]"),
        GOOD.replace(b"[1,2,3,10,11,4,5]", b"[1,2,3,]"),
        GOOD[:-1],
        GOOD + b"}",
        GOOD.replace(b'"prompt_token_ids"', b'"other"'),
        GOOD.replace(b'"messages"', b'"other"'),
        GOOD[:-1] + b',"prompt_token_ids":[5]}',
        GOOD[:-1] + b',"prompt_token\\u005fids":[5]}',
        GOOD[:-1] + b',"messages":[]}',
        b'{"x_trackgauge":{"messages":[' + GOOD[1:],
        b"[" + GOOD + b"]",
        b"",
        b"\xff" + GOOD,
    ],
)
def test_what_is_not_of_the_plain_form_is_left_to_the_parser(raw: bytes) -> None:
    reader = Reader()
    for one in two_turns():
        read(reader, compact(one))
    turn, _ = read(reader, raw)
    assert turn is None


def test_huge_integers_and_lone_surrogates_are_read_as_the_standard_library_reads_them() -> None:
    huge = {"id": "bash", "inputSchema": {"jsonSchema": {"maximum": 2**70, "default": "\ud83d"}}}
    made = two_turns()[0] | {"tools": [huge]}
    turn, _ = read(Reader(), json.dumps(made, separators=(",", ":")).encode())
    assert turn is not None
    assert turn.tools == [huge]
