"""The lines of the runner protocol: read as requests, written as events and answers."""

import json
from typing import Any, BinaryIO

from pydantic import BaseModel, ValidationError

from conformance.contract.rollouts import (
    PROTOCOL_VERSION,
    CancelRequest,
    Collected,
    Failure,
    RolloutRequest,
    Stage,
)
from conformance.contract.vocabulary import Outcome

JSON = Any


class NoRequest(Exception):
    """Raised when a line is none of the protocol's; ``answer`` is what to say to it."""

    def __init__(self, identity: str, message: str) -> None:
        super().__init__(message)
        self.answer = refused(identity, message)


def request_in(line: bytes) -> RolloutRequest | CancelRequest:
    """Raises NoRequest naming the first key that is not as the protocol has it."""
    try:
        value = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise NoRequest("", f"the line is no JSON: {error}") from None
    identity = value.get("id") if isinstance(value, dict) else None
    name = identity if isinstance(identity, str) else ""
    cancels = isinstance(value, dict) and value.get("op") == "cancel"
    try:
        request = (CancelRequest if cancels else RolloutRequest).model_validate(value)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        raise NoRequest(name, f"{'.'.join(map(str, first['loc'])) or 'the request'}: {first['msg']}") from None
    if request.v != PROTOCOL_VERSION:
        raise NoRequest(name, f"v must be {PROTOCOL_VERSION}, seen {request.v}")
    return request


def refused(identity: str, message: str) -> Collected:
    """The answer to what cannot be taken as a rollout."""
    return ended_by_others(identity, message, captured=False, stage=Stage.REQUEST)


def ended_by_others(identity: str, message: str, *, captured: bool, stage: Stage = Stage.TASK) -> Collected:
    """The answer for a task that can give none itself: failed, without a reward, nothing of it to train."""
    return Collected(
        id=identity,
        captured=captured,
        outcome=Outcome.FAILED,
        withheld=True,
        reason=f"{stage}: {message}",
        error=Failure(stage=stage, message=" ".join(message.split())),
    )


def not_begun(line: bytes) -> Collected:
    """The answer to a request that was waiting when the runner was told to end."""
    try:
        request = request_in(line)
    except NoRequest as error:
        return error.answer
    return ended_by_others(request.id, "the runner was told to end before the rollout began", captured=False)


def line_of(told: BaseModel) -> bytes:
    """A line of the protocol, with its line end."""
    # model_dump_json writes a lone surrogate of a patch as an error; json escapes it.
    return json.dumps(told.model_dump(mode="python"), separators=(",", ":")).encode() + b"\n"


def write(lines: BinaryIO, told: BaseModel) -> None:
    lines.write(line_of(told))
    lines.flush()
