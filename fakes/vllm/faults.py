"""Faults: what goes wrong on the wire, by name. Each is named after the bug it reproduces.

A fault acts at one of four places: on the sample before the answer is assembled, on the profile, on the assembled
answer, or on the way it is written. One table per place.
"""

import copy
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import orjson

from fakes.vllm.answers import NO_ENTRY, Json
from fakes.vllm.errors import ENGINE_DEAD, OVERLOADED, envelope
from fakes.vllm.profiles import Profile
from fakes.vllm.sample import Fault, Sample

BAD_HTML = b"<html><body><h1>502 Bad Gateway</h1></body></html>"


@dataclass(slots=True)
class Writing:
    """How an answer is written when it is not written as usual.

    ``spoiled``: the client cannot have got the answer, so the ledger says ``cut``.
    """

    status: int = 200
    headers: list[tuple[str, str]] = field(default_factory=list)
    body: bytes | None = None
    content_type: str | None = None
    closes_before_headers: bool = False
    cuts: bool = False
    ends_early: bool = False
    breaks_json: bool = False
    unreadable: bool = False
    error_event: bool = False
    at_token: int | None = None
    python_json: bool = False
    comments: bool = False
    one_byte_a_write: bool = False
    one_write: bool = False
    gzip: bool = False
    delay: float = 0.0
    stalls_at: str | None = None
    closes_after: bool = False

    @property
    def spoiled(self) -> bool:
        return self.unreadable or self.cuts or self.ends_early or self.breaks_json or self.error_event


@dataclass(slots=True)
class Answer:
    """An assembled answer as a fault may change it: one body, or the bodies of the chunks of a stream."""

    bodies: list[Any]
    streamed: bool
    writing: Writing

    def choices(self) -> Iterator[Json]:
        for body in self.bodies:
            yield from body.get("choices", ())

    def tokens(self) -> list["Token"]:
        """Every place where choice 0 shows a token's id or log prob, in order."""
        found: list[Token] = []
        for choice in self.choices():
            if choice.get("index") == 0:
                found.extend(_tokens_of(choice))
        return found

    def token(self, fault: Fault) -> "Token | None":
        """The place of ``at_token``, counted from 0; without it the first, beyond the end the last."""
        tokens = self.tokens()
        return tokens[min(fault.at_token or 0, len(tokens) - 1)] if tokens else None


@dataclass(frozen=True, slots=True)
class Token:
    """One token of one choice: where its id stands and where its log prob does."""

    choice: Json
    position: int

    def set_id(self, value: object) -> None:
        ids = self.choice.get("token_ids")
        if isinstance(ids, list) and self.position < len(ids):
            ids[self.position] = value
        triple = _triple(self.choice)
        if triple is not None:
            triple["generation_token_ids"][self.position] = value

    def set_log_prob(self, value: object) -> None:
        log_probs = self.choice.get("logprobs")
        if isinstance(log_probs, dict) and "content" in log_probs:
            log_probs["content"][self.position]["logprob"] = value
        elif isinstance(log_probs, dict):
            log_probs["token_logprobs"][self.position] = value
        triple = _triple(self.choice)
        if triple is not None:
            triple["generation_log_probs"][self.position] = value

    def entry(self) -> Json | None:
        """The token's log prob entry in chat form."""
        log_probs = self.choice.get("logprobs")
        if isinstance(log_probs, dict) and "content" in log_probs:
            found: Json = log_probs["content"][self.position]
            return found
        return None


def _triple(choice: Json) -> Json | None:
    message = choice.get("message")
    return message if isinstance(message, dict) and "generation_token_ids" in message else None


def _tokens_of(choice: Json) -> list[Token]:
    ids = choice.get("token_ids")
    log_probs = choice.get("logprobs")
    if isinstance(ids, list):
        count = len(ids)
    elif isinstance(log_probs, dict):
        count = len(log_probs["content"] if "content" in log_probs else log_probs["token_logprobs"])
    else:
        count = 0
    return [Token(choice, position) for position in range(count)]


