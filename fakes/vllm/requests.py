"""Requests as vLLM declares them. Undeclared fields are accepted and ignored, as there."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

Ids = list[Annotated[int, Field(ge=0)]]
INT64 = 2**63


class _Request(BaseModel):
    model_config = ConfigDict(extra="allow", protected_namespaces=())

    model: str | None = None


class StreamOptions(BaseModel):
    """What a stream tells of usage; continuous only counts together with ``include_usage``."""

    model_config = ConfigDict(extra="allow")

    include_usage: bool | None = False
    continuous_usage_stats: bool | None = False


def stop_strings(given: str | list[str] | None) -> tuple[str, ...]:
    """The stop strings of a request, which may be one string, a list, or nothing."""
    return (given,) if isinstance(given, str) else tuple(given or ())


def usage_asked(options: StreamOptions | None) -> tuple[bool, bool]:
    """Whether a stream ends with the usage, and whether each chunk carries it too."""
    if options is None or not options.include_usage:
        return False, False
    return True, bool(options.continuous_usage_stats)


class Sampled(_Request):
    """What all generating requests of the OpenAI dialects share."""

    n: int | None = 1
    seed: int | None = Field(None, ge=-INT64, le=INT64 - 1)
    stop: str | list[str] | None = []
    stream: bool | None = False
    stream_options: StreamOptions | None = None
    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    min_p: float | None = None
    frequency_penalty: float | None = None
    presence_penalty: float | None = None
    repetition_penalty: float | None = None
    logit_bias: dict[str, float] | None = None
    stop_token_ids: list[int] | None = []
    include_stop_str_in_output: bool = False
    ignore_eos: bool = False
    min_tokens: int = 0
    max_tokens: int | None = None
    skip_special_tokens: bool = True
    prompt_logprobs: int | None = None
    echo: bool | None = False
    return_tokens_as_token_ids: bool | None = None
    return_token_ids: bool | None = None
    priority: int = 0
    request_id: str | None = None
    cache_salt: str | None = None
    kv_transfer_params: dict[str, Any] | None = None


class ChatRequest(Sampled):
    """POST /v1/chat/completions."""

    messages: list[dict[str, Any]]
    logprobs: bool | None = False
    top_logprobs: int | None = 0
    max_completion_tokens: int | None = None
    response_format: dict[str, Any] | None = None
    tools: list[dict[str, Any]] | None = None
    tool_choice: Literal["none", "auto", "required"] | dict[str, Any] | None = "none"
    reasoning_effort: Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"] | None = None
    include_reasoning: bool = True
    parallel_tool_calls: bool | None = True
    add_generation_prompt: bool = True
    continue_final_message: bool = False
    chat_template: str | None = None
    chat_template_kwargs: dict[str, Any] | None = None
    return_prompt_text: bool | None = None
    required_prefix_token_ids: list[int] | None = None


class CompletionRequest(Sampled):
    """POST /v1/completions."""

    prompt: str | list[int] | list[list[int]] | list[str] | None = None
    logprobs: int | None = None
    max_tokens: int | None = 16


class SamplingParams(BaseModel):
    """The ``sampling_params`` of a token-in request."""

    model_config = ConfigDict(extra="allow")

    n: int = 1
    max_tokens: int | None = None
    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    logprobs: int | None = None
    stop: str | list[str] | None = None
    stop_token_ids: list[int] | None = None
    include_stop_str_in_output: bool = False


class GenerateRequest(_Request):
    """POST /inference/v1/generate."""

    token_ids: list[int]
    sampling_params: SamplingParams
    request_id: str | None = None
    stream: bool | None = False
    stream_options: StreamOptions | None = None
    return_token_ids: bool | None = None
    kv_transfer_params: dict[str, Any] | None = None


class TokenizeRequest(_Request):
    """POST /tokenize, of text or of a conversation."""

    prompt: str | None = None
    messages: list[dict[str, Any]] | None = None
    tools: list[dict[str, Any]] | None = None
    add_generation_prompt: bool = True
    continue_final_message: bool = False
    chat_template_kwargs: dict[str, Any] | None = None
    return_token_strs: bool | None = False
    required_prefix_token_ids: list[int] | None = None


class DetokenizeRequest(_Request):
    """POST /detokenize."""

    tokens: Ids


class CountTokensRequest(_Request):
    """POST /v1/messages/count_tokens."""

    messages: list[dict[str, Any]]
    system: str | list[dict[str, Any]] | None = None
    tools: list[dict[str, Any]] | None = None
