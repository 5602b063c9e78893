"""An answer told while the engine streams it: items grow with the chunks."""

from collections.abc import Iterator

from conformance.reference.capture.dialects.responses.answer import (
    Items,
    ending,
    mark_cut,
    reasoning_of,
    refusal_part,
    text_part,
    usage,
)
from conformance.reference.capture.dialects.responses.stream import KINDS, parts_of
from conformance.reference.capture.dialects.responses.telling import Telling
from conformance.reference.capture.errors import engine_garbage
from conformance.reference.capture.jsontext import JSON, JSONObject


class ResponsesRelay:
    """Reasoning and text are items that end when another begins; calls may grow side by side and end together."""

    def __init__(self, telling: Telling) -> None:
        self._telling = telling
        self._events = telling.events
        self._items: Items | None = None
        self._output: list[JSONObject] = []
        self._growing: int | None = None
        self._calls: dict[JSON, int] = {}
        self._finish: JSON = None
        self._usage: JSON = None

    def chunk(self, chunk: JSONObject) -> bytes:
        """The events for one chat chunk; raises Refusal for one that is none."""
        opening = b"" if self._events.begun else self._telling.opening(chunk.get("id"))
        self._usage = chunk.get("usage") or self._usage
        choices = chunk.get("choices") or []
        if not isinstance(choices, list) or not all(isinstance(choice, dict) for choice in choices):
            raise engine_garbage("a chunk whose choices are no list of objects")
        told = [frame for choice in choices if not choice.get("index") for frame in self._choice(choice)]
        return opening + b"".join(told)

    def end(self) -> bytes:
        """The end of what is still open, and the terminal event: without a finish, that of a failed response."""
        end = ending(self._finish)
        if not self._output:
            self._output.append(self._make().message(text_part("")))
            mark_cut(self._output, end)
            frames = list(self._events.whole_item(0, self._output[0]))
        else:
            mark_cut(self._output, end)
            frames = [*self._end_growing(), *self._end_calls()]
        return b"".join(frames) + self._telling.terminal(end, self._output, usage(self._usage))

    def _make(self) -> Items:
        self._items = self._items or self._telling.items()
        return self._items

    def _choice(self, choice: JSONObject) -> Iterator[bytes]:
        delta = choice.get("delta")
        if isinstance(delta, dict):
            yield from self._grow_text("summary_text", reasoning_of(delta))
            yield from self._grow_text("output_text", delta.get("content"))
            yield from self._grow_text("refusal", delta.get("refusal"))
            for call in delta.get("tool_calls") or []:
                yield from self._grow_call(call)
        if choice.get("finish_reason") is not None:
            self._finish = choice["finish_reason"]

    def _grow_text(self, kind: str, more: JSON) -> Iterator[bytes]:
        if not isinstance(more, str) or not more:
            return
        if self._growing is None or parts_of(self._output[self._growing])[0]["type"] != kind:
            yield from self._end_growing()
            yield from self._begin_text(kind)
        assert self._growing is not None
        item = self._output[self._growing]
        parts_of(item)[0][KINDS[kind].key] += more
        yield self._events.part_grows(self._growing, item, 0, more)

    def _begin_text(self, kind: str) -> Iterator[bytes]:
        make = self._make()
        if kind == "summary_text":
            item = make.reasoning("")
        else:
            item = make.message(text_part("") if kind == "output_text" else refusal_part(""))
        self._growing = len(self._output)
        self._output.append(item)
        yield self._events.item_begins(self._growing, item)
        yield self._events.part_begins(self._growing, item, 0)

    def _end_growing(self) -> Iterator[bytes]:
        if self._growing is not None:
            item = self._output[self._growing]
            yield self._events.part_ends(self._growing, item, 0)
            yield self._events.item_ends(self._growing, item)
        self._growing = None

    def _grow_call(self, call: JSON) -> Iterator[bytes]:
        function = call.get("function") if isinstance(call, dict) else None
        if not isinstance(function, dict):
            raise engine_garbage("a tool call without a function")
        yield from self._end_growing()
        number = call.get("index")
        if number not in self._calls:
            self._calls[number] = len(self._output)
            self._output.append(self._make().call(call.get("id"), {**function, "arguments": ""}))
            yield self._events.item_begins(self._calls[number], self._output[-1])
        more = function.get("arguments")
        if isinstance(more, str) and more:
            index = self._calls[number]
            self._output[index]["arguments"] += more
            yield self._events.arguments_grow(index, self._output[index], more)

    def _end_calls(self) -> Iterator[bytes]:
        for index in self._calls.values():
            yield self._events.item_ends(index, self._output[index])
