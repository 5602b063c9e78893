"""What the Responses items of a generated turn look like, and which of them carries the triple."""

import pytest

from tests.reference.rebuild.making import BASH, JSON, answer, call, envelope, rebuilt, record, said, system, user

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


def test_a_branch_shows_its_shared_turns_as_the_model_said_them() -> None:
    asked = [system(), user("Look.")]
    turn = said("I look.", call('{"a": 1.0}'))
    echo = said("I look.", call('{"a":1}'))
    history = [*asked, echo, {"role": "tool", "tool_call_id": "c1", "content": "a"}]
    first = record(0, [*asked, turn], [1, 2], [10])
    sides = [record(n, [*history, user(f"{n}?"), said(f"{n}!")], [1, 2, 10, 3, n], [10 + n]) for n in (1, 2)]
    ends = [
        record(n + 2, [*one["messages"], user("Go on."), said("So.")], [1, 2, 10, 3, n, 10 + n, 4], [20 + n])
        for n, one in enumerate(sides, start=1)
    ]
    found = answer({"envelope": envelope(first, *sides, *ends)}, split=["branches"])
    told_as = [
        [item["arguments"] for item in one.items if item["type"] == "function_call"] for one in found.trajectories
    ]
    assert told_as == [['{"a": 1.0}'], ['{"a": 1.0}']]


def test_a_picture_in_a_result_is_told_as_the_responses_api_has_it() -> None:
    picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}}
    seen = {"role": "tool", "tool_call_id": "c1", "content": [{"type": "text", "text": "Seen:"}, picture]}
    turn = said("I look.", call("{}"))
    [one] = rebuilt(record(0, [system(), user("Hi."), turn, seen, said("Yes.")], [1, 2], [3])).trajectories
    [output] = [item["output"] for item in one.items if item["type"] == "function_call_output"]
    assert [part["type"] for part in output] == ["input_text", "input_image"]
