"""Calls beside the episode: titles, summaries, searches, other conversations and other agents in one session."""

from collections.abc import Iterator
from dataclasses import dataclass

from conformance.gauge.check import Check
from conformance.gauge.covers import covers
from conformance.oracle import placing, triples
from conformance.scenarios.rebuild.sessions import TOOLS, Context, Made, Session, call, result, says, system, user
from conformance.systems.rebuild import RebuildUnderTest

TASK = "Find out why the build fails."
SEARCH_TOOLS = ({**TOOLS[0], "id": "web_search"},)


@dataclass(frozen=True)
class Beside:
    """A session of a main chain with calls beside it, and where those stand."""

    where: str
    session: Session
    turns: list[Made]
    beside: list[Made]


def main_chain(session: Session, number: int, at: Context | None = None) -> Iterator[Made]:
    """Turns one by one, so that other calls can be made between them."""
    at = at or session.begin(system("You are an agent."), user(TASK))
    for turn in range(1, number + 1):
        name = f"call_{len(session.made) + 1}"
        answer = says("It is repaired.") if turn == number else says(f"Step {turn}.", call(f"cat {turn}.py", id=name))
        made = session.call(at, answer)
        yield made
        at = made.then(result(f"file {turn}", id=name))


def side_prompts(session: Session) -> dict[str, Context]:
    """Recorded kinds of side calls: what each has unlike the turns of the agent."""
    return {
        "a title": session.begin(system("You write titles."), user(TASK), tools=()),
        "a title with the agent's own system": session.begin(system("You are an agent."), user(TASK), tools=()),
        "a title of another model": session.begin(system("Titles."), user(TASK), tools=()).served(model="small-model"),
        "a probe without a system": session.begin(user("quota"), tools=()),
        "a search with tools of its own": session.begin(system("You search."), user("vLLM"), tools=SEARCH_TOOLS),
        "a check with the agent's tools": session.begin(system("You check commands."), user("ls")),
    }


def calls_beside_three_turns() -> Iterator[Beside]:
    for kind in side_prompts(Session()):
        # After the last turn, a call with the agent's tools could as well be the agent's after a compaction.
        for place in range(3 if kind == "a check with the agent's tools" else 4):
            session = Session()
            turns, beside = [], []
            ahead = main_chain(session, 3)
            for number in range(4):
                if number == place:
                    beside.append(session.call(side_prompts(session)[kind], says("A build that fails")))
                if number < 3:
                    turns.append(next(ahead))
            yield Beside(f"{kind} after {place} turns", session, turns, beside)

    session = Session()
    prompt = side_prompts(session)["a title"]
    lost = session.call(prompt, says("A build"))
    turns = list(main_chain(session, 3))
    yield Beside("a title that was asked twice", session, turns, [lost, session.call(prompt, says("Why it fails"))])


@covers("REB-068", "REB-069")
async def test_a_side_call_is_not_trained_and_costs_nothing(rebuild: RebuildUnderTest, check: Check) -> None:
    for case in calls_beside_three_turns():
        answer = await rebuild.ask({"envelope": case.session.envelope()})
        check.that("REB-068", triples.not_trained(answer, [one.truth for one in case.beside]), case.where)
        check.that("REB-069", triples.one_clean_chain(answer, [turn.truth for turn in case.turns]), case.where)


@covers("REB-070")
async def test_the_words_of_a_system_prompt_make_no_side_call(rebuild: RebuildUnderTest, check: Check) -> None:
    for words in ("You are a title generator.", "You are a helpful assistant tasked with summarizing conversations."):
        session = Session()
        turns = [turn.truth for turn in main_chain(session, 2, session.begin(system(words), user(TASK)))]
        alone = session.envelope()
        session.call(session.begin(system("You are an agent."), user("quota"), tools=()), says("Fine."))
        answer = await rebuild.ask({"envelope": session.envelope()})
        check.that("REB-070", triples.not_trained(answer, [session.made[-1].truth]))
        if await _spares_the_main_chain(rebuild):
            check.that("REB-070", placing.all_delivered(answer, turns))
        check.that("REB-070", triples.one_clean_chain(await rebuild.ask({"envelope": alone}), turns))


async def _spares_the_main_chain(rebuild: RebuildUnderTest) -> bool:
    """Whether a side call beside two turns of plain words leaves them delivered: what words cost is judged by it."""
    session = Session()
    turns = [turn.truth for turn in main_chain(session, 2)]
    session.call(session.begin(system("You answer."), user("quota"), tools=()), says("Fine."))
    return bool(placing.all_delivered(await rebuild.ask({"envelope": session.envelope()}), turns))


