"""What a rebuild says came of a session: nothing lost in silence, nothing partial for whole, each cause by its name."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from conformance.gauge.check import Check, Inconclusive
from conformance.gauge.covers import covers
from conformance.oracle import rollouts, triples
from conformance.scenarios.rebuild.sessions import (
    Made,
    Session,
    call,
    result,
    says,
    system,
    three_calls,
    user,
)
from conformance.systems.rebuild import RebuildUnderTest

JSON = Any


@dataclass(frozen=True)
class Story:
    """A session, the code of what is wrong with it, the longest chain that is beyond doubt, and who is put aside."""

    what: str
    session: Session
    reason: str | None
    longest: Sequence[Made] = ()
    aside: dict[str, str] = field(default_factory=dict)
    keys: dict[str, JSON] = field(default_factory=dict)

    @property
    def source(self) -> dict[str, JSON]:
        return {"envelope": self.session.envelope(**self.keys)}


def clean_stories() -> Iterator[Story]:
    session = Session()
    yield Story("three turns", session, None, session.turns(3))
    yield _retry_and_title()
    session = Session()
    turns = session.turns(2)
    aborted = session.call(turns[-1].then(user("And?")), says("I w")).broken(is_valid=False)
    yield Story("an aborted last call", session, None, turns, {aborted.uuid: "invalid"})


def _retry_and_title() -> Story:
    session = Session()
    title = session.call(session.begin(system("Make a title."), user("Fix the build."), tools=[]), says("Build"))
    opening = session.begin(system("You are an agent."), user("Fix the build."))
    lost = session.call(opening, says("I look around.", call("ls -la")))
    first = session.call(opening, says("I look.", call("ls")))
    second = session.call(first.then(result()), says("It is repaired."))
    aside = {title.uuid: "side_call", lost.uuid: "orphan"}
    return Story("a retry and a title", session, None, [first, second], aside)


def partial_stories(capabilities: Collection[str]) -> Iterator[Story]:
    session, made = three_calls(lambda context: context.retokenised(-7))
    yield Story("other tokens", session, "tokens_disagree", made[:2])
    if "rebuild-records" in capabilities:
        session, made = three_calls(lambda context: context.retold(1, user("Break the build.")))
        yield Story("an edited task", session, "history_disagrees", made[:2])
        session, _ = three_calls(lambda context: context.then(says("Unseen."), user("Go on.")))
        yield Story("a turn without a record", session, "uncaptured_turn")
    session, made = three_calls(lambda context: context.served(model="policy-model-v2"))
    yield Story("another model", session, "model_changed", made[:2])
    session, made = three_calls(lambda context: context)
    made[1].broken(is_valid=False)
    yield Story("an invalid second of three", session, "invalid_record", aside={made[1].uuid: "invalid"})
    session, made = three_calls(lambda context: context)
    made[0].broken(generation_log_probs=None)
    yield Story("an invalid first of three", session, "invalid_record", made[1:], {made[0].uuid: "invalid"})
    if "loss-mark" in capabilities:
        session = Session()
        turns = session.turns(2)
        session.turns(1, turns[-1].then(user("And?")))
        session.turns(1, session.made[-1].then(user("And?")))
        yield Story("a session that lost records", session, "records_lost", session.made, keys={"incomplete": True})
    yield _a_break_in_the_beginning()
    yield from _guesses(capabilities)


def _a_break_in_the_beginning() -> Story:
    session = Session()
    [first] = session.turns(1)
    later = session.turns(3, first.then(user("And now?")).retokenised(0))
    return Story("a break after the first of four", session, "tokens_disagree", later)


def _guesses(capabilities: Collection[str]) -> Iterator[Story]:
    """Sessions of which only a guess could tell what the episode was."""
    session = Session()
    turns = session.turns(2)
    for text in ("One.", "Two."):
        session.call(turns[-1].then(user("And?")), says(text))
    yield Story("two last answers", session, "unresolved_siblings")
    session = Session()
    session.turns(2)
    session.turns(2)
    session.made[2].record["messages"][0]["content"] = session.made[3].record["messages"][0]["content"] = "Be another."
    yield Story("two equal conversations", session, "ambiguous_main")
    session = Session()
    session.turns(4)
    session.turns(2, session.begin(system("You are another agent."), user("Write a test.")))
    yield Story("a second conversation", session, "several_chains")
    if "branches" not in capabilities:
        session = Session()
        [first] = session.turns(1)
        for word in ("left", "right"):
            session.turns(2, first.then(user(f"Go {word}.")))
        yield Story("a fork", session, "fork")
    if "segments" not in capabilities:
        session = Session()
        turns = session.turns(4, session.begin(system("You are an agent."), user("Fix the build.")))
        session.turns(2, session.begin(system("You are an agent."), user("Fix the build. So far: nothing.")))
        yield Story("a compacted history", session, "history_rewritten", turns)


def failed_stories() -> Iterator[Story]:
    yield Story("no record", Session(), "no_records")
    for number in (1, 3):
        session = Session()
        for made in session.turns(number):
            made.broken(is_valid=False)
        aside = dict.fromkeys(session.truth(), "invalid")
        yield Story(f"{number} invalid records", session, "no_valid_record", aside=aside)


@covers("REB-044", "REB-045")
async def test_every_sampled_token_is_accounted_for(rebuild: RebuildUnderTest, check: Check) -> None:
    for story in (*clean_stories(), *partial_stories(rebuild.capabilities), *failed_stories()):
        answer = await rebuild.ask(story.source)
        truth = story.session.truth()
        check.that("REB-044", rollouts.tokens_conserved(answer, truth), story.what)
        check.that("REB-045", rollouts.rest_excluded(answer, truth), story.what)
        told = {one["record_uuid"]: one["why"] for one in answer["excluded"]}
        due = _aside(story, answer, rebuild.capabilities)
        check.equal("REB-045", expected=due, seen={uuid: told.get(uuid) for uuid in due}, where=story.what)


def _aside(story: Story, answer: rollouts.Answer, capabilities: Collection[str]) -> dict[str, str]:
    """Why each record that is in no trajectory is excluded; who sees no tools sees no side calls, but orphans."""
    held = {uuid for one in answer["trajectories"] for uuid in one["record_uuids"]}
    names = {} if "rebuild-records" in capabilities else {"side_call": "orphan"}
    return {uuid: names.get(why, why) for uuid, why in story.aside.items() if uuid not in held}


@covers("REB-046", "REB-047", "REB-049", "REB-050", "REB-053")
async def test_a_rollout_that_is_not_whole_says_so_and_why(rebuild: RebuildUnderTest, check: Check) -> None:
    for story in partial_stories(rebuild.capabilities):
        answer = await rebuild.ask(story.source)
        requirement = "REB-049" if "invalid first" in story.what else "REB-046"
        if not check.that(requirement, triples.withheld(answer), story.what):
            continue
        check.equal("REB-053", expected=story.reason, seen=answer["reason_code"], where=story.what)
        if story.longest:
            check.that("REB-047", triples.delivers(answer, [one.truth for one in story.longest]), story.what)
        whole = await rebuild.ask(story.source, allow_partial=False)
        error = whole.get("error") or {}
        typed = bool(error.get("rule")) and bool(error.get("message"))
        check("REB-050", typed, expected="a typed error", seen=triples.standing(whole), where=story.what)
        check.that("REB-050", triples.withheld(whole), story.what)
    for story in clean_stories():
        turns = [one.truth for one in story.longest]
        if triples.one_clean_chain(await rebuild.ask(story.source), turns):
            whole = await rebuild.ask(story.source, allow_partial=False)
            check.that("REB-050", triples.one_clean_chain(whole, turns), story.what)


@covers("REB-048", "REB-053")
async def test_a_session_without_a_valid_record_has_failed(rebuild: RebuildUnderTest, check: Check) -> None:
    for story in failed_stories():
        answer = await rebuild.ask(story.source)
        check("REB-048", answer["outcome"] == "failed", expected="failed", seen=answer["outcome"], where=story.what)
        check.that("REB-048", triples.withheld(answer), story.what)
        check.that("REB-048", triples.not_trained(answer, story.session.truth().values()), story.what)
        check.equal("REB-053", expected=story.reason, seen=answer["reason_code"], where=story.what)


@covers("REB-051")
async def test_a_session_that_lost_records_is_withheld_however_whole_it_looks(
    rebuild: RebuildUnderTest, check: Check
) -> None:
    for number in (1, 3):
        session = Session()
        turns = [one.truth for one in session.turns(number)]
        whole, marked = ({"envelope": session.envelope(incomplete=mark)} for mark in (False, True))
        await _control(rebuild, whole, turns)
        check.that("REB-051", triples.withheld(await rebuild.ask(marked)), f"{number} turns")


@covers("REB-052")
async def test_a_folder_with_the_mark_of_a_loss_is_withheld_however_whole_it_looks(
    rebuild: RebuildUnderTest, check: Check, tmp_path: Path
) -> None:
    for number in (1, 3):
        session = Session()
        turns = [one.truth for one in session.turns(number)]
        log_dir = session.write(tmp_path / str(number))
        await _control(rebuild, {"log_dir": str(log_dir)}, turns)
        marked = await rebuild.ask({"log_dir": str(session.write(log_dir, incomplete=True))})
        check.that("REB-052", triples.withheld(marked), f"{number} turns")
    nothing_left = await rebuild.ask({"log_dir": str(Session().write(tmp_path / "none", incomplete=True))})
    check.that("REB-052", triples.withheld(nothing_left), "no record left")


async def _control(rebuild: RebuildUnderTest, source: dict[str, JSON], turns: Sequence[rollouts.Sampled]) -> None:
    """Raises Inconclusive where the same records without the mark are not clean: nothing is then due to the mark."""
    if not triples.one_clean_chain(await rebuild.ask(source), turns):
        raise Inconclusive(f"{len(turns)} turns without the mark did not become one clean trajectory")
