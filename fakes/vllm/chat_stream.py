"""A streamed chat completion: from samples to the list of chunks, nulls and missing keys as vLLM has them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from fakes.vllm.answers import AnswerOptions, Json, Reading, Usage, read, usage_of
from fakes.vllm.chat_answer import (
    chat_entries,
    hides_metadata,
    reasoning_tokens,
    shows_logprobs,
)
from fakes.vllm.deltas import CallDelta, Delta, DeltaParser, Released, StreamParsing
from fakes.vllm.detokenize import HIDDEN, Detokenizer
from fakes.vllm.forms import Chunk, Material
from fakes.vllm.profiles import Profile
from fakes.vllm.sample import Sample


@dataclass(frozen=True, slots=True)
class Step:
    """Tokens ``start`` to ``end`` of a generation, and the text they let go."""

    start: int
    end: int
    pieces: list[Released]
    finished: bool


def step_bounds(total: int, chunking: Sequence[int], empty_end: bool) -> Iterator[tuple[int, int]]:
    """Ranges of tokens a chunk carries: the sizes of ``chunking`` first, then one token each."""
    yield from _bounds(total, chunking)
    if empty_end or not total:
        yield total, total


def _bounds(total: int, chunking: Sequence[int]) -> Iterator[tuple[int, int]]:
    start = 0
    for size in chunking:
        if start >= total:
            return
        end = min(total, start + max(size, 0))
        yield start, end
        start = end
    while start < total:
        yield start, start + 1
        start += 1


def steps(reading: Reading, options: AnswerOptions, words: Detokenizer) -> list[Step]:
    """The generation cut into steps. With stop strings, text lags by one less than the longest of them."""
    sample = reading.sample
    lag = max(map(len, options.stop)) - 1 if options.stop and not options.include_stop else 0
    bounds = list(step_bounds(len(sample.token_ids), sample.chunking, options.empty_end))
    if not lag:
        return [
            Step(start, end, _released(reading, start, end, words), number == len(bounds) - 1)
            for number, (start, end) in enumerate(bounds)
        ]
    return _lagging(reading, bounds, lag, words)


def _released(reading: Reading, start: int, end: int, words: Detokenizer) -> list[Released]:
    ids = reading.sample.token_ids
    return [
        Released(piece, _mark(ids[start + offset], words))
        for offset, piece in enumerate(reading.pieces[start:end])
        if piece
    ]


def _mark(token: int, words: Detokenizer) -> str | None:
    mark = words.marks.get(token)
    if mark is None and token in words.hidden:
        return next((name for name in HIDDEN if words.bytes_of(token) == name.encode()), None)
    return mark


def _lagging(reading: Reading, bounds: list[tuple[int, int]], lag: int, words: Detokenizer) -> list[Step]:
    """Steps whose text is let go ``lag`` characters late; an added token is let go in one piece."""
    waiting = [
        Released(piece, _mark(token, words))
        for token, piece in zip(reading.sample.token_ids, reading.pieces, strict=True)
        if piece
    ]
    produced = released = 0
    out = []
    for number, (start, end) in enumerate(bounds):
        produced += sum(map(len, reading.spoken[start:end]))
        finished = number == len(bounds) - 1
        room = (produced if finished else produced - lag) - released
        pieces: list[Released] = []
        while waiting and room > 0:
            piece = waiting[0]
            if len(piece.text) <= room:
                pieces.append(waiting.pop(0))
            elif piece.mark is not None:
                break
            else:
                pieces.append(Released(piece.text[:room]))
                waiting[0] = Released(piece.text[room:])
            room -= len(pieces[-1].text)
            released += len(pieces[-1].text)
        out.append(Step(start, end, pieces, finished))
    return out


class _ChoiceStream:
    """The state of one choice while its chunks are made."""

    def __init__(self, index: int, sample: Sample, material: Material) -> None:
        self.index = index
        self.names = material.identity
        self.sample = sample
        self.options = options = material.options
        self.profile = profile = material.profile
        self.words = words = material.words
        self.steps = steps(read(sample, options, words), options, words)
        self.hidden = hides_metadata(options, profile)
        self.shown = shows_logprobs(options, profile) and not self.hidden
        self.entries = chat_entries(self.sample, options, words, profile) if self.shown else []
        self.called = False
        self.scripted = _scripted_deltas(self.sample.message) if self.sample.message is not None else None
        parsing = StreamParsing(
            reasoning=options.reasoning_parser,
            reasoning_open=options.thinking and options.reasoning_open,
            calls=options.tool_parser and options.tools != "none",
            include_reasoning=options.include_reasoning,
            needs_start_tag=profile.buffered_reasoning_needs_both_tags,
        )
        self.parsed = options.reasoning_parser or options.tool_parser
        self.parser = DeltaParser(parsing)

    def delta(self, step: Step) -> Delta:
        if self.scripted is not None:
            shown = self.scripted[step.start : None if step.finished else step.end]
            return _joined(shown)
        return self.parser.feed(step.pieces, finished=step.finished)

    def choice(self, step: Step) -> Json | None:
        """The choice of one chunk, or None when vLLM sends none for this step."""
        delta = self.delta(step)
        self.called = self.called or bool(delta.calls)
        if not delta and self.parsed and not step.finished and self._is_skipped():
            return None
        choice: Json = {
            "index": self.index,
            "delta": self._delta_json(delta, step),
            "logprobs": {"content": self._entries(step)} if self.shown else None,
            "finish_reason": None,
        }
        if step.finished:
            choice["finish_reason"] = self._finish()
            choice["stop_reason"] = self.sample.stop_reason
        shows_ids = self.options.return_token_ids and not self.hidden
        choice["token_ids"] = self.sample.token_ids[step.start : step.end] if shows_ids else None
        return choice

    def _entries(self, step: Step) -> list[Json]:
        if step.start == step.end and step.finished and self.profile.repeats_logprobs_at_empty_end:
            return self.entries
        return self.entries[step.start : step.end]

    def _is_skipped(self) -> bool:
        if self.profile.drops_hidden_ids:
            return True
        if self.options.return_token_ids and not self.hidden:
            return False
        return self.profile.drops_hidden_logprobs or not self.shown

    def _finish(self) -> str:
        stopped = self.sample.finish_reason == "stop"
        masks = stopped or self.profile.calls_hide_length_streamed
        if self.called and self.options.tools != "named" and masks:
            return "tool_calls"
        return self.sample.finish_reason

    def _delta_json(self, delta: Delta, step: Step) -> Json:
        out: Json = {}
        calls = delta.calls
        if delta.content is not None or calls:
            out["content"] = delta.content
        elif not self.parsed and delta.reasoning is None:
            out["content"] = ""
        if delta.reasoning is not None:
            for key in self.profile.reasoning_keys:
                out[key] = delta.reasoning
        if not self.options.parallel_calls:
            calls = [call for call in calls if call.index == 0]
        if calls:
            out["tool_calls"] = [self._call_json(call) for call in calls]
            if step.finished and self.scripted is None:
                out["tool_calls"][-1]["function"].setdefault("arguments", "")
        return out

    def _call_json(self, call: CallDelta) -> Json:
        if call.name is None:
            return {"index": call.index, "function": {"arguments": call.arguments}}
        function = {"name": call.name}
        if call.arguments is not None:
            function["arguments"] = call.arguments
        identity = call.id or self.names.call_id(self.index, call.index, self.profile)
        return {"id": identity, "type": "function", "index": call.index, "function": function}

    def reasoning_tokens(self, end: int) -> int:
        return reasoning_tokens(self.sample.token_ids[:end], self.options, self.words)


def _scripted_deltas(message: Json) -> list[Delta]:
    """A scripted message as deltas, one a token: reasoning, content, then the calls."""
    out = []
    reasoning = message.get("reasoning", message.get("reasoning_content"))
    if reasoning is not None:
        out.append(Delta(reasoning=reasoning))
    if message.get("content") is not None:
        out.append(Delta(content=message["content"]))
    for index, call in enumerate(message.get("tool_calls") or []):
        function = call["function"]
        begin = CallDelta(index, name=function["name"], id=call.get("id"))
        out.append(Delta(calls=[begin, CallDelta(index, arguments=function.get("arguments", ""))]))
    return out


def _joined(deltas: Sequence[Delta]) -> Delta:
    joined = Delta()
    for delta in deltas:
        joined.reasoning = delta.reasoning if joined.reasoning is None else joined.reasoning
        joined.content = delta.content if joined.content is None else joined.content
        joined.calls.extend(delta.calls)
    return joined


def chat_chunks(material: Material) -> list[Chunk]:
    """All chunks of a streamed chat completion, ``[DONE]`` not among them."""
    prompt_tokens = len(material.prompts[0])
    head: Json = {
        "id": material.identity.id,
        "object": "chat.completion.chunk",
        "created": material.identity.created,
        "model": material.identity.model,
    }
    choices = [_ChoiceStream(index, sample, material) for index, sample in enumerate(material.samples[0])]
    chunks = [Chunk(_role_chunk(head, c.index, material)) for c in choices]
    for turn in range(max(len(c.steps) for c in choices)):
        for stream in choices:
            if turn < len(stream.steps):
                chunk = _step_chunk(head, stream, stream.steps[turn], prompt_tokens)
                if chunk is not None:
                    chunks.append(chunk)
    if material.options.include_usage:
        chunks.append(Chunk(_usage_chunk(head, prompt_tokens, choices)))
    return chunks


def _role_chunk(head: Json, index: int, material: Material) -> Json:
    options, profile, prompt_ids = material.options, material.profile, material.prompts[0]
    role = {"role": options.role, "content": ""}
    choice = {"index": index, "delta": role, "logprobs": None, "finish_reason": None}
    body = {**head, "choices": [choice]}
    if options.continuous_usage:
        body["usage"] = _usage(len(prompt_ids), 0, 0, options, profile)
    body["prompt_token_ids"] = prompt_ids if options.return_token_ids else None
    if profile.prompt_text:
        body["prompt_text"] = material.prompt_text
    return body


def _step_chunk(head: Json, stream: _ChoiceStream, step: Step, prompt_tokens: int) -> Chunk | None:
    choice = stream.choice(step)
    if choice is None:
        return None
    options, profile = stream.options, stream.profile
    body = {**head, "choices": [choice]}
    if options.continuous_usage:
        body["usage"] = _usage(prompt_tokens, step.end, stream.reasoning_tokens(step.end), options, profile)
    if step.finished and not options.include_usage and profile.fingerprint:
        body["system_fingerprint"] = profile.system_fingerprint
    return Chunk(body, step.end)


def _usage(prompt_tokens: int, completion: int, reasoning: int, options: AnswerOptions, profile: Profile) -> Usage:
    usage = usage_of(prompt_tokens, completion)
    if profile.completion_details:
        usage["completion_tokens_details"] = {"reasoning_tokens": reasoning} if options.reasoning_parser else None
    return usage


def _usage_chunk(head: Json, prompt_tokens: int, choices: Sequence[_ChoiceStream]) -> Json:
    options, profile = choices[0].options, choices[0].profile
    totals = [len(c.sample.token_ids) for c in choices]
    reasoning = sum(c.reasoning_tokens(total) for c, total in zip(choices, totals, strict=True))
    usage = _usage(prompt_tokens, sum(totals), reasoning, options, profile)
    if usage.get("completion_tokens_details", ()) is None:
        del usage["completion_tokens_details"]
    body: Json = {**head, "choices": [], "usage": usage}
    if profile.fingerprint:
        body["system_fingerprint"] = profile.system_fingerprint
    return body
