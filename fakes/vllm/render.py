"""POST /v1/chat/completions/render and /v1/completions/render: prompts as ids, without generating."""

from fakes.vllm import checks, completions
from fakes.vllm.answers import Json
from fakes.vllm.calls import Call
from fakes.vllm.chat import reasoning_open, sample_request, served_model, template_kwargs, wanted_tokens
from fakes.vllm.requests import ChatRequest, Sampled, stop_strings


async def render_chat(call: Call) -> None:
    """POST /v1/chat/completions/render: the prompt, without generating."""
    request = checks.chat_request(await call.received("render"), call.profile)
    model = served_model(call, request.model)
    checks.check_messages(request, model, call.profile)
    sampled = sample_request(call, request)
    ids = call.world.engine.render(sampled)
    names = call.identity("chatcmpl", request.request_id, model)
    call.note(state="finished", status=200, request_id=names.id, model=model, prompt_token_ids=ids)
    await call.answer_json(_rendered(names.id, model, ids, request, call))


def _rendered(request_id: str, model: str, ids: list[int], request: ChatRequest, call: Call) -> Json:
    kwargs = {
        "cohere_format": "cmd4",
        **template_kwargs(request),
        "add_generation_prompt": request.add_generation_prompt,
        "continue_final_message": request.continue_final_message,
    }
    reasons = call.tenant.config.reasoning_parser is not None
    thinking = kwargs.get("enable_thinking", True) is not False
    return {
        "request_id": request_id,
        "token_ids": ids,
        "token_offsets": None,
        "features": None,
        "content_parts": None,
        "sampling_params": rendered_sampling(request, wanted_tokens(request), call, len(ids)),
        "model": model,
        "reasoning_ended": (not thinking or not reasoning_open(ids, call.world.words)) if reasons else None,
        "reasoning_parser_kwargs": {"chat_template_kwargs": kwargs} if reasons else None,
        "return_token_ids": request.return_token_ids,
        "output_mode": "tokens",
        "stream": bool(request.stream),
        "stream_options": None,
        "cache_salt": request.cache_salt,
        "priority": request.priority,
        "kv_transfer_params": request.kv_transfer_params,
        "ec_transfer_params": None,
    }


def rendered_sampling(request: Sampled, wanted: int | None, call: Call, prompt_tokens: int) -> Json:
    """The sampling parameters a rendered request carries; Qwen3's own defaults where the client gave none."""
    room = call.tenant.config.max_model_len - prompt_tokens
    return {
        "presence_penalty": request.presence_penalty or 0.0,
        "frequency_penalty": request.frequency_penalty or 0.0,
        "repetition_penalty": 1.0 if request.repetition_penalty is None else request.repetition_penalty,
        "temperature": 0.6 if request.temperature is None else request.temperature,
        "top_p": 0.95 if request.top_p is None else request.top_p,
        "top_k": 20 if request.top_k is None else request.top_k,
        "min_p": 0.0 if request.min_p is None else request.min_p,
        "stop": stop_strings(request.stop),
        "stop_token_ids": request.stop_token_ids or [],
        "max_tokens": room if wanted is None else min(wanted, room),
        "skip_special_tokens": False,
        "output_kind": 2,
        "skip_clone": True,
        "bad_words": [],
        "skip_reading_prefix_cache": False,
    }


async def render_completion(call: Call) -> None:
    """POST /v1/completions/render: the prompts as ids, without generating."""
    request = checks.completion_request(await call.received("render"), call.profile)
    model = served_model(call, request.model)
    wanted = completions.wanted_tokens(request)
    names = call.identity("cmpl", request.request_id, model)
    rendered = []
    for one in completions.sample_requests(call, request, wanted):
        ids = call.world.engine.render(one)
        rendered.append(
            {
                "request_id": names.id,
                "token_ids": ids,
                "sampling_params": rendered_sampling(request, wanted, call, len(ids)),
                "model": model,
            }
        )
    call.note(state="finished", status=200, request_id=names.id, model=model)
    await call.answer_json(rendered)
