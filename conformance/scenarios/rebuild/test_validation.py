"""Each record for itself: what a rebuild must not believe, and what it must not throw away."""

import asyncio
import json
import math
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from conformance.gauge.check import Check
from conformance.gauge.covers import covers
from conformance.oracle import rollouts, triples
from conformance.scenarios.rebuild.asking import answered
from conformance.scenarios.rebuild.sessions import Session, call, result, says, system, user
from conformance.systems.rebuild import RebuildUnderTest

JSON = Any
Fields = dict[str, JSON]

GONE = ...
"""Stands for a field that is not there."""

ODD: tuple[JSON, ...] = (None, True, -1, 1.5, 10**30, "", "x", "\ud800", [], [None], [[]], {}, {"a": [{}]})
"""JSON that is in none of these places what it should be, or holds nothing there."""

ONE_CALL = [user("Go."), says("I look.", call())]


def breaches() -> dict[str, list[Fields]]:
    """What breaks a record of four generated tokens, by the requirement that says so."""
    unnamed: list[JSON] = [GONE, None, "", 5]
    not_ids: list[JSON] = [[True, 7], [-1, 7], [1.5, 7], ["5", 7], [None, 7], [[5], 7], "5, 7", {"0": 5}]
    return {
        "REB-001": _each("is_valid", False, None, 1, "true", GONE),
        "REB-002": _each("schema_version", 2, 0, True, "1", None, GONE),
        "REB-003": _each("session_id", "another", "", None, 5, GONE),
        "REB-004": _each("uuid", "", None, 5, GONE),
        "REB-005": _each("request_id", *unnamed),
        "REB-006": _each("model", *unnamed),
        "REB-007": _each("prompt_token_ids", GONE, None, [], *not_ids),
        "REB-008": _each("generation_token_ids", GONE, None, *(_four(ids) for ids in not_ids)),
        "REB-009": _each("generation_log_probs", *([-0.5, odd, -0.25, -0.125] for odd in (None, True, False))),
        "REB-010": _each("generation_log_probs", *([-0.5, odd, -0.25, -0.125] for odd in (0.002, 5.0, 1, -9999.0))),
        "REB-011": _each("generation_log_probs", GONE, None, [], [-0.5] * 3, [-0.5] * 5, "-0.5", {"0": -0.5}),
        "REB-012": _each("token_count", *({"prompt_tokens": 4, "completion_tokens": n} for n in (5, 4000))),
        "REB-013": _each("messages", GONE, None, [], "I look.", *_histories_without_an_answer()),
        "REB-014": _each("messages", *_malformed_histories()),
    }


def _each(field: str, *values: JSON) -> list[Fields]:
    return [{field: value} for value in values]


def _four(ids: JSON) -> JSON:
    """Odd ids as many as the log probs of the record they go into."""
    return [*ids, 8, 9] if isinstance(ids, list) else ids


def _histories_without_an_answer() -> list[JSON]:
    return [[user("Go.")], [user("Go."), result()], [*ONE_CALL, result()], [user("Go."), system("Hurry.")]]


def _malformed_histories() -> list[JSON]:
    whole = call()
    calls: list[JSON] = [
        "ls",
        None,
        {"id": "call_1", "type": "function"},
        {**whole, "id": None},
        {**whole, "function": {"arguments": "{}"}},
        {**whole, "function": {"name": "", "arguments": "{}"}},
        {**whole, "function": {"name": "execute_bash", "arguments": {"command": "ls"}}},
        {**whole, "function": {"name": "execute_bash"}},
    ]
    results = [
        {"role": "tool", "content": "done", **named} for named in ({}, {"tool_call_id": None}, {"tool_call_id": ""})
    ]
    return [
        *([{"role": role, "content": "Go."}, says("I look.")] for role in ("wizard", "", None, 5)),
        [{"content": "Go."}, says("I look.")],
        *([user("Go."), says("I look.", one)] for one in calls),
        [user("Go."), {**says("I look."), "tool_calls": {"0": whole}}],
        *([user("Go."), one, says("Done.")] for one in results),
    ]


