"""A validation error of pydantic as one line: the key, what was expected, what was seen."""

import types
import typing
from collections.abc import Mapping

from pydantic import BaseModel, ValidationError

_LONGEST_VALUE = 60


def complaint(error: ValidationError, model: type[BaseModel]) -> str:
    """The first problem in one line, e.g. ``turns[1].textt: unknown key; allowed: text, …``."""
    problems = [(*_path(problem["loc"], model), problem) for problem in error.errors(include_url=False)]
    # A union complains once per member. The deepest of them tells which member the author meant; those at one key make
    # up together what is allowed there.
    inside = [problem for problem in problems if problem[0].startswith(problems[0][0])]
    path, owner, _ = max(inside, key=lambda problem: len(problem[0]))
    wanted = [problem for its_path, _, problem in inside if its_path == path]
    first = wanted[0]
    if first["type"] == "extra_forbidden" and owner is not None:
        return f"{path}: unknown key; allowed: {', '.join(owner.model_fields)}"
    if first["type"] == "missing":
        return f"{path}: is missing"
    messages = list(dict.fromkeys(item["msg"].removeprefix("Value error, ") for item in wanted))
    text = " or ".join(message.replace("Input should be", "expected") for message in messages)
    if first["type"] == "value_error":
        return f"{path}: {text}" if path else text
    seen = repr(first["input"])
    if len(seen) > _LONGEST_VALUE:
        seen = seen[: _LONGEST_VALUE - 1] + "…"
    return f"{path}: {text.replace('a valid integer', 'an integer').replace('a valid', 'a')}, seen {seen}"


def _path(location: tuple[int | str, ...], model: type[BaseModel]) -> tuple[str, type[BaseModel] | None]:
    """The key as its author wrote it, without the names pydantic gives to union members, and the model it stands in."""
    path = ""
    here: object = model
    owner: type[BaseModel] | None = model
    for part in location:
        here = _peeled(here, part)
        if isinstance(part, int):
            path += f"[{part}]"
            here = _element(here)
        elif isinstance(here, type) and issubclass(here, BaseModel):
            owner = here
            path += f".{part}" if path else part
            known = here.model_fields.get(part)
            here = known.annotation if known is not None else None
        elif typing.get_origin(here) in (dict, Mapping):
            path += f".{part}" if path else part
            here = typing.get_args(here)[1]
    return path, owner


def _peeled(kind: object, part: int | str) -> object:
    """The member of a union, or the inside of an annotation, that can hold ``part``."""
    while typing.get_origin(kind) is typing.Annotated:
        kind = typing.get_args(kind)[0]
    if typing.get_origin(kind) in (typing.Union, types.UnionType):
        members = [_peeled(member, part) for member in typing.get_args(kind)]
        if isinstance(part, int):
            return next((item for item in members if typing.get_origin(item) is list), None)
        fitting = (item for item in members if isinstance(item, type) and issubclass(item, BaseModel))
        found = next(fitting, None)
        if found is not None and part in found.model_fields:
            return found
        # pydantic puts the member's own name into the location; it is no key, so stay where we are.
        return kind
    return kind


def _element(kind: object) -> object:
    arguments = typing.get_args(kind)
    return arguments[0] if arguments else None
