"""Qwen3's chat template, and the borders at which rendered text is encoded.

A rendered prompt is a row of blocks, each ``<|im_start|>{role}\\n{body}<|im_end|>\\n``. A block is encoded in segments
with hard borders between them: special token, header (the role with its newline), body. The model's generation is a
body, so encoding a history gives exactly the ids of prompt and generation again whenever the text is the same. A string
prompt is cut at the same borders.
"""

import functools
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import tiktoken

from fakes.vllm.tags import Tag, find_tags
from fakes.vllm.tokenizer import TURN_END, TURN_START

Message = Mapping[str, Any]

EMPTY_THINK = "<think>\n\n</think>\n\n"
GENERATION_HEADER = f"{TURN_START}assistant\n"

_TOOLS_BEFORE = (
    "# Tools\n\nYou may call one or more functions to assist with the user query.\n\n"
    "You are provided with function signatures within <tools></tools> XML tags:\n<tools>"
)
_TOOLS_AFTER = (
    "\n</tools>\n\nFor each function call, return a json object with function name and arguments within "
    "<tool_call></tool_call> XML tags:\n<tool_call>\n"
    '{"name": <function-name>, "arguments": <args-json-object>}\n</tool_call>'
)
_BLOCK_BORDER = re.compile(r"(?=<\|im_start\|>)")
_HEADER = re.compile(r"<\|im_start\|>([^\n<]*\n)")

# Longer texts are encoded anew each time, so that a few huge prompts cannot fill the memory.
_CACHED_TEXT = 32_768
_CACHED_BLOCKS = 4_096

_LONG_BLANK = re.compile(r"(\s{10000})")


@dataclass(frozen=True, slots=True)
class Switches:
    """What a tenant's template does to history. The defaults are what vLLM serves Qwen3 with.

    ``strip_history_reasoning``: assistant turns before the last user message lose their reasoning.
    ``redump_tool_calls``: arguments are parsed and dumped again; off, an argument string stands as the client sent it.
    ``prefill_empty_think``: the generation prompt ends with an empty think block, as for ``enable_thinking: false``.
    """

    strip_history_reasoning: bool = True
    redump_tool_calls: bool = True
    prefill_empty_think: bool = False


@dataclass(frozen=True, slots=True)
class Block:
    """One encoded stretch of a prompt, with the tags that its text carries."""

    ids: tuple[int, ...]
    tags: tuple[Tag, ...]


class Segmenter:
    """Encodes text at the borders of the template, and remembers what it encoded."""

    def __init__(self, encoding: tiktoken.Encoding) -> None:
        self.encoding = encoding
        self._remembered = functools.lru_cache(maxsize=_CACHED_BLOCKS)(self._block)
        self._remembered_body = functools.lru_cache(maxsize=_CACHED_BLOCKS)(self._body)

    def block(self, text: str) -> Block:
        """Encode one block, or any text without a turn start inside."""
        return self._remembered(text) if len(text) <= _CACHED_TEXT else self._block(text)

    def body(self, text: str) -> tuple[int, ...]:
        """Encode a body: what the tokenizer gives for a generation of this text."""
        return self._remembered_body(text) if len(text) <= _CACHED_TEXT else self._body(text)

    def encode(self, text: str) -> list[int]:
        """Encode a whole prompt text, cut at the same borders as a rendered one."""
        return joined_ids(self.blocks(text))

    def blocks(self, text: str) -> list[Block]:
        return [self.block(piece) for piece in _BLOCK_BORDER.split(text) if piece]

    def _block(self, text: str) -> Block:
        tags = tuple(find_tags(text))
        header = _HEADER.match(text)
        if header is None:
            return Block(tuple(self._body(text)), tags)
        start = self.encoding.encode_single_token(TURN_START)
        return Block((start, *self.encoding.encode_ordinary(header[1]), *self._body(text[header.end() :])), tags)

    def _body(self, text: str) -> tuple[int, ...]:
        try:
            return tuple(self.encoding.encode(text, allowed_special="all"))
        except ValueError:
            # The split pattern gives up on a run of a million blanks; no special token is blank, so none is cut here.
            pieces = [piece for piece in _LONG_BLANK.split(text) if piece]
            if len(pieces) == 1:
                raise
            return tuple(chain.from_iterable(map(self._body, pieces)))


def joined_ids(blocks: Iterable[Block]) -> list[int]:
    return list(chain.from_iterable(block.ids for block in blocks))


