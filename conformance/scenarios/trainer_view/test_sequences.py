"""What a trainer takes of an answer, over all of its sequences: each sampled token once, as it was sampled."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from conformance.gauge.check import Check
from conformance.gauge.covers import covers
from conformance.oracle import sequences, triples, views
from conformance.oracle.judgement import Judgement
from conformance.oracle.law import account
from conformance.oracle.rollouts import Answer
from conformance.scenarios.rebuild.sessions import Context, Made, Session, call, result, says, system, user
from conformance.systems.rebuild import RebuildUnderTest

JSON = Any

END = 151645


def rows_of(*sessions: Session) -> list[dict[str, JSON]]:
    """The calls of these sessions as an engine's ledger would have them."""
    made = [one for session in sessions for one in session.made]
    return [
        {
            "seq": number,
            "endpoint": "chat",
            "state": "finished",
            "request_id": one.record["request_id"],
            "prompt_token_ids": list(one.truth.prompt),
            "generation_token_ids": list(one.truth.generation),
            "generation_log_probs": list(one.truth.log_probs),
        }
        for number, one in enumerate(made)
    ]


def accounted(answer: Answer, *sessions: Session) -> Judgement:
    """Each generation of these sessions is masked in once, behind its own prompt, or excluded."""
    records = [record for session in sessions for record in session.records]
    found = account(answer, records, rows_of(*sessions))
    size = len(found.trained) + len(found.withheld) + len(found.excluded)
    return Judgement(size == len(records), f"{len(records)} calls", f"{size} calls") if found.law else found.law


def busy(session: Session) -> list[Made]:
    """A retry that lost, three turns, a title, and a call that is no longer valid; the turns that were gone on with."""
    opening = session.begin(system("You are an agent."), user("Fix the build."))
    session.call(opening, says("I lose.", call("ls", id="call_0")))
    turns = [session.call(opening, says("I look.", call("ls", id="call_1")))]
    session.call(session.begin(system("You name things."), user("Fix the build."), tools=()), says("A build"))
    at = turns[0].then(result("a.py", "call_1"))
    session.call(at, says("Torn.", call("cat a", id="call_2"))).broken(is_valid=False)
    turns.append(session.call(at, says("And now.", call("cat b", id="call_3"))))
    turns.append(session.call(turns[1].then(result("b", "call_3")), says("It is repaired."), generation=(77, 78, END)))
    return turns


@covers("TRV-001", "TRV-012")
async def test_each_sampled_token_is_masked_in_once_or_excluded(rebuild: RebuildUnderTest, check: Check) -> None:
    session = Session()
    turns = busy(session)
    answer = await rebuild.ask({"envelope": session.envelope()})
    check.that("TRV-001", accounted(answer, session))
    named = [turn.uuid for turn in turns]
    for one in answer["trajectories"]:
        where = f"trajectory of {one['record_uuids']}"
        check.equal("TRV-012", expected=named, seen=one["record_uuids"], where=where)
        check.equal("TRV-012", expected=turns[0].record["model"], seen=one["model"], where=where)
    check("TRV-012", bool(answer["trajectories"]), expected="a sequence", seen="none")


@covers("TRV-001", "TRV-003")
async def test_a_fork_shares_its_prefix_with_one_branch(rebuild: RebuildUnderTest, check: Check) -> None:
    for branches in (2, 3):
        session = Session()
        first, second = session.turns(3)[:2]
        for number in range(1, branches):
            other = session.call(second.then(user(f"Another way, {number}.")), says("I try.", call(id=f"o{number}")))
            session.call(other.then(result("done", f"o{number}")), says("That is it."))
        answer = await rebuild.ask({"envelope": session.envelope()})
        check.that("TRV-001", accounted(answer, session), f"{branches} branches")
        shared = {*first.truth.generation, *second.truth.generation}
        held = [token for one in answer["trajectories"] for token, _ in views.masked_in(one) if token in shared]
        once = len(held) == len(shared) or not answer["trajectories"]
        check("TRV-003", once, expected=f"{len(shared)} tokens once", seen=f"{len(held)} masked in")


