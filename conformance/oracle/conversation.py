"""Do a trajectory's items tell the conversation that took place, and carry its tokens where a trainer looks?"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any

from conformance.contract.difference import tree_difference
from conformance.oracle.judgement import Judgement
from conformance.oracle.rollouts import Trajectory
from conformance.oracle.triples import TRIPLE, triples

JSON = Any
Item = dict[str, JSON]
Message = Mapping[str, JSON]


def spoken(messages: Iterable[Message]) -> list[list[str]]:
    """A chat conversation as what is said in it: messages, calls and results, in order. Reasoning is left out."""
    said: list[list[str]] = []
    for message in messages:
        text = text_of(message.get("content"))
        if message["role"] == "tool":
            said.append(["result", message["tool_call_id"], text])
            continue
        if text:
            said.append(["message", message["role"], text])
        calls = message.get("tool_calls") or []
        said += [["call", call["id"], call["function"]["name"], call["function"]["arguments"]] for call in calls]
    return said


def told(trajectory: Trajectory) -> list[list[str]]:
    """What a trajectory's items say, in the same form."""
    said: list[list[str]] = []
    for item in trajectory["items"]:
        kind = kind_of(item)
        if kind == "function_call":
            said.append(["call", item.get("call_id"), item.get("name"), item.get("arguments")])
        elif kind == "function_call_output":
            said.append(["result", item.get("call_id"), text_of(item.get("output"))])
        elif kind == "message" and text_of(item.get("content")):
            said.append(["message", item.get("role"), text_of(item.get("content"))])
    return said


def same_conversation(trajectory: Trajectory, messages: Iterable[Message]) -> Judgement:
    """Its items are these messages in order, each once."""
    due, seen = spoken(messages), told(trajectory)
    difference = tree_difference(due, seen)
    where = f"items of {trajectory['record_uuids']}"
    return Judgement(difference is None, due, seen, where if difference is None else f"{where}: {difference}")


def triple_on_last_items(trajectory: Trajectory) -> Judgement:
    """Each run of the policy's items carries a triple on its last item, and no other item has one of its keys."""
    seen: list[list[str]] = []
    due: list[list[str]] = []
    for own, run in groupby(trajectory["items"], key=is_the_policys):
        carried = [sorted(key for key in TRIPLE if key in item) for item in run]
        seen += carried
        due += [[] for _ in carried]
        if own:
            due[-1] = sorted(TRIPLE)
    return Judgement(seen == due, due, seen, f"items of {trajectory['record_uuids']}")


def items_continue(trajectory: Trajectory) -> Judgement:
    """The prompt ids on each item that carries a triple begin with all ids of the one before it."""
    before: list[int] = []
    for place, triple in enumerate(triples(trajectory)):
        prompt = triple["prompt_token_ids"]
        if prompt[: len(before)] != before:
            where = f"turn {place} of {trajectory['record_uuids']}"
            return Judgement(False, "a prompt that begins with what came before", prompt[: len(before)], where)
        before = [*prompt, *triple["generation_token_ids"]]
    return Judgement(True, "each begins with what came before", "each begins with what came before")


def is_the_policys(item: Item) -> bool:
    """Whether an item is of an assistant turn, sampled or not."""
    return kind_of(item) in ("reasoning", "function_call") or item.get("role") == "assistant"


def kind_of(item: Item) -> str:
    """Responses API: an item with a role and no type is a message."""
    return str(item.get("type") or "message")


def text_of(content: JSON) -> str:
    """The text of a string or of a list of parts, whatever the parts are called."""
    if isinstance(content, Sequence) and not isinstance(content, str):
        return "".join(part.get("text") or "" for part in content if isinstance(part, Mapping))
    return content or ""
