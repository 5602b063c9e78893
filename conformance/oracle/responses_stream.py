"""The grammar of a streamed response of the Responses dialect, rule by rule.

Every rule stands alone, so that one fault of a stream is one finding. None raises, whatever a body holds. Names and
forms are those of the public API as its official client types them; there is no ``[DONE]``.
"""

from collections.abc import Callable

from conformance.oracle import named_events
from conformance.oracle.chat_answers import Object
from conformance.oracle.chat_stream import EVENTS_TYPE
from conformance.oracle.judgement import Judgement
from conformance.oracle.named_events import all_hold, inner, is_count, kind_of, of_kind, text_in, told
from conformance.oracle.responses_answers import ENDS
from conformance.oracle.responses_items import (
    ADDED,
    DONE,
    PART_ADDED,
    PART_DONE,
    TEXTS,
    WHERE,
    end_holds_items,
    ids_stable,
    items_in,
    items_in_turn,
    items_open_empty,
    parts_in_turn,
    parts_repeat_the_item,
    pieces_fit,
    pieces_make_the_whole,
)

CREATED = "response.created"
BEGINNINGS = (CREATED, "response.queued", "response.in_progress")
KINDS = frozenset(
    {
        *BEGINNINGS,
        *ENDS,
        "error",
        ADDED,
        DONE,
        PART_ADDED,
        PART_DONE,
        "response.reasoning_summary_part.added",
        "response.reasoning_summary_part.done",
        "response.output_text.annotation.added",
        *(f"{name}.{end}" for name in TEXTS for end in ("delta", "done")),
    }
)
"""What a proxy in front of vLLM has to tell; events of hosted tools are none of it."""
_REQUIRED = ("created_at", "model", "output", "parallel_tool_calls", "tool_choice", "tools")
_COUNTS = ("input_tokens", "output_tokens", "total_tokens")


def framing(content_type: str | None, body: str) -> Judgement:
    """Named events of this dialect, each a JSON object whose ``type`` is its name, all closed; no ``[DONE]``."""
    return named_events.framing(content_type, body, KINDS, WHERE)


def numbered(body: str) -> Judgement:
    """Every event has a ``sequence_number``; they begin at 0 (or 1) and rise by one, so that a lost event is seen."""
    numbers = [one.get("sequence_number") for one in told(body)[1]]
    begin = 1 if numbers[:1] == [1] else 0
    for place, number in enumerate(numbers):
        if type(number) is not int or number != begin + place:
            return Judgement(False, f"sequence_number {begin + place}", number, f"{WHERE}, event {place}")
    return Judgement(bool(numbers), "numbers that rise by one", f"{len(numbers)} numbers", WHERE)


def created_first(body: str) -> Judgement:
    """``response.created`` once, first; ``in_progress`` and ``queued`` only before the first item."""
    kinds = _kinds(body)
    places = [place for place, kind in enumerate(kinds) if kind == CREATED]
    if places != [0]:
        return Judgement(False, "one response.created, first", f"at {places} of {len(kinds)} events", WHERE)
    item = kinds.index(ADDED) if ADDED in kinds else len(kinds)
    late = [kind for kind in kinds[item:] if kind in BEGINNINGS]
    return Judgement(not late, "no beginning behind an item", late or "none", WHERE)


def one_response(body: str) -> Judgement:
    """Each event of the whole response holds it under ``response``: required keys, and one id, model and time."""
    heads = [inner(one, "response") for one in of_kind(told(body)[1], *BEGINNINGS, *ENDS)]
    for place, head in enumerate(heads):
        missing = [key for key in _REQUIRED if key not in head]
        if head.get("object") != "response" or not text_in(head, "id") or missing:
            lacking = missing or {key: head.get(key) for key in ("object", "id")}
            return Judgement(False, f"a response with id and {', '.join(_REQUIRED)}", lacking, WHERE)
        for key in ("id", "model", "created_at"):
            if head.get(key) != heads[0].get(key):
                return Judgement(False, {key: heads[0].get(key)}, {key: head.get(key)}, f"{WHERE}, response {place}")
    return Judgement(bool(heads), "one response throughout", f"told {len(heads)} times", WHERE)


def begins_empty(body: str) -> Judgement:
    """Before its items a response is in progress (or queued), holds no output, no error and no usage."""
    for one in of_kind(told(body)[1], *BEGINNINGS):
        head = inner(one, "response")
        if head.get("status") not in ("in_progress", "queued") or head.get("output") != []:
            return Judgement(False, "in progress, without output", _brief(head), f"{WHERE}, {kind_of(one)}")
        early = {key: head[key] for key in ("error", "incomplete_details", "usage") if head.get(key) is not None}
        if early:
            return Judgement(False, "no error, cut or usage yet", early, f"{WHERE}, {kind_of(one)}")
    return Judgement(True, "an empty beginning", "an empty beginning", WHERE)


