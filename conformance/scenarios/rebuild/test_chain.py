"""Which records continue each other: tokens decide, and the messages have to tell the same story."""

from collections.abc import Iterator
from itertools import permutations

from conformance.gauge.check import Check
from conformance.gauge.covers import covers
from conformance.oracle import conversation, triples
from conformance.scenarios.rebuild.sessions import (
    TOOLS,
    Bend,
    Message,
    Session,
    call,
    result,
    says,
    system,
    three_calls,
    user,
)
from conformance.systems.rebuild import RebuildUnderTest

SPARE_TOOL = {"id": "look_up", "description": "Looks a word up.", "inputSchema": {"jsonSchema": {"type": "object"}}}


@covers("REB-021", "REB-030")
async def test_turns_become_one_trajectory_in_their_order(rebuild: RebuildUnderTest, check: Check) -> None:
    for number in (1, 2, 6):
        session = Session()
        turns = [one.truth for one in session.turns(number)]
        answer = await rebuild.ask({"envelope": session.envelope()})
        check.that("REB-021", triples.one_clean_chain(answer, turns), f"{number} turns")
        check.that("REB-021", triples.only_sampled(answer, session.truth()), f"{number} turns")
    session, made = three_calls(lambda context: context)
    for order in permutations(session.records):
        answer = await rebuild.ask({"envelope": session.envelope(order)})
        listed = " ".join(record["uuid"] for record in order)
        check.that("REB-030", triples.one_clean_chain(answer, [one.truth for one in made]), listed)


def other_tokens() -> Iterator[tuple[str, Bend]]:
    """The words go on, the ids do not: the history was rendered or tokenised anew."""

    yield "from the first id on", lambda context: context.retokenised(0)
    yield "the last generated id is lost", lambda context: context.without_token(-7).then(user("Go on."), tokens=2)
    yield "from the last generated id on", lambda context: context.retokenised(-7)
    yield "from the last answer on", lambda context: context.retokenised(-10)
    yield "the first id is lost", lambda context: context.without_token(0)


@covers("REB-022")
async def test_words_that_go_on_over_other_tokens_are_no_chain(rebuild: RebuildUnderTest, check: Check) -> None:
    for what, bend in other_tokens():
        session, made = three_calls(bend)
        answer = await rebuild.ask({"envelope": session.envelope()})
        check.that("REB-022", triples.never_together(answer, made[1].truth, made[2].truth), what)
        for trajectory in answer["trajectories"]:
            check.that("REB-022", conversation.items_continue(trajectory), what)


def edits() -> Iterator[tuple[str, Bend]]:
    """The tokens go on, but the history says something else."""
    both = says("Both.", call("cat a.py", id="call_2"), call("cat b.py", id="call_3"))
    other_value = says("Both.", call("cat a.py", id="call_2"), call("cat c.py", id="call_3"))
    other_name = says("Both.", call("cat a.py", id="call_2"), call("cat b.py", id="call_3", name="read"))
    first_only = says("Both.", call("cat a.py", id="call_2"))
    yield "the task in other words", lambda context: context.retold(1, user("Break the build."))
    yield "the system in other words", lambda context: context.retold(0, system("You are a poet."))
    yield "an answer in other words", lambda context: context.retold(4, {**both, "content": "Two."})
    yield "an answer without its words", lambda context: context.retold(4, {**both, "content": None})
    yield "another argument", lambda context: context.retold(4, other_value)
    yield "another tool", lambda context: context.retold(4, other_name)
    yield "a call dropped", lambda context: context.retold(4, first_only).retold(6, None)
    yield "a call dropped, its result kept", lambda context: context.retold(4, first_only)
    yield "all calls dropped", lambda context: context.retold(4, says("Both."))
    yield "an earlier result in other words", lambda context: context.retold(3, result("c.py", id="call_1"))
    yield "an earlier result dropped", lambda context: context.retold(3, None)
    yield "an answer told by the user", lambda context: context.retold(4, user("Both."))


def telling(told: Message) -> Bend:
    """The answer in these words, and one result to it."""
    return lambda context: context.retold(4, told).retold(6, None)


def serving(model: str) -> Bend:
    return lambda context: context.served(model=model)


def adding(message: Message) -> Bend:
    return lambda context: context.then(message)


def near_rewrites() -> Iterator[tuple[Message, Message]]:
    """What looks like something that harnesses do, and is an edit of the policy's words."""
    for emitted, echoed in (
        ('{"command": "ls  -l"}', '{"command": "ls -l"}'),
        ('{"command": "ls", "wait": 1}', '{"command": "ls"}'),
        ('{"command": "ls"}', '{"command": "ls", "wait": true}'),
        ('{"command": "ls"}', '{"command": "ls", "replace_all": true}'),
        ('{"command": "ls", "quiet": "no"}', '{"command": "ls", "quiet": false}'),
        ('{"command": "ls", "wait": 1}', '{"command": "ls", "wait": 2}'),
        ('{"command": "ls", "wait": 1}', '{"command": "ls", "wait": true}'),
        ('{"command": "ls"}', "{}"),
        ('{"command": "ls"}', ""),
        ('{"command": ["a", "b"]}', '{"command": ["b", "a"]}'),
        ('{"command": "make && cd /repo"}', '{"command": "make"}'),
        ('{"command": "ls"}', '{"__unparsedToolInput": {"raw": "ls", "len": 2}}'),
    ):
        yield says("Both.", call(arguments=emitted, id="call_2")), says("Both.", call(arguments=echoed, id="call_2"))
    one = call("ls", id="call_2")
    yield says("Both. ", one), says("Both.", one)
    yield says("Both.", one), says("both.", one)
    yield says("", one), says("Both.", one)
    yield says("Both.", one), says("Both.", {**one, "id": "call_5"})
    yield (
        says("Both.", one),
        says("Both.", call(name="invalid", arguments='{"tool": "fly", "error": "no"}', id="call_2")),
    )


