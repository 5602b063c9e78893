"""Evidence is shown around, so it carries no credentials: neither those of a system's owner, nor our own dummies."""

import hashlib
import re

from conformance.report.plain import JSON

CREDENTIALS = frozenset(
    ("authorization", "proxy-authorization", "x-api-key", "api-key", "x-goog-api-key", "cookie", "set-cookie")
)
"""Headers, in lower case, whose value lets somebody in."""

_SCHEME = re.compile(r"(Bearer|Basic|Token|ApiKey) +", re.IGNORECASE)


def redacted(value: JSON) -> JSON:
    """``value`` with the values of credential headers hidden, wherever a key ``headers`` holds pairs or an object."""
    if isinstance(value, list):
        return [redacted(inner) for inner in value]
    if not isinstance(value, dict):
        return value
    return {key: _headers(inner) if key == "headers" else redacted(inner) for key, inner in value.items()}


def hidden(text: str) -> str:
    """A mark in a credential's place: equal ones have equal marks, so that a leak can be followed."""
    scheme = _SCHEME.match(text)
    start = scheme[0] if scheme else ""
    digest = hashlib.sha256(text[len(start) :].encode("utf-8", "surrogatepass")).hexdigest()[:6]
    return f"{start}(redacted: {len(text) - len(start)} characters, {digest})"


def _headers(value: JSON) -> JSON:
    if isinstance(value, list):
        return [_pair(entry) for entry in value]
    if isinstance(value, dict):
        return {name: _value(name, inner) for name, inner in value.items()}
    return value


def _pair(entry: JSON) -> JSON:
    if isinstance(entry, list) and len(entry) == 2 and isinstance(entry[0], str):
        return [entry[0], _value(entry[0], entry[1])]
    return redacted(entry)


def _value(name: str, value: JSON) -> JSON:
    return hidden(value) if name.lower() in CREDENTIALS and isinstance(value, str) else value
