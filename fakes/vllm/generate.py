"""POST /inference/v1/generate: tokens in, tokens out."""

from fakes.vllm import checks
from fakes.vllm.answers import AnswerOptions, Json, floored, placeholder, ranked, read, usage_of
from fakes.vllm.calls import Call
from fakes.vllm.chat import served_model
from fakes.vllm.chat_stream import Step, steps
from fakes.vllm.errors import refusal
from fakes.vllm.forms import Chunk, Form, Material
from fakes.vllm.requests import GenerateRequest, stop_strings, usage_asked
from fakes.vllm.sample import Sample, SampleRequest
from fakes.vllm.serving import draw, serve

DISABLED = "Scale-out endpoints are disabled. Restart vllm serve with --enable-scale-out to enable them."
DEFAULT_MAX_TOKENS = 16


async def generate(call: Call) -> None:
    """Answer a token prompt with tokens."""
    if call.profile.generate_needs_scale_out and not call.tenant.config.scale_out:
        raise refusal(DISABLED, kind="PermissionDeniedError", status=403)
    request = checks.parsed(GenerateRequest, await call.received("generate"))
    model = served_model(call, request.model)
    if request.stream and not call.profile.generate_streams:
        raise refusal("Streaming is not supported by this version.")
    call.note(model=model, streamed=bool(request.stream))
    checks.check_ids(request.token_ids, call.world.words.size)
    params = request.sampling_params
    checks.check_logprob_count(params.logprobs, call.tenant.config.max_logprobs, call.profile, call.world.words.size)
    wanted = params.max_tokens
    if wanted is None and call.profile.generate_default_16:
        wanted = DEFAULT_MAX_TOKENS
    sampled = SampleRequest(
        tenant=call.tenant.name,
        endpoint="generate",
        prompt_token_ids=request.token_ids,
        max_tokens=wanted,
        stop=stop_strings(params.stop),
        stop_token_ids=tuple(params.stop_token_ids or ()),
        include_stop_str_in_output=params.include_stop_str_in_output,
        n=params.n,
        alternatives=params.logprobs or 0,
    )
    drawn = draw(call, sampled, wanted, as_ids=True)
    names = call.identity("generate-tokens", request.request_id, model)
    await serve(call, [drawn], Form(generate_body, generate_chunks), names, answer_options(request))


def answer_options(request: GenerateRequest) -> AnswerOptions:
    params = request.sampling_params
    include_usage, continuous_usage = usage_asked(request.stream_options)
    return AnswerOptions(
        logprobs=params.logprobs is not None,
        top_logprobs=params.logprobs,
        return_token_ids=request.return_token_ids is not False,
        stop=stop_strings(params.stop),
        include_stop=params.include_stop_str_in_output,
        stream=bool(request.stream),
        include_usage=include_usage,
        continuous_usage=continuous_usage,
        reasoning_parser=False,
        tool_parser=False,
    )


def generate_body(material: Material) -> Json:
    """The buffered body: rich since 0.30, spare before."""
    return rich_body(material) if material.profile.generate_rich else spare_body(material)


def token_entries(sample: Sample, step: tuple[int, int], material: Material) -> list[Json]:
    """Log prob entries that name tokens by id, each with its rank."""
    wanted = material.options.top_logprobs or 0
    rich = material.profile.generate_rich
    entries: list[Json] = []
    for position in range(*step):
        pairs = ranked(sample, position, max(wanted, 1), material.words.size)[: max(wanted, 1)]
        shown = [_entry(token, value, rank, rich) for rank, (token, value) in enumerate(pairs, 1)]
        entries.append({**shown[0], "top_logprobs": shown})
    return entries


def _entry(token: int, log_prob: float, rank: int, rich: bool) -> Json:
    if rich:
        return {"token_id": token, "logprob": floored(log_prob), "rank": rank}
    name = placeholder(token)
    return {"token": name, "logprob": floored(log_prob), "bytes": list(name.encode())}


