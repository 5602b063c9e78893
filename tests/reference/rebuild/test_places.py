"""Whatever was recorded, and however words and tokens contradict one another: each record is in exactly one place."""

from collections import Counter
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from conformance.contract.rebuilds import RebuildAnswer
from tests.reference.rebuild.making import (
    BASH,
    JSON,
    answer,
    call,
    envelope,
    record,
    result,
    said,
    system,
    user,
)

ANSWERS = (said("Yes."), said("No."), said(""), said("I look.", call("{}")), said("I look.", call("{}", call_id="c2")))
BESIDE = (user("Go on."), result("done"), system("Mind the time."), said("Nobody said that."))
SYSTEMS = (system(), system("You name things."))
EXTRAS: tuple[JSON, ...] = (
    {},
    {"agent_id": "a"},
    {"native_session_id": "n"},
    {"native_session_id": "m", "native_parent_id": "n"},
)
FLAWS: tuple[JSON, ...] = ({"is_valid": False}, {"generation_log_probs": None}, {"messages": [user("Go.")]})


@st.composite
def records(draw: st.DrawFn) -> list[JSON]:
    """Records whose words go on from one of them, or start, and whose tokens do so from the same one or another."""
    made: list[JSON] = []
    for n in range(draw(st.integers(1, 9))):
        words = draw(st.sampled_from([None, *made]))
        tokens = draw(st.sampled_from([words, words, words, None, *made]))
        messages = [draw(st.sampled_from(SYSTEMS)), user("Go.")] if words is None else list(words["messages"])
        if words is not None and draw(st.booleans()):
            messages = messages[:-1]  # a retry, or a nudge
        messages += draw(st.lists(st.sampled_from(BESIDE), max_size=2))
        prompt = [1, 2] if tokens is None else list(tokens["prompt_token_ids"])
        if tokens is not None and draw(st.booleans()):
            prompt += tokens["generation_token_ids"]
        prompt += draw(st.lists(st.integers(3, 4), max_size=2))
        changes: JSON = {
            "tools": draw(st.sampled_from([[BASH], [BASH], []])),
            "model": draw(st.sampled_from(["policy", "policy", "policy", "other"])),
            "x_trackgauge": draw(st.sampled_from([*EXTRAS[:1] * 4, *EXTRAS])),
            "captured_at": f"2026-11-29T10:00:00.{draw(st.integers(0, 9)):06d}+00:00",
        }
        generation = draw(st.lists(st.integers(3, 5), min_size=1, max_size=2))
        one = record(n, [*messages, draw(st.sampled_from(ANSWERS))], prompt, generation, **changes)
        if draw(st.booleans()):
            one["generation_log_probs"] = [-1.0] * len(generation)
        made.append(one)
    return made


@st.composite
def trees(draw: st.DrawFn) -> tuple[list[JSON], list[JSON]]:
    """Envelopes, and all records in them. Flaws and marks come last, so that words and tokens may lead to them."""
    made = draw(records())
    sessions: dict[str, list[JSON]] = {}
    for one in made:
        name = draw(st.sampled_from(["s", "s", "s", "child", "other"]))
        one |= {"session_id": name, "parent_session_id": "s" if name == "child" else None}
        one |= draw(st.sampled_from([{}, {}, {}, {}, *FLAWS]))
        sessions.setdefault(name, []).append(one)
    marked = draw(st.lists(st.sampled_from([one["uuid"] for one in made]), max_size=3))
    return [envelope(*own, session=name, undelivered=marked) for name, own in sessions.items()], made


@settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(trees(), st.sets(st.sampled_from(["segments", "branches"])))
def test_each_record_is_delivered_or_excluded_and_each_token_counted_once(
    source: tuple[list[JSON], list[JSON]], split: set[str]
) -> None:
    envelopes, made = source
    found = answer({"sessions": envelopes}, split=sorted(split))
    delivered = [uuid for one in found.trajectories for uuid in one.record_uuids]
    assert Counter([*delivered, *(one.record_uuid for one in found.excluded)]) == Counter(one["uuid"] for one in made)
    check_tokens(found, made)


def check_tokens(found: RebuildAnswer, made: list[JSON]) -> None:
    """A trajectory is its last call's window, in which each of its own generations is masked in behind its prompt."""
    by_uuid: dict[str, Any] = {one["uuid"]: one for one in made}
    for one in found.trajectories:
        own = [by_uuid[uuid] for uuid in one.record_uuids]
        mask = [0] * len(one.tokens)
        for call_ in own:
            start, ids = len(call_["prompt_token_ids"]), call_["generation_token_ids"]
            assert one.tokens[: start + len(ids)] == [*call_["prompt_token_ids"], *ids]
            assert one.log_probs[start : start + len(ids)] == call_["generation_log_probs"]
            assert call_["is_valid"] is True
            mask[start : start + len(ids)] = [1] * len(ids)
        assert one.mask == mask
