"""The token triple of an engine's answer, wherever in the answer the engine put it."""

from dataclasses import dataclass

from conformance.reference.capture.jsontext import JSON, JSONObject


@dataclass(frozen=True)
class Triple:
    """The engine's ids and log probs as they came, right or wrong.

    ``entry_ids`` are the ids that the log-prob entries themselves name, None where an entry names none.
    ``contradicted`` tells that the engine gave two different accounts of one of the lists.
    """

    prompt_token_ids: JSON
    generation_token_ids: JSON
    generation_log_probs: JSON
    entry_ids: list[int | None]
    contradicted: bool


def triple_of(answer: JSONObject) -> Triple:
    """The triple of the first choice. Nothing is ever filled in from text or from a second call."""
    choice = _first(answer.get("choices"))
    message = _object(choice.get("message"))
    entries = _object(choice.get("logprobs")).get("content")
    log_probs = [_object(entry).get("logprob") for entry in entries] if isinstance(entries, list) else None
    prompts = _given(answer.get("prompt_token_ids"), choice.get("prompt_token_ids"), message.get("prompt_token_ids"))
    generations = _given(choice.get("token_ids"), message.get("generation_token_ids"))
    probabilities = _given(log_probs, message.get("generation_log_probs"))
    return Triple(
        prompt_token_ids=prompts[0] if prompts else None,
        generation_token_ids=generations[0] if generations else None,
        generation_log_probs=probabilities[0] if probabilities else None,
        entry_ids=[_named_id(entry) for entry in entries] if isinstance(entries, list) else [],
        contradicted=any(other != found[0] for found in (prompts, generations, probabilities) for other in found),
    )


def _given(*candidates: JSON) -> list[JSON]:
    return [candidate for candidate in candidates if candidate is not None]


def _named_id(entry: JSON) -> int | None:
    """The id inside a log-prob entry: a ``token_id`` field, or a token written as ``token_id:N``."""
    entry = _object(entry)
    if "token_id" in entry:
        return entry["token_id"] if type(entry["token_id"]) is int else -1
    token = entry.get("token")
    if isinstance(token, str) and token.startswith("token_id:"):
        number = token.removeprefix("token_id:")
        # No vocabulary needs twenty digits, and Python does not read thousands of them.
        return int(number) if number.isascii() and number.isdigit() and len(number) < 20 else -1
    return None


def _first(choices: JSON) -> JSONObject:
    return _object(choices[0]) if isinstance(choices, list) and choices else {}


def _object(value: JSON) -> JSONObject:
    return value if isinstance(value, dict) else {}
