"""A profile file as it stands: YAML read strictly, and ``${NAME}`` in its texts replaced from the environment."""

import os
import re
from pathlib import Path

import yaml

from conformance.reference.capture.jsontext import JSON

_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")


class ConfigError(Exception):
    """Raised when the configuration cannot be used. The message is one line: key, value, what is allowed."""


class FromEnvironment(str):
    """A value that was nothing but one variable: the only kind of text that may stand for a number."""


def load(path: Path) -> JSON:
    """What the file says, with its variables unread. Raises ConfigError."""
    try:
        return yaml.load(path.read_bytes(), Loader=_Loader)  # a SafeLoader
    except OSError as error:
        raise ConfigError(f"the file cannot be read: {error.strerror}") from None
    except (yaml.YAMLError, UnicodeError, ValueError, RecursionError) as error:
        raise ConfigError("the file is not YAML: " + " ".join(str(error).split())) from None


def expanded(document: JSON) -> JSON:
    """The document with ``${NAME}`` replaced in every text value. Raises ConfigError that names all unset ones."""
    missing: set[str] = set()

    def value_of(match: re.Match[str]) -> str:
        if match[1] not in os.environ:
            missing.add(match[1])
        return os.environ.get(match[1], "")

    def walk(value: JSON) -> JSON:
        if isinstance(value, dict):
            return {key: walk(item) for key, item in value.items()}
        if isinstance(value, list):
            return [walk(item) for item in value]
        if not isinstance(value, str):
            return value
        text = _VARIABLE.sub(value_of, value)
        return FromEnvironment(text) if _VARIABLE.fullmatch(value) else text

    try:
        whole = walk(document)
    except RecursionError:
        raise ConfigError("the file: got values that contain themselves; allowed: plain values") from None
    if missing:
        names = ", ".join(sorted(missing))
        raise ConfigError(f"environment: {names} not set; allowed: set each of them, or write the value into the file")
    return whole


def shown(value: JSON) -> str:
    """A value of the file as a message shows it: at most 80 characters."""
    text = repr(str(value) if isinstance(value, FromEnvironment) else value)
    return text if len(text) <= 80 else text[:77] + "..."


class _Loader(yaml.SafeLoader):
    """YAML with text keys only, none twice, and floats such as 1e-3 read as numbers."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[JSON, JSON]:
        seen: set[str] = set()
        for key_node, _ in node.value:
            line = key_node.start_mark.line + 1
            if key_node.tag == "tag:yaml.org,2002:merge":
                continue
            if key_node.tag != "tag:yaml.org,2002:str":
                raise ConfigError(f"line {line}: got the key {shown(key_node.value)}; allowed: text keys, quote it")
            if key_node.value in seen:
                raise ConfigError(f"line {line}: got the key {shown(key_node.value)} twice; allowed: each key once")
            seen.add(key_node.value)
        return super().construct_mapping(node, deep)


_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float", re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)[eE][-+]?\d+$"), list("-+.0123456789")
)