def _on_ids(value: Callable[[Any, Fault], object]) -> Callable[[Answer, Fault], None]:
    """A fault that replaces one id."""

    def change(answer: Answer, fault: Fault) -> None:
        token = answer.token(fault)
        if token is not None:
            ids = token.choice.get("token_ids")
            token.set_id(value(ids[token.position] if isinstance(ids, list) else None, fault))

    return change


def _on_log_prob(value: Callable[[Fault], object]) -> Callable[[Answer, Fault], None]:
    """A fault that replaces one log prob."""

    def change(answer: Answer, fault: Fault) -> None:
        token = answer.token(fault)
        if token is not None:
            token.set_log_prob(value(fault))

    return change


def _no_token_ids(answer: Answer, fault: Fault) -> None:
    for choice in answer.choices():
        choice.pop("token_ids", None)
        (_triple(choice) or {}).pop("generation_token_ids", None)


def _null_token_ids(answer: Answer, fault: Fault) -> None:
    for choice in answer.choices():
        if "token_ids" in choice:
            choice["token_ids"] = None
        if (triple := _triple(choice)) is not None:
            triple["generation_token_ids"] = None


def _empty_ids(answer: Answer, fault: Fault) -> None:
    for choice in answer.choices():
        if choice.get("token_ids") is not None:
            choice["token_ids"] = []
        if (triple := _triple(choice)) is not None:
            triple["generation_token_ids"] = []


def _string_ids(answer: Answer, fault: Fault) -> None:
    for token in answer.tokens():
        ids = token.choice.get("token_ids")
        if isinstance(ids, list):
            token.set_id(str(ids[token.position]))


def _no_logprobs(answer: Answer, fault: Fault) -> None:
    for choice in answer.choices():
        choice["logprobs"] = None
        (_triple(choice) or {}).pop("generation_log_probs", None)


def _short_logprobs(answer: Answer, fault: Fault) -> None:
    for choice in reversed(list(answer.choices())):
        log_probs = choice.get("logprobs")
        rows = [rows for rows in (log_probs or {}).values() if isinstance(rows, list) and rows]
        if rows:
            for row in rows:
                row.pop()
            if (triple := _triple(choice)) is not None:
                triple["generation_log_probs"].pop()
            return


def _nan(answer: Answer, fault: Fault) -> None:
    """The bare word NaN, which no JSON has; Python's reader takes it."""
    _on_log_prob(lambda _: float("nan"))(answer, fault)
    answer.writing.python_json = True


def _number(text: str) -> int | float:
    return float(text) if any(mark in text for mark in ".eE") else int(text)


def _huge(answer: Answer, fault: Fault) -> None:
    value = int(fault.raw) if fault.raw else 2**40
    _on_ids(lambda _id, _fault: value)(answer, fault)
    answer.writing.python_json = value >= 2**64


def _entry_ids_disagree(answer: Answer, fault: Fault) -> None:
    """An entry names another token than the id list does."""
    token = answer.token(fault)
    entry = token.entry() if token is not None else None
    if token is None or entry is None:
        return
    ids = token.choice.get("token_ids")
    wrong = (ids[token.position] if isinstance(ids, list) else 0) + 1
    if "token_id" in entry:
        entry["token_id"] = wrong
    else:
        entry["token"] = f"token_id:{wrong}"


def _prompt_ids(change: Callable[[Json], None]) -> Callable[[Answer, Fault], None]:
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


def _usage(change: Callable[[Json], None]) -> Callable[[Answer, Fault], None]:
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


def _two_choices(answer: Answer, fault: Fault) -> None:
    for body in answer.bodies:
        for choice in list(body.get("choices", ()))[:1]:
            body["choices"] = [choice, {**copy.deepcopy(choice), "index": 1}]


