"""How long the rebuild of a session takes, and how much memory, beside orjson's parse of the same files.

Run as ``ci/bench rebuild``. Sessions of 10, 100 and 1,000 calls whose context grows to 100,000 tokens lie in a log
directory as the reference proxy writes it. Prints a line a session, then the exponent of growth of the time over the
bytes. Aimed at: 1,000 calls in at most twice orjson's time, and at most a tenth of their size in memory.
"""

import argparse
import json
import math
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import orjson

COMMAND = [sys.executable, "-m", "conformance.reference.rebuild", "--jsonl"]
TOOLS = [{"id": "bash", "description": "Runs a command.", "inputSchema": {"jsonSchema": {"type": "object"}}}]
VOCABULARY = 151_936
GENERATED = 0.3
"""Of the tokens that a turn adds, the share that the policy sampled."""


@dataclass(frozen=True)
class Measured:
    """One session: bytes of its records, and what reading them costs."""

    calls: int
    size: int
    orjson_seconds: float
    seconds: float
    peak_bytes: int
    answer_bytes: int


def write_session(log_dir: Path, calls: int, context: int) -> int:
    """A clean session of an agent that runs a command a turn; returns the bytes of its records."""
    chance = random.Random(calls)
    session = f"bench-{calls}"
    folder = log_dir / "sessions" / sha256(session.encode()).hexdigest()
    folder.mkdir(parents=True)
    messages: list[Any] = [{"role": "system", "content": "You are an agent."}, {"role": "user", "content": "Mend it."}]
    prompt = [chance.randrange(VOCABULARY) for _ in range(20)]
    size = 0
    for number in range(calls):
        added = context // calls
        generation = [chance.randrange(VOCABULARY) for _ in range(max(1, int(added * GENERATED)))]
        command = "".join(chance.choices("abcdefgh /", k=3 * len(generation)))
        call = {"id": f"call_{number}", "type": "function", "function": {"name": "bash", "arguments": ""}}
        call["function"] = {"name": "bash", "arguments": json.dumps({"command": command})}
        messages.append({"role": "assistant", "content": f"Step {number}.", "tool_calls": [call]})
        record = {
            "schema_version": 1,
            "uuid": f"{number:08}",
            "session_id": session,
            "parent_session_id": None,
            "captured_at": f"2026-12-01T08:00:00.{number:06}+00:00",
            "request_id": f"chatcmpl-{number}",
            "model": "policy",
            "messages": messages,
            "tools": TOOLS,
            "tool_choice": "auto",
            "token_count": {"prompt_tokens": len(prompt), "completion_tokens": len(generation), "total_tokens": 0},
            "prompt_token_ids": prompt,
            "generation_token_ids": generation,
            "generation_log_probs": [-chance.random() for _ in generation],
            "finish_reason": "tool_calls",
            "is_valid": True,
        }
        size += (folder / f"{number:08}.json").write_bytes(orjson.dumps(record))
        output = "".join(chance.choices("abcdefgh \n", k=3 * (added - len(generation))))
        messages.append({"role": "tool", "tool_call_id": call["id"], "content": output})
        prompt += generation
        prompt += [chance.randrange(VOCABULARY) for _ in range(added - len(generation))]
    return size


def parse(log_dir: Path) -> float:
    """Seconds that orjson takes to parse all records, one after the other."""
    files = sorted(log_dir.glob("sessions/*/*.json"))
    began = time.perf_counter()
    for file in files:
        orjson.loads(file.read_bytes())
    return time.perf_counter() - began


@contextmanager
def rebuilding() -> Iterator["subprocess.Popen[bytes]"]:
    with subprocess.Popen(COMMAND, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        try:
            yield process
        finally:
            process.stdin and process.stdin.close()
            process.wait()


def ask(process: "subprocess.Popen[bytes]", log_dir: Path, **keys: object) -> tuple[float, int]:
    """Seconds until the end of the answer line, and its bytes, which are not kept."""
    assert process.stdin
    assert process.stdout
    request = {"id": "bench", "source": {"log_dir": str(log_dir)}, **keys}
    began = time.perf_counter()
    process.stdin.write(json.dumps(request).encode() + b"\n")
    process.stdin.flush()
    read = 0
    while True:
        piece = os.read(process.stdout.fileno(), 1 << 20)
        read += len(piece)
        if not piece or piece.endswith(b"\n"):
            return time.perf_counter() - began, read


def peak(pid: int) -> int:
    """The most memory that a process has ever held, in bytes (Linux)."""
    status = Path(f"/proc/{pid}/status").read_text()
    return int(next(line.split()[1] for line in status.splitlines() if line.startswith("VmHWM"))) << 10


def measured(place: Path, calls: int, context: int, **keys: object) -> Measured:
    log_dir = place / str(calls)
    size = write_session(log_dir, calls, context)
    write_session(place / "small", 1, 10) if not (place / "small").exists() else None
    by_orjson = parse(log_dir)
    with rebuilding() as process:
        ask(process, place / "small")
        idle = peak(process.pid)
        seconds, answered = ask(process, log_dir, **keys)
        above = peak(process.pid) - idle
    return Measured(calls, size, by_orjson, seconds, above, answered)


def growth(found: list[Measured]) -> float:
    """The exponent with which the time grows over the bytes between the two largest sessions."""
    first, last = found[-2:]
    return math.log(last.seconds / first.seconds) / math.log(last.size / first.size)


def say(*cells: str) -> None:
    sys.stdout.write("".join(f"{cell:>11}" for cell in cells) + "\n")
    sys.stdout.flush()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--calls", type=int, nargs="+", default=[10, 100, 1000])
    parser.add_argument("--context", type=int, default=100_000, help="tokens of the last call (default 100000)")
    given = parser.parse_args()
    say("calls", "MB", "orjson s", "rebuild s", "ratio", "peak MB", "of size", "answer MB")
    found: list[Measured] = []
    with tempfile.TemporaryDirectory() as place:
        for calls in given.calls:
            one = measured(Path(place), calls, given.context)
            found.append(one)
            say(
                str(one.calls),
                f"{one.size / 1e6:.1f}",
                f"{one.orjson_seconds:.2f}",
                f"{one.seconds:.2f}",
                f"{one.seconds / one.orjson_seconds:.2f}",
                f"{one.peak_bytes / 1e6:.1f}",
                f"{one.peak_bytes / one.size:.0%}",
                f"{one.answer_bytes / 1e6:.1f}",
            )
    if len(found) > 1:
        sys.stdout.write(f"time grows with the bytes to the power of {growth(found):.2f}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
