"""POST /v1/chat/completions, and its render."""

from collections.abc import Mapping, Sequence
from typing import Any

from fakes.vllm import checks
from fakes.vllm.answers import AnswerOptions, ToolMode
from fakes.vllm.calls import Call
from fakes.vllm.chat_answer import chat_body
from fakes.vllm.chat_stream import chat_chunks
from fakes.vllm.detokenize import Detokenizer
from fakes.vllm.errors import refusal, unknown_model
from fakes.vllm.forms import Form
from fakes.vllm.parsers import THINK_END, THINK_START
from fakes.vllm.profiles import Profile
from fakes.vllm.requests import ChatRequest, Sampled, stop_strings, usage_asked
from fakes.vllm.sample import SampleRequest
from fakes.vllm.serving import draw, serve
from fakes.vllm.tenants import TrainerSampling

MESSAGE_KEYS = ("role", "content", "name", "tool_calls", "tool_call_id", "reasoning", "reasoning_content", "tools")

CHAT = Form(chat_body, chat_chunks)


async def chat_completions(call: Call) -> None:
    """Answer a chat completion."""
    request = checks.chat_request(await call.received("chat"), call.profile)
    model = served_model(call, request.model)
    call.note(model=model, streamed=bool(request.stream))
    checks.check_messages(request, model, call.profile)
    wanted = wanted_tokens(request)
    config = call.tenant.config
    checks.check_sampling(request, config.max_model_len, wanted, call.profile)
    if request.logprobs:
        checks.check_logprob_count(request.top_logprobs, config.max_logprobs, call.profile, call.world.words.size)
    _check_tool_parser(call, request)
    if call.profile.nemo_rl:
        assert_trainer_sampling(request, config.trainer_sampling)
    sampled = sample_request(call, request)
    drawn = draw(call, sampled, wanted, as_ids=sampled.prompt_token_ids is not None)
    options = answer_options(call, request, drawn.prompt_token_ids)
    text = call.world.words.text(drawn.prompt_token_ids) if options.return_prompt_text else None
    names = call.identity("chatcmpl", request.request_id, model)
    await serve(call, [drawn], CHAT, names, options, text)


def served_model(call: Call, asked: str | None) -> str:
    """The served name a request means; nothing, or an empty name, means the first."""
    served = call.tenant.config.models
    if not asked:
        return served[0]
    if asked not in served:
        raise unknown_model(call.profile, asked, served)
    return asked


def wanted_tokens(request: ChatRequest) -> int | None:
    return request.max_tokens if request.max_completion_tokens is None else request.max_completion_tokens


def _check_tool_parser(call: Call, request: ChatRequest) -> None:
    if request.tool_choice == "auto" and request.tools and call.tenant.config.tool_parser is None:
        raise refusal('"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set')


def assert_trainer_sampling(request: Sampled, trainer: TrainerSampling) -> None:
    """NeMo-RL's server asserts the trainer's own sampling; anything else is an unhandled error."""
    seen = (
        ("temperature", request.temperature, trainer.temperature, (trainer.temperature,)),
        ("top_p", request.top_p, trainer.top_p, (trainer.top_p,)),
        ("top_k", request.top_k, trainer.top_k, (trainer.top_k,) if trainer.top_k is not None else (None, -1)),
    )
    for name, value, expected, allowed in seen:
        if value not in allowed:
            message = f"{name} of the request must be that of the trainer: expected {expected}, got {value}"
            raise refusal(message, kind="InternalServerError", status=500)


def sample_request(call: Call, request: ChatRequest) -> SampleRequest:
    """The request as the engine takes it."""
    ids = checks.token_in(request, call.profile)
    if ids is not None:
        checks.check_ids(ids, call.world.words.size)
    return SampleRequest(
        tenant=call.tenant.name,
        endpoint="chat",
        messages=normalised(request.messages, call.profile) if ids is None else None,
        tools=request.tools,
        tool_choice=request.tool_choice,
        template_kwargs=template_kwargs(request),
        add_generation_prompt=request.add_generation_prompt,
        continue_final_message=request.continue_final_message,
        prompt_token_ids=ids,
        prefix_token_ids=required_prefix(request, call.profile),
        max_tokens=wanted_tokens(request),
        stop=stop_strings(request.stop),
        stop_token_ids=tuple(request.stop_token_ids or ()),
        include_stop_str_in_output=request.include_stop_str_in_output,
        n=request.n or 1,
        alternatives=_alternatives(request.top_logprobs, call.world.words) if request.logprobs else 0,
        streamed=bool(request.stream),
    )