@covers("REB-001", "REB-002", "REB-003", "REB-004", "REB-005", "REB-006", "REB-007")
@covers("REB-008", "REB-009", "REB-010", "REB-011", "REB-012", "REB-013", "REB-014")
@covers("REB-015", "REB-016")
async def test_a_record_that_breaks_a_rule_is_never_trained(rebuild: RebuildUnderTest, check: Check) -> None:
    rules: defaultdict[str, set[str]] = defaultdict(set)
    for requirement, broken in breaches().items():
        for fields in broken:
            alone, last = Session(), Session()
            only = alone.call(alone.begin(user("Go.")), says("I look.", call())).broken(**fields)
            last.turns(2)
            unsound = last.call(last.made[-1].then(user("Go on.")), says("I look.", call())).broken(**fields)
            where = f"a record with {_shown(fields)}"
            for session, one in ((alone, only), (last, unsound)):
                answer = await answered(rebuild, check, {"envelope": session.envelope()}, where)
                judged = triples.not_trained(answer, [one.truth])
                check.that(requirement, judged, where)
                if judged and session is alone and "uuid" not in fields:
                    rules[requirement].add(_names_rule_and_record(check, answer, one.uuid, where))
    told = [rules[one] for one in ("REB-001", "REB-007", "REB-011", "REB-013")]
    apart = len(set().union(*told)) == sum(map(len, told))
    check("REB-015", apart, expected="unlike rules by unlike names", seen=[sorted(names) for names in told])


def _names_rule_and_record(check: Check, answer: rollouts.Answer, uuid: str, where: str) -> str:
    error = answer.get("error") or {}
    rule = error.get("rule")
    named = isinstance(rule, str) and bool(rule) and error.get("record_uuid") == uuid
    check("REB-015", named, expected={"rule": "its name", "record_uuid": uuid}, seen=error, where=where)
    return str(rule)


def _shown(fields: Fields) -> str:
    return ", ".join(
        f"no {key}" if value is GONE else f"{key} {json.dumps(value)[:60]}" for key, value in fields.items()
    )


@covers("REB-002", "REB-003", "REB-004")
async def test_an_envelope_or_a_neighbour_can_spoil_a_record_too(rebuild: RebuildUnderTest, check: Check) -> None:
    for version in (2, 0, True, "1", None):
        session = Session()
        session.turns(2)
        answer = await rebuild.ask({"envelope": session.envelope(schema_version=version)})
        check.that("REB-002", triples.not_trained(answer, session.truth().values()))

    other = Session()
    turns = other.turns(3)
    answer = await rebuild.ask({"envelope": other.envelope(session_id="one-that-none-of-them-names")})
    check.that("REB-003", triples.not_trained(answer, other.truth().values()))

    twice = Session()
    turns = twice.turns(3)
    turns[2].broken(uuid=turns[1].uuid)
    answer = await rebuild.ask({"envelope": twice.envelope()})
    trained = [not triples.ids_not_trained(answer, one.truth.generation) for one in turns[1:]]
    check("REB-004", sum(trained) <= 1, expected="at most one of two with one uuid", seen=trained)


@covers("REB-096", "REB-097")
async def test_records_that_contradict_one_another_are_not_believed(rebuild: RebuildUnderTest, check: Check) -> None:
    session = Session()
    turns = session.turns(3)
    other = turns[1].record | {"generation_log_probs": [-7.0] * len(turns[1].truth.generation)}
    for place in (1, 3):
        envelope = session.envelope()
        envelope["completions"].insert(place, other)
        answer = await rebuild.ask({"envelope": envelope})
        ok = triples.ids_not_trained(answer, turns[1].truth.generation)
        check("REB-096", bool(ok), expected="neither of the two", seen=triples.standing(answer), where=f"place {place}")

    session = Session()
    first, second = session.turns(2)
    same = ("request_id", "generation_token_ids", "generation_log_probs")
    second.broken(**{key: first.record[key] for key in same})
    answer = await rebuild.ask({"envelope": session.envelope()})
    told = [one for each in rollouts.trained(answer) for one in triples.triples(each)]
    check("REB-097", len(told) <= 1, expected="one generation at most", seen=triples.standing(answer))


@covers("REB-095")
async def test_a_log_prob_that_json_has_no_word_for_is_never_trained(
    rebuild: RebuildUnderTest, check: Check, tmp_path: Path
) -> None:
    for number, odd in enumerate((math.nan, math.inf, -math.inf)):
        session = Session()
        session.turns(1)
        made = session.call(session.made[-1].then(user("Go on.")), says("Done."))
        made.broken(generation_log_probs=[-0.5, odd, -0.25, -0.125])
        answer = await rebuild.ask({"log_dir": str(session.write(tmp_path / str(number)))})
        check.that("REB-095", triples.not_trained(answer, [made.truth]), f"a log prob of {odd}")


@covers("REB-016")
async def test_any_json_in_place_of_the_records_is_answered(rebuild: RebuildUnderTest, check: Check) -> None:
    for place, odd, session, envelope in _odd_envelopes():
        where = f"{place}: {json.dumps(odd)[:40]}"
        answer = await answered(rebuild, check, {"envelope": envelope}, where)
        judged = triples.only_sampled(answer, session.truth())
        check.that("REB-016", judged, where)


