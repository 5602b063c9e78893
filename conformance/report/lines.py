"""Values in one line: compact, safe to print, the middle left out with its length told."""

import json

from conformance.contract.difference import first_difference, list_difference, tree_difference
from conformance.report.plain import JSON, plain

WIDEST = 240
"""Characters of a value that one line of a report shows."""


def short(value: object, chars: int = WIDEST) -> str:
    """A value as compact JSON of at most about ``chars`` characters; longer ones keep both ends."""
    text = _text(plain(value))
    if len(text) <= chars:
        return text
    half = chars // 2
    return f"{text[:half]} … {len(text) - 2 * half} characters … {text[-half:]}"


def contrast(expected: object, seen: object, chars: int = WIDEST) -> tuple[str, str]:
    """Both values in one line each; where they are too long, what surrounds their first difference."""
    one, other = plain(expected), plain(seen)
    if max(len(_text(one)), len(_text(other))) <= chars:
        return _text(one), _text(other)
    if isinstance(one, list) and isinstance(other, list):
        found = list_difference(one, other)
        if found is not None and max(len(_text(list(found.expected))), len(_text(list(found.seen)))) <= chars:
            window, its = found.shown()
            return short(window, chars), short(its, chars)
    if isinstance(one, str) and isinstance(other, str):
        return _string_windows(one, other, chars)
    if isinstance(one, list | dict) and isinstance(other, list | dict):
        deep = tree_difference(one, other)
        if deep is not None:
            left, right = (short(value, chars) for value in (deep.expected, deep.seen))
            place = printable(deep.path)
            return (
                f"at {place}: {'nothing' if deep.what == 'extra' else left}",
                f"at {place}: {'nothing' if deep.what == 'missing' else right}",
            )
    return short(one, chars), short(other, chars)


def printable(text: str) -> str:
    """Text that moves no cursor and breaks no line: control characters and lone surrogates become escapes."""
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() else each.encode("unicode_escape").decode() for each in text)


def _text(value: JSON) -> str:
    return printable(json.dumps(value, ensure_ascii=False))


def _string_windows(one: str, other: str, chars: int) -> tuple[str, str]:
    at = first_difference(one, other) or 0
    start, stop = max(at - chars // 2, 0), at + chars // 2
    left, right = (
        f"{'… ' if start else ''}{_text(text[start:stop])}{' …' if stop < len(text) else ''}"
        f" (differs from character {at} of {len(text)})"
        for text in (one, other)
    )
    return left, right