def _alternatives(wanted: int | None, words: Detokenizer) -> int:
    return words.size if wanted == -1 else wanted or 0


def template_kwargs(request: ChatRequest) -> dict[str, Any]:
    """What the template is told; an effort of ``none`` turns thinking off."""
    kwargs = dict(request.chat_template_kwargs or {})
    if request.reasoning_effort is not None:
        kwargs.setdefault("enable_thinking", request.reasoning_effort != "none")
    return kwargs


def normalised(messages: Sequence[Mapping[str, Any]], profile: Profile) -> list[dict[str, Any]]:
    """Messages with the keys the version reads; history reasoning comes out as ``reasoning`` or is lost."""
    out = []
    for message in messages:
        kept = {key: message[key] for key in MESSAGE_KEYS if key in message}
        given = kept.pop("reasoning_content", None)
        own = kept.pop("reasoning", None)
        if profile.history_reasoning == "either" and own is None:
            own = given
        if profile.history_reasoning != "none" and own is not None:
            kept["reasoning"] = own
        out.append(kept)
    return out


def required_prefix(request: ChatRequest, profile: Profile) -> list[int] | None:
    """NeMo-RL's prefix: as given, else what the last message that carries ids says."""
    if not profile.nemo_rl:
        return None
    if request.required_prefix_token_ids is not None:
        return request.required_prefix_token_ids
    for message in reversed(request.messages):
        if message.get("prompt_token_ids") is not None:
            return [*message["prompt_token_ids"], *message.get("generation_token_ids", ())]
    return None


def tool_mode(request: ChatRequest) -> ToolMode:
    choice = request.tool_choice
    if isinstance(choice, dict):
        return "named"
    if not request.tools or choice == "none":
        return "none"
    return choice if choice is not None else "auto"


def answer_options(call: Call, request: ChatRequest, prompt_ids: Sequence[int]) -> AnswerOptions:
    """What the answer looks like, from the request, the tenant and the prompt."""
    config = call.tenant.config
    mode = tool_mode(request)
    include_usage, continuous_usage = usage_asked(request.stream_options)
    reasons = config.reasoning_parser is not None
    # The hermes parser and the reasoning parser both ask for special tokens to stay in the text.
    keeps_special = reasons or mode != "none"
    return AnswerOptions(
        logprobs=bool(request.logprobs),
        top_logprobs=request.top_logprobs,
        prompt_logprobs=request.prompt_logprobs,
        return_token_ids=bool(request.return_token_ids),
        return_prompt_text=bool(request.return_prompt_text) and call.profile.prompt_text,
        as_token_ids=bool(request.return_tokens_as_token_ids),
        include_reasoning=request.include_reasoning,
        tools=mode,
        parallel_calls=request.parallel_tool_calls is not False,
        stop=stop_strings(request.stop),
        include_stop=request.include_stop_str_in_output,
        skip_hidden=request.skip_special_tokens and not keeps_special,
        thinking=bool(template_kwargs(request).get("enable_thinking", True)),
        reasoning_open=reasoning_open(prompt_ids, call.world.words),
        stream=bool(request.stream),
        include_usage=include_usage,
        continuous_usage=continuous_usage,
        reasoning_parser=reasons,
        tool_parser=config.tool_parser is not None,
        role="assistant" if request.add_generation_prompt else str(request.messages[-1].get("role", "assistant")),
    )


def reasoning_open(prompt_ids: Sequence[int], words: Detokenizer) -> bool:
    """Whether the prompt's last turn leaves reasoning open, as the streaming parser sees it."""
    for token in reversed(prompt_ids):
        mark = words.marks.get(token)
        if mark == THINK_END:
            return False
        if mark == THINK_START or token in words.turn_borders:
            return True
    return True