@covers("REB-023", "REB-024")
async def test_an_edited_history_is_withheld_though_the_tokens_go_on(rebuild: RebuildUnderTest, check: Check) -> None:
    for what, bend in edits():
        session, _ = three_calls(bend)
        answer = await rebuild.ask({"envelope": session.envelope()})
        check.that("REB-023", triples.withheld(answer), what)
    for said, told in near_rewrites():
        session, _ = three_calls(telling(told), answer=said)
        answer = await rebuild.ask({"envelope": session.envelope()})
        check.that("REB-023", triples.withheld(answer), f"{said} told as {told}")
    for emitted, echoed in (
        ('{"command": ls}', '{"command":  ls}'),
        ('{"command": "ls"', '{"command":"ls"'),
        ("ls -l", "ls  -l"),
        ("ls -l", "ls -l "),
    ):
        said, told = (says("Both.", call(arguments=text, id="call_2")) for text in (emitted, echoed))
        session, _ = three_calls(telling(told), answer=said)
        answer = await rebuild.ask({"envelope": session.envelope()})
        check.that("REB-024", triples.withheld(answer), f"{emitted!r} told as {echoed!r}")


@covers("REB-025", "REB-026", "REB-091")
async def test_words_that_no_record_tells_of_are_not_the_policys(rebuild: RebuildUnderTest, check: Check) -> None:
    unseen = says("I was never captured.", call("rm -r build", id="call_9"))
    bends: list[tuple[str, Bend]] = [
        ("a turn with a call", lambda context: context.then(unseen, result(id="call_9"))),
        ("a turn and a question", lambda context: context.then(says("Like this?"), user("Yes."))),
        ("a silent turn", lambda context: context.then(says(""), user("Go on."))),
    ]
    for what, bend in bends:
        session, made = three_calls(bend)
        answer = await rebuild.ask({"envelope": session.envelope()})
        check.that("REB-025", triples.only_generated(answer, session.truth()), what)
        check.that("REB-026", triples.withheld(answer), what)
        noted = {"record_uuid": made[2].uuid, "code": "uncaptured_turn"}
        check("REB-091", noted in answer["notes"], expected=noted, seen=answer["notes"], where=what)

    lost, made = three_calls(lambda context: context)
    answer = await rebuild.ask({"envelope": lost.envelope([made[0].record, made[2].record])})
    check.that("REB-026", triples.withheld(answer), "the second of three records is lost")
    check.that("REB-025", triples.only_generated(answer, {one.uuid: one.truth for one in made[::2]}), "a lost record")

    shown = Session()
    shown.turns(2, shown.begin(system("You are an agent."), user("2 + 2?"), says("4"), user("3 + 3?")))
    answer = await rebuild.ask({"envelope": shown.envelope()})
    check.that("REB-025", triples.only_generated(answer, shown.truth()), "an example in the first prompt")


@covers("REB-027", "REB-028", "REB-029")
async def test_what_is_served_may_not_change_on_the_way(rebuild: RebuildUnderTest, check: Check) -> None:
    for model in ("policy-model-v2", "Policy-Model", "policy-model "):
        session, made = three_calls(serving(model))
        answer = await rebuild.ask({"envelope": session.envelope()})
        check.that("REB-027", triples.withheld(answer), model)
        check.that("REB-027", triples.never_together(answer, made[1].truth, made[2].truth), model)

    changes: list[tuple[str, Bend]] = [
        ("a tool more", lambda context: context.served(tools=[*TOOLS, SPARE_TOOL])),
        ("no tools", lambda context: context.served(tools=[])),
        ("another schema", lambda context: context.served(tools=[{**TOOLS[0], "inputSchema": {}}])),
        ("another choice", lambda context: context.served(choice="required")),
    ]
    for what, bend in changes:
        session, made = three_calls(bend)
        answer = await rebuild.ask({"envelope": session.envelope()})
        noted = {"record_uuid": made[2].uuid, "code": "tools_changed"} in answer["notes"]
        ended = triples.never_together(answer, made[1].truth, made[2].truth)
        check("REB-028", noted or ended.ok, expected="a note, or an end", seen=answer["notes"], where=what)

    for role in ("system", "developer"):
        session, made = three_calls(adding({"role": role, "content": "Three turns are left."}))
        answer = await rebuild.ask({"envelope": session.envelope()})
        check.that("REB-029", triples.one_clean_chain(answer, [one.truth for one in made]), role)
