"""The plain routes: health, version, load, models, tokenize, detokenize, count_tokens."""

import secrets
import time

from fakes.vllm import checks
from fakes.vllm.answers import Json
from fakes.vllm.calls import Call
from fakes.vllm.chat import normalised, required_prefix, served_model
from fakes.vllm.errors import Refusal, not_found, refusal
from fakes.vllm.requests import ChatRequest, CountTokensRequest, DetokenizeRequest, TokenizeRequest
from fakes.vllm.sample import SampleRequest
from fakes.vllm.tokenizer import letters


async def health(call: Call) -> None:
    """GET /health and /ping."""
    await call.answer(200, b"", None)


async def version(call: Call) -> None:
    """GET /version."""
    await call.answer_json({"version": call.profile.version})


async def load(call: Call) -> None:
    """GET /load: requests in flight for this tenant."""
    rows = call.world.ledger.listing(tenant=call.tenant.name).rows
    await call.answer_json({"server_load": sum(r.state in ("received", "held", "generating") for r in rows)})


async def models(call: Call) -> None:
    """GET /v1/models. Time and permission id are made anew each time, as recorded."""
    call.open_row("models", b"")
    if not call.tenant.config.lists_models:
        raise not_found()
    now = int(time.time())
    cards = [_card(name, now, call) for name in call.tenant.config.models]
    call.note(state="finished", status=200)
    await call.answer_json({"object": "list", "data": cards})


def _card(name: str, now: int, call: Call) -> Json:
    permission = {
        "id": f"modelperm-{secrets.token_hex(call.profile.id_hex // 2)}",
        "object": "model_permission",
        "created": now,
        "allow_create_engine": False,
        "allow_sampling": True,
        "allow_logprobs": True,
        "allow_search_indices": False,
        "allow_view": True,
        "allow_fine_tuning": False,
        "organization": "*",
        "group": None,
        "is_blocking": False,
    }
    return {
        "id": name,
        "object": "model",
        "created": now,
        "owned_by": "vllm",
        "root": call.tenant.config.models[0],
        "parent": None,
        "max_model_len": call.tenant.config.length_of(name),
        "permission": [permission],
    }


async def tokenize(call: Call) -> None:
    """POST /tokenize, of a text or of a conversation; lengths are not checked."""
    request = checks.parsed(TokenizeRequest, await call.received("tokenize"))
    model = served_model(call, request.model)
    ids = call.world.engine.render(_tokenized(call, request))
    words = call.world.words
    call.note(state="finished", status=200, model=model, prompt_token_ids=ids)
    await call.answer_json(
        {
            "count": len(ids),
            "max_model_len": call.tenant.config.length_of(model),
            "tokens": ids,
            "token_strs": [_spelled(words.bytes_of(token)) for token in ids] if request.return_token_strs else None,
        }
    )


def _tokenized(call: Call, request: TokenizeRequest) -> SampleRequest:
    if request.prompt is not None:
        return SampleRequest(tenant=call.tenant.name, endpoint="tokenize", prompt_text=request.prompt)
    chat = ChatRequest.model_construct(
        messages=request.messages or [], required_prefix_token_ids=request.required_prefix_token_ids
    )
    if not chat.messages:
        raise refusal("Cannot apply chat template to an empty conversation. Provide at least one message.")
    return SampleRequest(
        tenant=call.tenant.name,
        endpoint="tokenize",
        messages=normalised(chat.messages, call.profile),
        tools=request.tools,
        template_kwargs=request.chat_template_kwargs or {},
        add_generation_prompt=request.add_generation_prompt,
        continue_final_message=request.continue_final_message,
        prefix_token_ids=required_prefix(chat, call.profile),
    )


def _spelled(text: bytes) -> str:
    letter_of = letters()
    return "".join(letter_of[byte] for byte in text)


async def detokenize(call: Call) -> None:
    """POST /detokenize; special tokens stay."""
    request = checks.parsed(DetokenizeRequest, await call.received("detokenize"))
    served_model(call, request.model)
    checks.check_ids(request.tokens, call.world.words.size)
    call.note(state="finished", status=200)
    await call.answer_json({"prompt": call.world.words.text(request.tokens)})


async def count_tokens(call: Call) -> None:
    """POST /v1/messages/count_tokens."""
    request = checks.parsed(CountTokensRequest, await call.received("count_tokens"))
    model = _anthropic_model(call, request.model)
    messages = list(request.messages)
    if request.system is not None:
        messages.insert(0, {"role": "system", "content": request.system})
    sampled = SampleRequest(
        tenant=call.tenant.name, endpoint="count_tokens", messages=messages, tools=_functions(request.tools)
    )
    count = len(call.world.engine.render(sampled))
    call.note(state="finished", status=200, model=model)
    await call.answer_json({"input_tokens": count, "context_management": {"original_input_tokens": count}})


def _functions(tools: list[Json] | None) -> list[Json] | None:
    if not tools:
        return None
    return [
        {
            "type": "function",
            "function": {
                "name": tool.get("name"),
                "description": tool.get("description"),
                "parameters": tool.get("input_schema"),
            },
        }
        for tool in tools
    ]


async def messages(call: Call) -> None:
    """POST /v1/messages: only its refusals; no proxy that captures tokens can use it, as it gives none."""
    raw = await call.received("messages")
    _anthropic_model(call, raw.get("model") if isinstance(raw, dict) else None)
    raise _anthropic("NotImplementedError", "This server generates on the OpenAI routes only.", 501)


def _anthropic_model(call: Call, asked: str | None) -> str:
    try:
        return served_model(call, asked)
    except Refusal as error:
        raise _anthropic("NotFoundError", error.message, error.status) from None


def _anthropic(kind: str, message: str, status: int) -> Refusal:
    return Refusal(status, {"type": "error", "error": {"type": kind, "message": message}})
