"""Subagents of opencode's fake: sessions of their own that name their parent."""

import json
from typing import Any

import pytest

from fakes.harnesses.conversation import Conversation
from fakes.harnesses.opencode import OpenCode
from tests.fakes.harnesses.conftest import Seen, Serve, error
from tests.fakes.harnesses.opencode.conftest import DONE, Answer, Script, first_child, streamed

pytestmark = pytest.mark.anyio

LOOK = streamed("Hm.", [("c1", "bash", '{"command": "echo hi"}')])


def tasks(*of_each: dict[str, Any]) -> Answer:
    whole = {"description": "a", "prompt": "Look.", "subagent_type": "general"}
    return streamed("x", [(f"t{n}", "task", json.dumps(whole | one)) for n, one in enumerate(of_each)])


async def played(serve: Serve, *sessions: list[Answer]) -> tuple[Conversation, list[Seen]]:
    async with serve(answering=Script(list(sessions))) as server:
        talk = await OpenCode(server.url).run("Fix it.")
    return talk, server.seen


def results(talk: Conversation) -> list[str]:
    return [str(message["content"]) for message in talk.messages if message["role"] == "tool"]


async def test_two_children_work_side_by_side_and_their_parent_waits_for_both(serve: Serve) -> None:
    talk, _ = await played(serve, [tasks({}, {"subagent_type": "explore"}), DONE], [LOOK, DONE], [LOOK, LOOK, DONE])
    assert [child.ended for child in talk.children] == ["answered", "answered"]
    one, two = talk.children
    assert [one.exchanges[0].n, two.exchanges[0].n] == [2, 3]
    assert max(exchange.n for child in talk.children for exchange in child.exchanges) < talk.exchanges[-1].n
    assert results(talk) == [
        f'<task id="{child.conversation}" state="completed">\n<task_result>\nDone.\n</task_result>\n</task>'
        for child in talk.children
    ]


async def test_a_child_has_a_session_of_its_own_names_its_parent_and_has_no_title(serve: Serve) -> None:
    talk, seen = await played(serve, [tasks({}), DONE], [LOOK, DONE])
    heads = [{name: value for name, value in one.headers if name.startswith("x-")} for one in seen]
    parent, child = talk.conversation, talk.children[0].conversation
    plain = {"x-session-affinity": parent, "x-session-id": parent}
    named = {"x-parent-session-id": parent, "x-session-affinity": child, "x-session-id": child}
    assert heads == [plain, plain, named, named, plain]
    assert [len(one.json()["messages"]) for one in seen] == [3, 2, 2, 4, 4]


async def test_a_child_cannot_have_children(serve: Serve) -> None:
    talk, _ = await played(serve, [tasks({}), DONE], [tasks({}), DONE])
    assert [child.children for child in talk.children] == [[]]
    assert results(talk.children[0])[0].startswith("The arguments provided to the tool are invalid: ")


async def test_a_known_task_id_takes_the_session_up_again(serve: Serve) -> None:
    def again(seen: Seen) -> Any:
        return tasks({"task_id": first_child(seen), "prompt": "Go on."})

    talk, _ = await played(serve, [tasks({}), again, DONE], [DONE, LOOK, DONE])
    (child,) = talk.children
    assert [len(exchange.request.json_body()["messages"]) for exchange in child.exchanges] == [2, 4, 6]
    assert child.exchanges[-1].request.json_body()["messages"][3] == {"role": "user", "content": "Go on."}


@pytest.mark.parametrize(
    ("arguments", "children"),
    [
        pytest.param({"task_id": "task-1"}, 0, id="no session id"),
        pytest.param({"task_id": "ses_unknown"}, 1, id="unknown session"),
        pytest.param({"task_id": ""}, 1, id="empty"),
        pytest.param({"subagent_type": "wizard"}, 0, id="unknown agent"),
    ],
)
async def test_what_the_task_tool_throws_is_its_result(serve: Serve, arguments: dict[str, str], children: int) -> None:
    talk, _ = await played(serve, [tasks(arguments), DONE], [DONE])
    assert talk.ended == "answered"
    assert len(talk.children) == children
    assert results(talk)[0].startswith("<task id=") is bool(children)


async def test_a_childs_failure_reaches_its_parent_as_a_result(serve: Serve) -> None:
    talk, _ = await played(serve, [tasks({}, {}), DONE], [error(400)], [DONE])
    assert talk.ended == "answered"
    assert [child.ended for child in talk.children] == ["error", "answered"]
    assert 'state="error"' in results(talk)[0]
    assert "400" in results(talk)[0]
