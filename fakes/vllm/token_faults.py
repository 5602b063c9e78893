"""Faults of the tokens of an assembled answer: ids, log probs and counts that are not those of the sample."""

from collections.abc import Callable, Iterator
from typing import Any

from fakes.vllm.answers import NO_ENTRY, Json
from fakes.vllm.assembled import Answer, triple_of
from fakes.vllm.sample import Fault

Change = Callable[[Answer, Fault], None]
"""Changes an answer in place, as its fault says."""


def _on_ids(value: Callable[[Any, Fault], object]) -> Change:
    """A fault that replaces one id."""

    def change(answer: Answer, fault: Fault) -> None:
        token = answer.token(fault)
        if token is not None:
            ids = token.choice.get("token_ids")
            token.set_id(value(ids[token.position] if isinstance(ids, list) else None, fault))

    return change


def _on_log_prob(value: Callable[[Fault], object]) -> Change:
    """A fault that replaces one log prob."""

    def change(answer: Answer, fault: Fault) -> None:
        token = answer.token(fault)
        if token is not None:
            token.set_log_prob(value(fault))

    return change


def _no_token_ids(answer: Answer, fault: Fault) -> None:
    for choice in answer.choices():
        choice.pop("token_ids", None)
        (triple_of(choice) or {}).pop("generation_token_ids", None)


def _null_token_ids(answer: Answer, fault: Fault) -> None:
    for choice in answer.choices():
        if "token_ids" in choice:
            choice["token_ids"] = None
        if (triple := triple_of(choice)) is not None:
            triple["generation_token_ids"] = None


def _empty_ids(answer: Answer, fault: Fault) -> None:
    for choice in answer.choices():
        if choice.get("token_ids") is not None:
            choice["token_ids"] = []
        if (triple := triple_of(choice)) is not None:
            triple["generation_token_ids"] = []


def _string_ids(answer: Answer, fault: Fault) -> None:
    for token in answer.tokens():
        ids = token.choice.get("token_ids")
        if isinstance(ids, list):
            token.set_id(str(ids[token.position]))


def _no_logprobs(answer: Answer, fault: Fault) -> None:
    for choice in answer.choices():
        choice["logprobs"] = None
        (triple_of(choice) or {}).pop("generation_log_probs", None)


def _short_logprobs(answer: Answer, fault: Fault) -> None:
    for choice in reversed(list(answer.choices())):
        log_probs = choice.get("logprobs")
        rows = [rows for rows in (log_probs or {}).values() if isinstance(rows, list) and rows]
        if rows:
            for row in rows:
                row.pop()
            if (triple := triple_of(choice)) is not None:
                triple["generation_log_probs"].pop()
            return


def _completion_logprobs(answer: Answer, fault: Fault) -> None:
    """The log probs of a chat answer, in the form of the completion dialect."""
    for choice in answer.choices():
        log_probs = choice.get("logprobs")
        if isinstance(log_probs, dict) and isinstance(log_probs.get("content"), list):
            entries = log_probs["content"]
            choice["logprobs"] = {
                "text_offset": [0 for _ in entries],
                "token_logprobs": [entry["logprob"] for entry in entries],
                "tokens": [entry["token"] for entry in entries],
                "top_logprobs": [None for _ in entries],
            }


def _lost_id(answer: Answer, fault: Fault) -> None:
    """The last id is not there, its log prob is, and usage counts without it."""
    for choice in reversed(list(answer.choices())):
        if choice.get("token_ids"):
            choice["token_ids"].pop()
            if (triple := triple_of(choice)) is not None:
                triple["generation_token_ids"].pop()
            _usage(_count(-1))(answer, fault)
            return


def _nan(answer: Answer, fault: Fault) -> None:
    """The bare word NaN, or the one in ``raw``, which no JSON has; Python's reader takes it."""
    _on_log_prob(lambda _: float(fault.raw or "nan"))(answer, fault)
    answer.writing.python_json = True


def number(text: str) -> int | float:
    """What ``raw`` of a fault writes, whole or not as it is written."""
    return float(text) if any(mark in text for mark in ".eE") else int(text)


