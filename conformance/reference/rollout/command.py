"""The runner as a command: rollouts from a file, or one request a line in and answers out as they come."""

import argparse
import gc
import json
import sys
from pathlib import Path

from conformance.reference.answering import Arguments, exit_status_of

TEACHING = """\
A rollout goes spawn → ready → run harness → tear down → collect, in one process on one node. What it needs is said in
one JSON object; `trackgauge schema rollout-request` is its form, `trackgauge schema rollout-answer` that of the answer.

  {"id": "r1", "folder": "/data/out/r1", "model": "policy", "backends": ["http://127.0.0.1:8000"],
   "proxy": {"spawn": {"command": ["trackgauge", "proxy"], "profile": "/data/routes.yaml",
                       "variables": {"VLLM_BASE_URL": "{backend}/v1"}}},
   "harness": {"name": "opencode", "session": "own", "command": ["{python}", "-m", "fakes.harnesses", "opencode",
               "--base-url", "{base_url}", "--model", "{model}", "--task", "Find out why the build fails."]}}

Give `folder` and `profile` as absolute paths: the proxy runs in a folder of its own, a Ray task on any node.
The profile's base_url is ${VLLM_BASE_URL} here, and `model` is the name of its route (trackgauge proxy --help).

  trackgauge rollout SPEC.json          one rollout, or one a line of the file; answers on stdout
  trackgauge rollout --jsonl            requests on stdin as they come, answers in the order in which rollouts end
  trackgauge rollout --ray SPEC.json    each as a Ray task, on a cluster started for it
  trackgauge rollout --ray-address HOST:PORT --jsonl        on a cluster that is there

Before its answer a line {"id", "event": "task", "pid", "node"} tells which process runs the rollout, and
{"id", "op": "cancel"} ends it. A runner that is told to end (TERM) tears all rollouts down and answers for each.

Two questions about what was collected are answered at once, whatever is under way (`trackgauge schema verify-request`,
`group-request`): {"id", "op": "verify", "collected": ANSWER} gives what a trainer reads of a rollout, and {"id", "op":
"group", "task", "size", "members": [{"rollout", "response"}]} who of a group votes, is trained, and is run again.

Exit status: 0 all were answered, failed and withheld ones too: read `outcome` · 2 usage, or a line that is no request:
it is answered with what is wrong with it, and the others are run
"""


def main(argv: list[str]) -> int:
    parser = Arguments(
        prog="trackgauge rollout",
        description="Run agent harnesses behind capture proxies and collect what was captured.",
        epilog=TEACHING,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("spec", nargs="?", metavar="SPEC.json", help="a request, or a file with one a line")
    parser.add_argument("--jsonl", action="store_true", help="speak JSON lines on stdin and stdout")
    parser.add_argument("--at-once", type=_positive, default=1024, metavar="N", help="rollouts under way (%(default)s)")
    parser.add_argument("--ray", action="store_true", help="as Ray tasks, on a local cluster of this run's own")
    parser.add_argument("--ray-address", metavar="HOST:PORT", help="as Ray tasks, on a cluster that runs already")
    given = parser.parse_args(argv)
    if given.jsonl == (given.spec is not None):
        parser.error("give either SPEC.json or --jsonl")
    if given.jsonl:
        parser.require_streams()
    try:
        lines = [] if given.jsonl else _lines_of(Path(given.spec))
    except OSError as error:
        parser.error(f"{given.spec}: {error.strerror}; give a file with a request, or with one a line")
    except NotJSON as error:
        parser.error(f"{given.spec}: {error}; give a file with a request, or with one a line")
    wrong: list[str] = []
    status = exit_status_of(lambda: wrong.extend(_serve(lines, given)))
    if given.spec is not None:
        for one in wrong:
            sys.stderr.write(f"trackgauge rollout: {given.spec}: {one}; see trackgauge schema rollout-request\n")
    return status or (2 if wrong else 0)


def _serve(lines: list[bytes], given: argparse.Namespace) -> list[str]:
    """What is wrong with lines that are no request."""
    requests = 0 if given.jsonl else None
    if given.ray or given.ray_address is not None:
        from conformance.reference.rollout.rays import serve

        return serve(lines, requests, sys.stdout.buffer, given.ray_address)
    from conformance.reference.rollout.front import stand_before
    from conformance.reference.rollout.serving import Serving, told_to_end

    gc.freeze()  # what is loaded stays shared with the tasks that are forked
    awake = told_to_end()
    if requests is None:
        serving = Serving(lines, None, sys.stdout.buffer, given.at_once)
        serving.run(awake)
    else:
        with stand_before(requests, sys.stdout.fileno()) as (left, answers, front):
            serving = Serving(lines, left, answers, given.at_once)
            serving.run(awake, front)
    return serving.wrong


class NotJSON(Exception):
    """Raised for a file that is neither one object nor one a line."""


def _lines_of(spec: Path) -> list[bytes]:
    """One object over many lines, or one a line; of these, what cannot be read is then said line by line.

    Raises OSError and :class:`NotJSON`.
    """
    text = spec.read_bytes()
    lines = [line for line in text.splitlines() if line.strip()]
    why = _no_json(text)
    if why is None:
        return [json.dumps(json.loads(text)).encode()]
    if all(_no_json(line) is not None for line in lines):
        raise NotJSON(why if lines else "is empty")
    return lines


def _no_json(text: bytes) -> str | None:
    try:
        json.loads(text)
    except (ValueError, RecursionError) as error:
        return f"is no JSON: {error}"
    return None


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"expected 1 or more, seen {text}")
    return number
