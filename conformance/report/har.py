"""The hops of one scenario as HTTP Archive 1.2, which browsers and proxies of every make can show.

A view of the evidence: the exchanges of each client are the hop client → system, the ledger's rows the hop system →
engine. Nobody measured when they were, so their times say only in which order they stand, hop by hop.
"""

import base64
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from http import HTTPStatus
from urllib.parse import parse_qsl, quote, urlsplit

from conformance.report.plain import JSON, encode

LARGEST = 2 * 1024 * 1024
"""Bytes of one archive. In a larger one bodies lose their middle, then entries are left out; it says so."""

_BOUNDS = ((10_000, 32_768), (2000, 2048), (500, 512), (100, 128))
"""Entries and characters of a body, tried in this order until the archive is small enough."""

_BEGIN = datetime(2000, 1, 1, tzinfo=UTC)
CLIENT_HOP, ENGINE_HOP = "client → system", "system → engine"

Object = dict[str, JSON]


def archive(scenario: str, parts: Mapping[str, JSON], suite_version: str, largest: int = LARGEST) -> bytes | None:
    """The archive of evidence whose ``parts`` are plain and carry no credentials; None where it holds no hop."""
    entries = list(_entries(parts))
    if not entries:
        return None
    for most, chars in _BOUNDS:
        text = encode(_log(scenario, suite_version, entries, most, chars), indent=1)
        if len(text) <= largest:
            return text
    return encode(_log(scenario, suite_version, entries, 20, 128), indent=1)


def _log(scenario: str, suite_version: str, entries: list[Object], most: int, chars: int) -> JSON:
    kept = [_bounded(entry, chars) for entry in entries[:most]]
    comment = f"{scenario}. Times are not measured: entries stand in order, hop by hop."
    if len(entries) > most:
        comment += f" {len(entries) - most} of {len(entries)} entries are left out."
    creator: Object = {"name": "trackgauge", "version": suite_version}
    return {"log": {"version": "1.2", "creator": creator, "entries": list(kept), "comment": comment}}


def _entries(parts: Mapping[str, JSON]) -> Iterator[Object]:
    count = 0
    for client in _objects(parts.get("hops")):
        told: Object = {key: client.get(key) for key in ("harness", "session", "conversation")}
        for exchange in _objects(client.get("exchanges")):
            about: Object = {f"_{key}": value for key, value in told.items() if value is not None}
            about["_ended"] = exchange.get("ended")
            yield _entry(count, CLIENT_HOP, exchange.get("request"), exchange.get("response"), about, "http://system")
            count += 1
    for row in _objects(parts.get("ledger")):
        about = {f"_{key}": row.get(key) for key in ("seq", "tenant", "run", "scope", "turn", "state", "fault")}
        yield _entry(count, ENGINE_HOP, row.get("request"), row.get("answer"), about, "http://engine")
        count += 1


def _entry(number: int, hop: str, request: JSON, response: JSON, about: Object, host: str) -> Object:
    began = (_BEGIN + timedelta(milliseconds=number)).isoformat(timespec="milliseconds")
    return {
        "startedDateTime": began,
        "time": 0,
        "request": _request(request if isinstance(request, dict) else {}, host),
        "response": _response(response if isinstance(response, dict) else None),
        "cache": {},
        "timings": {"send": 0, "wait": 0, "receive": 0},
        "comment": hop,
        **about,
    }


def _request(request: Object, host: str) -> Object:
    url = host + quote(_text(request.get("path")) or "/", safe="/%?&=:@!$'()*+,;~-._")
    drawn: Object = {
        "method": _text(request.get("method")) or "GET",
        "url": url,
        "httpVersion": "HTTP/1.1",
        "cookies": [],
        "headers": _headers(request),
        "queryString": [
            {"name": name, "value": value} for name, value in parse_qsl(urlsplit(url).query, keep_blank_values=True)
        ],
        "headersSize": -1,
        "bodySize": len(_body(request)),
    }
    if _body(request):
        body = _shown(request)
        encoding: Object = {"_encoding": body.pop("encoding")} if "encoding" in body else {}
        drawn["postData"] = {"mimeType": _header(request, "content-type"), "params": [], **body, **encoding}
    return drawn


def _response(response: Object | None) -> Object:
    """Status 0, as browsers write it, where no answer came."""
    its = response or {}
    status = its.get("status")
    number = status if isinstance(status, int) else 0
    return {
        "status": number,
        "statusText": HTTPStatus(number).phrase if number in HTTPStatus.__members__.values() else "",
        "httpVersion": "HTTP/1.1" if response else "",
        "cookies": [],
        "headers": _headers(its),
        "content": {"size": len(_body(its)), "mimeType": _header(its, "content-type"), **_shown(its)},
        "redirectURL": _header(its, "location"),
        "headersSize": -1,
        "bodySize": len(_body(its)) if response else -1,
    }


def _bounded(entry: Object, chars: int) -> Object:
    """The entry with long bodies shortened; a comment beside each tells its length."""
    request, response = entry["request"], entry["response"]
    assert isinstance(request, dict)
    assert isinstance(response, dict)
    post, content = request.get("postData"), response["content"]
    if isinstance(post, dict):
        request = {**request, "postData": _cut(post, chars)}
    if isinstance(content, dict):
        response = {**response, "content": _cut(content, chars)}
    return {**entry, "request": request, "response": response}


def _cut(body: Object, chars: int) -> Object:
    text = body.get("text")
    if not isinstance(text, str) or len(text) <= chars:
        return body
    half = chars // 2
    left_out = f"{len(text) - 2 * half} of {len(text)} characters are left out in the middle"
    return {**body, "text": text[:half] + "…" + text[-half:], "comment": left_out}


def _shown(message: Object) -> Object:
    """The body as text; one that is no UTF-8 in base64, as HAR has it for answers."""
    raw = message.get("body_bytes_b64")
    if isinstance(raw, str):
        return {"text": raw, "encoding": "base64"}
    return {"text": _text(message.get("body_text"))}


def _body(message: Object) -> bytes:
    raw = message.get("body_bytes_b64")
    if isinstance(raw, str):
        return base64.b64decode(raw)
    return _text(message.get("body_text")).encode("utf-8", "surrogatepass")


def _headers(message: Object) -> list[JSON]:
    return [{"name": name, "value": value} for name, value in _pairs(message)]


def _header(message: Object, wanted: str) -> str:
    return next((value for name, value in _pairs(message) if name.lower() == wanted), "")


def _pairs(message: Object) -> Iterator[tuple[str, str]]:
    headers = message.get("headers")
    for pair in headers if isinstance(headers, list) else ():
        if isinstance(pair, list) and len(pair) == 2:
            yield str(pair[0]), str(pair[1])


def _objects(value: JSON) -> Iterable[Object]:
    """The objects in a list; nothing for what stands in its place when it could not be had."""
    return (entry for entry in value if isinstance(entry, dict)) if isinstance(value, list) else ()


def _text(value: JSON) -> str:
    return value if isinstance(value, str) else ""
