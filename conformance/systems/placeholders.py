"""Names in braces that stand for something in the texts of a profile, such as ``{port}``.

Only a lower-case word right between braces is one: ``{"json": 1}``, ``{{ jinja }}`` and ``${HOME}`` stay as they are.
Where a system is to get such a word itself, the braces are doubled: ``{{message}}`` becomes ``{message}``.
"""

import re
from collections.abc import Collection, Iterable, Mapping

from conformance.systems.tables import Table

_WORD = re.compile(r"\{(?P<literal>\{[a-z_][a-z0-9_]*\})\}|(?<!\$)\{(?P<name>[a-z_][a-z0-9_]*)\}")


def fill(text: str, values: Mapping[str, str]) -> str:
    """``text`` with these names replaced. A name without a value stays, for somebody who learns it later."""
    return _WORD.sub(lambda found: found["literal"] or values.get(found["name"], found[0]), text)


def refuse_unknown(table: Table, key: str, texts: Iterable[str], allowed: Collection[str]) -> None:
    """Raises :class:`ProfileError` for a name that nothing will ever replace, as a mistyped one is."""
    for text in texts:
        for found in _WORD.finditer(text):
            if found["name"] is not None and found["name"] not in allowed:
                names = ", ".join(f"{{{name}}}" for name in allowed) or "none"
                literal = f"{{{found[0]}}}"
                problem = f"unknown placeholder {found[0]}; allowed: {names}; for the braces themselves, {literal}"
                raise table.wrong(key, problem)