def ends_once(body: str) -> Judgement:
    """Exactly one of completed, incomplete, failed and error, as the last event."""
    kinds = _kinds(body)
    places = [place for place, kind in enumerate(kinds) if kind in (*ENDS, "error")]
    ok = bool(kinds) and places == [len(kinds) - 1]
    return Judgement(ok, "one ending, last", f"endings at {places} of {len(kinds)} events", WHERE)


def end_fits(body: str) -> Judgement:
    """The status of the response is that of the event; only incomplete has a reason, only failed an error."""
    for one in of_kind(told(body)[1], *ENDS):
        head, status = inner(one, "response"), kind_of(one).removeprefix("response.")
        reason, error = inner(head, "incomplete_details").get("reason"), head.get("error")
        where = f"{WHERE}, {kind_of(one)}"
        if head.get("status") != status:
            return Judgement(False, f"status {status}", head.get("status"), where)
        if (status == "incomplete") != (isinstance(reason, str) and bool(reason)):
            return Judgement(False, "a reason for incomplete only", head.get("incomplete_details"), where)
        if (status == "failed") != (error is not None):
            return Judgement(False, "an error for failed only", error, where)
        cut = [item.index for item in items_in(body)[0] if item.whole.get("status", "completed") != "completed"]
        if status == "completed" and cut:
            return Judgement(False, "completed items", f"items {cut} are not", where)
    return Judgement(True, "an end that fits", "an end that fits", WHERE)


def usage_told(body: str) -> Judgement:
    """The last event of a response that was generated counts its tokens."""
    for one in of_kind(told(body)[1], "response.completed", "response.incomplete"):
        usage = inner(inner(one, "response"), "usage")
        if not all(is_count(usage.get(key)) for key in _COUNTS):
            return Judgement(False, f"usage with {', '.join(_COUNTS)}", usage, f"{WHERE}, {kind_of(one)}")
    return Judgement(True, "usage in the last event", "usage in the last event", WHERE)


def output_agrees(body: str) -> Judgement:
    """The response that ends the stream holds the very items that were done, in order."""
    for one in of_kind(told(body)[1], "response.completed", "response.incomplete"):
        return end_holds_items(body, one)
    return Judgement(True, "the items that were done", "no end that holds items", WHERE)


def no_error(body: str) -> Judgement:
    """Neither ``response.failed`` nor an error event: a stream that carries one did not end well."""
    found = next(of_kind(told(body)[1], "response.failed", "error"), None)
    return Judgement(found is None, "no failure", found, WHERE)


RULES: tuple[Callable[[str], Judgement], ...] = (
    no_error,
    numbered,
    created_first,
    one_response,
    begins_empty,
    ends_once,
    items_in_turn,
    ids_stable,
    items_open_empty,
    parts_in_turn,
    parts_repeat_the_item,
    pieces_fit,
    pieces_make_the_whole,
    end_fits,
    output_agrees,
    usage_told,
)


def grammar(body: str) -> Judgement:
    """A complete stream of one response, whole or cut by a limit: all rules above."""
    return all_hold(body, (_framed, *RULES), "a well-formed responses stream", WHERE)


def ends_in_error(body: str) -> Judgement:
    """A stream that broke and says so: well framed and numbered, one failure with a message, last, and no other end."""
    judged = all_hold(body, (_framed, numbered, ends_once), "one ending", WHERE)
    if not judged:
        return judged
    error = error_in_band(body)
    ok = error is not None and bool(text_in(error, "message").strip())
    return Judgement(ok, "response.failed or error with a message", error or _kinds(body)[-1:], WHERE)


def looks_complete(body: str) -> bool:
    """Whether a client would take the stream for a finished answer: completed or incomplete, and no failure."""
    kinds = _kinds(body)
    return not {"response.failed", "error"} & set(kinds) and bool(
        {"response.completed", "response.incomplete"} & set(kinds)
    )


def error_in_band(body: str) -> Object | None:
    """The error a stream carries: of a failed response, or of an error event, which is one itself or holds one."""
    for one in of_kind(told(body)[1], "response.failed", "error"):
        if kind_of(one) == "error":
            return inner(one, "error") or one
        return inner(inner(one, "response"), "error")
    return None


def _framed(body: str) -> Judgement:
    return framing(EVENTS_TYPE, body)


def _kinds(body: str) -> list[str]:
    return [kind_of(one) for one in told(body)[1]]


def _brief(head: Object) -> Object:
    return {key: head.get(key) for key in ("status", "output")}
