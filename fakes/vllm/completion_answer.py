"""Text completions: bodies and chunks. Prompt ids and log probs stand in each choice here."""

from collections.abc import Sequence

from fakes.vllm.answers import (
    AnswerOptions,
    Identity,
    Json,
    PromptLogProbs,
    floored,
    placeholder,
    ranked,
    read,
    token_texts,
    usage_of,
)
from fakes.vllm.chat_stream import Step, steps
from fakes.vllm.detokenize import Detokenizer
from fakes.vllm.forms import Chunk, Material
from fakes.vllm.prompt_logprobs import prompt_logprobs
from fakes.vllm.sample import Sample


def completion_logprobs(
    sample: Sample, texts: Sequence[str], step: tuple[int, int], offset: int, options: AnswerOptions, words: Detokenizer
) -> Json:
    """Log probs of tokens ``step[0]`` to ``step[1]``; ``offset`` is where their text begins.

    Offsets count the tokens as shown, placeholders included. Equal texts at one position fall into one entry.
    """
    wanted = options.top_logprobs if options.top_logprobs is not None else 0
    tokens, values, tops, offsets = [], [], [], []
    for position in range(*step):
        token = sample.token_ids[position]
        shown = placeholder(token) if options.as_token_ids else texts[position]
        offsets.append(offset)
        offset += len(shown)
        tokens.append(shown)
        values.append(floored(sample.log_probs[position]))
        pairs = ranked(sample, position, wanted + 1 if wanted >= 0 else wanted, words.size)
        tops.append(
            {_shown(other, shown if other == token else None, options, words): floored(value) for other, value in pairs}
        )
    return {"text_offset": offsets, "token_logprobs": values, "tokens": tokens, "top_logprobs": tops}


def _shown(token: int, own: str | None, options: AnswerOptions, words: Detokenizer) -> str:
    if own is not None:
        return own
    return placeholder(token) if options.as_token_ids else words.alone([token])[0]


def echoed_logprobs(
    generated: Json, ids: Sequence[int], rows: PromptLogProbs, options: AnswerOptions, words: Detokenizer
) -> Json:
    """Log probs of prompt and generation in one; the first token has none."""
    tokens, values, tops, offsets = [], [], [], []
    offset = 0
    for token, text, row in zip(ids, words.alone(ids), rows, strict=True):
        shown = placeholder(token) if options.as_token_ids else text
        offsets.append(offset)
        offset += len(shown)
        tokens.append(shown)
        values.append(None if row is None else row[str(token)]["logprob"])
        tops.append(None if row is None else {shown: row[str(token)]["logprob"]})
    return {
        "text_offset": offsets + [offset + at for at in generated["text_offset"]],
        "token_logprobs": values + generated["token_logprobs"],
        "tokens": tokens + generated["tokens"],
        "top_logprobs": tops + generated["top_logprobs"],
    }


def completion_body(material: Material, rows: Sequence[PromptLogProbs | None] | None = None) -> Json:
    """The body of a buffered completion. ``rows`` are the prompts' log probs; without them they are made."""
    options, words, profile = material.options, material.words, material.profile
    choices: list[Json] = []
    generated = 0
    for number, (prompt, samples) in enumerate(zip(material.prompts, material.samples, strict=True)):
        row = rows[number] if rows is not None else _prompt_row(prompt, options, words)
        for sample in samples:
            choices.append(_choice(len(choices), prompt, sample, row, material))
            generated += len(sample.token_ids)
    usage = usage_of(sum(map(len, material.prompts)), generated)
    usage["prompt_tokens_details"] = None
    if profile.completion_details:
        usage["completion_tokens_details"] = None
    body: Json = {
        **_head(material.identity),
        "choices": choices,
        "service_tier": None,
        "system_fingerprint": profile.system_fingerprint,
        "usage": usage,
        "kv_transfer_params": None,
    }
    if profile.transfer_and_metrics:
        body["ec_transfer_params"] = None
        body["metrics"] = None
    return body


def _prompt_row(prompt: Sequence[int], options: AnswerOptions, words: Detokenizer) -> PromptLogProbs | None:
    if options.prompt_logprobs is not None:
        return prompt_logprobs(prompt, options.prompt_logprobs, words)
    if options.echo and options.logprobs:
        return prompt_logprobs(prompt, 0, words)
    return None


