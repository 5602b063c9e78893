"""Texts of a request with ``{name}`` of what only the task knows: only known names in braces are replaced."""

import re
import shlex
from collections.abc import Callable, Mapping

Values = Mapping[str, str | None]

_NAME = re.compile(r"\{([a-z_]+)\}")


def filled(text: str, values: Values, form: Callable[[str], str] = str) -> str:
    """What is known of has its value, in ``form``; a value that is None is the empty text; other braces stay."""

    def value(found: re.Match[str]) -> str:
        return form(values[found[1]] or "") if found[1] in values else found[0]

    return _NAME.sub(value, text)


def filled_wholly(text: str, values: Values) -> str | None:
    """None where one of the values it names cannot be had."""
    if any(name in values and values[name] is None for name in _NAME.findall(text)):
        return None
    return filled(text, values)


def words_of(command: list[str] | str, values: Values) -> list[str]:
    """The words to run; a line is for bash, and what is filled into it is quoted for it."""
    if isinstance(command, str):
        return ["bash", "-c", filled(command, values, shlex.quote)]
    return [filled(word, values) for word in command]
