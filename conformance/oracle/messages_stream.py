"""The grammar of a streamed message of the Messages dialect, rule by rule.

Every rule stands alone, so that one fault of a stream is one finding. None raises, whatever a body holds. Names and
forms are those of the public API as its official client types them; ``ping`` may stand anywhere before the end.
"""

from collections.abc import Callable, Iterator
from typing import Any

from conformance.oracle import named_events
from conformance.oracle.chat_answers import Object
from conformance.oracle.chat_stream import EVENTS_TYPE
from conformance.oracle.judgement import Judgement
from conformance.oracle.messages_blocks import (
    WHERE,
    blocks_in_turn,
    blocks_of,
    blocks_open_empty,
    deltas_fit,
    signature_last,
    tools_named,
)
from conformance.oracle.named_events import all_hold, inner, is_count, kind_of, of_kind, text_in, told

KINDS = frozenset(
    {
        "message_start",
        "content_block_start",
        "content_block_delta",
        "content_block_stop",
        "message_delta",
        "message_stop",
        "ping",
        "error",
    }
)
STOP_REASONS = frozenset(
    {
        "end_turn",
        "max_tokens",
        "stop_sequence",
        "tool_use",
        "pause_turn",
        "refusal",
        "model_context_window_exceeded",
    }
)


def framing(content_type: str | None, body: str) -> Judgement:
    """Named events of this dialect, each a JSON object whose ``type`` is its name, all closed."""
    return named_events.framing(content_type, body, KINDS, WHERE)


def starts_once(body: str) -> Judgement:
    """``message_start`` once, before everything but pings and an error."""
    kinds = [kind for kind in _kinds(body) if kind not in ("ping", "error")]
    places = [place for place, kind in enumerate(kinds) if kind == "message_start"]
    return Judgement(places == [0], "one message_start, first", f"message_start at {places} of {len(kinds)}", WHERE)


def head_is_whole(body: str) -> Judgement:
    """The opening message: an id, the model, no content and no stop reason yet, and the counts of its usage."""
    message = inner(next(of_kind(told(body)[1], "message_start"), {}), "message")
    usage = inner(message, "usage")
    for rule, seen, ok in (
        ("type message", message.get("type"), message.get("type") == "message"),
        ("role assistant", message.get("role"), message.get("role") == "assistant"),
        ("an id", message.get("id"), bool(text_in(message, "id"))),
        ("a model", message.get("model"), bool(text_in(message, "model"))),
        ("empty content", message.get("content"), message.get("content") == []),
        ("no stop reason yet", message.get("stop_reason"), message.get("stop_reason") is None),
        ("no stop sequence yet", message.get("stop_sequence"), message.get("stop_sequence") is None),
        ("usage.input_tokens", message.get("usage"), is_count(usage.get("input_tokens"))),
        ("usage.output_tokens", message.get("usage"), is_count(usage.get("output_tokens"))),
    ):
        if not ok:
            return Judgement(False, rule, seen, f"{WHERE}, message_start")
    return Judgement(True, "a whole head", "a whole head", WHERE)


def stops_once(body: str) -> Judgement:
    """``message_stop`` once, as the last event."""
    kinds = _kinds(body)
    places = [place for place, kind in enumerate(kinds) if kind == "message_stop"]
    ok = bool(kinds) and places == [len(kinds) - 1]
    return Judgement(ok, "one message_stop, last", f"message_stop at {places} of {len(kinds)} events", WHERE)


def one_reason(body: str) -> Judgement:
    """Exactly one ``message_delta`` tells a stop reason the dialect knows, and it stands behind all blocks.

    A stop sequence is named for that reason and no other; ``tool_use`` is said only where there is one.
    """
    reasons = [inner(one, "delta").get("stop_reason") for one in of_kind(told(body)[1], "message_delta")]
    given = [reason for reason in reasons if reason is not None]
    if len(given) != 1 or not isinstance(given[0], str) or given[0] not in STOP_REASONS:
        return Judgement(False, "one stop reason of the dialect", given, WHERE)
    kinds = _kinds(body)
    late = [kind for kind in kinds[kinds.index("message_delta") :] if kind.startswith("content_block")]
    if late:
        return Judgement(False, "no block behind message_delta", late[:3], WHERE)
    sequences = [inner(one, "delta").get("stop_sequence") for one in of_kind(told(body)[1], "message_delta")]
    named = next((sequence for sequence in sequences if sequence is not None), None)
    if (given[0] == "stop_sequence") != isinstance(named, str):
        return Judgement(False, "a stop_sequence for the reason stop_sequence only", [given[0], named], WHERE)
    if given[0] == "tool_use" and not any(block.kind == "tool_use" for block in blocks_of(body)):
        return Judgement(False, "a tool_use block for the reason tool_use", "none", WHERE)
    return Judgement(True, "one stop reason of the dialect", given[0], WHERE)


def usage_told(body: str) -> Judgement:
    """Every ``message_delta`` counts the output tokens so far; the counts never fall."""
    counts: list[Any] = [inner(one, "usage").get("output_tokens") for one in of_kind(told(body)[1], "message_delta")]
    ok = bool(counts) and all(is_count(count) for count in counts) and counts == sorted(counts)
    return Judgement(ok, "usage.output_tokens in every message_delta", counts[:4], WHERE)


def no_error(body: str) -> Judgement:
    """No error event: a stream that carries one did not end well."""
    found = next(of_kind(told(body)[1], "error"), None)
    return Judgement(found is None, "no error event", found, WHERE)


RULES: tuple[Callable[[str], Judgement], ...] = (
    no_error,
    starts_once,
    head_is_whole,
    stops_once,
    blocks_in_turn,
    blocks_open_empty,
    deltas_fit,
    signature_last,
    tools_named,
    one_reason,
    usage_told,
)


def grammar(body: str) -> Judgement:
    """A complete stream of one message: all rules above, but that inputs parse, which malformed calls cannot."""
    return all_hold(body, (_framed, *RULES), "a well-formed messages stream", WHERE)


def ends_in_error(body: str) -> Judgement:
    """A stream that broke and says so: well framed, one error event in the dialect's shape, last, and no end told."""
    if not (framed := _framed(body)):
        return framed
    kinds = _kinds(body)
    places = [place for place, kind in enumerate(kinds) if kind == "error"]
    if places != [len(kinds) - 1]:
        return Judgement(False, "one error event, last", f"error at {places} of {len(kinds)} events", WHERE)
    error = error_in_band(body) or {}
    if not text_in(error, "type") or not text_in(error, "message").strip():
        return Judgement(False, "an error with type and message", error, WHERE)
    ends = list(_ends(body))
    return Judgement(not ends, "no end beside the error", ends[:1] or "none", WHERE)


def looks_complete(body: str) -> bool:
    """Whether a client would take the stream for a finished answer: a stop reason or ``message_stop``, and no error."""
    return not any(of_kind(told(body)[1], "error")) and any(True for _ in _ends(body))


def error_in_band(body: str) -> Object | None:
    """The error object a stream carries, if it carries one."""
    for one in of_kind(told(body)[1], "error"):
        return inner(one, "error")
    return None


def _ends(body: str) -> Iterator[Object]:
    """The events by which a client knows an end."""
    for one in of_kind(told(body)[1], "message_stop", "message_delta"):
        if kind_of(one) == "message_stop" or inner(one, "delta").get("stop_reason"):
            yield one


def _framed(body: str) -> Judgement:
    return framing(EVENTS_TYPE, body)


def _kinds(body: str) -> list[str]:
    return [kind_of(one) for one in told(body)[1]]