def _huge(answer: Answer, fault: Fault) -> None:
    value = int(fault.raw) if fault.raw else 2**40
    _on_ids(lambda _id, _fault: value)(answer, fault)
    answer.writing.python_json = value >= 2**64


def _entry_ids_disagree(answer: Answer, fault: Fault) -> None:
    """An entry names another token than the id list does: in its text, or with ``raw: token_id`` in a field."""
    token = answer.token(fault)
    entry = token.entry() if token is not None else None
    if token is None or entry is None:
        return
    ids = token.choice.get("token_ids")
    wrong = (ids[token.position] if isinstance(ids, list) else 0) + 1
    if "token_id" in entry or fault.raw == "token_id":
        entry["token_id"] = wrong
    else:
        entry["token"] = f"token_id:{wrong}"


def _prompt_ids(change: Callable[[Json], None]) -> Change:
    """A fault on prompt ids, wherever the endpoint has them."""

    def apply(answer: Answer, fault: Fault) -> None:
        for body in answer.bodies:
            for place in (body, *body.get("choices", ()), *_messages(body)):
                if place.get("prompt_token_ids") is not None:
                    change(place)

    return apply


def _messages(body: Json) -> Iterator[Json]:
    for choice in body.get("choices", ()):
        if isinstance(choice.get("message"), dict):
            yield choice["message"]


def _prompt_ids_in_choice(answer: Answer, fault: Fault) -> None:
    for body in answer.bodies:
        if body.get("prompt_token_ids") is not None and body.get("choices"):
            body["choices"][0]["prompt_token_ids"] = body.pop("prompt_token_ids")


def _usage(change: Callable[[Json], None]) -> Change:
    """A fault on each usage object."""

    def apply(answer: Answer, fault: Fault) -> None:
        for body in answer.bodies:
            if isinstance(body.get("usage"), dict):
                change(body)

    return apply


def _count(by: int) -> Callable[[Json], None]:
    def change(body: Json) -> None:
        usage = body["usage"] = dict(body["usage"])
        usage["completion_tokens"] = max(0, usage["completion_tokens"] + by)
        usage["total_tokens"] = usage["prompt_tokens"] + usage["completion_tokens"]

    return change


def _usage_missing(answer: Answer, fault: Fault) -> None:
    for body in answer.bodies:
        body.pop("usage", None)
    if answer.streamed:
        answer.bodies[:] = [body for body in answer.bodies if body.get("choices")]


def _malformed(body: Json) -> None:
    body["usage"] = {**body["usage"], "completion_tokens": "seven"}


ON_TOKENS: dict[str, Change] = {
    "no_token_ids": _no_token_ids,
    "null_token_ids": _null_token_ids,
    "empty_ids": _empty_ids,
    "string_ids": _string_ids,
    "bool_ids": _on_ids(lambda _id, _fault: True),
    "negative_id": _on_ids(lambda _id, _fault: -1),
    "huge_id": _huge,
    "no_logprobs": _no_logprobs,
    "short_logprobs": _short_logprobs,
    "completion_logprobs": _completion_logprobs,
    "lost_id": _lost_id,
    "null_logprob_entry": _on_log_prob(lambda _: None),
    "nan_logprob": _nan,
    "sentinel_logprob": _on_log_prob(lambda _: NO_ENTRY),
    "positive_logprob": _on_log_prob(lambda fault: number(fault.raw) if fault.raw else 0.5),
    "entry_ids_disagree": _entry_ids_disagree,
    "no_prompt_ids": _prompt_ids(lambda place: place.pop("prompt_token_ids")),
    "empty_prompt_ids": _prompt_ids(lambda place: place.__setitem__("prompt_token_ids", [])),
    "prompt_ids_in_choice": _prompt_ids_in_choice,
    "more_ids_than_usage": _usage(_count(-1)),
    "fewer_ids_than_usage": _usage(_count(1)),
    "usage_missing": _usage_missing,
    "usage_malformed": _usage(_malformed),
}