def _head(identity: Identity) -> Json:
    return {
        "id": identity.id,
        "object": "text_completion",
        "created": identity.created,
        "model": identity.model,
    }


def _choice(index: int, prompt: list[int], sample: Sample, row: PromptLogProbs | None, material: Material) -> Json:
    options, words, profile = material.options, material.words, material.profile
    reading = read(sample, options, words)
    text = reading.text
    if options.echo and not options.return_token_ids:
        text = words.text(prompt) + text
    logprobs = None
    if options.logprobs:
        texts = token_texts(sample.token_ids, options, words, profile)
        logprobs = completion_logprobs(sample, texts, (0, len(sample.token_ids)), 0, options, words)
        if options.echo and row is not None:
            logprobs = echoed_logprobs(logprobs, prompt, row, options, words)
    choice: Json = {
        "index": index,
        "text": text,
        "logprobs": logprobs,
        "finish_reason": sample.finish_reason,
        "stop_reason": sample.stop_reason,
        "token_ids": sample.token_ids if options.return_token_ids else None,
        "prompt_logprobs": row,
        "prompt_token_ids": prompt if options.return_token_ids else None,
    }
    if profile.routed_experts:
        choice["routed_experts"] = None
    return choice


def completion_chunks(material: Material) -> list[Chunk]:
    """All chunks of a streamed completion; prompt ids stand in the first chunk of each choice."""
    streams = [
        _CompletionStream(index, prompt, sample, material)
        for index, (prompt, sample) in enumerate(
            (prompt, sample)
            for prompt, samples in zip(material.prompts, material.samples, strict=True)
            for sample in samples
        )
    ]
    chunks: list[Chunk] = []
    for turn in range(max(len(s.steps) for s in streams)):
        chunks.extend(s.chunk(s.steps[turn]) for s in streams if turn < len(s.steps))
    if material.options.include_usage:
        generated = sum(len(s.sample.token_ids) for s in streams)
        body: Json = {
            **_head(material.identity),
            "choices": [],
            "usage": usage_of(sum(map(len, material.prompts)), generated),
        }
        if material.profile.fingerprint:
            body["system_fingerprint"] = material.profile.system_fingerprint
        chunks.append(Chunk(body))
    return chunks


class _CompletionStream:
    """One choice while its chunks are made."""

    def __init__(self, index: int, prompt: list[int], sample: Sample, material: Material) -> None:
        self.index = index
        self.prompt = prompt
        self.sample = sample
        self.material = material
        self.steps = steps(read(sample, material.options, material.words), material.options, material.words)
        self.texts = token_texts(sample.token_ids, material.options, material.words, material.profile)
        self.offset = 0
        self.first = True

    def chunk(self, step: Step) -> Chunk:
        options, profile = self.material.options, self.material.profile
        text = "".join(piece.text for piece in step.pieces)
        if self.first and options.echo and not options.return_token_ids:
            text = self.material.words.text(self.prompt) + text
        shows_prompt = self.first and options.return_token_ids
        self.first = False
        choice: Json = {
            "index": self.index,
            "text": text,
            "logprobs": self._logprobs(step) if options.logprobs else None,
            "finish_reason": self.sample.finish_reason if step.finished else None,
            "stop_reason": self.sample.stop_reason if step.finished else None,
            "prompt_token_ids": self.prompt if shows_prompt else None,
            "token_ids": self.sample.token_ids[step.start : step.end] if options.return_token_ids else None,
        }
        body: Json = {**_head(self.material.identity), "choices": [choice]}
        if options.continuous_usage:
            body["usage"] = usage_of(len(self.prompt), step.end)
        if step.finished and not options.include_usage and profile.fingerprint:
            body["system_fingerprint"] = profile.system_fingerprint
        return Chunk(body, step.end)

    def _logprobs(self, step: Step) -> Json:
        shown = completion_logprobs(
            self.sample, self.texts, (step.start, step.end), self.offset, self.material.options, self.material.words
        )
        if shown["tokens"]:
            self.offset = shown["text_offset"][-1] + len(shown["tokens"][-1])
        return shown
