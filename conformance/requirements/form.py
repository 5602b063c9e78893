"""The form of the catalogue's TOML files: one check a kind of value, each with an error of one line."""

import re
import tomllib
from collections.abc import Mapping
from pathlib import Path

from conformance.contract.vocabulary import Level

_VERSION = re.compile(r"[0-9]+\.[0-9]+")


class CatalogueError(ValueError):
    """Raised when a requirement file breaks the form; the message is one line for the person who edits it."""


def parse(path: Path) -> dict[str, object]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise CatalogueError(f"{path.name}: cannot be read: {error}") from None
    except tomllib.TOMLDecodeError as error:
        raise CatalogueError(f"{path.name}: not TOML: {error}") from None


def table_of(value: object, file: str, where: str) -> dict[str, object]:
    if not isinstance(value, dict):
        seen = "missing" if value is None else repr(value)
        raise CatalogueError(f"{file}: {where}: {seen}; allowed: a table")
    return value


def refuse_unknown(table: Mapping[str, object], allowed: tuple[str, ...], file: str, where: str) -> None:
    for key in table:
        if key not in allowed:
            raise CatalogueError(f"{file}: {where} {key}: unknown key; allowed: {', '.join(allowed)}")


def text_of(value: object, file: str, where: str) -> str:
    if not isinstance(value, str) or not value.strip() or "\n" in value:
        raise CatalogueError(f"{file}: {where}: {value!r}; allowed: a text of one line, not blank")
    return value


def version_of(value: object, file: str, where: str) -> str:
    if not isinstance(value, str) or not _VERSION.fullmatch(value):
        raise CatalogueError(f'{file}: {where}: {value!r}; allowed: a contract version like "1.0"')
    return value


def level_of(value: object, file: str, where: str) -> Level:
    if not isinstance(value, str) or value not in tuple(Level):
        raise CatalogueError(f"{file}: {where}: {value!r}; allowed: {', '.join(Level)}")
    return Level(value)
