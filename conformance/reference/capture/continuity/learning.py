"""A record as a turn of a chain: the same for one that was just made and for one that is read again from the disk."""

from array import array
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from conformance.reference.capture.continuity.chains import Spoken
from conformance.reference.capture.continuity.reasons import Fallback
from conformance.reference.capture.continuity.sameness import digests_of
from conformance.reference.capture.jsontext import JSONObject
from conformance.reference.capture.sessions import Caller

Key = tuple[str | None, ...]
"""Who calls: session, native session, agent. Chains of different callers never meet."""

SELF_ENDED = ("stop", "tool_calls")


@dataclass(frozen=True)
class Learned:
    """What continuing needs to know of a record; ``messages`` and ``digests`` hold the answer last."""

    uuid: str
    key: Key
    messages: list[JSONObject]
    digests: tuple[bytes, ...]
    prompt: "array[int]"
    generation: "array[int]"
    self_ended: bool
    rendering: str | None
    reasoning: str | None = None
    delivered: bool = True

    @property
    def request(self) -> Spoken:
        return Spoken(self.messages[:-1], self.digests[:-1])


def key_of(caller: Caller) -> Key:
    return caller.session_id, caller.native_session_id, caller.agent_id


def learned(record: Mapping[str, Any], *, delivered: bool = True) -> Learned | None:
    """None for a record that may not be trained, and so not be continued either. Costs time with its size.

    Nor is one of which the engine reported another prompt than it was sent: it may well do that again.
    """
    extras = record.get("x_trackgauge")
    if record.get("is_valid") is not True or not isinstance(extras, Mapping):
        return None
    if extras.get("plain_reason") == Fallback.PROMPT_DIFFERS:
        return None
    try:
        prompt, generation = array("q", record["prompt_token_ids"]), array("q", record["generation_token_ids"])
        messages: list[JSONObject] = record["messages"]
        key = (record["session_id"], extras["native_session_id"], extras["agent_id"])
        self_ended = record["finish_reason"] in SELF_ENDED and extras["stop_reason"] is None
        rendering, reasoning = extras.get("rendering"), extras.get("reasoning")
        return Learned(
            *(record["uuid"], key, messages, digests_of(messages), prompt, generation, self_ended, rendering),
            reasoning=reasoning if isinstance(reasoning, str) else None,
            delivered=delivered,
        )
    except (KeyError, TypeError, ValueError, OverflowError):
        # An id that no engine has, or a file of another make.
        return None
