"""Is what the engine was asked what the client asked for, up to what the contract gives to the proxy?

Every rule stands alone, so that one fault of a proxy is one finding. Bodies are parsed JSON objects.
"""

import base64
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from conformance.contract.difference import tree_difference
from conformance.oracle.judgement import Judgement
from conformance.oracle.matching import GENERATING

JSON = Any
Body = dict[str, JSON]
Row = dict[str, JSON]
Path = tuple[str | int, ...]

LIMITS = ("max_tokens", "max_completion_tokens")
OWNED = frozenset(
    {
        *("model", "stream", "stream_options", "proxy_x_session_id"),
        *("logprobs", "top_logprobs", "return_token_ids", "include_reasoning", "n", "echo", "use_beam_search"),
        *("required_prefix_token_ids", "kv_transfer_params", *LIMITS),
    }
)
"""Top-level keys that the proxy may set, move, lower or take out."""

TRIPLE = ("prompt_token_ids", "generation_token_ids", "generation_log_probs")


def body_of(row: Row) -> Body:
    """The body of a request that the engine got; empty where it is no JSON object."""
    request = row["request"]
    raw = request.get("body_bytes_b64")
    try:
        body = json.loads(request["body_text"] if raw is None else base64.b64decode(raw))
    except (ValueError, RecursionError):
        return {}
    return body if isinstance(body, dict) else {}


def generations(rows: Iterable[Row]) -> list[Row]:
    """The requests that made the engine generate, or would have: what it refused before does not count."""
    return [row for row in rows if row["endpoint"] in GENERATING and row["state"] != "refused"]


def same_conversation(sent: Body, got: Body, where: str) -> Judgement:
    """Messages and tools, numbers by value; token triples inside messages are the proxy's business."""
    for part in ("messages", "tools"):
        difference = tree_difference(_told(sent, part), _told(got, part))
        if difference is not None:
            return Judgement(False, *difference.shown(), f"{where} {part}")
    return Judgement(True, "the client's messages and tools", "the client's messages and tools", where)


def values_kept(sent: Body, got: Body, paths: Iterable[Path], where: str) -> Judgement:
    """What stands at these paths, numbers by value."""
    for path in paths:
        expected, seen = at(sent, path), at(got, path)
        if tree_difference(_by_value(expected), _by_value(seen)) is not None:
            return Judgement(False, expected, seen, f"{where} {_shown(path)}")
    return Judgement(True, "the client's values", "the client's values", where)


def key_order_kept(sent: Body, got: Body, where: str) -> Judgement:
    """Each object that both bodies have holds its common keys in the client's order.

    Those of the body itself and of its messages may change places: no template and no engine reads them in order.
    """
    for path, value in leaves_and_objects(sent):
        other = at(got, path)
        if not path or path[0] == "messages":
            continue
        if not isinstance(value, dict) or not isinstance(other, dict):
            continue
        common = [key for key in value if key in other]
        seen = [key for key in other if key in common]
        if common != seen:
            return Judgement(False, common, seen, f"{where} {_shown(path)}")
    return Judgement(True, "the client's key order", "the client's key order", where)


def numbers_kept(sent: Body, got: Body, where: str) -> Judgement:
    """Each number of the client's that arrives at all arrives whole or float, as it was, with all digits."""
    compared = 0
    for path, value in leaves_and_objects(sent):
        other = at(got, path)
        if _is_owned(path) or not _is_number(value) or not _is_number(other):
            continue
        compared += 1
        if type(value) is not type(other) or repr(value) != repr(other):
            return Judgement(False, repr(value), repr(other), f"{where} {_shown(path)}")
    return Judgement(compared > 0, "the client's numbers", f"{compared} numbers compared", where)


def numbers_arrive(sent: Body, got: Body, where: str) -> Judgement:
    """None of the client's numbers has been lost, or become a text or a null."""
    for path, value in leaves_and_objects(sent):
        seen = at(got, path)
        if _is_number(value) and not _is_owned(path) and not _is_number(seen):
            return Judgement(False, repr(value), repr(seen), f"{where} {_shown(path)}")
    return Judgement(True, "the client's numbers", "the client's numbers", where)


