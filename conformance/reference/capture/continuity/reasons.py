"""Why a call was not injected: the closed set of reasons that records and counters tell."""

from enum import StrEnum


class Plain(StrEnum):
    """There was nothing to continue."""

    FIRST_CALL = "first_call"
    HISTORY_UNKNOWN = "history_unknown"
    """It holds a turn that no chain ends with: an edit, a compaction, an answer of which no record is known."""
    NOTHING_ADDED = "nothing_added"
    RENDERING_CHANGED = "rendering_changed"
    """Tools or template settings are not those that the chain's prompt was rendered with."""


class Fallback(StrEnum):
    """A chain was found, and could not be continued with certainty."""

    NOT_TEXT = "not_text"
    FORCED_TOOL = "forced_tool"
    CHAT_ONLY_KEY = "chat_only_key"
    """The request has a key that only a chat call means."""
    RENDER_FAILED = "render_failed"
    BORDER_UNKNOWN = "border_unknown"
    """The tokens of the new messages could not be told apart from those before them."""
    PARSERS_DIFFER = "parsers_differ"
    """The engine reads its chat answers in another way than the route says."""
    NO_ROOM = "no_room"
    PREFIX_NOT_KEPT = "prefix_not_kept"
    ENGINE_REFUSED = "engine_refused"
    PROMPT_DIFFERS = "prompt_differs"
    """The engine reported another prompt than it was given."""


Reason = Plain | Fallback
