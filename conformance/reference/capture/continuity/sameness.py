"""When a message of a history is one that is known, up to what harnesses are known to rewrite."""

import hashlib
import json
from collections.abc import Sequence

from conformance.reference.capture.jsontext import JSONObject
from conformance.reference.rebuild.rewrites import is_rewrite, normal_form

ODD = (KeyError, TypeError, AttributeError, ValueError, RecursionError)
"""What comparing raises for messages of no known shape."""


def digests_of(messages: Sequence[JSONObject]) -> tuple[bytes, ...]:
    """One digest a message: equal for messages that are the same but for spelling."""
    return tuple(map(_digest, messages))


def agrees(emitted: JSONObject, echoed: JSONObject) -> bool:
    """Whether a declared rewrite of a harness explains how ``emitted`` became ``echoed``."""
    try:
        return is_rewrite(emitted, echoed)
    except ODD:
        return False


def _digest(message: JSONObject) -> bytes:
    try:
        text = json.dumps(normal_form(message), sort_keys=True)
    except ODD:
        # What cannot be compared is still itself.
        text = "as it is: " + json.dumps(message)
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
