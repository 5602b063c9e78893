"""Whether the fake's requests have the form of the recorded ones, ids included: each is the same id where it was."""

import json
import re
from pathlib import Path
from typing import Any

from tests.fakes.harnesses.conftest import Reply, Seen

RECORDINGS = Path(__file__).parents[3] / "data" / "codex"
_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-([0-9a-f])[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}")
_NICKNAME = re.compile(r'(nickname\\*": ?\\*")[^"\\]+')
_FREE = {"authorization", "host", "content-length"}
Request = dict[str, Any]


def recorded(name: str) -> list[Request]:
    """The requests of a recording; tools told once stand in every one of them."""
    requests: list[Request] = json.loads((RECORDINGS / f"{name}.json").read_text())["requests"]
    tools = requests[0]["body_shape"]["tools"]
    for request in requests:
        if request["body_shape"]["tools"] == "as in request 0":
            request["body_shape"]["tools"] = tools
    return requests


def answers(name: str) -> list[Reply]:
    """What the recorded server did, request by request."""
    return [_reply(request["answer"]) for request in recorded(name)]


def as_seen(seen: Seen) -> Request:
    """A request of the fake in the form of a recorded one, with what recordings leave out left out."""
    return {
        "method": seen.method,
        "path": seen.path,
        "headers": [[name, _header(name, value)] for name, value in seen.headers],
        "body_shape": seen.json(),
    }


def differences(seen: list[Request], wanted: list[Request]) -> list[str]:
    """Where the requests depart from the recorded ones, thread by thread; ids are compared as who is who."""
    seen, wanted = by_thread(seen), by_thread(wanted)
    if len(seen) != len(wanted):
        return [f"expected {len(wanted)} requests, seen {len(seen)}"]
    ids_seen: dict[str, int] = {}
    ids_wanted: dict[str, int] = {}
    found: list[str] = []
    for n, (one, other) in enumerate(zip(seen, wanted, strict=True)):
        for key in ("method", "path", "headers", "body_shape"):
            shape = _sorted(other[key])
            left = _numbered(_masked(_sorted(one[key]), shape), ids_seen)
            found += [f"request {n}: {each}" for each in _compare(left, _numbered(shape, ids_wanted), key)]
    return found


def by_thread(requests: list[Request]) -> list[Request]:
    """The root's requests, then those of each sub-agent in order of spawning."""
    threads = [_thread(request) for request in requests]
    spawned = re.findall(
        r'{\\*"agent_id\\*": ?\\*"([^"\\]+)', json.dumps([request["body_shape"] for request in requests])
    )
    order = list(dict.fromkeys([_session(requests[0]), *spawned, *threads]))
    return sorted(requests, key=lambda request: order.index(_thread(request)))


def _reply(answer: dict[str, Any]) -> Reply:
    how, headers = answer.get("how", "whole"), tuple(map(tuple, answer.get("headers", ())))
    if "sse" not in answer:
        body = json.dumps(answer["body"]).encode() if "body" in answer else b""
        return Reply(answer["status"], body, headers, how=how)
    chunks = tuple(one.encode() for one in answer["sse"])
    return Reply(answer["status"], b"", headers, "text/event-stream", how, chunks)


def _header(name: str, value: str) -> str:
    if name == "x-codex-turn-metadata":
        told = {**json.loads(value), "installation_id": "<uuid>", "agent_name": "<root agent>"}
        return json.dumps(told, separators=(",", ":"))
    return value


def _sorted(value: Any) -> Any:
    """Client metadata comes out of a hash map, so its order is none; the time of a turn is the clock's."""
    if isinstance(value, list):
        return [
            [name, re.sub(r'(unix_ms":)\d+', r"\g<1>0", text)] if name not in _FREE else [name, "<free>"]
            for name, text in value
        ]
    if isinstance(value, dict) and "client_metadata" in value:
        return {**value, "client_metadata": dict(sorted(value["client_metadata"].items()))}
    return value


def _masked(value: Any, shape: Any) -> Any:
    """The value with everything hidden that the recording hides, where it is of the right sort."""
    if shape == "<text>":
        return shape if isinstance(value, str) and value else value
    if shape == "<...>":
        return shape
    if isinstance(shape, str) and shape.startswith("<json-string:"):
        return f"<json-string:{value}>"
    if isinstance(value, dict) and isinstance(shape, dict):
        return {key: _masked(one, shape.get(key)) for key, one in value.items()}
    if isinstance(value, list) and isinstance(shape, list) and len(value) == len(shape):
        return [_masked(one, other) for one, other in zip(value, shape, strict=True)]
    return value


def _numbered(value: Any, numbers: dict[str, int]) -> Any:
    """UUIDs by the order in which they first appear, with their version; names that agents draw are free."""
    text = _NICKNAME.sub(r"\g<1>…", json.dumps(value))
    return json.loads(_UUID.sub(lambda id_: f"#{numbers.setdefault(id_[0], len(numbers))} of version {id_[1]}", text))


def _compare(seen: Any, wanted: Any, at: str) -> list[str]:
    if type(seen) is not type(wanted):
        return [f"{at}: expected {wanted!r}, seen {seen!r}"]
    if isinstance(wanted, dict):
        if list(seen) != list(wanted):
            return [f"{at}: expected keys {list(wanted)}, seen {list(seen)}"]
        return [each for key in wanted for each in _compare(seen[key], wanted[key], f"{at}.{key}")]
    if isinstance(wanted, list):
        if len(seen) != len(wanted):
            return [f"{at}: expected {len(wanted)} items, seen {len(seen)}: {_kinds(seen)} for {_kinds(wanted)}"]
        pairs = enumerate(zip(seen, wanted, strict=True))
        return [each for n, (one, other) in pairs for each in _compare(one, other, f"{at}[{n}]")]
    return [] if seen == wanted else [f"{at}: expected {wanted!r}, seen {seen!r}"]


def _kinds(items: list[Any]) -> list[str]:
    return [str(item.get("role") or item.get("type")) if isinstance(item, dict) else str(item) for item in items]


def _thread(request: Request) -> str:
    return str(dict(map(tuple, request["headers"]))["thread-id"])


def _session(request: Request) -> str:
    return str(dict(map(tuple, request["headers"]))["session-id"])
