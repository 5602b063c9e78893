"""POST /v1/completions, of texts and of token prompts."""

from typing import Any

from typing_extensions import TypeIs

from fakes.vllm import checks
from fakes.vllm.answers import AnswerOptions
from fakes.vllm.calls import Call
from fakes.vllm.chat import assert_trainer_sampling, served_model
from fakes.vllm.completion_answer import completion_body, completion_chunks
from fakes.vllm.forms import Form
from fakes.vllm.requests import CompletionRequest, stop_strings, usage_asked
from fakes.vllm.sample import SampleRequest
from fakes.vllm.serving import draw, serve

DEFAULT_MAX_TOKENS = 16
COMPLETION = Form(completion_body, completion_chunks)


async def completions(call: Call) -> None:
    """Answer a completion, one or several prompts at once."""
    request = checks.completion_request(await call.received("completions"), call.profile)
    model = served_model(call, request.model)
    call.note(model=model, streamed=bool(request.stream))
    wanted = wanted_tokens(request)
    checks.check_sampling(request, call.tenant.config.max_model_len, wanted, call.profile)
    checks.check_logprob_count(request.logprobs, call.tenant.config.max_logprobs, call.profile, call.world.words.size)
    if call.profile.nemo_rl:
        assert_trainer_sampling(request, call.tenant.config.trainer_sampling)
    asked = sample_requests(call, request, wanted)
    drawn = [draw(call, one, wanted, as_ids=one.prompt_token_ids is not None) for one in asked]
    names = call.identity("cmpl", request.request_id, model)
    await serve(call, drawn, COMPLETION, names, answer_options(request))


def wanted_tokens(request: CompletionRequest) -> int:
    return DEFAULT_MAX_TOKENS if request.max_tokens is None else request.max_tokens


def sample_requests(call: Call, request: CompletionRequest, wanted: int) -> list[SampleRequest]:
    """One engine request a prompt."""
    common: dict[str, Any] = {
        "tenant": call.tenant.name,
        "endpoint": "completions",
        "max_tokens": wanted,
        "stop": stop_strings(request.stop),
        "stop_token_ids": tuple(request.stop_token_ids or ()),
        "include_stop_str_in_output": request.include_stop_str_in_output,
        "n": request.n or 1,
        "alternatives": request.logprobs + 1 if request.logprobs else 0,
    }
    requests = []
    for prompt in prompts_of(request):
        if isinstance(prompt, str):
            requests.append(SampleRequest(prompt_text=prompt, **common))
        else:
            checks.check_ids(prompt, call.world.words.size)
            requests.append(SampleRequest(prompt_token_ids=prompt, **common))
    return requests


def prompts_of(request: CompletionRequest) -> list[str | list[int]]:
    """The prompts one by one, whichever of the four forms they came in."""
    prompt = request.prompt or ""
    if isinstance(prompt, str) or _are_ids(prompt):
        return [prompt]
    return [*prompt]


def _are_ids(prompt: list[int] | list[list[int]] | list[str]) -> TypeIs[list[int]]:
    """One look is enough: the request's type allows no mixture."""
    return isinstance(prompt[0], int)


def answer_options(request: CompletionRequest) -> AnswerOptions:
    include_usage, continuous_usage = usage_asked(request.stream_options)
    return AnswerOptions(
        logprobs=request.logprobs is not None,
        top_logprobs=request.logprobs,
        prompt_logprobs=request.prompt_logprobs,
        return_token_ids=bool(request.return_token_ids),
        as_token_ids=bool(request.return_tokens_as_token_ids),
        stop=stop_strings(request.stop),
        include_stop=request.include_stop_str_in_output,
        skip_hidden=request.skip_special_tokens,
        echo=bool(request.echo),
        stream=bool(request.stream),
        include_usage=include_usage,
        continuous_usage=continuous_usage,
        reasoning_parser=False,
        tool_parser=False,
    )
