"""A buffered chat completion: from samples to the body, key for key as vLLM writes it."""

from collections.abc import Sequence

from fakes.vllm.answers import (
    AnswerOptions,
    Identity,
    Json,
    Reading,
    Usage,
    floored,
    placeholder,
    ranked,
    read,
    token_texts,
    usage_of,
)
from fakes.vllm.detokenize import Detokenizer
from fakes.vllm.forms import Material
from fakes.vllm.parsers import CALL_START, THINK_END, THINK_START, ParsedCall, extract_calls, split_reasoning
from fakes.vllm.profiles import Profile
from fakes.vllm.prompt_logprobs import prompt_logprobs
from fakes.vllm.sample import Sample


def chat_entries(sample: Sample, options: AnswerOptions, words: Detokenizer, profile: Profile) -> list[Json]:
    """One log prob entry per generated token.

    With ``as_token_ids`` the entry's own ``bytes`` stay those of the text, while those of ``top_logprobs`` spell the
    placeholder, as recorded.
    """
    texts = token_texts(sample.token_ids, options, words, profile)
    wanted = options.top_logprobs or 0
    entries: list[Json] = []
    for position, (token, log_prob, text) in enumerate(zip(sample.token_ids, sample.log_probs, texts, strict=True)):
        entries.append(
            {
                "token": placeholder(token) if options.as_token_ids else text,
                "logprob": floored(log_prob),
                "bytes": list(text.encode()),
                "top_logprobs": _top(sample, position, text, wanted, options, words) if wanted else [],
            }
        )
    return entries


def _top(
    sample: Sample, position: int, text: str, wanted: int, options: AnswerOptions, words: Detokenizer
) -> list[Json]:
    pairs = ranked(sample, position, wanted, words.size)
    out: list[Json] = []
    for token, log_prob in pairs[: wanted if wanted > 0 else None]:
        own = token == sample.token_ids[position]
        shown = placeholder(token) if options.as_token_ids else text if own else words.alone([token])[0]
        out.append({"token": shown, "logprob": floored(log_prob), "bytes": list(shown.encode())})
    return out


def shows_logprobs(options: AnswerOptions, profile: Profile) -> bool:
    """Whether a choice carries log probs at all."""
    if not options.logprobs:
        return False
    return not (options.top_logprobs is None and profile.null_top_logprobs_drop_logprobs)


def hides_metadata(options: AnswerOptions, profile: Profile) -> bool:
    """Whether ids and log probs are held back because the client hides reasoning."""
    parsed = options.reasoning_parser or options.tool_parser
    return not options.include_reasoning and parsed and profile.hides_metadata_with_reasoning


def reasoning_tokens(ids: Sequence[int], options: AnswerOptions, words: Detokenizer) -> int:
    """Tokens spent on reasoning: those before its end, the tags themselves and end tokens not counted."""
    if not (options.reasoning_parser and options.thinking):
        return 0
    count = 0
    for token in ids:
        mark = words.marks.get(token)
        if mark in (THINK_END, CALL_START):
            break
        count += mark != THINK_START and token not in words.hidden
    return count


def chat_usage(
    prompt_tokens: int, samples: Sequence[Sample], options: AnswerOptions, words: Detokenizer, profile: Profile
) -> Usage:
    """Usage of a buffered answer, its detail keys as the version has them."""
    usage = usage_of(prompt_tokens, sum(len(s.token_ids) for s in samples))
    usage["prompt_tokens_details"] = None
    if profile.completion_details:
        usage["completion_tokens_details"] = (
            {"reasoning_tokens": sum(reasoning_tokens(s.token_ids, options, words) for s in samples)}
            if options.reasoning_parser
            else None
        )
    return usage


def parse_message(
    reading: Reading, options: AnswerOptions, profile: Profile
) -> tuple[str | None, str | None, list[ParsedCall]]:
    """Reasoning, content and calls of a finished generation."""
    reasoning: str | None = None
    content: str | None = reading.text
    if options.reasoning_parser:
        reasoning, content = split_reasoning(
            reading.text,
            thinking=options.thinking,
            needs_both_tags=profile.buffered_reasoning_needs_both_tags,
        )
        if not options.include_reasoning:
            reasoning = None
    calls: list[ParsedCall] = []
    if options.tools != "none" and options.tool_parser and content is not None:
        calls, content = extract_calls(content)
    if options.tools in ("required", "named"):
        content = content or ""
    return reasoning, content, calls


