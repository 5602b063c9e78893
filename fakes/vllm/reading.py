"""Reads playbooks strictly: from YAML files, and from the JSON of the administration."""

from pathlib import Path
from typing import Any, TypeVar

import tiktoken
import yaml
from pydantic import ValidationError

from fakes.vllm import tokenizer
from fakes.vllm.complaints import complaint
from fakes.vllm.playbook import TAG, Content, Playbook, PlaybookError, Turn, contents_of
from fakes.vllm.promises import check_promises

C = TypeVar("C", bound=Content)


def read_playbook(document: object, source: str, encoding: tiktoken.Encoding | None = None) -> Playbook:
    """A playbook from its parsed YAML or JSON; ``source`` names it in errors.

    A turn with text and no ``{tag}`` anywhere gets the tag in front of its text. ``encoding`` is what its turns will be
    sampled with (default: the shipped one). Raises ``PlaybookError``: one line with the key and what is allowed.
    """
    if not isinstance(document, dict):
        raise PlaybookError(f"{source}: expected a mapping with about and scopes, seen {type(document).__name__}")
    try:
        playbook = Playbook.model_validate(document)
    except ValidationError as error:
        raise PlaybookError(f"{source}: {complaint(error, Playbook)}") from None
    names = [side_call.name for side_call in playbook.side_calls]
    for number, name in enumerate(names):
        if name in names[:number]:
            raise PlaybookError(f"{source}: side_calls[{number}].name: {name!r} stands for another side call already")
    scopes = {
        name: scope.model_copy(
            update={
                "turns": [
                    _with_tag(turn, f"{source}: scopes.{name}.turns[{number}]")
                    for number, turn in enumerate(scope.turns)
                ]
            }
        )
        for name, scope in playbook.scopes.items()
    }
    playbook = playbook.model_copy(update={"scopes": scopes})
    for place, _, content in contents_of(playbook):
        _refuse_stray_placeholders(content, playbook, f"{source}: {place}")
    check_promises(playbook, source, encoding or tokenizer.load())
    return playbook


def load_playbook(path: Path, encoding: tiktoken.Encoding | None = None) -> Playbook:
    """Read a YAML playbook; raises ``PlaybookError``, also for a file that is missing or no YAML."""
    try:
        document = yaml.load(path.read_text(encoding="utf-8"), Loader=_StrictLoader)
    except OSError as error:
        raise PlaybookError(f"{path}: {error.strerror or 'cannot be read'}") from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise PlaybookError(f"{path}: no YAML: {' '.join(str(error).split())}") from None
    return read_playbook(document, str(path), encoding)


def _with_tag(turn: Turn, place: str) -> Turn:
    """The turn with a tag in each content whose tag can come back."""
    if not turn.says_something and not isinstance(turn.attempts, list):
        raise PlaybookError(f'{place}: says nothing: give text, calls or ids (text: "" for an empty answer)')
    if not turn.returns and not isinstance(turn.attempts, list):
        raise PlaybookError(
            f"{place}.attempts: a turn with returns: false is asked again, so it needs a list of attempts"
        )
    if isinstance(turn.attempts, list):
        if not turn.attempts:
            raise PlaybookError(f"{place}.attempts: the list is empty: give at least one attempt")
        attempts = [
            _content_with_tag(attempt, f"{place}.attempts[{number}]", required=turn.returns)
            for number, attempt in enumerate(turn.attempts)
        ]
        turn = turn.model_copy(update={"attempts": attempts})
        if not turn.says_something:
            return turn
    return _content_with_tag(turn, place, required=True)


def _content_with_tag(content: C, place: str, *, required: bool) -> C:
    if not content.returns or any(TAG in text for text in content.tagged_strings()):
        return content
    if content.text and content.message is None:
        return content.model_copy(update={"text": f"{TAG} {content.text}"})
    if required:
        raise PlaybookError(
            f"{place}: has no {TAG} that could come back: put it in the text, a call's argument or the message, "
            "or say returns: false and list the attempts"
        )
    return content


def _refuse_stray_placeholders(content: Content, playbook: Playbook, place: str) -> None:
    if "{tag" in (content.reasoning or ""):
        raise PlaybookError(f"{place}.reasoning: a tag does not survive in reasoning: put it in the text or a call")
    for text in content.tagged_strings():
        for piece in text.split("{tag:")[1:]:
            name, brace, _ = piece.partition("}")
            if not brace or name not in playbook.scopes:
                raise PlaybookError(f"{place}: {{tag:{name}}} names no scope; allowed: {', '.join(playbook.scopes)}")


class _StrictLoader(yaml.SafeLoader):
    """YAML without repeated keys: the second of two would silently win."""


def _mapping_without_repeats(loader: _StrictLoader, node: yaml.MappingNode) -> dict[Any, Any]:
    seen: set[object] = set()
    for key_node, _ in node.value:
        key = loader.construct_object(key_node)
        if key in seen:
            raise yaml.constructor.ConstructorError(None, None, f"key {key!r} is given twice", key_node.start_mark)
        seen.add(key)
    loader.flatten_mapping(node)
    return loader.construct_mapping(node, deep=True)


_StrictLoader.add_constructor(yaml.resolver.BaseResolver.DEFAULT_MAPPING_TAG, _mapping_without_repeats)
