"""The rebuild as a command: one request a line in, one answer a line out, until the input ends."""

import argparse
import gc
import json
import sys
from collections.abc import Iterable, Iterator
from typing import Any, BinaryIO

from pydantic import ValidationError

from conformance.contract.rebuilds import PROTOCOL_VERSION, RebuildAnswer, RebuildRequest
from conformance.contract.vocabulary import ReasonCode
from conformance.reference.answering import Arguments, exit_status_of
from conformance.reference.rebuild.errors import Rule, TraceError
from conformance.reference.rebuild.rollout import failed, rebuild_lazily
from conformance.reference.rebuild.writing import pieces

TEACHING = """\
Reads one JSON object a line:
  {"v": 1, "id": "a", "op": "rebuild", "source": {...}, "allow_partial": true}
source holds exactly one of
  "envelope"  what GET /v1/sessions/{id}/completions answers
  "sessions"  a list of envelopes: a session tree
  "log_dir"   the --rl-log-dir of a capture proxy
  "url"       the base address of a running capture proxy
With "split": ["segments", "branches"] the parts of a compacted session and the branches of a fork are trajectories of
their own, where nothing else is wrong with them; what is not named there is withheld whole.
Writes one JSON object a line: id, outcome (clean, partial, failed), withheld, reason, reason_code, error, excluded,
notes, trajectories. A line that is no request is answered with an error, and the next line is read.

  echo '{"v": 1, "id": "a", "op": "rebuild", "source": {"log_dir": "traces"}}' | trackgauge rebuild --jsonl
"""


def main(argv: list[str]) -> int:
    parser = Arguments(
        prog="trackgauge rebuild",
        description="Rebuild rollouts from captured records.",
        epilog=TEACHING,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--jsonl", action="store_true", required=True, help="speak JSON lines on stdin and stdout")
    parser.parse_args(argv)
    parser.require_streams()
    return exit_status_of(lambda: serve(sys.stdin.buffer, sys.stdout.buffer))


def serve(requests: Iterable[bytes], answers: BinaryIO) -> None:
    for line in requests:
        if line.strip():
            for piece in answer_pieces(line):
                answers.write(piece)
            answers.flush()


def answer_pieces(line: bytes) -> Iterator[bytes]:
    """The answer to one line, with its line end; whatever the line holds, there is one."""
    # A trace is millions of lists and no cycle: collecting while it is read makes the time grow faster than the bytes.
    gc.disable()
    try:
        yield from pieces(answer_to(line))
    finally:
        gc.enable()


def answer_line(line: bytes) -> bytes:
    return b"".join(answer_pieces(line))


def answer_to(line: bytes) -> RebuildAnswer:
    try:
        value = json.loads(line)
    except (ValueError, RecursionError) as error:
        return refused("", TraceError(Rule.REQUEST, f"the line is no JSON: {error}"))
    try:
        request = request_of(value)
    except TraceError as error:
        return refused(_id_of(value), error)
    return rebuild_lazily(request)


def refused(answer_id: str, error: TraceError) -> RebuildAnswer:
    return failed(answer_id, error, ReasonCode.NO_RECORDS)


def request_of(value: Any) -> RebuildRequest:
    """Raises TraceError naming the first key of the request that is not as the protocol has it."""
    try:
        request = RebuildRequest.model_validate(value)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        key = ".".join(map(str, first["loc"])) or "the request"
        raise TraceError(Rule.REQUEST, f"{key}: {first['msg']}") from None
    if request.v != PROTOCOL_VERSION:
        raise TraceError(Rule.REQUEST, f"v must be {PROTOCOL_VERSION}, seen {request.v}")
    return request


def _id_of(value: Any) -> str:
    found = value.get("id") if isinstance(value, dict) else None
    return found if isinstance(found, str) else ""