def message_of(
    reasoning: str | None, content: str | None, calls: list[Json], options: AnswerOptions, profile: Profile
) -> Json:
    """The assistant message with its keys in order."""
    message: Json = {
        "role": options.role,
        "content": content,
        "refusal": None,
        "annotations": None,
        "audio": None,
        "function_call": None,
    }
    if calls or profile.empty_tool_calls:
        message["tool_calls"] = calls
    for key in profile.reasoning_keys:
        message[key] = reasoning
    return message


def _scripted_message(scripted: Json, index: int, options: AnswerOptions, names: Identity, profile: Profile) -> Json:
    calls = [
        {
            "id": call.get("id") or names.call_id(index, number, profile),
            "type": "function",
            "function": call["function"],
        }
        for number, call in enumerate(scripted.get("tool_calls") or [])
    ]
    reasoning = scripted.get("reasoning", scripted.get("reasoning_content"))
    message = message_of(reasoning, scripted.get("content"), calls, options, profile)
    known = {*message, "tool_calls", "reasoning", "reasoning_content"}
    return message | {key: value for key, value in scripted.items() if key not in known}


def spoken(
    index: int, reading: Reading, options: AnswerOptions, names: Identity, profile: Profile
) -> tuple[Json, bool]:
    """The message of choice ``index``, and whether it calls a tool."""
    scripted = reading.sample.message
    if scripted is not None:
        message = _scripted_message(scripted, index, options, names, profile)
        return message, bool(message.get("tool_calls"))
    reasoning, content, calls = parse_message(reading, options, profile)
    shown = calls if options.parallel_calls else calls[:1]
    dressed = [
        {
            "id": names.call_id(index, number, profile),
            "type": "function",
            "function": {"name": call.name, "arguments": call.arguments},
        }
        for number, call in enumerate(shown)
    ]
    return message_of(reasoning, content, dressed, options, profile), bool(calls)


def buffered_finish(sample: Sample, called: bool, options: AnswerOptions, profile: Profile) -> str:
    """The finish reason a buffered answer shows."""
    stopped = sample.finish_reason == "stop"
    if options.tools == "required" and stopped:
        return "tool_calls"
    if options.tools == "auto" and called and (stopped or profile.calls_hide_length_buffered):
        return "tool_calls"
    return sample.finish_reason


def chat_choice(index: int, sample: Sample, material: Material) -> Json:
    """One choice of a buffered chat completion."""
    options, words, profile = material.options, material.words, material.profile
    hidden = hides_metadata(options, profile)
    message, called = spoken(index, read(sample, options, words), options, material.identity, profile)
    shown = shows_logprobs(options, profile) and not hidden
    choice: Json = {
        "index": index,
        "message": message,
        "logprobs": {"content": chat_entries(sample, options, words, profile)} if shown else None,
        "finish_reason": buffered_finish(sample, called, options, profile),
        "stop_reason": sample.stop_reason,
        "token_ids": sample.token_ids if options.return_token_ids and not hidden else None,
    }
    if profile.routed_experts:
        choice["routed_experts"] = None
    if profile.choice_weight_versions:
        choice["weight_versions"] = None
    return choice


def add_triple(body: Json, prompt_ids: list[int], samples: Sequence[Sample]) -> None:
    """NeMo-RL's server repeats prompt ids, ids and log probs in each message.

    As lists of their own: a fault that shortens one of them must not shorten the other by the same stroke.
    """
    for choice, sample in zip(body["choices"], samples, strict=True):
        choice["message"] |= {
            "prompt_token_ids": list(prompt_ids),
            "generation_token_ids": list(sample.token_ids),
            "generation_log_probs": list(sample.log_probs),
        }


def chat_body(material: Material) -> Json:
    """The body of a buffered chat completion."""
    options, words, profile = material.options, material.words, material.profile
    prompt_ids, samples = material.prompts[0], material.samples[0]
    wanted = options.prompt_logprobs
    body: Json = {
        "id": material.identity.id,
        "object": "chat.completion",
        "created": material.identity.created,
        "model": material.identity.model,
        "choices": [chat_choice(index, sample, material) for index, sample in enumerate(samples)],
        "service_tier": None,
        "system_fingerprint": profile.system_fingerprint,
        "usage": chat_usage(len(prompt_ids), samples, options, words, profile),
        "prompt_logprobs": prompt_logprobs(prompt_ids, wanted, words) if wanted is not None else None,
        "prompt_token_ids": prompt_ids if options.return_token_ids else None,
    }
    if profile.prompt_text:
        body["prompt_text"] = material.prompt_text
    body["kv_transfer_params"] = None
    if profile.transfer_and_metrics:
        body["ec_transfer_params"] = None
        body["metrics"] = None
    if profile.nemo_rl:
        add_triple(body, prompt_ids, samples)
    return body
