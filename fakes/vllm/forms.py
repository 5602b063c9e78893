"""What passes between the dialects, which assemble answers, and the writer, which sends them."""

from collections.abc import Callable
from dataclasses import dataclass

from fakes.vllm.answers import AnswerOptions, Identity, Json
from fakes.vllm.detokenize import Detokenizer
from fakes.vllm.profiles import Profile
from fakes.vllm.sample import Sample


@dataclass(frozen=True, slots=True)
class Material:
    """Everything a dialect assembles an answer from; ``prompts`` and ``samples`` have one row a prompt."""

    identity: Identity
    prompts: list[list[int]]
    samples: list[list[Sample]]
    options: AnswerOptions
    words: Detokenizer
    profile: Profile
    prompt_text: str | None = None


@dataclass(frozen=True, slots=True)
class Chunk:
    """One event of a stream. ``tokens`` is how many tokens of its choice are out once it was sent."""

    body: Json
    tokens: int = 0


@dataclass(frozen=True, slots=True)
class Form:
    """A dialect: the body of a buffered answer, and the chunks of a streamed one without the end marker."""

    body: Callable[[Material], Json]
    chunks: Callable[[Material], list[Chunk]]
