"""The recorded server: its cases, its vocabulary, and an engine that samples what was recorded."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tiktoken

from fakes.vllm import tokenizer
from fakes.vllm.engine import PlaybookEngine
from fakes.vllm.sample import Drawn, FinishReason, PromptTooLong, Sample, SampleRequest
from fakes.vllm.tenants import TenantConfig, Tenants

DATA = Path(__file__).parents[3] / "data" / "vllm"
LIMIT = 1024
TURN_END = 2002

# Generations whose ids were not recorded, but are known: from another case with the same choice and prompt, or because
# only one split of the text has the number of tokens that the usage counts.
SAME_GENERATION = {
    "stream tool no ids": "chat 2 tools nonstream",
    "parallel_tool_calls false": "chat 2 tools nonstream",
    "tool_choice none with tools": "chat 2 tools nonstream",
}
ONLY_SPLIT = {
    "completion plain": [319, 319],
    "include_reasoning false": [2007, 198, 71, 76, 76, 198, 2008, 198, 198, 56, 274, 13, 2000],
}

CONFIG = TenantConfig(models=["tiny"], max_model_len=LIMIT, tool_parser="hermes", reasoning_parser="qwen3")


def recorded_cases() -> list[dict[str, Any]]:
    cases: list[dict[str, Any]] = json.loads((DATA / "recorded-0.32.0.json").read_text())["cases"]
    return cases


def recorded_encoding() -> tiktoken.Encoding:
    return tokenizer.from_tokenizer_json(DATA / "tokenizer.json")


def events(body: str) -> list[Any]:
    """The JSON of each event of a recorded stream."""
    return [json.loads(part[6:]) for part in body.split("\n\n") if part.startswith("data: {")]


@dataclass
class Entries:
    """What a case recorded of one generation."""

    ids: list[int]
    log_probs: list[float]
    tops: list[list[tuple[int, float]]] | None
    finish: str
    stop_reason: int | str | None
    chunking: tuple[int, ...] = ()
    """How many tokens each chunk of a stream carried: a busy server puts several into one."""


class Recorded:
    """Reads the generation out of a recorded answer."""

    def __init__(self, encoding: tiktoken.Encoding) -> None:
        self.encoding = encoding
        self._by_text = dict(encoding._special_tokens)

    def entries(self, case: dict[str, Any]) -> Entries:
        """The entries of choice 0; a case without ids gets an encoding of its text."""
        streamed = bool((case.get("request") or {}).get("stream"))
        parts = events(case["body"]) if streamed else [json.loads(case["body"])]
        choices = [choice for part in parts for choice in part["choices"]]
        last = choices[-1]
        tokens, log_probs, tops = self._tokens(choices)
        finish, stop_reason = last["finish_reason"], last.get("stop_reason")
        if tokens is not None:
            sizes = tuple(len(choice["token_ids"]) for choice in choices if choice.get("token_ids")) if streamed else ()
            return Entries(tokens, log_probs or [0.0] * len(tokens), tops, finish, stop_reason, sizes)
        ids = self._guessed(case, choices, finish, stop_reason)
        return Entries(ids, [0.0] * len(ids), None, finish, stop_reason)

    def _tokens(
        self, choices: list[dict[str, Any]]
    ) -> tuple[list[int] | None, list[float], list[list[tuple[int, float]]] | None]:
        ids: list[int] | None = None
        log_probs: list[float] = []
        tops: list[list[tuple[int, float]]] = []
        entries: list[dict[str, Any]] = []
        for choice in choices:
            if choice.get("token_ids") is not None:
                ids = [*(ids or []), *choice["token_ids"]]
            entries += _entries(choice)
        for entry in entries:
            log_probs.append(entry["logprob"])
            tops.append([(self._id(top), top["logprob"]) for top in entry["top_logprobs"]])
        if ids is None and entries:
            ids = [self._id(entry) for entry in entries]
        return ids, log_probs, tops if any(tops) else None

    def _id(self, entry: dict[str, Any]) -> int:
        if "token_id" in entry:
            return int(entry["token_id"])
        token: str = entry["token"]
        if token.startswith("token_id:"):
            return int(token[9:])
        known = self._by_text.get(token)
        return known if known is not None else self.encoding.encode_single_token(token.encode())

    def _guessed(
        self, case: dict[str, Any], choices: list[dict[str, Any]], finish: str, stop_reason: int | str | None
    ) -> list[int]:
        if case["case"] in ONLY_SPLIT:
            return ONLY_SPLIT[case["case"]]
        if case["case"] in SAME_GENERATION:
            like = next(other for other in recorded_cases() if other["case"] == SAME_GENERATION[case["case"]])
            return self.entries(like).ids
        request = case["request"]
        forced = (request.get("structured_outputs") or {}).get("choice")
        if forced is not None:
            text = forced[0]
        elif request.get("tool_choice") not in (None, "none", "auto"):
            text = '<tool_call>{"name": "get_w", "arguments": null}</tool_call>'
        else:
            text = "".join(_texts(choices))
        ids = self.encoding.encode(text, allowed_special="all")
        if finish == "length":
            return ids[: _completion_tokens(case) or len(ids)]
        return [*ids, stop_reason if isinstance(stop_reason, int) else TURN_END]


def _completion_tokens(case: dict[str, Any]) -> int | None:
    if (case.get("request") or {}).get("stream"):
        return None
    count = json.loads(case["body"])["usage"]["completion_tokens"]
    return int(count)


def _texts(choices: list[dict[str, Any]]) -> list[str]:
    found = []
    for choice in choices:
        place = choice.get("message") or choice.get("delta") or {}
        found += [choice.get("text") or "", place.get("reasoning") or "", place.get("content") or ""]
    return found


def _entries(choice: dict[str, Any]) -> list[dict[str, Any]]:
    log_probs = choice.get("logprobs")
    if log_probs is None:
        return []
    if "content" in log_probs:
        found: list[dict[str, Any]] = log_probs["content"]
        return found
    return [
        {
            "token": token,
            "logprob": value,
            "top_logprobs": [{"token": name, "logprob": number} for name, number in top.items()],
        }
        for token, value, top in zip(
            log_probs["tokens"], log_probs["token_logprobs"], log_probs["top_logprobs"], strict=True
        )
        if value is not None and top is not None
    ]


class RecordedEngine:
    """Renders prompts as the fake does, and samples what the case at hand recorded."""

    def __init__(self, encoding: tiktoken.Encoding, tenants: Tenants) -> None:
        self._engine = PlaybookEngine(encoding, tenants)
        self._recorded = Recorded(encoding)
        self.case: dict[str, Any] | None = None

    def render(self, request: SampleRequest) -> list[int]:
        return self._engine.render(request)

    def draw(self, request: SampleRequest) -> Drawn:
        prompt = self.render(request)
        if len(prompt) >= LIMIT:
            raise PromptTooLong(len(prompt), LIMIT)
        assert self.case is not None
        return Drawn(prompt, [sample_of(self._recorded.entries(self.case))])


def sample_of(entries: Entries) -> Sample:
    """The engine's side of a recorded generation."""
    finish: FinishReason = "length" if entries.finish == "length" else "stop"
    return Sample(
        entries.ids,
        entries.log_probs,
        finish,
        entries.stop_reason,
        chunking=entries.chunking,
        alternatives=entries.tops,
    )
