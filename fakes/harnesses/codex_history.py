"""The history of one Codex thread, what every thread begins with, and what a compaction leaves of it."""

from collections.abc import Mapping

from fakes.harnesses.codex_ids import base_instructions_id, new_item_id
from fakes.harnesses.codex_stream import Item, text_of_message

BASE = "You are a coding agent that runs in a terminal."
SKILLS = "<skills_instructions>None.</skills_instructions>"
PERMISSIONS = "<permissions instructions>Everything is permitted.</permissions instructions>"
ENVIRONMENT = "<environment_context><cwd>project</cwd><shell>bash</shell></environment_context>"
COMPACTION_PROMPT = "Write a handoff summary of the work so far for whoever resumes it."
SUMMARY_PREFIX = "Whoever worked on this before you left this summary; build on it:\n"
NOTIFICATION = "<subagent_notification>"


def user(text: str) -> Item:
    return _message("user", text)


class History:
    """The items after the base instructions; ``written`` is what goes into a request."""

    def __init__(self, thread: str) -> None:
        self._base: Item = {**_message("developer", BASE), "id": base_instructions_id(thread)}
        self.items: list[Item] = [*_context()]

    def written(self, *more: Item) -> list[Item]:
        return [self._base, *self.items, *more]

    def for_compaction(self) -> list[Item]:
        """The whole history and the wish for a summary, which bears no id."""
        return self.written({"type": "message", "role": "user", "content": _content(COMPACTION_PROMPT)})

    def drop_oldest(self) -> bool:
        """Forget the oldest item, an output together with its call. False when nothing is left."""
        if not self.items:
            return False
        oldest = self.items.pop(0)
        if oldest["type"] == "function_call":
            self.items = [item for item in self.items if item.get("call_id") != oldest["call_id"]]
        return True

    def compact(self, summary: str) -> None:
        """Keep what the user said, in his words, and the summary; the context is told anew."""
        said = [item for item in self.items if _is_said(item)]
        self.items = [*_context(), *said, user(SUMMARY_PREFIX + summary)]


def output(call: Item, text: str) -> Item:
    """The output of a call as the next request tells it."""
    return {
        "type": "function_call_output",
        "id": new_item_id("function_call_output"),
        "call_id": call["call_id"],
        "output": text,
    }


def last_text(items: list[Item]) -> str | None:
    """The text of the last assistant message; None when there is none."""
    said = [item for item in items if item["type"] == "message" and item["role"] == "assistant"]
    return text_of_message(said[-1]) if said else None


def _is_said(item: Mapping[str, object]) -> bool:
    if item["type"] != "message" or item["role"] != "user":
        return False
    text = text_of_message(dict(item))
    return not text.startswith((ENVIRONMENT[:21], NOTIFICATION, SUMMARY_PREFIX))


def _context() -> list[Item]:
    return [_message("developer", SKILLS, PERMISSIONS), _message("user", ENVIRONMENT)]


def _message(role: str, *texts: str) -> Item:
    return {"type": "message", "id": new_item_id("message"), "role": role, "content": _content(*texts)}


def _content(*texts: str) -> list[Item]:
    return [{"type": "input_text", "text": text} for text in texts]
