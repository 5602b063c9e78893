"""A response of the Responses dialect as a client reads it: put together from a stream, or buffered.

Nothing here raises, whatever a body holds.
"""

from dataclasses import dataclass, field

from conformance.oracle.chat_answers import Object
from conformance.oracle.named_events import inner, kind_of, objects_in, of_kind, text_in, told

ENDS = ("response.completed", "response.incomplete", "response.failed")
"""The events that end a response; each holds it whole."""


@dataclass(slots=True)
class ResponsesAnswer:
    """``items`` as they were told when done, or whole in the last event where none was told by itself."""

    id: str | None = None
    model: str | None = None
    status: str | None = None
    items: list[Object] = field(default_factory=list)
    incomplete_reason: str | None = None
    usage: Object | None = None

    @property
    def text(self) -> str:
        parts = (part for item in of_kind(self.items, "message") for part in objects_in(item, "content"))
        return "".join(text_in(part, "text") for part in of_kind(parts, "output_text"))

    @property
    def reasoning(self) -> str:
        """The raw reasoning, or its summary where only that was given."""
        found = ""
        for item in of_kind(self.items, "reasoning"):
            parts = objects_in(item, "content") or objects_in(item, "summary")
            found += "".join(text_in(part, "text") for part in parts)
        return found

    @property
    def tool_calls(self) -> list[Object]:
        """The function calls in the form of chat calls."""
        return [
            {
                "id": one.get("call_id"),
                "type": "function",
                "function": {"name": one.get("name"), "arguments": one.get("arguments")},
            }
            for one in of_kind(self.items, "function_call")
        ]


def reassemble(body: str) -> ResponsesAnswer:
    """What a client that reads items one by one makes of a stream: the items that were done, and how it ended."""
    objects = told(body)[1]
    answer = ResponsesAnswer()
    for one in of_kind(objects, "response.created", *ENDS):
        answer = buffered(inner(one, "response"))
    done = [inner(one, "item") for one in of_kind(objects, "response.output_item.done")]
    answer.items = done or answer.items
    return answer


def from_deltas(body: str) -> ResponsesAnswer:
    """What a client that follows the deltas alone makes of a stream: text, reasoning and arguments piece by piece."""
    items: dict[str, Object] = {}
    for one in told(body)[1]:
        key, kind = str(one.get("output_index")), kind_of(one)
        if kind == "response.output_item.added":
            items[key] = {**inner(one, "item"), "content": [], "arguments": ""}
        elif key not in items or not kind.endswith(".delta"):
            continue
        elif kind == "response.function_call_arguments.delta":
            items[key]["arguments"] += text_in(one, "delta")
        elif kind == "response.output_text.delta":
            items[key]["content"].append({"type": "output_text", "text": text_in(one, "delta")})
        elif kind in ("response.reasoning_text.delta", "response.reasoning_summary_text.delta"):
            items[key]["content"].append({"type": "reasoning_text", "text": text_in(one, "delta")})
    return ResponsesAnswer(items=list(items.values()))


def buffered(body: Object) -> ResponsesAnswer:
    """The same of a buffered response; an empty answer for a body that holds none."""
    return ResponsesAnswer(
        id=body.get("id"),
        model=body.get("model"),
        status=body.get("status"),
        items=objects_in(body, "output"),
        incomplete_reason=inner(body, "incomplete_details").get("reason"),
        usage=inner(body, "usage") or None,
    )
