"""The items of a streamed response of the Responses dialect, rule by rule: their life cycle, ids and pieces.

Every rule stands alone, so that one fault of a stream is one finding. None raises, whatever a body holds.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from conformance.contract.difference import tree_difference
from conformance.oracle.chat_answers import Object
from conformance.oracle.judgement import Judgement
from conformance.oracle.named_events import inner, kind_of, objects_in, of_kind, text_in, told

WHERE = "responses stream"
ADDED, DONE = "response.output_item.added", "response.output_item.done"
PART_ADDED, PART_DONE = "response.content_part.added", "response.content_part.done"
TEXTS = {
    "response.output_text": ("content_index", "text"),
    "response.refusal": ("content_index", "refusal"),
    "response.reasoning_text": ("content_index", "text"),
    "response.reasoning_summary_text": ("summary_index", "text"),
    "response.function_call_arguments": (None, "arguments"),
    "response.custom_tool_call_input": (None, "input"),
}
"""What comes in deltas: the key that tells pieces of one item apart, and the key of the whole in its ``.done``."""
_OF_ITEM = {
    "response.output_text": "message",
    "response.refusal": "message",
    "response.reasoning_text": "reasoning",
    "response.reasoning_summary_text": "reasoning",
    "response.function_call_arguments": "function_call",
    "response.custom_tool_call_input": "custom_tool_call",
}
_Key = tuple[str, str | None]
"""What a text belongs to: the name of its events, and which of its item's texts it is."""


@dataclass(slots=True)
class Item:
    """One output item as its events tell it, from ``added`` to ``done``; ``inside`` are the events between."""

    index: int
    added: Object
    inside: list[Object] = field(default_factory=list)
    done: list[Object] = field(default_factory=list)
    late: list[Object] = field(default_factory=list)

    @property
    def kind(self) -> str:
        return kind_of(inner(self.added, "item"))

    @property
    def id(self) -> str:
        return text_in(inner(self.added, "item"), "id")

    @property
    def whole(self) -> Object:
        """The item as it was told when done; empty before that."""
        return inner(self.done[-1], "item") if self.done else {}


def items_in(body: str) -> tuple[list[Item], Object | None]:
    """The items in order of their opening, and the first event that belongs to none of them."""
    items: list[Item] = []
    latest: dict[str, Item] = {}
    stray: Object | None = None
    for one in told(body)[1]:
        if "output_index" not in one and kind_of(one) not in (ADDED, DONE):
            continue
        index = str(one.get("output_index"))
        if kind_of(one) == ADDED:
            items.append(Item(len(items), one))
            latest[index] = items[-1]
        elif index not in latest:
            stray = stray or one
        elif kind_of(one) == DONE:
            latest[index].done.append(one)
        else:
            (latest[index].late if latest[index].done else latest[index].inside).append(one)
    return items, stray


def items_in_turn(body: str) -> Judgement:
    """Items are numbered from 0 as they open, each is done once, and no event of one stands outside."""
    items, stray = items_in(body)
    for item in items:
        index = item.added.get("output_index")
        if type(index) is not int or index != item.index:
            return Judgement(False, f"output_index {item.index}", index, of(item))
        if len(item.done) != 1:
            return Judgement(False, "one output_item.done", len(item.done), of(item))
        if item.late:
            return Judgement(False, "nothing behind output_item.done", kind_of(item.late[0]), of(item))
    if stray is not None:
        return Judgement(False, "an item that is open", f"{kind_of(stray)} of {stray.get('output_index')}", WHERE)
    return Judgement(True, "every item opened and done once", f"{len(items)} items", WHERE)


def ids_stable(body: str) -> Judgement:
    """Every event of an item bears the id and kind it opened with; ids and call ids are never used twice."""
    seen: set[str] = set()
    for item in items_in(body)[0]:
        opened = inner(item.added, "item")
        ids = [("id", item.id), *([("call_id", text_in(opened, "call_id"))] if "call" in item.kind else [])]
        for key, value in ids:
            if not value or f"{key} {value}" in seen:
                return Judgement(False, f"an {key} of its own", opened.get(key), of(item))
            seen.add(f"{key} {value}")
        for one in item.inside:
            if one.get("item_id") != item.id:
                return Judgement(False, f"item_id {item.id}", [kind_of(one), one.get("item_id")], of(item))
        for key in ("type", "id", "call_id", "name", "role"):
            if item.done and item.whole.get(key) != opened.get(key):
                return Judgement(False, f"{key} {opened.get(key)}", item.whole.get(key), of(item))
    return Judgement(True, "ids that stay", "ids that stay", WHERE)


def items_open_empty(body: str) -> Judgement:
    """An item opens in progress and without content: clients append to what it holds."""
    for item in items_in(body)[0]:
        opened = inner(item.added, "item")
        filled = {key: opened[key] for key in ("content", "arguments", "input", "summary") if opened.get(key)}
        if filled:
            return Judgement(False, "an item without content", filled, of(item))
        if opened.get("status") not in (None, "in_progress"):
            return Judgement(False, "status in_progress", opened.get("status"), of(item))
    return Judgement(True, "items that open empty", "items that open empty", WHERE)


