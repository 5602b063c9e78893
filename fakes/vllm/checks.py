"""What vLLM refuses, and in which words: checks on values that their types let through."""

import json
from collections.abc import Mapping
from typing import Any, TypeVar

import orjson
from pydantic import BaseModel, ValidationError

from fakes.vllm.errors import bad_json, invalid, refusal, unsupported_media_type, validation
from fakes.vllm.profiles import Profile
from fakes.vllm.requests import ChatRequest, CompletionRequest, Sampled

TEXT_PARTS = ("text", "refusal", "thinking")

R = TypeVar("R", bound=BaseModel)
Raw = dict[str, Any]


def read_json(content_type: str, body: bytes) -> Any:
    """The body as JSON.

    Numbers orjson refuses (``NaN``, integers beyond 64 bits) are read as Python's reader does, which vLLM uses.
    """
    if content_type.partition(";")[0].strip().lower() != "application/json":
        raise unsupported_media_type()
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError:
        return _read_slowly(body)


def _read_slowly(body: bytes) -> Any:
    try:
        return json.loads(body)
    except json.JSONDecodeError as error:
        raise bad_json(error.pos, error.msg) from None
    except (ValueError, RecursionError):
        # Not UTF-8, or an integer of more digits than Python reads.
        raise refusal("There was an error parsing the body", kind="Bad Request") from None


def parsed(kind: type[R], raw: Any) -> R:
    """The request in its declared type; raises the validation ``Refusal`` otherwise."""
    try:
        return kind.model_validate(raw)
    except ValidationError as error:
        raise validation(error.errors(include_url=False)) from None


def chat_request(raw: Any, profile: Profile) -> ChatRequest:
    """A chat request, its fields checked in vLLM's order."""
    if isinstance(raw, dict):
        _check_stream_options(raw, profile)
        _check_logprobs(raw, profile)
        _check_tools(raw, profile)
        _check_continuation(raw, profile)
        _check_cache_salt(raw, profile)
    return parsed(ChatRequest, raw)


def completion_request(raw: Any, profile: Profile) -> CompletionRequest:
    """A completion request, its fields checked in vLLM's order."""
    if isinstance(raw, dict):
        _check_stream_options(raw, profile)
        _check_prompt_logprobs(raw, profile)
        logprobs = raw.get("logprobs")
        if isinstance(logprobs, int) and logprobs < -1:
            raise invalid(profile, "`logprobs` must be a positive value or -1.", param="logprobs", value=logprobs)
        if not raw.get("prompt"):
            raise invalid(profile, "Either prompt or prompt_embeds must be provided and non-empty.", param="prompt")
        _check_cache_salt(raw, profile)
    return parsed(CompletionRequest, raw)


def _check_stream_options(raw: Raw, profile: Profile) -> None:
    if raw.get("stream_options") and not raw.get("stream"):
        raise invalid(profile, "Stream options can only be defined when `stream=True`.", param="stream_options")


def _check_prompt_logprobs(raw: Raw, profile: Profile) -> None:
    wanted = raw.get("prompt_logprobs")
    if wanted is None:
        return
    if not isinstance(wanted, int):
        raise invalid(profile, "`prompt_logprobs` must be an integer.", param="prompt_logprobs", value=wanted)
    if raw.get("stream") and (wanted > 0 or wanted == -1):
        raise invalid(profile, "`prompt_logprobs` are not available when `stream=True`.", param="prompt_logprobs")
    if wanted < -1:
        raise invalid(
            profile,
            "`prompt_logprobs` must be a positive value or -1.",
            param="prompt_logprobs",
            value=wanted,
        )


def _check_logprobs(raw: Raw, profile: Profile) -> None:
    _check_prompt_logprobs(raw, profile)
    wanted = raw.get("top_logprobs")
    if wanted is None:
        return
    if not isinstance(wanted, int):
        raise invalid(profile, "`top_logprobs` must be an integer.", param="top_logprobs", value=wanted)
    if wanted < -1:
        raise invalid(profile, "`top_logprobs` must be a positive value or -1.", param="top_logprobs", value=wanted)
    if wanted != 0 and not raw.get("logprobs"):
        raise invalid(profile, "when using `top_logprobs`, `logprobs` must be set to true.", param="top_logprobs")


def _check_tools(raw: Raw, profile: Profile) -> None:
    tools = raw.get("tools")
    if tools == [] and profile.refuses_empty_tools:
        raise invalid(
            profile,
            "`tools` must not be an empty array. Either provide at least one tool or omit the field entirely.",
            param="tools",
        )
    if "tool_choice" not in raw:
        if tools:
            raw["tool_choice"] = "auto"
        return
    choice = raw["tool_choice"]
    if choice is None or choice == "none":
        return
    if not tools:
        raise invalid(profile, "When using `tool_choice`, `tools` must be set.", param="tool_choice")
    if choice not in ("auto", "required") and not isinstance(choice, dict):
        raise invalid(
            profile,
            f'Invalid value for `tool_choice`: {choice}! Only named tools, "none", "auto" or "required" are supported.',
            param="tool_choice",
        )
    if isinstance(choice, dict):
        _check_named_tool(choice, tools, profile)