def nulls_kept(sent: Body, got: Body, where: str) -> Judgement:
    """Each null of the client's, where the proxy does not own the key, is there and null."""
    nulls = [path for path, value in leaves_and_objects(sent) if value is None and not _is_owned(path)]
    for path in nulls:
        seen = at(got, path)
        if seen is not None:
            return Judgement(False, None, seen, f"{where} {_shown(path)}")
    return Judgement(bool(nulls), "the client's nulls", f"{len(nulls)} nulls compared", where)


def asks_for_tokens(got: Body, where: str) -> Judgement:
    seen = {key: got.get(key) for key in ("logprobs", "return_token_ids")}
    ok = all(value is True for value in seen.values())
    return Judgement(ok, {"logprobs": True, "return_token_ids": True}, seen, where)


def counts_top_log_probs(got: Body, where: str) -> Judgement:
    """Left out, engines take it for 0; up to vLLM 0.31 a null costs the answer its log probs."""
    top = got.get("top_logprobs", ABSENT)
    fits = top == ABSENT or (type(top) is int and top >= 0)
    return Judgement(fits, "a number of at least 0, or absent", top, f"{where} top_logprobs")


def limit_of(body: Body) -> JSON:
    """The output limit as engines read it: ``max_completion_tokens`` before ``max_tokens``; None without one."""
    own = body.get("max_completion_tokens")
    return body.get("max_tokens") if own is None else own


def refused_or(
    status: int | None, bodies: Sequence[Body], harmless: Callable[[Body], bool], harm: str, where: str
) -> Judgement:
    """Either 400 and the engine was not asked, or the engine was asked once, without the harm."""
    if not bodies:
        return Judgement(status == 400, "400, or sent without it", f"{status}, not sent", f"{where} {harm}")
    if status == 400:
        return Judgement(False, "400 before the engine is asked", "400, and the engine was asked", f"{where} {harm}")
    seen = [body.get(harm, ABSENT) for body in bodies]
    ok = len(bodies) == 1 and harmless(bodies[0])
    return Judgement(ok, "sent once, without it", seen, f"{where} {harm}")


def carries_none_of(rows: Iterable[Row], secrets: Iterable[str], where: str, *, bodies: bool = True) -> Judgement:
    """No header value, and no body, of any request to the engine holds one of these texts."""
    wanted = list(secrets)
    for row in rows:
        request = row["request"]
        places = [(f"header {name}", value) for name, value in request["headers"]]
        places += [("path", request["path"])]
        places += [("body", request["body_text"])] if bodies else []
        for place, text in places:
            found = [secret for secret in wanted if secret in text]
            if found:
                return Judgement(False, "nothing of the client's", found, f"{where} {place}")
    return Judgement(True, "nothing of the client's", "nothing of the client's", where)


# Walking

ABSENT = "(absent)"
"""What stands where nothing stands; no scenario sends this text."""


def at(body: JSON, path: Path) -> JSON:
    """The value at a path, or ABSENT."""
    for step in path:
        in_object = isinstance(body, dict) and step in body
        in_list = isinstance(body, list) and isinstance(step, int) and step < len(body)
        if not in_object and not in_list:
            return ABSENT
        body = body[step]
    return body


def leaves_and_objects(value: JSON, path: Path = ()) -> Iterator[tuple[Path, JSON]]:
    """Every value inside a JSON value but the lists, itself first, with the way to it."""
    if isinstance(value, dict):
        yield path, value
        for key, inner in value.items():
            yield from leaves_and_objects(inner, (*path, key))
    elif isinstance(value, list):
        for place, inner in enumerate(value):
            yield from leaves_and_objects(inner, (*path, place))
    else:
        yield path, value


def _told(body: Body, part: str) -> JSON:
    """Messages without triples, or tools; no tools are none."""
    found = body.get(part) or []
    if part == "messages" and isinstance(found, list):
        found = [
            {key: value for key, value in one.items() if key not in TRIPLE} if isinstance(one, dict) else one
            for one in found
        ]
    return _by_value(found)


def _by_value(value: JSON) -> JSON:
    """With whole floats as the integers they equal: JSON has one kind of number."""
    if isinstance(value, dict):
        return {key: _by_value(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_by_value(inner) for inner in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _is_number(value: JSON) -> bool:
    return type(value) in (int, float)


def _is_owned(path: Path) -> bool:
    return bool(path) and path[0] in OWNED


def _shown(path: Path) -> str:
    return "/".join(map(str, path)) or "(top)"
