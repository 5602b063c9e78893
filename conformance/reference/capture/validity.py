"""Whether a record may be trained: the engine's account is complete and agrees with itself."""

import math

from conformance.reference.capture.jsontext import JSON, JSONObject
from conformance.reference.capture.triples import Triple

NO_ENTRY = -9999.0
"""What the engine reports for a position that has no log prob."""

HIGHEST_LOG_PROB = 1e-3
"""Float32 noise above 0; anything higher is no probability."""

BROKEN_FINISHES = (None, "abort", "error")


def invalid_reason(answer: JSONObject, triple: Triple) -> str | None:
    """The first rule that the answer breaks, or None for a valid one."""
    choices = answer.get("choices")
    if not isinstance(choices, list) or len(choices) != 1:
        return "not_one_choice"
    if not _is_name(answer.get("id")):
        return "request_id_missing"
    if not _is_name(answer.get("model")):
        return "model_missing"
    if triple.contradicted:
        return "sources_disagree"
    if not _are_ids(triple.prompt_token_ids):
        return "prompt_token_ids_unusable"
    if not _are_ids(triple.generation_token_ids):
        return "generation_token_ids_unusable"
    reason = _log_prob_fault(triple.generation_log_probs)
    if reason is not None:
        return reason
    if len(triple.generation_log_probs) != len(triple.generation_token_ids):
        return "lengths_differ"
    if not _entries_agree(triple):
        return "entry_ids_disagree"
    if _reported(answer, "completion_tokens") > len(triple.generation_token_ids):
        return "fewer_ids_than_usage"
    if choices[0].get("finish_reason") in BROKEN_FINISHES:
        return "generation_broken_off"
    if not _is_name(choices[0].get("finish_reason")) or answer.get("error"):
        # An end that is no word, or an error beside the choice: nobody said that the generation came to its end.
        return "generation_broken_off"
    return None


def count_warning(answer: JSONObject, triple: Triple) -> str | None:
    """A disagreement with the usage counts that does not make the record invalid."""
    generated, prompted = triple.generation_token_ids, triple.prompt_token_ids
    if isinstance(generated, list) and 0 < _reported(answer, "completion_tokens") < len(generated):
        return "more generated ids than usage counts"
    if isinstance(prompted, list) and _reported(answer, "prompt_tokens") not in (0, len(prompted)):
        return "usage counts another number of prompt ids"
    return None


def _is_name(value: JSON) -> bool:
    return isinstance(value, str) and value != ""


def _are_ids(ids: JSON) -> bool:
    if not isinstance(ids, list) or not ids:
        return False
    return set(map(type, ids)) == {int} and min(ids) >= 0


def _log_prob_fault(log_probs: JSON) -> str | None:
    if not isinstance(log_probs, list) or not log_probs:
        return "log_probs_missing"
    if not set(map(type, log_probs)) <= {int, float}:
        return "log_prob_not_a_number"
    if not all(map(_is_finite, log_probs)):
        return "log_prob_not_finite"
    if NO_ENTRY in log_probs:
        return "log_prob_without_entry"
    if max(log_probs) > HIGHEST_LOG_PROB:
        return "log_prob_above_zero"
    return None


def _is_finite(number: float) -> bool:
    try:
        return math.isfinite(number)
    except OverflowError:
        # JSON has integers that are beyond every float.
        return False


def _entries_agree(triple: Triple) -> bool:
    pairs = zip(triple.entry_ids, triple.generation_token_ids, strict=False)
    return all(named is None or named == sampled for named, sampled in pairs)


def _reported(answer: JSONObject, count: str) -> float:
    usage = answer.get("usage")
    value = usage.get(count) if isinstance(usage, dict) else None
    return value if isinstance(value, int | float) and not isinstance(value, bool) else 0
