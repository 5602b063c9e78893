"""OpenHands under Gym: the agent's TOML and the configuration string of its container.

The session rides in the body: the fork's client takes no headers. The agent's container is sent to the proxy; the
evaluation's keeps what it had.
"""

import json
import re
import shlex
import tomllib
from dataclasses import dataclass
from typing import Any

import yaml

from harness_shims.launching import ProxyAddress, ShimError

BODY_KEY = "proxy_x_session_id"
VARIABLE = "NEMO_GYM_CONFIG_DICT"
TABLE = ("llm", "model")
_HEADER = re.compile(r"^\s*\[\s*llm\s*\.\s*model\s*\]\s*(#.*)?$")


@dataclass(frozen=True, slots=True)
class Containers:
    """The shell lines that give each container its configuration."""

    agent: str
    evaluation: str


def agent_toml(text: str, model_server: str, session: str | None) -> str:
    """The agent's configuration with its model sent to the route ``model_server``, carrying the session.

    Only the lines of ``[llm.model]`` that say so change; with capture off (no session) none does. Raises ShimError.
    """
    if session is None:
        return text
    before = _toml(text)
    model: dict[str, Any] = dict(before.get(TABLE[0], {}).get(TABLE[1], {}))
    kwargs = {**model.get("completion_kwargs", {}), BODY_KEY: session}
    lines = text.splitlines(keepends=True)
    start = next((n for n, line in enumerate(lines) if _HEADER.match(line)), None)
    if start is None:
        raise ShimError("agent TOML: expected a table [llm.model], seen none")
    end = next((n for n in range(start + 1, len(lines)) if lines[n].lstrip().startswith("[")), len(lines))
    kept = [line for line in lines[start + 1 : end] if _key(line) not in ("model", "completion_kwargs")]
    if kept and not kept[-1].endswith("\n"):
        kept[-1] += "\n"
    ours = [f"model = {json.dumps(model_server)}\n", f"completion_kwargs = {_inline(kwargs)}\n"]
    changed = "".join([*lines[: start + 1], *ours, *kept, *lines[end:]])
    wanted = {**model, "model": model_server, "completion_kwargs": kwargs}
    if _parsed(changed) != {**before, TABLE[0]: {**before[TABLE[0]], TABLE[1]: wanted}}:
        raise ShimError("agent TOML: expected [llm.model] with one key a line and completion_kwargs inline, seen more")
    return changed


def config_dict(text: str, model_server: str, proxy: ProxyAddress | None) -> str:
    """Gym's configuration with that model server's host and port those of the proxy, all else as it stood.

    It is edited as a tree of YAML nodes, so that every scalar keeps its spelling, quotes and references. Without a
    proxy the text is given back as it is. Raises ShimError.
    """
    if proxy is None:
        return text
    try:
        root = yaml.compose(text, yaml.SafeLoader)
    except yaml.YAMLError as error:
        raise ShimError(f"{VARIABLE}: expected YAML, seen {str(error).splitlines()[0]}") from None
    address = _first(_first(_value(root, model_server, VARIABLE), model_server), model_server)
    for key, value, tag in (("host", proxy.host, "str"), ("port", str(proxy.port), "int")):
        node = _value(address, key, model_server)
        if not isinstance(node, yaml.ScalarNode):
            raise ShimError(f"{VARIABLE}: expected a plain {key} for {model_server!r}, seen a collection")
        node.value, node.tag, node.style = value, f"tag:yaml.org,2002:{tag}", None
    changed: str = yaml.serialize(root, Dumper=yaml.SafeDumper, width=1 << 30, allow_unicode=True)
    return changed


def containers(text: str, model_server: str, proxy: ProxyAddress | None) -> Containers:
    """What is exported in the agent's container, and in the evaluation's: that one never hears of a proxy."""
    return Containers(_export(config_dict(text, model_server, proxy)), _export(text))


def _export(text: str) -> str:
    return f"export {VARIABLE}={shlex.quote(text)}"


def _toml(text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ShimError(f"agent TOML: {error}") from None


def _parsed(text: str) -> dict[str, Any] | None:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return None


def _key(line: str) -> str:
    return line.partition("=")[0].strip().strip("\"'") if "=" in line else ""


def _inline(values: dict[str, Any]) -> str:
    return "{ " + ", ".join(f"{json.dumps(key)} = {_literal(value)}" for key, value in values.items()) + " }"


def _literal(value: Any) -> str:
    if isinstance(value, dict):
        return _inline(value)
    if isinstance(value, list):
        return "[" + ", ".join(map(_literal, value)) + "]"
    if isinstance(value, str | int | float | bool):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    raise ShimError(f"agent TOML: expected strings, numbers and lists in completion_kwargs, seen {value!r}")


def _value(node: yaml.Node | None, key: str, where: str) -> yaml.Node:
    for name, value in node.value if isinstance(node, yaml.MappingNode) else ():
        if name.value == key:
            assert isinstance(value, yaml.Node)
            return value
    raise ShimError(f"{VARIABLE}: expected {key!r} in {where}, seen none")


def _first(node: yaml.Node, where: str) -> yaml.Node:
    if not isinstance(node, yaml.MappingNode) or not node.value:
        raise ShimError(f"{VARIABLE}: expected {where}: {{<type>: {{<name>: {{host, port}}}}}}, seen another form")
    value = node.value[0][1]
    assert isinstance(value, yaml.Node)
    return value
