"""The YAML that tells a harness where its model server is, with a proxy in its place and all else to the byte."""

import copy
import json
from typing import Any

import yaml

from conformance.contract.rollouts import Settings, Stage
from conformance.reference.rollout.failures import RolloutFailed


def routed(settings: Settings, host: str, port: int) -> str:
    """Only the spans of the two scalars change, so that spelling, quotes and order of the rest stay.

    Raises RolloutFailed.
    """
    try:
        node: yaml.Node | None = yaml.compose(settings.yaml, yaml.SafeLoader)
    except yaml.YAMLError as error:
        raise _wrong(f"no YAML: {' '.join(str(error).split())}") from None
    for key in settings.server.split("."):
        node = _value(node, key, settings.server)
    places = {"host": json.dumps(host), "port": str(port)}
    text = settings.yaml
    spans = [(_scalar(node, key, settings.server), value) for key, value in places.items()]
    for scalar, value in sorted(spans, key=lambda span: -span[0].start_mark.index):
        text = text[: scalar.start_mark.index] + value + text[scalar.end_mark.index :]
    due = _with_address(_loaded(settings.yaml), settings.server, host, port)
    try:
        done = yaml.safe_load(text) == due
    except yaml.YAMLError:  # an anchor went with the old value
        done = False
    if not done:
        raise _wrong(f"{settings.server} shares its host or port with other places; write them out")
    return text


def _loaded(text: str) -> Any:
    try:
        return yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise _wrong(f"no YAML: {' '.join(str(error).split())}") from None


def _with_address(tree: Any, path: str, host: str, port: int) -> Any:
    # A copy without shared parts: an alias must not take the new address along.
    tree = copy.copy(tree)
    place = tree
    for key in path.split("."):
        place[key] = copy.copy(place[key])
        place = place[key]
    place.update(host=host, port=port)
    return tree


def _value(node: yaml.Node | None, key: str, path: str) -> yaml.Node:
    for name, value in node.value if isinstance(node, yaml.MappingNode) else ():
        if name.value == key:
            assert isinstance(value, yaml.Node)
            return value
    raise _wrong(f"no key {key!r} on the way to {path}")


def _scalar(node: yaml.Node | None, key: str, path: str) -> yaml.ScalarNode:
    value = _value(node, key, f"{path}.{key}")
    if isinstance(value, yaml.ScalarNode):
        return value
    raise _wrong(f"{path}.{key} is no plain value")


def _wrong(why: str) -> RolloutFailed:
    return RolloutFailed(Stage.REQUEST, f"settings.yaml: {why}")