def _check_named_tool(choice: Raw, tools: Any, profile: Profile) -> None:
    usage = 'Correct usage: `{"type": "function", "function": {"name": "my_function"}}`'
    function = choice.get("function")
    if not isinstance(function, dict):
        raise invalid(
            profile,
            f"Invalid value for `function`: `{function}` in `tool_choice`! {usage}",
            param="tool_choice.function",
        )
    name = function.get("name")
    if name is None:
        raise invalid(
            profile,
            f"Expected field `name` in `function` in `tool_choice`! {usage}",
            param="tool_choice.function.name",
        )
    if name not in [_function(tool).get("name") for tool in (tools if isinstance(tools, list) else ())]:
        raise invalid(
            profile,
            "The tool specified in `tool_choice` does not match any of the specified `tools`",
            param="tool_choice",
        )


def _check_continuation(raw: Raw, profile: Profile) -> None:
    if raw.get("continue_final_message") and raw.get("add_generation_prompt"):
        raise invalid(profile, "Cannot set both `continue_final_message` and `add_generation_prompt` to True.")


def _check_cache_salt(raw: Raw, profile: Profile) -> None:
    salt = raw.get("cache_salt")
    if salt is not None and (not isinstance(salt, str) or not salt):
        raise invalid(profile, "Parameter 'cache_salt' must be a non-empty string if provided.", param="cache_salt")


def check_messages(request: ChatRequest, model: str, profile: Profile) -> None:
    """Refuse conversations the template cannot render."""
    if request.chat_template is not None:
        raise refusal(
            "Chat template is passed with request, but --trust-request-chat-template is not set. "
            "Refused request with untrusted chat template."
        )
    if not request.messages:
        raise refusal("Cannot apply chat template to an empty conversation. Provide at least one message.")
    for number, message in enumerate(request.messages):
        if not isinstance(message.get("role"), str):
            missing = {
                "type": "missing",
                "loc": ("messages", number, "role"),
                "msg": "Field required",
                "input": message,
            }
            raise validation([missing])
        content = message.get("content")
        for part in content if isinstance(content, list) else ():
            if isinstance(part, Mapping) and part.get("type", "text") not in TEXT_PARTS:
                raise refusal(f"{model} is not a multimodal model")
        if profile.refuses_malformed_history_arguments:
            _check_history_arguments(message)


def _check_history_arguments(message: Mapping[str, Any]) -> None:
    calls = message.get("tool_calls")
    for call in calls if isinstance(calls, list) else ():
        arguments = _function(call).get("arguments")
        if isinstance(arguments, str) and arguments:
            try:
                json.loads(arguments)
            except json.JSONDecodeError as error:
                raise refusal(str(error)) from None


def _function(holder: Any) -> Mapping[str, Any]:
    """The function of a tool or a call, however odd that is."""
    function = holder.get("function") if isinstance(holder, Mapping) else None
    return function if isinstance(function, Mapping) else {}


def check_sampling(request: Sampled, limit: int, wanted: int | None, profile: Profile) -> None:
    """Refuse values out of range. ``wanted`` is the number of tokens asked for, ``limit`` the model's length."""
    if request.n is not None and request.n < 1:
        raise invalid(profile, f"n must be at least 1, got {request.n}.")
    if wanted is not None and wanted > limit and profile.overlong == "input-tokens":
        raise invalid(
            profile,
            f"max_tokens={wanted} cannot be greater than max_model_len={limit}. Please request fewer output tokens.",
            param="max_tokens",
            value=wanted,
        )
    if wanted is not None and wanted < 1:
        raise invalid(profile, f"max_tokens must be at least 1, got {wanted}.", param="max_tokens", value=wanted)
    for name, low, high in (("presence_penalty", -2.0, 2.0), ("frequency_penalty", -2.0, 2.0)):
        value = getattr(request, name)
        if value is not None and not low <= value <= high:
            raise invalid(profile, f"{name} must be in [-2, 2], got {value}.")
    if request.temperature is not None and request.temperature < 0:
        raise invalid(
            profile,
            f"temperature must be non-negative, got {request.temperature}.",
            param="temperature",
            value=request.temperature,
        )
    if request.top_p is not None and not 0 < request.top_p <= 1:
        raise invalid(profile, f"top_p must be in (0, 1], got {request.top_p}.", param="top_p", value=request.top_p)


def check_logprob_count(count: int | None, allowed: int, profile: Profile, vocabulary: int) -> None:
    """Refuse more alternatives than ``--max-logprobs`` allows; -1 asks for the whole vocabulary."""
    if count is None:
        return
    shown = vocabulary if count == -1 else count
    if shown > allowed >= 0:
        raise invalid(
            profile,
            f"Requested sample logprobs of {shown}, which is greater than max allowed: {allowed}",
            param="logprobs",
            value=shown,
        )


def check_ids(ids: list[int], vocabulary: int) -> None:
    """Refuse ids that the model has no embedding for."""
    if ids and not 0 <= min(ids) <= max(ids) < vocabulary:
        first = next(token for token in ids if not 0 <= token < vocabulary)
        raise refusal(f"Token id {first} is out of vocabulary")


def token_in(request: ChatRequest, profile: Profile) -> list[int] | None:
    """Prompt ids that replace the template's, where the version takes them."""
    if not profile.chat_token_in or request.kv_transfer_params is None or request.echo:
        return None
    ids = request.kv_transfer_params.get("prompt_token_ids")
    if ids is None:
        return None
    if not isinstance(ids, list) or set(map(type, ids)) != {int} or min(ids) < 0:
        raise invalid(
            profile,
            "`kv_transfer_params['prompt_token_ids']` must be a non-empty list of non-negative integers.",
            param="kv_transfer_params.prompt_token_ids",
        )
    return ids