def _no_choices(answer: Answer, fault: Fault) -> None:
    for body in answer.bodies:
        body["choices"] = []


def _drop(key: str) -> Callable[[Answer, Fault], None]:
    """A fault that leaves out a key of each body; ``raw: null`` keeps it as null."""

    def apply(answer: Answer, fault: Fault) -> None:
        for body in answer.bodies:
            if fault.raw == "null":
                body[key] = None
            else:
                body.pop(key, None)

    return apply


def _null_finish(answer: Answer, fault: Fault) -> None:
    for choice in answer.choices():
        choice["finish_reason"] = None


def _content(change: Callable[[Any], object]) -> Callable[[Answer, Fault], None]:
    """A fault on content, in messages and deltas; the role chunk keeps its empty string."""

    def apply(answer: Answer, fault: Fault) -> None:
        for choice in answer.choices():
            place = choice.get("message", choice.get("delta"))
            if isinstance(place, dict) and place.get("content"):
                place["content"] = change(place["content"])
            elif isinstance(choice.get("text"), str):
                choice["text"] = change(choice["text"])

    return apply


def _odd_created(answer: Answer, fault: Fault) -> None:
    for body in answer.bodies:
        if "created" in body:
            body["created"] = _number(fault.raw) if fault.raw else body["created"] + 0.5


def _lone_surrogate(answer: Answer, fault: Fault) -> None:
    _content(lambda text: text + "\ud83d")(answer, fault)
    answer.writing.python_json = True


def _list_body(answer: Answer, fault: Fault) -> None:
    answer.bodies[:] = [[body] for body in answer.bodies]
    answer.writing.unreadable = True


ON_ANSWER: dict[str, Callable[[Answer, Fault], None]] = {
    "list_body": _list_body,
    "no_token_ids": _no_token_ids,
    "null_token_ids": _null_token_ids,
    "empty_ids": _empty_ids,
    "string_ids": _string_ids,
    "bool_ids": _on_ids(lambda _id, _fault: True),
    "negative_id": _on_ids(lambda _id, _fault: -1),
    "huge_id": _huge,
    "no_logprobs": _no_logprobs,
    "short_logprobs": _short_logprobs,
    "null_logprob_entry": _on_log_prob(lambda _: None),
    "nan_logprob": _nan,
    "sentinel_logprob": _on_log_prob(lambda _: NO_ENTRY),
    "positive_logprob": _on_log_prob(lambda fault: _number(fault.raw) if fault.raw else 0.5),
    "entry_ids_disagree": _entry_ids_disagree,
    "no_prompt_ids": _prompt_ids(lambda place: place.pop("prompt_token_ids")),
    "empty_prompt_ids": _prompt_ids(lambda place: place.__setitem__("prompt_token_ids", [])),
    "prompt_ids_in_choice": _prompt_ids_in_choice,
    "more_ids_than_usage": _usage(_count(-1)),
    "fewer_ids_than_usage": _usage(_count(1)),
    "usage_missing": _usage_missing,
    "usage_malformed": _usage(_malformed),
    "two_choices": _two_choices,
    "no_choices": _no_choices,
    "no_request_id": _drop("id"),
    "no_model": _drop("model"),
    "null_finish": _null_finish,
    "list_content": _content(lambda text: [{"type": "text", "text": text}]),
    "null_content": _content(lambda _text: None),
    "odd_created": _odd_created,
    "lone_surrogate": _lone_surrogate,
}

ON_PROFILE: dict[str, Callable[[Profile], Profile]] = {
    "dropped_hidden_chunks": lambda profile: replace(profile, drops_hidden_ids=True),
    "history_logprobs": lambda profile: replace(profile, repeats_logprobs_at_empty_end=True),
}


