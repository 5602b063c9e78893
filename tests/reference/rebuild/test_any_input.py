"""Whatever comes in: an answer or a typed error comes out, and nothing wrong is ever trained."""

import json
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from conformance.contract.rebuilds import RebuildAnswer
from conformance.reference.rebuild.command import answer_line
from tests.reference.rebuild.making import JSON, call, envelope, rebuilt, record, result, said, system, two_turns, user

QUICK = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])

texts = st.text(st.characters(exclude_categories=()), max_size=8)  # lone surrogates too
scalars = st.none() | st.booleans() | st.integers() | st.floats() | texts
anything = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3)
)


def checked(line: bytes) -> RebuildAnswer:
    """The answer to a line, and that it keeps what every answer promises."""
    found = RebuildAnswer.model_validate_json(answer_line(line))
    assert found.outcome in ("clean", "partial", "failed")
    assert found.withheld == (found.outcome != "clean")
    assert (found.outcome == "failed") == (found.error is not None)
    for one in found.trajectories:
        assert len(one.tokens) == len(one.mask) == len(one.log_probs)
        assert [log_prob is not None for log_prob in one.log_probs] == [mask == 1 for mask in one.mask]
        assert one.withheld == (one.outcome != "clean")
    return found


@QUICK
@given(anything)
def test_any_json_is_answered(value: Any) -> None:
    checked(json.dumps(value).encode())


@QUICK
@given(st.binary(max_size=40))
def test_any_bytes_are_answered(line: bytes) -> None:
    checked(line.replace(b"\n", b"") or b" ")


@QUICK
@given(
    st.sampled_from(["envelope", "sessions", "log_dir", "url"]),
    anything | st.lists(anything, max_size=3),
)
def test_any_source_is_answered(kind: str, value: Any) -> None:
    checked(json.dumps({"id": "a", "source": {kind: value}}).encode())


RECORD_KEYS = sorted([*two_turns()[0], "x_trackgauge"])


@QUICK
@given(st.lists(st.tuples(st.integers(0, 1), st.sampled_from(RECORD_KEYS), anything), max_size=4))
def test_any_field_of_a_record_may_hold_anything(changes: list[tuple[int, str, Any]]) -> None:
    turns = two_turns()
    for n, key, value in changes:
        turns[n][key] = value
    checked(json.dumps({"id": "a", "source": {"envelope": envelope(*turns)}}).encode())


@QUICK
@given(st.integers(0, 4), st.sampled_from(["role", "content", "tool_calls", "tool_call_id", "name"]), anything)
def test_any_part_of_a_message_may_hold_anything(index: int, key: str, value: Any) -> None:
    turns = two_turns()
    turns[1]["messages"][index][key] = value
    checked(json.dumps({"id": "a", "source": {"envelope": envelope(*turns)}}).encode())


@QUICK
@given(anything | st.dictionaries(st.sampled_from(["agent_id", "native_session_id", "native_parent_id"]), anything))
def test_extras_may_hold_anything(value: Any) -> None:
    turns = [one | {"x_trackgauge": value} for one in two_turns()]
    checked(json.dumps({"id": "a", "source": {"envelope": envelope(*turns)}}).encode())


def long_session(turns: int, step: int) -> list[JSON]:
    """A session whose every call holds all before it."""
    messages: list[JSON] = [system(), user("Go.")]
    prompt = [1, 2]
    records = []
    for n in range(turns):
        turn = said("", call(f'{{"n": {n}}}', call_id=f"c{n}"))
        generation = [1000 + n] * step
        records.append(record(n, [*messages, turn], prompt, generation))
        messages = [*messages, turn, result(str(n), f"c{n}")]
        prompt = [*prompt, *generation, 3]
    return records


def test_a_thousand_turns_are_one_sequence() -> None:
    found = rebuilt(*long_session(1000, 1))
    assert (found.outcome, len(found.trajectories[0].record_uuids)) == ("clean", 1000)
    assert sum(found.trajectories[0].mask) == 1000


def test_a_thousand_retries_of_one_call_end_in_one_answer() -> None:
    turns = two_turns()
    retries = [turns[0] | {"uuid": f"r{n}", "generation_token_ids": [20, n]} for n in range(1000)]
    found = rebuilt(*turns, *retries)
    assert (found.outcome, len(found.excluded)) == ("clean", 1000)


def test_a_thousand_conversations_that_drift_end_in_one_answer() -> None:
    drifting = [one | {"prompt_token_ids": [n + 1, 7]} for n, one in enumerate(long_session(300, 1))]
    found = rebuilt(*drifting)
    assert (found.withheld, found.reason_code, len(found.trajectories)) == (True, "tokens_disagree", 300)
