"""TOML tables read with their errors: every fault is one line that names file, key and what is allowed."""

import tomllib
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import TypeVar, cast

Value = TypeVar("Value")
Word = TypeVar("Word", bound=str)

KIND_NAMES = {str: "a string", int: "a whole number", float: "a number", bool: "true or false", dict: "a table"}


class ProfileError(ValueError):
    """Raised when a profile breaks the form. The message is one line for the person who writes it."""

    def __init__(self, file: str, key: str, problem: str) -> None:
        super().__init__(f"{file}: {key}: {problem}" if key else f"{file}: {problem}")


class Table:
    """One table of a TOML file. Whoever has taken all the keys calls :meth:`done`, which refuses the rest."""

    def __init__(self, values: Mapping[str, object], file: str, at: str = "") -> None:
        self._left = dict(values)
        self._asked: list[str] = []
        self.file = file
        self.at = at

    @classmethod
    def read(cls, path: Path) -> "Table":
        """``path`` is shown by its last two parts, so that a message does not depend on the machine."""
        shown = "/".join(path.parts[-2:])
        try:
            return cls(tomllib.loads(path.read_text(encoding="utf-8")), shown)
        except OSError as error:
            raise ProfileError(shown, "", f"cannot be read: {error.strerror}") from None
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise ProfileError(shown, "", f"is not TOML: {error}") from None

    def overlaid(self, other: "Table") -> "Table":
        """This one, with what is left of ``other`` in the place of its own. Mistakes are told of the other's file."""
        return Table({**self._left, **other._left}, other.file, other.at)

    def key(self, name: str) -> str:
        return f"{self.at}.{name}" if self.at else name

    def wrong(self, name: str, problem: str) -> ProfileError:
        return ProfileError(self.file, self.key(name), problem)

    def take(self, name: str, kind: type[Value], default: Value | None = None) -> Value:
        """A value of exactly that kind (a whole number serves as a number); without ``default`` it must be there."""
        value = self._pop(name)
        if value is None and default is not None:
            return default
        if value is None:
            raise self.wrong(name, f"is missing; expected {KIND_NAMES[kind]}")
        if kind is float and type(value) is int:
            return cast("Value", float(value))
        if type(value) is not kind:
            raise self.wrong(name, f"expected {KIND_NAMES[kind]}, seen {value!r}")
        return value

    def one_of(self, name: str, allowed: Collection[Word], default: Word | None = None) -> Word:
        value = self.take(name, str, default)
        for word in allowed:
            if word == value:
                return word
        raise self.wrong(name, f"expected one of {', '.join(allowed)}; seen {value!r}")

    def optional(self, name: str, kind: type[Value]) -> Value | None:
        if name in self._left:
            return self.take(name, kind)
        self._asked.append(name)
        return None

    def strings(self, name: str, default: tuple[str, ...] | None = None) -> tuple[str, ...]:
        value = self._pop(name)
        if value is None and default is not None:
            return default
        if not isinstance(value, list) or not all(type(entry) is str for entry in value):
            raise self.wrong(name, f"expected a list of strings, seen {value!r}" if value is not None else "is missing")
        return tuple(value)

    def string_map(self, name: str) -> dict[str, str]:
        """Empty if it is not there."""
        value = self.take(name, dict, {})
        for key, entry in value.items():
            if type(entry) is not str:
                raise self.wrong(f"{name}.{key}", f"expected a string, seen {entry!r}")
        return value

    def table(self, name: str) -> "Table":
        return Table(self.take(name, dict), self.file, self.key(name))

    def optional_table(self, name: str) -> "Table | None":
        values = self.optional(name, dict)
        return None if values is None else Table(values, self.file, self.key(name))

    def tables(self, name: str) -> list["Table"]:
        """An array of tables; empty if it is not there."""
        value = self._pop(name)
        if value is None:
            return []
        if not isinstance(value, list) or not all(isinstance(entry, dict) for entry in value):
            raise self.wrong(name, f"expected an array of tables, seen {value!r}")
        return [Table(entry, self.file, f"{self.key(name)}[{number}]") for number, entry in enumerate(value)]

    def names(self) -> list[str]:
        """What is still to be taken, for a table whose keys are free."""
        return list(self._left)

    def done(self) -> None:
        for name in self._left:
            allowed = ", ".join(sorted(self._asked)) or "nothing"
            raise self.wrong(name, f"unknown key; allowed here: {allowed}")

    def _pop(self, name: str) -> object:
        self._asked.append(name)
        return self._left.pop(name, None)