def _abort(sample: Sample, fault: Fault) -> Sample:
    """The engine gives up half way, or at the token given: what there is so far, consistent, and ``abort``."""
    keep = fault.at_token if fault.at_token is not None else len(sample.token_ids) // 2
    return replace(
        sample,
        token_ids=sample.token_ids[:keep],
        log_probs=sample.log_probs[:keep],
        alternatives=sample.alternatives[:keep] if sample.alternatives is not None else None,
        finish_reason="abort",
        stop_reason=None,
        message=None,
    )


ON_SAMPLE: dict[str, Callable[[Sample, Fault], Sample]] = {"abort": _abort}

EMPTY_END = frozenset({"abort", "history_logprobs"})


def _http_error(fault: Fault, streamed: bool) -> Writing:
    """``raw`` as the body, else an error in vLLM's own form."""
    status = fault.status or 500
    if fault.raw is not None:
        return Writing(status=status, headers=list(fault.headers.items()), body=fault.raw.encode())
    if status == 503:
        error = envelope(OVERLOADED, "Service Unavailable", None, status)
    elif status >= 500:
        error = envelope(ENGINE_DEAD, "InternalServerError", None, status)
    else:
        error = envelope("The request was refused.", "BadRequestError", None, status)
    return Writing(status=status, headers=list(fault.headers.items()), body=orjson.dumps(error))


def _not_json(fault: Fault, streamed: bool) -> Writing:
    raw = fault.raw.encode() if fault.raw is not None else BAD_HTML
    headers = list(fault.headers.items())
    typed = any(name.lower() == "content-type" for name, _ in headers)
    kind = None if typed else "text/html; charset=utf-8"
    return Writing(status=fault.status or 200, headers=headers, body=raw, content_type=kind, unreadable=True)


def _seconds(fault: Fault) -> float:
    return float(fault.raw) if fault.raw else 0.2


ON_WRITING: dict[str, Callable[[Fault, bool], Writing]] = {
    "http_error": _http_error,
    "not_json": _not_json,
    "close_before_headers": lambda fault, streamed: Writing(closes_before_headers=True, cuts=True),
    "cut_stream": lambda fault, streamed: Writing(cuts=True, at_token=fault.at_token),
    "cut_clean": lambda fault, streamed: Writing(ends_early=True, at_token=fault.at_token),
    "bad_json": lambda fault, streamed: Writing(breaks_json=True, at_token=fault.at_token),
    "error_event": lambda fault, streamed: Writing(error_event=True, at_token=fault.at_token),
    "keepalive_comments": lambda fault, streamed: Writing(comments=True),
    "split_bytes": lambda fault, streamed: Writing(one_byte_a_write=True),
    "joined_events": lambda fault, streamed: Writing(one_write=True),
    "gzip": lambda fault, streamed: Writing(gzip=True),
    "slow_headers": lambda fault, streamed: Writing(delay=_seconds(fault)),
    "stall": lambda fault, streamed: Writing(stalls_at=fault.raw or "stall", at_token=fault.at_token),
    "close_after": lambda fault, streamed: Writing(closes_after=True),
}

NAMES = frozenset({*ON_ANSWER, *ON_PROFILE, *ON_SAMPLE, *ON_WRITING})


def writing_of(fault: Fault | None, streamed: bool) -> Writing:
    """How the answer is to be written; as usual without a fault."""
    make = ON_WRITING.get(fault.name) if fault is not None else None
    return make(fault, streamed) if make is not None and fault is not None else Writing()


def spoil(answer: Answer, fault: Fault | None) -> None:
    """Change an assembled answer as the fault says; others leave it alone."""
    change = ON_ANSWER.get(fault.name) if fault is not None else None
    if change is not None and fault is not None:
        answer.bodies[:] = copy.deepcopy(answer.bodies)
        change(answer, fault)


def reported_ids(answer: Answer) -> list[int]:
    """The ids of choice 0 as the answer shows them: what the engine reported, however odd."""
    ids: list[int] = []
    for choice in answer.choices():
        if choice.get("index") == 0:
            ids.extend(choice.get("token_ids") or ())
    return ids
