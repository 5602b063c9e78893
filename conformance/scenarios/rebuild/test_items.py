"""The items of a trajectory: the conversation that took place, with its tokens where a trainer looks for them."""

from conformance.gauge.check import Check, Inconclusive
from conformance.gauge.covers import covers
from conformance.oracle import conversation, triples
from conformance.scenarios.rebuild.sessions import (
    MODEL,
    TOOLS,
    Made,
    Message,
    Session,
    call,
    result,
    says,
    system,
    user,
)
from conformance.systems.rebuild import RebuildUnderTest

MORE_TOOLS = (*TOOLS, {**TOOLS[0], "id": "finish"})


def whole_session() -> tuple[Session, list[Made]]:
    """Each form that a turn has: thought, text and calls at once, calls alone, text alone, nothing."""
    session = Session()
    answers = [
        says("Two looks.", call("cat a", id="call_1"), call("cat b", id="call_2"), reasoning_content="Hm, two files."),
        says(None, call("cat c", id="call_3")),
        says("What else?"),
        says(""),
        says("It is repaired."),
    ]
    between = [
        [result("text of a", "call_1"), result("", "call_2")],
        [result("text of c", "call_3"), user("Be quick.")],
        [user("Nothing else.")],
        [user("Is it repaired?")],
    ]
    at = session.begin(system("You are an agent."), user("Look."), tools=MORE_TOOLS)
    turns = [session.call(at, answers[0])]
    for added, answer in zip(between, answers[1:], strict=True):
        turns.append(session.call(turns[-1].then(*added), answer))
    return session, turns


@covers("REB-085", "REB-086", "REB-088", "REB-089")
async def test_the_items_are_the_conversation_with_its_tokens(rebuild: RebuildUnderTest, check: Check) -> None:
    session, turns = whole_session()
    answer = await rebuild.ask({"envelope": session.envelope()})
    clean = triples.one_clean_chain(answer, [turn.truth for turn in turns])
    if not clean:
        raise Inconclusive(f"a plain session did not become one clean trajectory: {clean.seen}")
    trajectory = answer["trajectories"][0]
    answers = [turn.record["messages"][-1] for turn in turns]
    check.that("REB-085", conversation.triple_ends_each_turn(trajectory, answers))
    if "rebuild-records" in rebuild.capabilities:
        check.that("REB-085", conversation.triple_on_last_items(trajectory))
    check.that("REB-086", conversation.items_continue(trajectory))
    check.that("REB-088", conversation.same_conversation(trajectory, turns[-1].record["messages"]))
    check.equal("REB-089", expected=MODEL, seen=trajectory["model"])
    check.equal("REB-089", expected=["execute_bash", "finish"], seen=conversation.tool_names(trajectory))
    check.equal("REB-089", expected=[turn.uuid for turn in turns], seen=trajectory["record_uuids"])


@covers("REB-085", "REB-086")
async def test_a_message_without_a_record_carries_no_tokens(rebuild: RebuildUnderTest, check: Check) -> None:
    """Where its chain breaks, and where the history holds a turn that nobody captured."""
    session = Session()
    second = session.turns(2, session.begin(user("Look."), says("An example."), user("Now you.")))[-1]
    third = session.call(second.then(user("More."), says("Not captured."), user("And more.")), says("Done."))
    session.call(third.then(user("Go on.")).retokenised(at=9), says("Really."))
    answer = await rebuild.ask({"envelope": session.envelope()})
    continued = [conversation.items_continue(trajectory) for trajectory in answer["trajectories"]]
    check("REB-086", all(continued), expected="contiguous prompts", seen=[one.seen for one in continued])
    sampled = [one.record["messages"][-1] for one in session.made]
    check.that("REB-085", conversation.triples_only_on(answer, sampled))


@covers("REB-087")
async def test_a_silent_turn_has_an_item_of_its_own(rebuild: RebuildUnderTest, check: Check) -> None:
    silent: list[Message] = [
        says(""),
        says(None),
        says("", reasoning_content="I need not speak."),
        says("<think>\nI need not speak.\n</think>\n\n"),
        says("\n\n"),
    ]
    for last in (False, True):
        for message in silent:
            session = Session()
            turns = [session.call(session.begin(user("Look.")), message, generation=2)]
            if not last:
                turns.append(session.call(turns[0].then(user("Speak.")), says("Well.")))
            answer = await rebuild.ask({"envelope": session.envelope()})
            check.that("REB-087", triples.one_clean_chain(answer, [turn.truth for turn in turns]))
