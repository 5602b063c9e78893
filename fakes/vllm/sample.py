"""What passes between the endpoints, which know the wire, and the engine, which knows the playbooks."""

from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

FinishReason = Literal["stop", "length", "abort", "error", "repetition"]


@dataclass(frozen=True, slots=True)
class Fault:
    """One named misbehaviour of a turn; the wire layer carries it out.

    ``at_token`` counts generated tokens; ``raw`` replaces or extends the body as the named fault says.
    """

    name: str
    at_token: int | None = None
    status: int | None = None
    headers: dict[str, str] = field(default_factory=dict)
    raw: str | None = None
    options: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SampleRequest:
    """A request for one generation, already validated, independent of its dialect.

    Either ``messages`` (with ``tools`` and ``template_kwargs``) or ``prompt_token_ids`` or ``prompt_text`` is given.
    ``prefix_token_ids`` is NeMo-RL's ``required_prefix_token_ids``. ``max_tokens`` None means up to the model's length.
    ``alternatives`` is how many candidates of each position are wanted (``top_logprobs``). ``streamed`` changes no
    sample, only what its history can be.
    """

    tenant: str
    endpoint: str
    messages: list[dict[str, Any]] | None = None
    tools: list[dict[str, Any]] | None = None
    tool_choice: Any = None
    template_kwargs: dict[str, Any] = field(default_factory=dict)
    add_generation_prompt: bool = True
    continue_final_message: bool = False
    prompt_token_ids: list[int] | None = None
    prompt_text: str | None = None
    prefix_token_ids: list[int] | None = None
    max_tokens: int | None = None
    stop: tuple[str, ...] = ()
    stop_token_ids: tuple[int, ...] = ()
    include_stop_str_in_output: bool = False
    n: int = 1
    alternatives: int = 0
    streamed: bool = False


@dataclass(frozen=True, slots=True)
class Sample:
    """One generation: ids and log probs of equal length, EOS or stop token included.

    ``log_probs`` are float32 values widened to double unless the tenant says 64 bits; a fault may break any of these
    promises on purpose. ``message`` is a parsed answer set by the playbook that no parser would give; else None and
    the wire layer parses ``token_ids``. ``alternatives[i]`` are (id, log prob) pairs of position i, best first, None
    when none were asked for.
    """

    token_ids: list[int]
    log_probs: list[float]
    finish_reason: FinishReason
    stop_reason: int | str | None = None
    message: dict[str, Any] | None = None
    chunking: tuple[int, ...] = ()
    alternatives: list[list[tuple[int, float]]] | None = None


@dataclass(frozen=True, slots=True)
class Drawn:
    """The engine's answer: where the request stands in the playbook, its prompt, and its generations (one per n)."""

    prompt_token_ids: list[int]
    samples: list[Sample]
    run: int | None = None
    scope: int | None = None
    turn: int | None = None
    rule: str | None = None
    attempt: int = 0
    off_script: bool = False
    faithful: bool = True
    rendered_ids: list[int] | None = None
    fault: Fault | None = None
    gate: str | None = None


class PromptTooLong(Exception):
    """Raised when the prompt exceeds the tenant's ``max_model_len``; the wire layer words the refusal."""

    def __init__(self, prompt_tokens: int, limit: int) -> None:
        super().__init__(f"prompt of {prompt_tokens} tokens exceeds {limit}")
        self.prompt_tokens = prompt_tokens
        self.limit = limit


class PrefixNotSpliced(Exception):
    """Raised where NeMo-RL's server fails an assertion on ``required_prefix_token_ids``; answered as unhandled."""


class Engine(Protocol):
    """What the endpoints need of the engine. ``draw`` counts the attempt; ``render`` never does."""

    def render(self, request: SampleRequest) -> list[int]:
        """Prompt ids of the request, without drawing. Raises ``PrefixNotSpliced``."""
        ...

    def draw(self, request: SampleRequest) -> Drawn:
        """Render, find the turn, count the attempt, sample.

        Raises ``PromptTooLong`` and ``PrefixNotSpliced`` before the attempt is counted.
        """
        ...
