"""How long the fake vLLM takes for short calls, beside a bare health check on the same connection.

Run as ``ci/bench fake``. Prints a line a kind of call with the median and the 95th percentile, in ms.
"""

import argparse
import json
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

PLAYBOOK = """\
about: A short answer.
scopes:
  main:
    turns:
      - calls: [{name: execute_bash, arguments: {command: "ls  # {tag}"}}]
"""
ASKED = {
    "messages": [{"role": "user", "content": "⟦000001:00:0000⟧ Look around."}],
    "logprobs": True,
    "top_logprobs": 0,
    "return_token_ids": True,
}


@contextmanager
def fake() -> Iterator[tuple[str, int]]:
    """A fake vLLM in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        playbook = Path(folder) / "short.yaml"
        playbook.write_text(PLAYBOOK)
        command = [sys.executable, "-m", "fakes.vllm", "--playbook", str(playbook)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            try:
                assert process.stdout
                address = urlsplit(process.stdout.readline().split()[-1])
                yield address.hostname or "", address.port or 0
            finally:
                process.terminate()


def post(body: object) -> bytes:
    """A chat request as bytes."""
    raw = json.dumps(body).encode()
    head = (
        f"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: {len(raw)}"
    )
    return head.encode() + b"\r\n\r\n" + raw


def is_whole(received: bytes) -> bool:
    head, border, body = received.partition(b"\r\n\r\n")
    if not border:
        return False
    _, found, length = head.lower().partition(b"content-length: ")
    return len(body) >= int(length.split(b"\r\n")[0]) if found else body.endswith(b"0\r\n\r\n")


def times(sock: socket.socket, request: bytes, calls: int) -> list[float]:
    """Milliseconds each call took, the first fifth left out."""
    taken = []
    for _ in range(calls):
        began = time.perf_counter()
        sock.sendall(request)
        received = b""
        while not is_whole(received):
            received += sock.recv(1 << 18)
        taken.append((time.perf_counter() - began) * 1e3)
    return sorted(taken[calls // 5 :])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--calls", type=int, default=1000)
    calls = parser.parse_args().calls
    kinds = {
        "health": b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n",
        "buffered": post(ASKED),
        "streamed": post(ASKED | {"stream": True}),
    }
    with fake() as address, socket.create_connection(address) as sock:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for name, request in kinds.items():
            taken = times(sock, request, calls)
            median, high = statistics.median(taken), taken[int(len(taken) * 0.95)]
            sys.stdout.write(f"{name:9} median {median:.3f} ms, 95th percentile {high:.3f} ms\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
