"""What harnesses make of their history without editing it: each rewrite here was recorded from a real one."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from conformance.gauge.check import Check
from conformance.gauge.covers import covers
from conformance.oracle import conversation, rollouts, triples
from conformance.scenarios.rebuild.sessions import Made, Message, Session, call, result, says, system, user
from conformance.systems.rebuild import RebuildUnderTest

JSON = Any
ABSENT = ...


@dataclass(frozen=True)
class Rewrite:
    """An answer as the model gave it, and as the next request tells it; ``opening`` likewise for what came before."""

    requirement: str
    what: str
    emitted: Message
    echoed: Message
    opening: tuple[Message, Message] = (user("Fix the build."), user("Fix the build."))


def contents() -> Iterator[Rewrite]:
    for content, echoed in ((None, ""), (None, ABSENT), ("", None), ("", ABSENT), ("", []), (ABSENT, "")):
        what = f"content {_shown(content)} comes back {_shown(echoed)}"
        yield Rewrite("REB-031", what, _with_content(content), _with_content(echoed))
    yield Rewrite("REB-031", "an empty list of calls is added", says("Well."), says("Well.", tool_calls=[]))
    yield Rewrite("REB-031", "an empty list of calls is lost", says("Well.", tool_calls=[]), says("Well."))
    yield Rewrite("REB-031", "null calls are lost", says("Well.", tool_calls=None), says("Well."))
    for blank, echoed in (("\n", ""), ("\n\n", None), ("  \n", ABSENT), (" \t", "")):
        what = f"content {blank!r} comes back {_shown(echoed)}"
        yield Rewrite("REB-032", what, _with_content(blank), _with_content(echoed))
    parts = [{"type": "text", "text": "Fix the build."}]
    answer = says("I look.\n", call())
    yield Rewrite("REB-033", "an answer as its parts", answer, {**answer, "content": [_text("I look.\n")]})
    yield Rewrite("REB-033", "a task as its parts", answer, answer, (user("Fix the build."), user(parts)))
    yield Rewrite("REB-033", "a task as its text", answer, answer, (user(parts), user("Fix the build.")))


def keys() -> Iterator[Rewrite]:
    answer = says("I look.", call())
    numbered = says("I look.", {**call(), "index": 0})
    cached = says([{**_text("I look."), "cache_control": {"type": "ephemeral"}}], call())
    triple = {"prompt_token_ids": [1, 2], "generation_token_ids": [3], "generation_log_probs": [-0.1]}
    task = user("Fix the build.")
    yield Rewrite("REB-034", "a name is added", answer, {**answer, "name": "agent"})
    yield Rewrite("REB-034", "a name is lost", answer, answer, ({**task, "name": "me"}, task))
    yield Rewrite("REB-034", "calls are numbered", answer, numbered)
    yield Rewrite("REB-034", "calls lose their numbers", numbered, answer)
    yield Rewrite("REB-034", "a cache mark is added", answer, cached)
    yield Rewrite("REB-034", "token fields are echoed", answer, {**answer, **triple})
    thought = says("I look.", call(), reasoning_content="Hm, the build.")
    yield Rewrite("REB-035", "reasoning is lost", thought, answer)
    yield Rewrite("REB-035", "reasoning is cut", thought, {**thought, "reasoning_content": "Hm"})
    yield Rewrite("REB-035", "reasoning is renamed", thought, {**answer, "reasoning": "Hm, the build."})
    yield Rewrite("REB-035", "empty reasoning is added", answer, {**answer, "reasoning_content": ""})


def arguments() -> Iterator[Rewrite]:
    def of(requirement: str, emitted: str, echoed: str, name: str = "execute_bash") -> Rewrite:
        one, other = (says("I look.", call(name=name, arguments=text)) for text in (emitted, echoed))
        return Rewrite(requirement, f"arguments {emitted} come back {echoed}", one, other)

    yield of("REB-036", '{"command": "ls", "wait": [1, 2]}', '{"command":"ls","wait":[1,2]}')
    yield of("REB-036", ' {\n  "command": "ls"\n}\n', '{"command": "ls"}')
    yield of(
        "REB-036", '{"b": 1, "command": "ls", "10": {"y": 2, "x": 3}}', '{"10":{"x":3,"y":2},"b":1,"command":"ls"}'
    )
    yield of("REB-036", '{"command": "caf\\u00e9 \\/srv"}', '{"command":"café /srv"}')
    yield of("REB-036", "", "{}")
    yield of("REB-036", "", "{ }")
    for emitted, echoed in (
        ("1.0", "1"),
        ("1", "1.0"),
        ("1e3", "1000"),
        ("1.50", "1.5"),
        ("-0.0", "0"),
        ("12345678901234567890", "12345678901234567000"),
        ("[1.0, {}]".replace("{}", '{"deep": 2.0}'), '[1,{"deep":2}]'),
    ):
        yield of("REB-037", f'{{"lines": {emitted}}}', f'{{"lines":{echoed}}}')
    yield from _substitutes()
    yield of(
        "REB-039",
        '{"file_path": "a.py", "old_string": "x", "new_string": "y"}',
        '{"replace_all":false,"file_path":"a.py","old_string":"x","new_string":"y"}',
        "Edit",
    )
    yield of(
        "REB-039",
        '{"command": "ls", "run_in_background": "false"}',
        '{"command":"ls","run_in_background":false}',
        "Bash",
    )
    yield of("REB-039", '{"command": "cd /repo && make"}', '{"command":"make"}', "Bash")
    yield of("REB-039", '{"command": "find . -exec ls {} \\\\\\\\;"}', '{"command":"find . -exec ls {} \\\\;"}', "Bash")
    yield of(
        "REB-039", '{"file_path": "a", "content": "x  \\ny\\t\\n"}', '{"file_path":"a","content":"x\\ny\\n"}', "Write"
    )


def _substitutes() -> Iterator[Rewrite]:
    """What three harnesses put in the place of a call that they cannot read."""
    raw = '{"command": "ls'
    cannot_read = says("I look.", call(arguments=raw))
    openhands = json.dumps({"_openhands_malformed_tool_call": True, "error": "not JSON"})
    claude = json.dumps({"__unparsedToolInput": {"raw": raw, "len": len(raw)}})
    opencode = json.dumps({"tool": "execute_bash", "error": "Invalid input for tool execute_bash"})
    yield Rewrite("REB-038", "as OpenHands does", cannot_read, says("I look.", call(arguments=openhands)))
    yield Rewrite("REB-038", "as Claude Code does", cannot_read, says("I look.", call(arguments=claude)))
    yield Rewrite("REB-038", "as opencode does", cannot_read, says("I look.", call(name="invalid", arguments=opencode)))
    unknown = says("I look.", call(name="fly", arguments='{"to": "moon"}'))
    no_tool = json.dumps({"tool": "fly", "error": "Model tried to call unavailable tool 'fly'."})
    yield Rewrite("REB-038", "an unknown tool", unknown, says("I look.", call(name="invalid", arguments=no_tool)))


def played(rewrite: Rewrite) -> tuple[Session, list[Made]]:
    """Four calls: the answer of the second is retold in the third, and so it stays."""
    session = Session()
    task, retold_task = rewrite.opening
    first = session.call(session.begin(system("You are an agent."), task), says("Let me see.", call(id="call_0")))
    second = session.call(first.then(result("a.py", id="call_0")), rewrite.emitted)
    context = second.then(result("found") if rewrite.emitted.get("tool_calls") else user("Go on."))
    third = session.call(context.retold(1, retold_task).retold(4, rewrite.echoed), says("Next.", call(id="call_7")))
    fourth = session.call(third.then(result(id="call_7")), says("It is repaired."))
    return session, [first, second, third, fourth]


@covers("REB-031", "REB-032", "REB-033", "REB-034", "REB-035", "REB-036", "REB-037", "REB-038", "REB-039")
@covers("REB-042", "REB-043")
async def test_what_harnesses_rewrite_is_no_edit(rebuild: RebuildUnderTest, check: Check) -> None:
    for rewrite in (*contents(), *keys(), *arguments()):
        session, made = played(rewrite)
        answer = await rebuild.ask({"envelope": session.envelope()})
        judged = triples.one_clean_chain(answer, [one.truth for one in made])
        if not check.that(rewrite.requirement, judged, rewrite.what):
            continue
        noted = [one["record_uuid"] for one in answer["notes"] if one["code"] == "rewritten"]
        due = [made[2].uuid]
        check("REB-042", noted == due, expected=due, seen=noted, where=rewrite.what)
        for trajectory in rollouts.trained(answer):
            check.that("REB-043", conversation.same_conversation(trajectory, _as_emitted(made)), rewrite.what)
    plain = Session()
    plain.turns(4)
    answer = await rebuild.ask({"envelope": plain.envelope()})
    check("REB-042", not answer["notes"], expected="no note where nothing was rewritten", seen=answer["notes"])


@covers("REB-040", "REB-041")
async def test_images_and_repeated_call_ids_break_no_chain(rebuild: RebuildUnderTest, check: Check) -> None:
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}}
    seen = Session()
    first = seen.call(seen.begin(system("You see."), user([_text("What is this?"), image])), says("A logo.", call()))
    second = seen.call(first.then(result([image])), says("Again.", call(id="call_2")))
    third = seen.call(second.then(result("done", id="call_2"), user([image])), says("The same."))
    answer = await rebuild.ask({"envelope": seen.envelope()})
    check.that("REB-040", triples.one_clean_chain(answer, [one.truth for one in (first, second, third)]), "images")

    for compact in (False, True):
        session, made = _one_id_for_all(compact)
        answer = await rebuild.ask({"envelope": session.envelope()})
        where = "retold compactly" if compact else "retold as they were"
        check.that("REB-041", triples.one_clean_chain(answer, [one.truth for one in made]), where)


def _one_id_for_all(compact: bool) -> tuple[Session, list[Made]]:
    """An engine that numbers its calls anew each turn, and once gives two calls of one turn the same id."""
    session = Session()
    context = session.begin(system("You are an agent."), user("Fix the build."))
    made: list[Made] = []
    for command in ("ls", "cat a.py", "make"):
        answer = says("", call(command), call(command, name="think")) if command == "make" else says("", call(command))
        made.append(session.call(context, answer))
        told = json.loads(json.dumps(answer))
        for one in told["tool_calls"] if compact else []:
            one["function"]["arguments"] = one["function"]["arguments"].replace(": ", ":")
        context = made[-1].then(*(result(command) for _ in told["tool_calls"]))
        context = context.retold(-1 - len(told["tool_calls"]), told)
    made.append(session.call(context, says("It is repaired.")))
    return session, made


def _as_emitted(made: list[Made]) -> list[Message]:
    """The conversation with each answer as the model gave it, whatever the next request made of it."""
    messages: list[Message] = []
    for one in made:
        request = one.record["messages"][len(messages) : -1]
        messages += [*request, one.record["messages"][-1]]
    return messages


def _with_content(content: JSON) -> Message:
    message = says(content, call())
    if content is ABSENT:
        del message["content"]
    return message


def _text(text: str) -> JSON:
    return {"type": "text", "text": text}


def _shown(content: JSON) -> str:
    return "absent" if content is ABSENT else json.dumps(content)
