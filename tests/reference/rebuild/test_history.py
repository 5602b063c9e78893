"""What history may look like on the next call, and what ends a chain."""

from typing import Any

import pytest

from tests.reference.rebuild.making import (
    BASH,
    JSON,
    call,
    rebuilt,
    record,
    result,
    said,
    system,
    trained,
    two_turns,
    user,
)

ASKED = [system(), user("Look.")]


def echoed(emitted: JSON, echo: JSON, asked: list[JSON] | None = None) -> Any:
    """The rebuild of two calls of which the second shows ``echo`` where the first emitted ``emitted``."""
    return rebuilt(
        record(0, [*ASKED, emitted], [1, 2], [10]),
        record(1, [*(asked or ASKED), echo, result("x"), said("Done.")], [1, 2, 10, 3], [11]),
    )


PRETTY = '{\n  "command": "ls", "n": 1\n}'

REWRITES = {
    "null content as empty text": (said(None, call("{}")), said("", call("{}"))),
    "null content left out": (
        said(None, call("{}")),
        {k: v for k, v in said("", call("{}")).items() if k != "content"},
    ),
    "blank content as empty text": (said("  \n", call("{}")), said("", call("{}"))),
    "empty content as an empty list": (said("", call("{}")), said("", call("{}")) | {"content": []}),
    "text as its parts": (said("Hi."), said(None) | {"content": [{"type": "text", "text": "Hi."}]}),
    "no tool calls as an empty list": (said("Hi."), said("Hi.") | {"tool_calls": []}),
    "an index on the call": (said("a", call("{}")), said("a", call("{}") | {"index": 0})),
    "reasoning gone": (said("a") | {"reasoning_content": "Hm."}, said("a")),
    "a cache mark": (
        said("a"),
        said(None) | {"content": [{"type": "text", "text": "a", "cache_control": {"type": "ephemeral"}}]},
    ),
    "compact arguments": (said("", call(PRETTY)), said("", call('{"command":"ls","n":1}'))),
    "arguments in another order": (said("", call(PRETTY)), said("", call('{"n": 1, "command": "ls"}'))),
    "a number spelled otherwise": (said("", call('{"n": 1.0}')), said("", call('{"n": 1}'))),
    "a number in JavaScript's precision": (
        said("", call('{"n": 12345678901234567890}')),
        said("", call('{"n": 12345678901234567000}')),
    ),
    "negative zero": (said("", call('{"n": -0.0}')), said("", call('{"n": 0}'))),
    "empty arguments as an empty object": (said("", call("")), said("", call("{}"))),
    "an unknown tool in opencode": (
        said("", call("{}", name="nope")),
        said("", call('{"tool": "nope", "error": "unknown"}', name="invalid")),
    ),
    "broken arguments in opencode": (
        said("", call('{"a')),
        said("", call('{"tool": "bash", "error": "JSON parsing failed"}', name="invalid")),
    ),
    "a tool name in the wrong case": (said("", call("{}", name="Bash")), said("", call("{}", name="bash"))),
    "broken arguments in OpenHands": (
        said("", call('{"a')),
        said("", call('{"_openhands_malformed_tool_call": true, "error": "bad"}')),
    ),
    "broken arguments in Claude Code": (
        said("", call('{"a')),
        said("", call('{"__unparsedToolInput": {"raw": "{\\"a", "len": 3}}')),
    ),
    "a default Claude Code adds": (
        said("", call('{"new_string": "a  \\nb"}', name="Edit")),
        said("", call('{"replace_all": false, "new_string": "a\\nb"}', name="Edit")),
    ),
    "a boolean Claude Code mends": (said("", call('{"bg": "false"}')), said("", call('{"bg": false}'))),
    "text parts joined by line": (
        said(None) | {"content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]},
        said("a\nb"),
    ),
    "a blank block dropped": (
        said(None) | {"content": [{"type": "text", "text": "\n\n"}, {"type": "text", "text": "a"}]},
        said("a"),
    ),
    "a backslash Claude Code drops": (
        said("", call(r'{"command": "find -exec rm {} \\\\;"}')),
        said("", call(r'{"command": "find -exec rm {} \\;"}')),
    ),
    "a cd Claude Code drops": (
        said("", call('{"command": "cd /w && ls"}')),
        said("", call('{"command": "ls"}')),
    ),
}


@pytest.mark.parametrize("name", REWRITES)
def test_a_declared_rewrite_is_noted_and_the_model_s_own_turn_is_emitted(name: str) -> None:
    emitted, echo = REWRITES[name]
    found = echoed(emitted, echo)
    assert (found.outcome, found.reason) == ("clean", None)
    assert [(note.record_uuid, note.code) for note in found.notes] == [("u1", "rewritten")]
    calls = [item["arguments"] for item in found.trajectories[0].items if item["type"] == "function_call"]
    assert calls == [one["function"]["arguments"] for one in emitted.get("tool_calls", [])]


EDITS = {
    "another text": (said("Hi."), said("Hi!")),
    "another argument": (said("", call('{"n": 1}')), said("", call('{"n": 2}'))),
    "true for one": (said("", call('{"n": 1}')), said("", call('{"n": true}'))),
    "another boolean": (said("", call('{"bg": "false"}')), said("", call('{"bg": true}'))),
    "text for a number": (said("", call('{"n": 5}')), said("", call('{"n": "5"}'))),
    "an argument gone": (said("", call('{"a": 1, "b": 2}')), said("", call('{"a": 1}'))),
    "an argument nobody declares": (said("", call("{}")), said("", call('{"replace_some": false}'))),
    "a default that is not the default": (said("", call("{}")), said("", call('{"replace_all": true}'))),
    "broken arguments with a blank more": (said("", call('{"a')), said("", call('{"a '))),
    "another tool": (said("", call("{}")), said("", call("{}", name="zsh"))),
    "another id": (said("", call("{}")), said("", call("{}", call_id="c2"))),
    "an invalid call that names another tool": (
        said("", call("{}", name="nope")),
        said("", call('{"tool": "yep", "error": "unknown"}', name="invalid")),
    ),
    "a tool name in capitals": (said("", call("{}")), said("", call("{}", name="BASH"))),
    "whole arguments called broken": (
        said("", call('{"a": 1}')),
        said("", call('{"__unparsedToolInput": {"raw": "{}", "len": 2}}')),
    ),
    "a cd put in front": (said("", call('{"command": "ls"}')), said("", call('{"command": "cd /w && ls"}'))),
    "end blanks gone from a command": (said("", call('{"command": "ls "}')), said("", call('{"command": "ls"}'))),
    "a user in the place of the model": (said("Hi."), user("Hi.")),
    "a call gone": (said("a", call("{}")), said("a")),
    "a call more": (said("a", call("{}")), said("a", call("{}"), call("{}", call_id="c2"))),
}


@pytest.mark.parametrize("name", EDITS)
def test_a_change_of_history_that_nothing_explains_is_not_trained(name: str) -> None:
    found = echoed(*EDITS[name])
    assert (found.outcome, found.withheld, found.reason_code) == ("partial", True, "history_disagrees")
    assert trained(found) == []
    assert found.trajectories[0].record_uuids == ["u0"]


def test_an_edited_user_message_with_contiguous_tokens_disagrees() -> None:
    turn = said("Hi.")
    found = echoed(turn, turn, asked=[system(), user("Look again.")])
    assert found.reason_code == "history_disagrees"


def test_a_result_under_another_call_s_id_disagrees() -> None:
    turns = [*two_turns()]
    third = [*turns[1]["messages"], user("More."), said("Yes.")]
    third[3] = result("a b", "c7")
    found = rebuilt(*turns, record(2, third, [1, 2, 3, 10, 11, 4, 5, 12, 13, 6], [14]))
    assert (found.reason_code, found.trajectories[0].record_uuids) == ("history_disagrees", ["u0", "u1"])


def test_history_is_held_against_what_was_emitted_not_against_the_last_echo() -> None:
    def shown(command: str) -> JSON:
        return said("", call(f'{{"command": "{command}"}}'))

    first, once, twice = shown("cd /a && cd /b && ls"), shown("cd /b && ls"), shown("ls")
    second = [result("x"), said("One.")]
    found = rebuilt(
        record(0, [*ASKED, first], [1, 2], [10]),
        record(1, [*ASKED, once, *second], [1, 2, 10, 3], [11]),
        record(2, [*ASKED, twice, *second, user("?"), said("Two.")], [1, 2, 10, 3, 11, 4], [12]),
    )
    assert (found.reason_code, found.trajectories[0].record_uuids) == ("history_disagrees", ["u0", "u1"])


def test_parallel_results_may_come_back_in_any_order_and_ids_may_repeat() -> None:
    turn = said("", call('{"n": 1}'), call('{"n": 2}'))
    swapped = said("", call('{"n": 2}'), call('{"n": 1}'))
    assert echoed(turn, swapped).outcome == "clean"


def test_a_call_that_adds_nothing_of_the_environment_ends_the_chain() -> None:
    first = [*ASKED, said("Hi.")]
    found = rebuilt(record(0, first, [1, 2], [10]), record(1, [*first, said("You.")], [1, 2, 10], [11]))
    assert (found.withheld, found.reason_code) == (True, "history_disagrees")


def test_a_prompt_that_holds_nothing_but_the_history_continues_it() -> None:
    first = [*ASKED, said("Hi.")]
    found = rebuilt(record(0, first, [1, 2], [10]), record(1, [*first, user("?"), said("You.")], [1, 2, 10], [11]))
    assert (found.outcome, found.trajectories[0].tokens) == ("clean", [1, 2, 10, 11])


def test_a_system_message_inside_the_conversation_continues_it() -> None:
    first = [*ASKED, said("Hi.")]
    found = rebuilt(
        record(0, first, [1, 2], [10]), record(1, [*first, system("Note."), said("Ok.")], [1, 2, 10, 3], [11])
    )
    assert found.outcome == "clean"


def test_messages_that_go_on_where_tokens_do_not_end_the_chain() -> None:
    turns = two_turns()
    turns[1]["prompt_token_ids"] = [1, 2, 3, 10, 99, 4, 5]
    found = rebuilt(*turns)
    assert (found.outcome, found.withheld, found.reason_code) == ("partial", True, "tokens_disagree")
    assert [one.record_uuids for one in found.trajectories] == [["u0"], ["u1"]]


def test_another_served_model_ends_the_chain() -> None:
    turns = two_turns()
    turns[1]["model"] = "other"
    found = rebuilt(*turns)
    assert (found.outcome, found.withheld, found.reason_code) == ("partial", True, "model_changed")


def test_other_tools_with_contiguous_tokens_are_noted_and_trained() -> None:
    for change in ({"tools": [BASH, BASH | {"id": "edit"}]}, {"tool_choice": "required"}):
        turns = two_turns()
        turns[1] |= change
        found = rebuilt(*turns)
        assert (found.outcome, [note.code for note in found.notes]) == ("clean", ["tools_changed"])


def test_an_assistant_turn_without_a_record_is_context_and_withheld() -> None:
    first = [*ASKED, said("Hi.")]
    found = rebuilt(
        record(0, first, [1, 2], [10]),
        record(1, [*first, user("?"), said("Lost."), user("!"), said("Ok.")], [1, 2, 10, 3, 77, 4], [11]),
    )
    assert (found.outcome, found.withheld, found.reason_code) == ("partial", True, "uncaptured_turn")
    assert found.trajectories[0].mask == [0, 0, 1, 0, 0, 0, 1]
    assert [note.code for note in found.notes] == ["uncaptured_turn"]


def test_a_first_prompt_that_already_holds_an_answer_is_withheld() -> None:
    found = rebuilt(record(0, [*ASKED, said("Lost."), user("!"), said("Ok.")], [1, 2], [11]))
    assert (found.withheld, found.reason_code) == (True, "uncaptured_turn")
    assert [item.get("generation_token_ids") for item in found.trajectories[0].items][2] is None


def test_images_in_history_are_compared_and_kept() -> None:
    picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}}
    asked = [system(), {"role": "user", "content": [{"type": "text", "text": "See."}, picture]}]
    first = [*asked, said("A cat.")]
    turns = [
        record(0, first, [1, 2], [10]),
        record(1, [*first, user("Sure?"), said("Yes.")], [1, 2, 10, 3], [11]),
    ]
    assert rebuilt(*turns).outcome == "clean"
    other = {"type": "image_url", "image_url": {"url": "data:image/png;base64,BB=="}}
    turns[1]["messages"][1] = {"role": "user", "content": [{"type": "text", "text": "See."}, other]}
    assert rebuilt(*turns).reason_code == "history_disagrees"
