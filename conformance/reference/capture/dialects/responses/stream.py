"""The events of one response, in order and counted."""

from collections.abc import Iterator
from dataclasses import dataclass

from conformance.reference.capture import jsontext
from conformance.reference.capture.jsontext import JSON, JSONObject


@dataclass(frozen=True)
class _Kind:
    """How one type of part is told: the names of its events, of its place in the item, and of its text."""

    part: str
    text: str
    number: str
    key: str
    extra: JSONObject


KINDS = {
    "output_text": _Kind("content_part", "output_text", "content_index", "text", {"logprobs": []}),
    "refusal": _Kind("content_part", "refusal", "content_index", "refusal", {}),
    "summary_text": _Kind("reasoning_summary_part", "reasoning_summary_text", "summary_index", "text", {}),
}


class Events:
    """Writes the events of one stream. Every event has the next sequence number."""

    def __init__(self) -> None:
        self._next = 0

    @property
    def begun(self) -> bool:
        """Whether anything was written."""
        return self._next > 0

    def event(self, kind: str, **fields: JSON) -> bytes:
        """One event."""
        data = jsontext.write({"type": kind, "sequence_number": self._next, **fields})
        self._next += 1
        return b"event: " + kind.encode() + b"\ndata: " + data + b"\n\n"

    def opening(self, response: JSONObject) -> bytes:
        """The first two events."""
        return self.event("response.created", response=response) + self.progress(response)

    def progress(self, response: JSONObject) -> bytes:
        """A sign of life: an event and no comment, because Codex takes a stream that only comments for dead."""
        return self.event("response.in_progress", response=response)

    def whole_item(self, index: int, item: JSONObject) -> Iterator[bytes]:
        """All events of one item that is known to its end."""
        yield self.item_begins(index, item)
        if item["type"] == "function_call":
            if item["arguments"]:
                yield self.arguments_grow(index, item, item["arguments"])
        else:
            for number, part in enumerate(parts_of(item)):
                yield self.part_begins(index, item, number)
                text = part[KINDS[part["type"]].key]
                if text:
                    yield self.part_grows(index, item, number, text)
                yield self.part_ends(index, item, number)
        yield self.item_ends(index, item)

    def item_begins(self, index: int, item: JSONObject) -> bytes:
        """An item is told of before anything is in it, whatever ``item`` holds already."""
        empty: JSONObject = {"arguments": "", "summary": [], "content": []}
        hollow = {key: value for key, value in empty.items() if key in item}
        item = {**item, **hollow, "status": "in_progress"}
        return self.event("response.output_item.added", output_index=index, item=item)

    def arguments_grow(self, index: int, item: JSONObject, more: str) -> bytes:
        """More arguments of a call."""
        return self.event("response.function_call_arguments.delta", **_place(index, item), delta=more)

    def part_begins(self, index: int, item: JSONObject, number: int) -> bytes:
        """A part is told of before its text."""
        part = parts_of(item)[number]
        kind = KINDS[part["type"]]
        place = {**_place(index, item), kind.number: number}
        return self.event(f"response.{kind.part}.added", **place, part={**part, kind.key: ""})

    def part_grows(self, index: int, item: JSONObject, number: int, more: str) -> bytes:
        """More text of a part."""
        kind = KINDS[parts_of(item)[number]["type"]]
        place = {**_place(index, item), kind.number: number}
        return self.event(f"response.{kind.text}.delta", **place, delta=more, **kind.extra)

    def part_ends(self, index: int, item: JSONObject, number: int) -> bytes:
        """A part is complete."""
        part = parts_of(item)[number]
        kind = KINDS[part["type"]]
        place = {**_place(index, item), kind.number: number}
        text = self.event(f"response.{kind.text}.done", **place, **{kind.key: part[kind.key]}, **kind.extra)
        return text + self.event(f"response.{kind.part}.done", **place, part=part)

    def item_ends(self, index: int, item: JSONObject) -> bytes:
        """An item is complete, or will get no more."""
        arguments = b""
        if item["type"] == "function_call":
            kind = "response.function_call_arguments.done"
            arguments = self.event(kind, **_place(index, item), arguments=item["arguments"])
        return arguments + self.event("response.output_item.done", output_index=index, item=item)


def parts_of(item: JSONObject) -> list[JSONObject]:
    """The parts of a reasoning item or a message."""
    parts: list[JSONObject] = item["summary" if item["type"] == "reasoning" else "content"]
    return parts


def _place(index: int, item: JSONObject) -> JSONObject:
    return {"item_id": item["id"], "output_index": index}