def decided() -> Iterator[Beside]:
    """Sessions in which tools or numbers tell which chain is the main one."""
    session = Session()
    kinds = ("a title", "a probe without a system")
    side = [session.call(side_prompts(session)[kind], says("Words.")) for kind in kinds]
    yield Beside("one call with tools among two without", session, list(main_chain(session, 1)), side)

    session = Session()
    start = session.begin(system("You write."), user("A poem."), tools=())
    first = session.call(start, says("Roses are red."))
    turns = [first, session.call(first.then(user("And then?")), says("Violets are blue."))]
    side = [session.call(side_prompts(session)["a title"], says("A poem"))]
    yield Beside("no tools, two records against one", session, turns, side)

    session = Session()
    search = side_prompts(session)["a search with tools of its own"]
    side = [session.call(search, says("Found."))]
    yield Beside("two with tools, three records against one", session, list(main_chain(session, 3)), side)


@covers("REB-071")
async def test_tools_and_then_numbers_tell_which_chain_is_the_main_one(rebuild: RebuildUnderTest, check: Check) -> None:
    for case in decided():
        answer = await rebuild.ask({"envelope": case.session.envelope()})
        check.that("REB-071", triples.one_clean_chain(answer, [turn.truth for turn in case.turns]), case.where)


def undecided() -> Iterator[Beside]:
    """Sessions in which two conversations have the same right to be the episode."""
    for tools in (TOOLS, ()):
        session = Session()
        for words in ("You repair.", "You explore."):
            session.call(session.begin(system(words), user(TASK), tools=tools), says("Done."))
        yield Beside(f"two single calls with {len(tools)} tools", session, [], session.made)

    session = Session()
    for words, tools in (("You repair.", TOOLS), ("You explore.", SEARCH_TOOLS)):
        list(main_chain(session, 2, session.begin(system(words), user(TASK), tools=tools)))
    yield Beside("two chains of two records with tools", session, [], session.made)


@covers("REB-072")
async def test_nobody_guesses_which_conversation_was_the_episode(rebuild: RebuildUnderTest, check: Check) -> None:
    for case in undecided():
        check.that("REB-072", triples.withheld(await rebuild.ask({"envelope": case.session.envelope()})), case.where)


@covers("REB-073")
async def test_a_second_conversation_that_no_id_tells_apart_withholds_the_rollout(
    rebuild: RebuildUnderTest, check: Check
) -> None:
    for tools in (TOOLS, SEARCH_TOOLS, ()):
        for words in ("You are an agent.", "You explore."):
            session = Session()
            inner = session.begin(system(words), user("Search for the cause."), tools=tools)
            main, other = main_chain(session, 4), main_chain(session, 2, inner)
            for turns in (main, main, other, main, other, main):
                next(turns)
            where = f"a subagent with {len(tools)} tools whose system is {words!r}"
            check.that("REB-073", triples.withheld(await rebuild.ask({"envelope": session.envelope()})), where)


@covers("REB-074")
async def test_agents_that_ids_tell_apart_share_no_trajectory(rebuild: RebuildUnderTest, check: Check) -> None:
    for mine, its in (
        ({"native_session_id": "ses_root"}, {"native_session_id": "ses_child", "native_parent_id": "ses_root"}),
        ({"native_session_id": "ses_root"}, {"native_session_id": "ses_root", "agent_id": "a1"}),
        ({}, {"agent_id": "a1"}),
        ({}, {"agent_id": 7}),
    ):
        session = Session()
        at = session.begin(system("You are an agent."), user(TASK))
        first = session.call(at, says("", call(id="call_1", name="task")), extras=mine)
        # A forked subagent: its context is its parent's, to the token.
        its_task = first.then(result("You are the subagent now."))
        forked = session.call(its_task, says("I look.", call(id="call_2")), extras=its)
        found = session.call(forked.then(result("a.o", "call_2")), says("It is the linker."), extras=its)
        started = session.call(session.begin(system("You explore."), user("Search.")), says("Found."), extras=its)
        last = session.call(first.then(result("It is the linker.")), says("It is repaired."), extras=mine)
        answer = await rebuild.ask({"envelope": session.envelope()})
        own = [first.truth, last.truth]
        check.that("REB-074", placing.apart(answer, [forked.truth, found.truth, started.truth], own))


@covers("REB-093")
async def test_a_title_is_not_trained_in_place_of_the_episode(rebuild: RebuildUnderTest, check: Check) -> None:
    for title_first in (True, False):
        session = Session()
        task = session.begin(system("You are an agent."), user(TASK))
        name = session.begin(system("You name things."), user(TASK), tools=())
        if title_first:
            title, only = session.call(name, says("A failing build")), session.call(task, says("It is repaired."))
        else:
            only, title = session.call(task, says("It is repaired.")), session.call(name, says("A failing build"))
        only.broken(is_valid=False)
        answer = await rebuild.ask({"envelope": session.envelope()})
        where = "title first" if title_first else "title last"
        check.that("REB-093", triples.not_trained(answer, [title.truth]), where)
