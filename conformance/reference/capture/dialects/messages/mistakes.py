"""What a client got wrong, told as the Messages API tells it: the place, then what is expected there."""

from conformance.reference.capture.errors import Refusal
from conformance.reference.capture.jsontext import JSON, JSONObject


def mistake(where: str, expected: str) -> Refusal:
    """A refusal of one value; ``where`` is its path, as in ``messages.2.content.0``."""
    return Refusal(400, "invalid_value", f"{where}: {expected}", param=where)


def as_object(value: JSON, where: str) -> JSONObject:
    """The value, if it is an object; raises Refusal."""
    if not isinstance(value, dict):
        raise mistake(where, "must be an object")
    return value


def as_text(value: JSON, where: str) -> str:
    """The value, if it is a string; raises Refusal."""
    if not isinstance(value, str):
        raise mistake(where, "must be a string")
    return value


def as_list(value: JSON, where: str) -> list[JSON]:
    """The value, if it is a list; raises Refusal."""
    if not isinstance(value, list):
        raise mistake(where, "must be a list")
    return value
