"""What the Responses items of a generated turn look like, and which of them carries the triple."""

import pytest

from tests.reference.rebuild.making import BASH, JSON, call, rebuilt, record, said, system, user

THOUGHT = said("<think>Hm.</think>\n\n")
SPOKEN = said("<think>Hm.</think>\nYes.")

CASES: dict[str, tuple[JSON, list[tuple[str, str]]]] = {
    "text": (said("Yes."), [("message", "Yes.")]),
    "nothing at all": (said(None), [("message", "")]),
    "a thought alone": (THOUGHT, [("reasoning", "Hm.")]),
    "a thought and text": (SPOKEN, [("reasoning", "Hm."), ("message", "\nYes.")]),
    "a thought without an end": (said("<think>Hm."), [("message", "<think>Hm.")]),
    "a thought and a call": (
        THOUGHT | {"tool_calls": [call("{}")]},
        [("reasoning", "Hm."), ("function_call", "{}")],
    ),
    "reasoning of its own": (
        said("Yes.") | {"reasoning_content": "Hm."},
        [("reasoning", "Hm."), ("message", "Yes.")],
    ),
    "text and two calls": (
        said("Yes.", call("{}"), call('{ "a":1}', call_id="c2")),
        [("message", "Yes."), ("function_call", "{}"), ("function_call", '{ "a":1}')],
    ),
}


def told(item: JSON) -> str:
    if item["type"] == "reasoning":
        return str(item["summary"][0]["text"])
    return str(item["arguments"] if item["type"] == "function_call" else item["content"][0]["text"])


@pytest.mark.parametrize("name", CASES)
def test_the_last_item_of_a_turn_carries_the_triple(name: str) -> None:
    turn, expected = CASES[name]
    [one] = rebuilt(record(0, [system(), user("Hi."), turn], [1, 2], [3])).trajectories
    own = one.items[2:]
    assert [(item["type"], told(item)) for item in own] == expected
    assert ["generation_token_ids" in item for item in own] == [False] * (len(own) - 1) + [True]
    triple = own[-1]["prompt_token_ids"], own[-1]["generation_token_ids"], own[-1]["generation_log_probs"]
    assert triple == ([1, 2], [3], [-0.5])


def test_reasoning_the_proxy_kept_apart_is_an_item() -> None:
    kept = record(0, [system(), user("Hi."), said("Yes.")], [1], [2], x_trackgauge={"reasoning": "Hm."})
    [one] = rebuilt(kept).trajectories
    assert [item["type"] for item in one.items[2:]] == ["reasoning", "message"]


def test_tools_become_function_tools() -> None:
    bare = {"id": "think", "description": "", "inputSchema": None}
    [one] = rebuilt(record(0, [user("Hi."), said("Yes.")], [1], [2], tools=[BASH, bare])).trajectories
    assert one.tools == [
        {
            "type": "function",
            "name": "bash",
            "description": "Runs a command.",
            "parameters": {"type": "object"},
            "strict": None,
        },
        {"type": "function", "name": "think", "description": None, "parameters": None, "strict": None},
    ]


def test_an_image_keeps_its_place_in_the_input() -> None:
    picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}}
    asked = {"role": "user", "content": [{"type": "text", "text": "See."}, picture]}
    [one] = rebuilt(record(0, [asked, said("A cat.")], [1], [2])).trajectories
    shown = {"type": "input_image", "image_url": "data:image/png;base64,AA==", "detail": "auto"}
    assert one.items[0]["content"] == [{"type": "input_text", "text": "See."}, shown]
