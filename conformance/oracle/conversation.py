"""Do a trajectory's items tell the conversation that took place, and carry its tokens where a trainer looks?"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any

from conformance.contract.difference import list_difference, tree_difference
from conformance.oracle.judgement import Judgement
from conformance.oracle.rollouts import Answer, Trajectory
from conformance.oracle.triples import TRIPLE, triples

JSON = Any
Item = dict[str, JSON]
Message = Mapping[str, JSON]


def spoken(messages: Iterable[Message]) -> list[list[JSON]]:
    """A chat conversation as what is said in it: messages, calls and results, in order. Reasoning is left out."""
    said: list[list[JSON]] = []
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


def told(trajectory: Trajectory) -> list[list[JSON]]:
    """What a trajectory's items say, in the same form."""
    return [said for item in trajectory["items"] for said in _said_by(item)]


def _said_by(item: Item) -> list[list[JSON]]:
    kind = kind_of(item)
    if kind == "function_call":
        return [["call", item.get("call_id"), item.get("name"), item.get("arguments")]]
    if kind == "function_call_output":
        return [["result", item.get("call_id"), text_of(item.get("output"))]]
    text = text_of(item.get("content"))
    return [["message", item.get("role"), text]] if kind == "message" and text else []


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


def triple_ends_each_turn(trajectory: Trajectory, answers: Iterable[Message]) -> Judgement:
    """One item for each of these answers carries a triple: the one that says its last, where it says anything.

    For items that hold the answers alone, between which nothing tells where a turn ends.
    """
    due = [spoken([message])[-1:] for message in answers]
    carrying = [item for item in trajectory["items"] if any(key in item for key in TRIPLE)]
    seen = [_said_by(item)[-1:] for item in carrying]
    whole = all(set(TRIPLE) <= set(item) for item in carrying)
    return Judgement(whole and seen == due, due, seen, f"items of {trajectory['record_uuids']}")


def triples_only_on(answer: Answer, sampled: Iterable[Message]) -> Judgement:
    """In each trajectory, what the policy says in an item with a triple is said in one of the sampled messages."""
    due = spoken(sampled)
    for trajectory in answer["trajectories"]:
        for item in trajectory["items"]:
            strange = [said for said in _said_by(item) if said not in due]
            if strange and any(item.get(key) is not None for key in TRIPLE):
                return Judgement(False, "no triple on what was not sampled", strange, str(trajectory["record_uuids"]))
    return Judgement(True, "no triple on what was not sampled", "none")


def items_continue(trajectory: Trajectory) -> Judgement:
    """The prompt ids on each item that carries a triple begin with all ids of the one before it."""
    known: list[int] = []
    for place, triple in enumerate(triples(trajectory)):
        prompt = triple["prompt_token_ids"]
        difference = list_difference(known, prompt[: len(known)])
        if difference is not None:
            return Judgement(False, *difference.shown(), f"turn {place} of {trajectory['record_uuids']}")
        known = [*prompt, *triple["generation_token_ids"]]
    return Judgement(True, "each begins with what came before", "each begins with what came before")


def tool_names(trajectory: Trajectory) -> list[JSON]:
    """The names of its tools, in the form of the Responses API or of chat."""
    return [tool.get("name") or tool.get("function", {}).get("name") for tool in trajectory["tools"]]


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
