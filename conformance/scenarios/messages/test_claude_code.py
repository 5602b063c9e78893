"""Whole runs of Claude Code, and the moment at which it acts on a tool use."""

import json
from itertools import pairwise
from typing import Any

from conformance.gauge.check import Check
from conformance.gauge.covers import covers
from conformance.gauge.scene import MODEL, Playbook, Scene
from conformance.oracle import record_form, records, translation
from conformance.oracle.matching import match
from conformance.oracle.upstream import body_of as asked_of
from conformance.scenarios.messages.asking import answer_of, ask, tool
from fakes.harnesses.claude_code import ClaudeCode, Environment
from fakes.harnesses.conversation import Conversation

JSON = Any

FOLLOW_UPS = ("And why?", "Good. Write it down.")
PLAYBOOK: Playbook = {
    "about": "Claude Code looks into two files at once, answers, and is asked twice more.",
    "sampling": "drifting",
    "scopes": {
        "main": {
            "turns": [
                {
                    "reasoning": "Two files may hold it.",
                    "text": "{tag} I look into both.",
                    "calls": [
                        {"name": "Bash", "arguments": {"command": "ls  # {tag}", "description": "List"}},
                        {"name": "Read", "arguments": {"file_path": "/project/größe.txt"}},
                    ],
                },
                {"calls": [{"name": "Bash", "arguments": {"command": "cat a  # {tag}", "timeout": 1000}}]},
                {"text": "{tag} It is in the first one."},
                {"reasoning": "They ask why.", "text": "{tag} Because it was moved."},
                {"text": "{tag} I have written it down."},
            ]
        }
    },
}
LAST_WORDS = "I have written it down."


@covers("ANT-002", "ANT-003", "ANT-004", "ANT-020", "ANT-043", "ANT-044")
async def test_a_run_of_claude_code_is_one_conversation_in_chat_form(scene: Scene, check: Check) -> None:
    await scene.script(PLAYBOOK)
    talk = await _run(scene)
    seen = [talk.ended, talk.error, LAST_WORDS in str(talk.messages[-1:])]
    check.need("ANT-020", seen == ["answered", None, True], expected=["answered", None, True], seen=seen)
    rows = await scene.ledger()
    asked = [asked_of(row) for row in rows]
    for one, other in pairwise(asked):
        # Its marks move and its texts turn from lists into strings; what was said before stands in front all the same.
        known = one.get("messages") or []
        check.equal("ANT-002", expected=known, seen=(other.get("messages") or [])[: len(known)], where="as before")
        check.equal("ANT-003", expected=one.get("tools"), seen=other.get("tools"), where="tools as before")
    reminders = [one["content"] for one in _last_sent(talk)["messages"] if one["role"] == "system"]
    whole = asked[-1].get("messages") if asked else None
    for reminder in reminders:
        roles = translation.roles_saying(whole, reminder)
        check.equal("ANT-004", expected=1, seen=len(roles), where=reminder[:60])
    check("ANT-004", bool(reminders), expected="reminders of Claude Code's own", seen=len(reminders))
    captured = await scene.records()
    pairs = match(captured, rows).pairs
    check.equal("ANT-043", expected=[len(rows)] * 2, seen=[len(captured), len(pairs)], where="records, and with a row")
    for record, row in pairs:
        check("ANT-043", record.get("is_valid") is True, expected="valid", seen=record.get("x_trackgauge"))
        check.that("ANT-043", records.triple(record, row))
        check.that("ANT-044", record_form.tells_request(record, asked_of(row).get("messages") or []))
        check.that("ANT-044", record_form.tells_answer(record, row))
        check.that("ANT-044", record_form.tells_tools(record, asked_of(row).get("tools") or []))


async def _run(scene: Scene) -> Conversation:
    """In this scene's session, carried as the proxy takes it; the agent's own session header stands beside it."""
    session = scene.session()
    carried = scene.proxy.carry(session)
    env = Environment(api_key=carried.api_key or "any", custom_headers=dict(carried.headers))
    base_url = f"{scene.proxy.url}{carried.base_path.removesuffix('/v1')}"
    agent = ClaudeCode(base_url, session=session, model=MODEL, env=env)
    talk = await agent.run(scene.task(), follow_ups=FOLLOW_UPS)
    scene.conversations.append(talk)
    return talk


def _last_sent(talk: Conversation) -> dict[str, JSON]:
    found: dict[str, JSON] = json.loads(talk.exchanges[-1].request.body_text)
    return found


@covers("ANT-045")
async def test_a_record_is_there_when_the_tool_may_run(scene: Scene, check: Check) -> None:
    calls = [{"name": "execute_bash", "arguments": {"command": f"echo {n}  # {{tag}}"}} for n in range(2)]
    scopes = {"main": {"turns": [{"text": "{tag} I run both.", "calls": calls}]}}
    await scene.script({"about": "Two tools.", "sampling": "drifting", "scopes": scopes})
    call = ask(scene, scene.task(), tools=[tool("execute_bash", "command")], stream=True)
    count = stops = 0
    while stops < 1 + len(calls):
        events = await call.watch.until_events(count + 1)
        if len(events) <= count:
            break
        count = len(events)
        stops = sum('"content_block_stop"' in event.data for event in events)
    found = await scene.records()
    check.equal("ANT-045", expected=1, seen=len(found), where="when the last tool use has stopped")
    check.equal("ANT-045", expected=len(calls), seen=len(answer_of(await call).tool_calls), where="tool uses")