def parts_in_turn(body: str) -> Judgement:
    """The parts of a message are numbered from 0, each opened and done once, with its text in between.

    Reasoning may come without parts around it; where it has them they hold to the same.
    """
    for item in items_in(body)[0]:
        opened, open_part = 0, None
        for one in item.inside:
            kind, index = kind_of(one), one.get("content_index")
            if kind == PART_ADDED:
                if open_part is not None or index != opened or type(index) is not int:
                    return Judgement(False, f"part {opened} behind closed ones", [kind, index], of(item))
                opened, open_part = opened + 1, index
            elif kind == PART_DONE:
                if open_part is None or index != open_part:
                    return Judgement(False, f"the end of part {open_part}", [kind, index], of(item))
                open_part = None
            elif item.kind == "message" and index != open_part:
                return Judgement(False, f"pieces of part {open_part}", [kind, index], of(item))
        if open_part is not None:
            return Judgement(False, "every part done", f"part {open_part} open", of(item))
        if item.kind == "message" and opened != len(objects_in(item.whole, "content")):
            return Judgement(False, f"{len(objects_in(item.whole, 'content'))} parts", opened, of(item))
    return Judgement(True, "parts in turn", "parts in turn", WHERE)


def pieces_fit(body: str) -> Judgement:
    """Texts and arguments stand in items of their kind; each text has deltas that are texts, then its one ``.done``."""
    for item in items_in(body)[0]:
        finished: set[_Key] = set()
        for key, end, one in _pieces(item):
            name = key[0]
            if _OF_ITEM[name] != item.kind or key in finished:
                return Judgement(False, f"pieces of a {item.kind} not yet done", kind_of(one), of(item))
            if end == "delta" and not isinstance(one.get("delta"), str):
                return Judgement(False, "a text under delta", one.get("delta"), of(item))
            finished |= {key} if end == "done" else set()
        unfinished = [key[0] for key, _, _ in _pieces(item) if key not in finished]
        if unfinished:
            return Judgement(False, "a .done for each text", unfinished[:1], of(item))
    return Judgement(True, "pieces that fit", "pieces that fit", WHERE)


def pieces_make_the_whole(body: str) -> Judgement:
    """The deltas of a text or of arguments, their ``.done`` and the item when done all say the same."""
    for item in items_in(body)[0]:
        pieces: dict[_Key, str] = {}
        finished: dict[_Key, Any] = {}
        for key, end, one in _pieces(item):
            if end == "done":
                finished[key] = one.get(TEXTS[key[0]][1])
            else:
                pieces[key] = pieces.get(key, "") + text_in(one, "delta")
        wholes = _texts_of(item.whole) if item.done else finished
        for key in {**wholes, **finished, **pieces}:
            seen = {"deltas": pieces.get(key, ""), "done": finished.get(key, "")}
            whole = wholes.get(key) or ""
            if not all(isinstance(text, str) and text == whole for text in seen.values()):
                return Judgement(False, dict.fromkeys(seen, whole), seen, f"{of(item)}, {key[0]}")
    return Judgement(True, "pieces that make the whole", "pieces that make the whole", WHERE)


def parts_repeat_the_item(body: str) -> Judgement:
    """Parts say when done what the item says when done."""
    for item in items_in(body)[0]:
        parts = [_said(inner(one, "part")) for one in of_kind(item.inside, PART_DONE)]
        wanted = [_said(part) for part in objects_in(item.whole, "content")]
        if parts and item.done and parts != wanted:
            return Judgement(False, wanted, parts, of(item))
    return Judgement(True, "parts as in their items", "parts as in their items", WHERE)


def end_holds_items(body: str, end: Object) -> Judgement:
    """The response that ends the stream holds the very items that were done, in order."""
    whole = [item.whole for item in items_in(body)[0]]
    difference = tree_difference(whole, inner(end, "response").get("output"))
    if difference is not None:
        return Judgement(False, *difference.shown(), f"{WHERE}, last event")
    return Judgement(True, "the items that were done", f"{len(whole)} items", WHERE)


def of(item: Item) -> str:
    return f"{WHERE}, item {item.index}"


def _pieces(item: Item) -> Iterator[tuple[_Key, str, Object]]:
    """The events that tell texts, each with what it is a piece of and whether it is a delta or done."""
    for one in item.inside:
        name, _, end = kind_of(one).rpartition(".")
        if name in TEXTS:
            index_key = TEXTS[name][0]
            yield (name, str(one.get(index_key)) if index_key else None), end, one


def _texts_of(item: Object) -> dict[_Key, Any]:
    """What an item says, by the events that tell it."""
    found: dict[_Key, Any] = {}
    kind = kind_of(item)
    for index, part in enumerate(objects_in(item, "content")):
        name = {"output_text": "output_text", "refusal": "refusal"}.get(kind_of(part), "reasoning_text")
        found[f"response.{name}", str(index)] = part.get("refusal" if name == "refusal" else "text")
    for index, part in enumerate(objects_in(item, "summary")):
        found["response.reasoning_summary_text", str(index)] = part.get("text")
    if kind == "function_call":
        found["response.function_call_arguments", None] = item.get("arguments")
    if kind == "custom_tool_call":
        found["response.custom_tool_call_input", None] = item.get("input")
    return found


def _said(part: Object) -> tuple[str, Any]:
    return kind_of(part), part.get("text", part.get("refusal"))
