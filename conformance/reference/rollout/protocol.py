"""The lines of the runner protocol: read as requests, written as events and answers."""

import json
import re
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
from conformance.contract.verifies import GroupRequest, VerifyRequest
from conformance.contract.vocabulary import Outcome
from conformance.reference.rollout.trainer import judge
from conformance.reference.rollout.verify import verify

JSON = Any

READ_BYTES = 1 << 16
"""As much as a pipe holds; more at a time is memory that the kernel has to give and take back."""
LARGE_BYTES = 1 << 17
"""A question of this size takes milliseconds, and one of a long rollout a second: it is worked at elsewhere."""

QUESTION = re.compile(rb'^\s*\{[^{}\[\]]{0,200}"op"\s*:\s*"(verify|group)"')
"""Told by its beginning, since to read all of it is the work."""

Line = RolloutRequest | CancelRequest | VerifyRequest | GroupRequest
FORMS: dict[str, type[Line]] = {"cancel": CancelRequest, "verify": VerifyRequest, "group": GroupRequest}


class NoRequest(Exception):
    """Raised when a line begins and ends no rollout; ``answer`` is what to say to it.

    It is none of the protocol's (``is_wrong``), or a question of what was collected before, which is answered at once.
    """

    def __init__(self, identity: str, message: str, answer: BaseModel | None = None) -> None:
        super().__init__(f"{identity}: {message}" if identity else message)
        self.is_wrong = answer is None
        self.answer = answer or refused(identity, message)


def request_in(line: bytes) -> RolloutRequest | CancelRequest:
    """Raises NoRequest: with the answer to a question, or naming the first key that is not as the protocol has it."""
    try:
        value = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise NoRequest("", f"the line is no JSON: {error}") from None
    identity = value.get("id") if isinstance(value, dict) else None
    name = identity if isinstance(identity, str) else ""
    op = value.get("op") if isinstance(value, dict) else None
    form = FORMS.get(op, RolloutRequest) if isinstance(op, str) else RolloutRequest
    try:
        request = form.model_validate(value)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        raise NoRequest(name, f"{'.'.join(map(str, first['loc'])) or 'the request'}: {first['msg']}") from None
    if request.v != PROTOCOL_VERSION:
        raise NoRequest(name, f"v must be {PROTOCOL_VERSION}, seen {request.v}")
    if isinstance(request, VerifyRequest | GroupRequest):
        raise NoRequest(name, "a question", _answer_to(request))
    return request


def _answer_to(question: VerifyRequest | GroupRequest) -> BaseModel:
    try:
        return verify(question) if isinstance(question, VerifyRequest) else judge(question)
    except Exception as error:  # a fault of ours costs this answer, never the rollouts that are under way
        return refused(question.id, f"{question.op} failed: {type(error).__name__}: {error}")


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


def not_begun(request: RolloutRequest) -> Collected:
    """The answer to a rollout that was waiting when it, or the runner, was told to end."""
    return ended_by_others(request.id, "it was told to end before it began", captured=False)


def line_of(told: BaseModel) -> bytes:
    """A line of the protocol, with its line end; of what cannot be written, such as the deepest lists, it says so."""
    try:
        return _written(told)
    except (ValueError, RecursionError) as error:
        return _written(refused(getattr(told, "id", ""), f"the answer cannot be written: {error}"))


def _written(told: BaseModel) -> bytes:
    # model_dump_json writes a lone surrogate of a patch as an error; json escapes it.
    return json.dumps(told.model_dump(mode="python"), separators=(",", ":")).encode() + b"\n"


def write(lines: BinaryIO, told: BaseModel) -> None:
    lines.write(line_of(told))
    lines.flush()