def _logprobs(sample: Sample, step: tuple[int, int], material: Material) -> Json | None:
    return {"content": token_entries(sample, step, material)} if material.options.logprobs else None


def rich_body(material: Material) -> Json:
    """The buffered body of 0.30 and later."""
    samples = material.samples[0]
    prompt = material.prompts[0]
    usage = usage_of(len(prompt), sum(len(s.token_ids) for s in samples))
    return {
        "request_id": material.identity.id,
        "model": material.identity.model,
        "created": material.identity.created,
        "usage": {**usage, "prompt_tokens_details": None, "completion_tokens_details": None},
        "prompt_logprobs": None,
        "prompt_token_id_logprobs": None,
        "prompt_token_ids": prompt if material.options.return_token_ids else None,
        "mm_placeholders": None,
        "metrics": None,
        "kv_transfer_params": None,
        "ec_transfer_params": None,
        "output_mode": "tokens",
        "choices": [
            _rich_choice(index, sample, (0, len(sample.token_ids)), True, material)
            for index, sample in enumerate(samples)
        ],
    }


def _rich_choice(index: int, sample: Sample, step: tuple[int, int], finished: bool, material: Material) -> Json:
    total = len(sample.token_ids)
    return {
        "index": index,
        "finish_reason": sample.finish_reason if finished else None,
        "stop_reason": sample.stop_reason if finished else None,
        "token_ids": sample.token_ids[slice(*step)],
        "routed_experts": None,
        "sampling_mask": None,
        "weight_versions": [{"version": "default", "start": 0, "end": total}] if finished else None,
        "logprobs": _logprobs(sample, step, material),
    }


def _spare_choice(index: int, sample: Sample, step: tuple[int, int], finished: bool, material: Material) -> Json:
    return {
        "index": index,
        "logprobs": _logprobs(sample, step, material),
        "finish_reason": sample.finish_reason if finished else None,
        "token_ids": sample.token_ids[slice(*step)],
    }


def spare_body(material: Material) -> Json:
    """The buffered body of 0.11.2 to 0.28."""
    return {
        "request_id": material.identity.id,
        "choices": [
            _spare_choice(index, sample, (0, len(sample.token_ids)), True, material)
            for index, sample in enumerate(material.samples[0])
        ],
        "prompt_logprobs": None,
        "kv_transfer_params": None,
    }


def generate_chunks(material: Material) -> list[Chunk]:
    """All chunks of a streamed answer; prompt ids only stand in the first."""
    options = material.options
    rows = [
        (index, sample, steps(read(sample, options, material.words), options, material.words))
        for index, sample in enumerate(material.samples[0])
    ]
    chunks: list[Chunk] = []
    for turn in range(max(len(row[2]) for row in rows)):
        for index, sample, cut in rows:
            if turn < len(cut):
                chunks.append(_chunk(index, sample, cut[turn], material, first=not chunks))
    if options.include_usage:
        generated = sum(len(sample.token_ids) for _, sample, _ in rows)
        usage = usage_of(len(material.prompts[0]), generated)
        body = {"request_id": material.identity.id, "usage": usage}
        if material.profile.generate_rich:
            body["output_mode"] = "tokens"
        chunks.append(Chunk({**body, "choices": []}))
    return chunks


def _chunk(index: int, sample: Sample, step: Step, material: Material, *, first: bool) -> Chunk:
    options = material.options
    usage = usage_of(len(material.prompts[0]), step.end) if options.continuous_usage else None
    body: Json = {"request_id": material.identity.id, "usage": usage}
    if first and options.return_token_ids:
        body["prompt_token_ids"] = material.prompts[0]
    choice = _rich_choice if material.profile.generate_rich else _spare_choice
    if material.profile.generate_rich:
        body["output_mode"] = "tokens"
    body["choices"] = [choice(index, sample, (step.start, step.end), step.finished, material)]
    return Chunk(body, step.end)
