"""What an answer is made from: the options of a request, who answers, and how one sample reads."""

import hashlib
import secrets
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, NotRequired, TypedDict

from fakes.vllm.detokenize import Detokenizer, cut_at, spoken_pieces
from fakes.vllm.profiles import Profile
from fakes.vllm.sample import Sample

NO_ENTRY = -9999.0

ToolMode = Literal["none", "auto", "required", "named"]
Json = dict[str, Any]
PromptLogProbs = list[dict[str, Json] | None]


class Usage(TypedDict):
    """Token counts as vLLM orders them."""

    prompt_tokens: int
    total_tokens: int
    completion_tokens: int
    prompt_tokens_details: NotRequired[Json | None]
    completion_tokens_details: NotRequired[Json | None]


@dataclass(frozen=True, slots=True)
class Identity:
    """The names an answer goes by: its id, its time in seconds, and the model as served.

    ``seed`` makes the ids of its tool calls, so that every view of one answer names them alike.
    """

    id: str
    created: int
    model: str
    seed: str

    def call_id(self, choice: int, call: int, profile: Profile) -> str:
        """The id of a tool call: random-looking, of the version's length."""
        named = f"{self.seed}:{choice}:{call}".encode()
        return f"chatcmpl-tool-{hashlib.blake2b(named, digest_size=profile.id_hex // 2).hexdigest()}"


def identity(prefix: str, given: str | None, model: str, profile: Profile) -> Identity:
    """A fresh identity; ``given`` is the id the client asked for."""
    seed = secrets.token_hex(profile.id_hex // 2)
    return Identity(f"{prefix}-{given or seed}", int(time.time()), model, seed)


@dataclass(frozen=True, slots=True)
class AnswerOptions:
    """The part of a request that shapes its answer; one type for all endpoints.

    ``top_logprobs`` None means the client sent null (chat) or asked for none (completions).
    ``thinking`` is false when the template was told so; ``reasoning_open`` is false when
    the prompt leaves no reasoning open. ``empty_end``: a stream finishes with a step of no tokens.
    """

    logprobs: bool = False
    top_logprobs: int | None = 0
    prompt_logprobs: int | None = None
    return_token_ids: bool = False
    return_prompt_text: bool = False
    as_token_ids: bool = False
    include_reasoning: bool = True
    tools: ToolMode = "none"
    parallel_calls: bool = True
    stop: tuple[str, ...] = ()
    include_stop: bool = False
    skip_hidden: bool = True
    echo: bool = False
    thinking: bool = True
    reasoning_open: bool = True
    stream: bool = False
    include_usage: bool = False
    continuous_usage: bool = False
    reasoning_parser: bool = True
    tool_parser: bool = True
    role: str = "assistant"
    empty_end: bool = False


@dataclass(frozen=True, slots=True)
class Reading:
    """One sample with its text, a piece a token.

    ``pieces`` are what the client may see; ``spoken`` are what was generated, a stop string and all, which decides
    how much text a stream holds back.
    """

    sample: Sample
    pieces: list[str]
    spoken: list[str]

    @property
    def text(self) -> str:
        return "".join(self.pieces)


def read(sample: Sample, options: AnswerOptions, words: Detokenizer) -> Reading:
    """Decode a sample for a client with these options."""
    spoken = spoken_pieces(
        words,
        sample.token_ids,
        stop_reason=sample.stop_reason,
        finish_reason=sample.finish_reason,
        include_stop=options.include_stop,
        skip_hidden=options.skip_hidden,
    )
    pieces = spoken
    if isinstance(sample.stop_reason, str):
        pieces = cut_at(spoken, sample.stop_reason, options.include_stop)
    return Reading(sample, pieces, spoken)


def token_texts(ids: Sequence[int], options: AnswerOptions, words: Detokenizer, profile: Profile) -> list[str]:
    """Text of each token as log prob entries show it, hidden tokens included."""
    if profile.partial_text_in_tokens == "":
        return words.pieces(ids)
    return words.alone(ids)


def placeholder(token: int) -> str:
    """How ``return_tokens_as_token_ids`` spells a token."""
    return f"token_id:{token}"


def ranked(sample: Sample, position: int, wanted: int, vocabulary: int) -> list[tuple[int, float]]:
    """The sampled token, then up to ``wanted`` others, best first; -1 asks for all that are known."""
    chosen = sample.token_ids[position]
    log_prob = sample.log_probs[position]
    if sample.alternatives is not None:
        others = [pair for pair in sample.alternatives[position] if pair[0] != chosen]
    else:
        others = [((chosen + step * 7919) % vocabulary, log_prob - 0.5 * step) for step in range(1, max(wanted, 0))]
    return [(chosen, log_prob), *others[: wanted if wanted >= 0 else None]]


def floored(log_prob: float) -> float:
    """vLLM shows minus infinity as its "no entry" value."""
    return max(log_prob, NO_ENTRY)


def usage_of(prompt_tokens: int, completion_tokens: int) -> Usage:
    return {
        "prompt_tokens": prompt_tokens,
        "total_tokens": prompt_tokens + completion_tokens,
        "completion_tokens": completion_tokens,
    }
