"""The ids of Codex: time-ordered UUIDs, with the kind of item in front, and what becomes of the server's own."""

import time
import uuid

_PREFIXES = {"message": "msg", "reasoning": "rs", "function_call": "fc", "function_call_output": "fco"}


def new_thread_id() -> str:
    """A UUID of version 7: milliseconds, then chance, so that two scenarios in one proxy never meet."""
    stamp = int(time.time() * 1000) << 80
    chance = uuid.uuid4().int & ((1 << 80) - 1)
    version_and_variant = (0x7 << 76) | (0x2 << 62)
    kept = ~((0xF << 76) | (0x3 << 62))
    return str(uuid.UUID(int=(stamp | chance) & kept | version_and_variant))


def new_item_id(kind: str) -> str:
    return f"{_PREFIXES[kind]}_{new_thread_id()}"


def base_instructions_id(thread: str) -> str:
    """The id of a thread's first message; it stays the same when the history is written anew."""
    return f"msg_{uuid.uuid5(uuid.NAMESPACE_OID, thread)}"


def kept_id(kind: str, given: object) -> str | None:
    """What the history calls an item: the server's id if that has two parts around ``_``, a new one if there is none.

    An id of one part alone, as ``chatcmpl-1``, is dropped and nothing put in its place.
    """
    if not isinstance(given, str) or not given:
        return new_item_id(kind)
    prefix, _, rest = given.partition("_")
    return given if prefix and rest else None
