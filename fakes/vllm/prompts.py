"""The prompt of a request: its ids, the tags in it, and what the rules of side calls look at."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from fakes.vllm import tokenizer
from fakes.vllm.playbook import When
from fakes.vllm.sample import PrefixNotSpliced, SampleRequest
from fakes.vllm.tags import Tag
from fakes.vllm.template import (
    EMPTY_THINK,
    GENERATION_HEADER,
    Block,
    Segmenter,
    Switches,
    content_text,
    joined_ids,
    render,
)
from fakes.vllm.tokenizer import TURN_END

_TOOL_LIST = re.compile(r"<tools>\n(.*?)\n</tools>", re.DOTALL)
_TURN = re.compile(r"<\|im_start\|>([^\n<]*)\n(.*?)(?:<\|im_end\|>|\Z)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Prompt:
    """An encoded prompt. ``text`` is given for text and token prompts, whose messages are not known.

    ``rendered_ids`` is the canonical render of a token prompt. ``no_thinking``: it ends with an empty think block.
    """

    ids: list[int]
    tags: list[Tag]
    no_thinking: bool
    rendered_ids: list[int] | None = None
    text: str | None = None


@dataclass(frozen=True, slots=True)
class View:
    """What a rule can see of a prompt; ``texts`` stand in the order of ``roles``."""

    tools: int
    roles: list[str]
    texts: list[str]

    def fits(self, when: When) -> bool:
        return (
            _tools_fit(when.tools, self.tools)
            and (when.roles is None or when.roles == self.roles)
            and (when.messages is None or when.messages == len(self.roles))
            and self._contains(when.last_user_contains, "user", -1)
            and self._contains(when.first_system_contains, "system", 0)
            and (when.last_contains is None or (bool(self.texts) and when.last_contains in self.texts[-1]))
            and (when.any_contains is None or any(when.any_contains in text for text in self.texts))
        )

    def _contains(self, wanted: str | None, role: str, which: int) -> bool:
        if wanted is None:
            return True
        texts = [text for text, its_role in zip(self.texts, self.roles, strict=True) if its_role == role]
        return bool(texts) and wanted in texts[which]


def build_prompt(request: SampleRequest, segmenter: Segmenter, switches: Switches) -> Prompt:
    """Encode the prompt of a request, whichever way it was given."""
    if request.prompt_token_ids is not None:
        text = tokenizer.decode(segmenter.encoding, request.prompt_token_ids)
        blocks = segmenter.blocks(text)
        ids = list(request.prompt_token_ids)
        return Prompt(ids, _tags(blocks), text.endswith(EMPTY_THINK), joined_ids(blocks), text)
    if request.prompt_text is not None:
        blocks = segmenter.blocks(request.prompt_text)
        return Prompt(
            joined_ids(blocks), _tags(blocks), request.prompt_text.endswith(EMPTY_THINK), None, request.prompt_text
        )
    texts = _rendered(request, switches)
    blocks = [segmenter.block(text) for text in texts]
    ids = joined_ids(blocks)
    if request.prefix_token_ids:
        ids = splice(request, segmenter, switches, ids)
    no_thinking = bool(texts) and texts[-1] == GENERATION_HEADER + EMPTY_THINK
    return Prompt(ids, _tags(blocks), no_thinking)


def prompt_text(request: SampleRequest, switches: Switches) -> str:
    """The rendered text of a chat prompt, which vLLM calls ``prompt_text``."""
    return "".join(_rendered(request, switches))


def splice(request: SampleRequest, segmenter: Segmenter, switches: Switches, ids: list[int]) -> list[int]:
    """The prompt with its beginning replaced by ``required_prefix_token_ids``, as NeMo-RL's server does it.

    The history up to the last assistant message is rendered alone; from its last end token on, the template's ids
    follow the prefix, whose own end token is dropped. Raises ``PrefixNotSpliced`` where that server fails.
    """
    end = segmenter.encoding.encode_single_token(TURN_END)
    messages = request.messages or []
    last = max((at for at, message in enumerate(messages) if message.get("role") == "assistant"), default=None)
    history = messages if last is None else messages[: last + 1]
    alone = render(
        history,
        tools=request.tools,
        switches=switches,
        enable_thinking=request.template_kwargs.get("enable_thinking") is not False,
        add_generation_prompt=False,
    )
    before = min(len(joined_ids(segmenter.block(text) for text in alone)), len(ids))
    cut = next((at for at in range(before - 1, -1, -1) if ids[at] == end), None)
    if cut is None:
        raise PrefixNotSpliced("no end-of-turn token in the chat-templated prefix")
    prefix = list(request.prefix_token_ids or ())
    if prefix[-1] == end:
        prefix.pop()
    return prefix + ids[cut:]


def view(request: SampleRequest, prompt: Prompt) -> View:
    """What rules see: the messages of a chat request, else the same read from the decoded text."""
    if prompt.text is None:
        messages = request.messages or []
        return View(
            len(request.tools or ()),
            [str(message.get("role", "")) for message in messages],
            [content_text(message.get("content")) for message in messages],
        )
    listed = _TOOL_LIST.search(prompt.text)
    tools = listed[1].count("\n") + 1 if listed else 0
    turns: list[tuple[str, str]] = _TURN.findall(prompt.text)
    if turns and turns[-1][0] == "assistant" and not prompt.text.rstrip("\n").endswith(TURN_END):
        turns.pop()
    return View(tools, [_role(role, body) for role, body in turns], [body for _, body in turns])


def _rendered(request: SampleRequest, switches: Switches) -> list[str]:
    return render(
        request.messages or [],
        tools=request.tools,
        switches=switches,
        enable_thinking=request.template_kwargs.get("enable_thinking") is not False,
        add_generation_prompt=request.add_generation_prompt,
        continue_final_message=request.continue_final_message,
    )


def _tags(blocks: Sequence[Block]) -> list[Tag]:
    return [tag for block in blocks for tag in block.tags]


def _tools_fit(wanted: Any, offered: int) -> bool:
    if wanted is None:
        return True
    if wanted == "none":
        return offered == 0
    return offered > 0 if wanted == "any" else bool(offered == wanted)


def _role(role: str, body: str) -> str:
    return "tool" if role == "user" and body.startswith("<tool_response>") else role