@covers("TRV-004")
async def test_a_kept_tail_is_context_in_the_new_history(rebuild: RebuildUnderTest, check: Check) -> None:
    for kept in (1, 2):
        session = Session()
        turns = session.turns(4)
        tail: list[JSON] = []
        for turn in turns[-kept:-1]:
            answer = turn.record["messages"][-1]
            tail += [answer, result("done", answer["tool_calls"][0]["id"])]
        tail.append(turns[-1].record["messages"][-1])
        anew = session.begin(system("You are an agent."), user("So far all went well."), *tail, user("Go on."))
        ids = [token for turn in turns[-kept:] for token in turn.truth.generation]
        place = len(anew.tokens) - len(ids)
        anew = _with_tokens(anew, (*anew.tokens[:place], *ids))
        session.call(session.call(anew, says("On.")).then(user("And on.")), says("Done."))
        told = await rebuild.ask({"envelope": session.envelope()})
        sampled = [token for one in told["trajectories"] for token, _ in views.masked_in(one)]
        twice = sorted({token for token in ids if sampled.count(token) > 1})
        check("TRV-004", not twice, expected="masked in once", seen={"twice": twice}, where=f"{kept} turns kept")
        check.that("TRV-004", accounted(told, session), f"{kept} turns kept")


def _with_tokens(context: Context, tokens: Sequence[int]) -> Context:
    return replace(context, tokens=tuple(tokens))


@covers("TRV-005")
async def test_a_long_session_is_one_whole_sequence(rebuild: RebuildUnderTest, check: Check) -> None:
    session = Session()
    at = session.begin(system("You are an agent."), user("Fix the build."), tokens=9000)
    for number in range(24):
        made = session.call(at, says(f"Step {number}.", call(id=f"c{number}")), generation=700)
        at = made.then(result("done", f"c{number}"), tokens=1200)
    session.call(at, says("Done."), generation=3000)
    answer = await rebuild.ask({"envelope": session.envelope()})
    check.that("TRV-005", triples.one_clean_chain(answer, [made.truth for made in session.made]))
    check.that("TRV-005", views.columns(answer, session.truth(), "tokens"))


@covers("TRV-006")
async def test_the_same_question_gets_the_same_answer(rebuild: RebuildUnderTest, check: Check) -> None:
    one, other = Session(), Session()
    busy(one)
    other.turns(3)
    answers = []
    for source in (one, other, one, one):
        told = await rebuild.ask({"envelope": source.envelope()})
        answers.append({key: value for key, value in told.items() if key != "id"})
    first, _, *again = answers
    same = [first == each for each in again]
    check("TRV-006", all(same), expected="the first answer again", seen={"equal": same})
    check("TRV-006", bool(first["trajectories"]), expected="a sequence", seen="none")


@covers("TRV-007", "TRV-008", "TRV-009")
async def test_the_columns_are_of_positions_and_of_numbers(rebuild: RebuildUnderTest, check: Check) -> None:
    """Turns of one spelling, quoted by tools and users; a turn after which the prompt adds nothing."""
    session = Session()
    said = (0, 1, 1, 0, END)
    first = session.call(session.begin(user("0 1 1 0"), tokens=2), says("0110", call(id="q1")), generation=said)
    quoting = _with_tokens(first.then(result("0110", "q1")), (*first.after.tokens, *said, *said))
    second = session.call(quoting, says("0110"), generation=said, log_probs=[-0.5, -0.25, -0.125, -1.5, 0.0])
    bare = second.then(user(""), tokens=0)
    session.call(bare, says("Yes."), generation=(1, END))
    answer = await rebuild.ask({"envelope": session.envelope()})
    check.that("TRV-007", sequences.plain_kinds(answer))
    check.that("TRV-008", views.columns(answer, session.truth(), "mask"))
    for column in ("tokens", "log_probs"):
        check.that("TRV-009", views.columns(answer, session.truth(), column))
    check.that("TRV-009", accounted(answer, session))


@covers("TRV-010", "TRV-011")
async def test_withheld_is_a_word_and_not_an_empty_mask(rebuild: RebuildUnderTest, check: Check) -> None:
    session = Session()
    turns = session.turns(3)
    session.call(session.begin(system("You are an agent."), user("So far.")), says("On."))
    answer = await rebuild.ask({"envelope": session.envelope()})
    check.that("TRV-010", triples.withheld(answer))
    for column in ("mask", "log_probs"):
        check.that("TRV-010", views.columns(answer, session.truth(), column))
    kept = any(set(turns[0].truth.generation) <= {t for t, _ in views.masked_in(one)} for one in answer["trajectories"])
    check("TRV-010", kept, expected="what was sampled, masked in", seen="not masked in")
    for made in session.made:
        made.broken(is_valid=False)
    answer = await rebuild.ask({"envelope": session.envelope()})
    masked = sum(bool(bit) for one in answer["trajectories"] for bit in one["mask"])
    check("TRV-011", masked == 0, expected="no token masked in", seen=f"{masked} masked in")
    check("TRV-011", answer["withheld"] is True, expected="withheld", seen=triples.standing(answer))
