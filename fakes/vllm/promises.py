"""What the two ways to sample promise, and which turns cannot keep it.

Faithful: the history re-renders to exactly prompt + generation, for clients that echo everything. Drifting: the
generation is another split of its text than the tokenizer gives. A playbook that promises what it cannot keep is
refused before it is played.
"""

import json

import tiktoken

from fakes.vllm.playbook import TAG, Content, Playbook, PlaybookError, contents_of
from fakes.vllm.splits import Splitter
from fakes.vllm.tags import format_tag
from fakes.vllm.template import dump_arguments, generated_body
from fakes.vllm.tokenizer import END_OF_TEXT, TURN_END


def check_promises(playbook: Playbook, source: str, encoding: tiktoken.Encoding) -> None:
    """Raises ``PlaybookError`` naming the first turn that cannot be sampled as it says, and the rule."""
    splitter = Splitter(encoding)
    for place, answer, content in contents_of(playbook):
        sampling = content.sampling or answer.sampling or playbook.sampling
        if sampling == "faithful":
            broken = unfaithful(content, encoding)
            if broken is not None:
                raise PlaybookError(
                    f"{source}: {place}: cannot be sampled faithfully: {broken}; change it or say sampling: drifting"
                )
        else:
            stuck = _undrifting(content, encoding, splitter)
            if stuck is not None:
                raise PlaybookError(f"{source}: {place}: cannot drift: {stuck}")


def unfaithful(content: Content, encoding: tiktoken.Encoding) -> str | None:
    """Why a history with this content would not re-render to the ids that were sampled; None when it does."""
    if content.ids is not None:
        return "it has explicit ids"
    if content.message is not None:
        return "its message is not what a parser gives"
    if content.finish not in (None, "stop"):
        return f"it ends by {content.finish}, and the template writes <|im_end|>"
    if content.text and content.calls:
        return "it has text beside a call, and the template writes a newline between them"
    return _unfaithful_text(content, encoding) or _unfaithful_arguments(content, encoding)


def _unfaithful_text(content: Content, encoding: tiktoken.Encoding) -> str | None:
    text, reasoning = content.text or "", content.reasoning or ""
    if text and not text.strip():
        return "text of nothing but white space comes back as null"
    if text.startswith("\n"):
        return "the template drops newlines that open the text"
    if reasoning != reasoning.strip("\n"):
        return "the template drops newlines at either end of the reasoning"
    for name, written in (("text", text), ("reasoning", reasoning)):
        found = _special_in(written, encoding)
        if found is not None:
            return f"its {name} holds {found}, which is a token of its own"
        if encoding.decode(encoding.encode_ordinary(written)) != written:
            return f"its {name} does not survive the tokenizer"
    return None


def _unfaithful_arguments(content: Content, encoding: tiktoken.Encoding) -> str | None:
    for call in content.calls:
        try:
            written = call.arguments if isinstance(call.arguments, str) else dump_arguments(call.arguments)
            again = dump_arguments(json.loads(written, parse_constant=_refuse_constant))
        except ValueError:
            return f"the arguments of {call.name} are no JSON"
        if again != written:
            return f"the arguments of {call.name} are not in the template's own form, which is {again}"
        found = _special_in(written + call.name, encoding)
        if found is not None:
            return f"the call of {call.name} holds {found}, which is a token of its own"
        if encoding.decode(encoding.encode_ordinary(written)) != written:
            return f"the arguments of {call.name} do not survive the tokenizer"
    return None


def _undrifting(content: Content, encoding: tiktoken.Encoding, splitter: Splitter) -> str | None:
    """Why this content cannot be another split of its text; explicit ids are their author's affair."""
    if content.ids is not None:
        return None
    calls = [
        (call.name, call.arguments if isinstance(call.arguments, str) else dump_arguments(call.arguments))
        for call in content.calls
    ]
    body = generated_body(content.text or "", content.reasoning, calls).replace(TAG, format_tag(0, 0, 0))
    for end in (END_OF_TEXT, TURN_END):
        if end in body:
            return f"it holds {end}, which would end the generation there; write it as ids"
    if not splitter.can_split(encoding.encode(body, allowed_special="all")):
        return "it has no token to split; give it longer text or say sampling: faithful"
    return None


def _special_in(text: str, encoding: tiktoken.Encoding) -> str | None:
    return next((special for special in sorted(encoding.special_tokens_set) if special in text), None)


def _refuse_constant(name: str) -> float:
    raise ValueError(f"{name} is no JSON number")