def render(
    messages: Sequence[Message],
    *,
    tools: Sequence[Mapping[str, Any]] | None = None,
    switches: Switches = Switches(),
    enable_thinking: bool = True,
    add_generation_prompt: bool = True,
    continue_final_message: bool = False,
) -> list[str]:
    """The blocks of a chat prompt as text, in order; joined they are what vLLM calls ``prompt_text``.

    Roles that the template does not know render nothing, as in the real one; ``developer`` counts as ``system``.
    """
    plain = [_plain(message) for message in messages]
    blocks: list[str] = []
    first_system = plain[0].content if plain and plain[0].role == "system" else None
    if tools:
        before = f"{first_system}\n\n" if first_system is not None else ""
        listed = "".join("\n" + _dump(_as_vllm_dumps(tool)) for tool in tools)
        blocks.append(_turn("system", f"{before}{_TOOLS_BEFORE}{listed}{_TOOLS_AFTER}"))
    elif first_system is not None:
        blocks.append(_turn("system", first_system))
    last_query = _last_query(plain)
    results: list[str] = []
    for index, message in enumerate(plain):
        is_last = index == len(plain) - 1
        if message.role == "tool":
            results.append(f"<tool_response>\n{message.content}\n</tool_response>")
            if is_last or plain[index + 1].role != "tool":
                blocks.append(_turn("user", "\n".join(results)))
                results = []
        elif message.role == "user" or (message.role == "system" and index > 0):
            blocks.append(_turn(message.role, message.content))
        elif message.role == "assistant":
            in_tool_loop = index > last_query
            blocks.append(_turn("assistant", _assistant(message, switches, in_tool_loop, is_last)))
    if continue_final_message and blocks:
        blocks[-1] = blocks[-1].removesuffix(f"{TURN_END}\n")
    elif add_generation_prompt:
        no_thinking = switches.prefill_empty_think or not enable_thinking
        blocks.append(GENERATION_HEADER + (EMPTY_THINK if no_thinking else ""))
    return blocks


def tool_call(name: str, arguments: str) -> str:
    """A call as the template writes it and the model generates it; ``arguments`` is JSON text."""
    return f'<tool_call>\n{{"name": "{name}", "arguments": {arguments}}}\n</tool_call>'


def dump_arguments(arguments: Any) -> str:
    """Arguments in the template's own form: ``", "`` and ``": "``, non-ASCII raw, key order kept."""
    return _dump(arguments)


def generated_body(text: str, reasoning: str | None, calls: Sequence[tuple[str, str]]) -> str:
    """The text a model generates for an answer, without the end token; ``calls`` are (name, JSON arguments)."""
    thought = "" if reasoning is None else f"<think>\n{reasoning}\n</think>\n\n"
    border = "\n" if text and calls else ""
    return thought + text + border + "\n".join(tool_call(name, arguments) for name, arguments in calls)


@dataclass(frozen=True, slots=True)
class _Plain:
    """A message as the template sees it, after the server has normalised it."""

    role: str
    content: str
    reasoning: str | None
    calls: tuple[tuple[str, Any], ...]


def _plain(message: Message) -> _Plain:
    role = str(message.get("role", ""))
    reasoning = message.get("reasoning")
    if reasoning is None:
        reasoning = message.get("reasoning_content")
    calls = []
    listed = message.get("tool_calls")
    for call in listed if isinstance(listed, list) else ():
        function = call.get("function") if isinstance(call, Mapping) else None
        if isinstance(function, Mapping):
            calls.append((str(function.get("name", "")), function.get("arguments")))
    return _Plain(
        "system" if role == "developer" else role,
        content_text(message.get("content")),
        reasoning if isinstance(reasoning, str) else None,
        tuple(calls),
    )


def content_text(content: object) -> str:
    """Content as one string: text parts are joined by newlines, anything that is not text is left out."""
    if isinstance(content, str):
        return content
    if isinstance(content, Sequence):
        texts = (part.get("text") if isinstance(part, Mapping) else part for part in content)
        return "\n".join(text for text in texts if isinstance(text, str))
    return ""


def _turn(role: str, body: str) -> str:
    return f"{TURN_START}{role}\n{body}{TURN_END}\n"


def _last_query(messages: Sequence[_Plain]) -> int:
    for index in range(len(messages) - 1, -1, -1):
        message = messages[index]
        is_result = message.content.startswith("<tool_response>") and message.content.endswith("</tool_response>")
        if message.role == "user" and not is_result:
            return index
    return len(messages) - 1


def _assistant(message: _Plain, switches: Switches, in_tool_loop: bool, is_last: bool) -> str:
    content, reasoning = message.content, message.reasoning
    if reasoning is None and "</think>" in content:
        reasoning = content.split("</think>")[0].rstrip("\n").split("<think>")[-1].lstrip("\n")
        content = content.split("</think>")[-1].lstrip("\n")
    keeps_reasoning = in_tool_loop or not switches.strip_history_reasoning
    if keeps_reasoning and (reasoning or (is_last and in_tool_loop)):
        stripped = (reasoning or "").strip("\n")
        body = f"<think>\n{stripped}\n</think>\n\n" + content.lstrip("\n")
    else:
        body = content
    for number, (name, arguments) in enumerate(message.calls):
        border = "\n" if number or content else ""
        body += border + tool_call(name, _arguments(arguments, switches))
    return body


def _arguments(arguments: object, switches: Switches) -> str:
    if not isinstance(arguments, str):
        return _dump({} if arguments is None else arguments)
    if not switches.redump_tool_calls:
        return arguments
    try:
        return _dump(json.loads(arguments)) if arguments else "{}"
    except ValueError:
        return "{}"


def _dump(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def _as_vllm_dumps(tool: Mapping[str, Any]) -> dict[str, Any]:
    """The server parses a tool into its own model and dumps that: declared keys first, and present even when null."""
    function = tool.get("function")
    if not isinstance(function, Mapping):
        return dict(tool)
    declared = {key: function.get(key) for key in ("name", "description", "parameters")}
    rest = {key: value for key, value in tool.items() if key not in ("type", "function")}
    return {"type": tool.get("type", "function"), "function": {**declared, **function}, **rest}