def _odd_envelopes() -> Iterator[tuple[str, JSON, Session, JSON]]:
    """Each odd value in each place of an envelope of three turns, in its second record."""
    deep: JSON = 0
    for _ in range(300):
        deep = {"a": [deep]} if isinstance(deep, list) else [deep]
    for odd in (*ODD, deep):
        yield "the envelope", odd, Session(), odd
        for place in _PLACES:
            session = Session()
            session.turns(3)
            envelope = json.loads(json.dumps(session.envelope()))
            target, key = envelope, place[0]
            for key_after in place[1:]:
                target, key = target[key], key_after
            target[key] = odd
            yield ".".join(map(str, place)), odd, session, envelope


_RECORD = ("completions", 1)
_CALL = (*_RECORD, "messages", 2, "tool_calls")
_PLACES: tuple[tuple[str | int, ...], ...] = (
    ("session_id",),
    ("completions",),
    _RECORD,
    *((*_RECORD, key) for key in Session().call(Session().begin(user("Go.")), says("Done.")).record),
    (*_RECORD, "x_trackgauge"),
    (*_RECORD, "token_count", "completion_tokens"),
    (*_RECORD, "tools", 0),
    (*_RECORD, "tools", 0, "inputSchema"),
    (*_RECORD, "messages", 0),
    (*_RECORD, "messages", 1, "role"),
    (*_RECORD, "messages", 1, "content"),
    _CALL,
    (*_CALL, 0),
    (*_CALL, 0, "id"),
    (*_CALL, 0, "function"),
    (*_CALL, 0, "function", "name"),
    (*_CALL, 0, "function", "arguments"),
)


@covers("REB-017")
async def test_each_line_gets_one_answer_and_the_next_line_is_read(rebuild: RebuildUnderTest, check: Check) -> None:
    session = Session()
    session.turns(2)
    due = rollouts.without_item_ids({**await rebuild.ask({"envelope": session.envelope()}), "id": None})
    odd_lines = [b"{nope", b"[]", b"null", b'"text"', b"{}", b'{"v": 1, "op": "rebuild"}', b"\xff\xfe", b"[" * 50_000]
    for number, line in enumerate(odd_lines):
        where = repr(line[:40])
        rebuild.junk.clear()
        name = f"after-{number}"
        good = {"v": 1, "id": name, "op": "rebuild", "source": {"envelope": session.envelope()}}
        both = line + b"\n" + json.dumps(good).encode()
        answer = await asyncio.to_thread(rebuild.ask_raw, both, answer_id=name)
        others = rebuild.junk
        check("REB-017", len(others) == 1, expected="one answer to it", seen=others, where=where)
        seen = rollouts.without_item_ids({**answer, "id": None})
        check.equal("REB-017", expected=due, seen=seen, where=f"after {where}")
    sources: list[JSON] = [{}, {"envelope": session.envelope(), "log_dir": "there"}, {"tape": []}, [], None]
    for source in sources:
        refused = {"v": 1, "id": "refused", "op": "rebuild", "source": source}
        answer = await asyncio.to_thread(rebuild.ask_raw, json.dumps(refused).encode(), answer_id="refused")
        judged = triples.withheld(answer)
        check.that("REB-017", judged, f"source {json.dumps(source)[:40]}")


@covers("REB-018", "REB-019", "REB-020")
async def test_what_harms_nobody_costs_nothing(rebuild: RebuildUnderTest, check: Check) -> None:
    keyless = Session()
    turns = [one.truth for one in keyless.turns(3)]
    keyless.made[2].broken(tools=GONE)
    source = {"envelope": keyless.envelope()}
    answer = await answered(rebuild, check, source, "the third of three without tools", requirement="REB-018")
    judged = triples.delivers(answer, turns[:2])
    check.that("REB-018", judged if judged else triples.delivers(answer, turns))

    for between in range(1, 4):
        session = Session()
        turns = [one.truth for one in session.turns(between)]
        aborted = session.call(session.made[-1].then(user("Go on.")), says("I was cut")).broken(is_valid=False)
        at = session.made[-2].then(user("Go on."))
        turns += [one.truth for one in session.turns(2, at)] if between < 3 else []
        answer = await rebuild.ask({"envelope": session.envelope()})
        where = f"{aborted.uuid} of {len(session.made)} calls"
        judged = triples.one_clean_chain(answer, turns)
        check.that("REB-019", judged, where)

    lenient = Session()
    odd_but_sound = [0, -1, 0.0009, -30]
    first = lenient.call(lenient.begin(user("Go.")), says("I look.", call()), log_probs=odd_but_sound, color="red")
    second = lenient.call(first.then(result()), says("Done.", mood="calm"), extras={"weather": {"rain": False}})
    second.record["token_count"] = {"prompt_tokens": 99, "completion_tokens": 1, "cached_tokens": 3}
    answer = await rebuild.ask({"envelope": lenient.envelope(pages=1)})
    check.that("REB-020", triples.one_clean_chain(answer, [first.truth, second.truth]))
