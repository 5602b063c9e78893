"""A harness of the standard library alone, so that a thousand of them cost little beside what is measured.

Usage: ``python -I -S agent.py BASE_URL MODEL SESSION TASK TURNS METRICS``. Each turn echoes the history. Writes
``{"began": …, "calls": …}`` (seconds since the epoch, answered calls) into METRICS; ends with 1 if a call fails.
"""

import json
import socket
import sys
import time


def main(base_url: str, model: str, session: str, task: str, turns: str, metrics: str) -> int:
    began = time.time()
    host, port = base_url.removeprefix("http://").split(":")
    messages = [{"role": "user", "content": task}]
    calls = 0
    try:
        with socket.create_connection((host, int(port)), timeout=120) as sock:
            for _ in range(int(turns)):
                answer = ask(sock, json.dumps({"model": model, "messages": messages}).encode(), session)
                said = answer["choices"][0]["message"]["content"]
                messages += [{"role": "assistant", "content": said}, {"role": "user", "content": "Go on."}]
                calls += 1
    finally:
        with open(metrics, "w") as told:
            json.dump({"began": began, "calls": calls}, told)
    return 0


def ask(sock: socket.socket, body: bytes, session: str) -> dict:  # type: ignore[type-arg]
    head = (
        "POST /v1/chat/completions HTTP/1.1\r\nhost: bench\r\ncontent-type: application/json\r\n"
        f"proxy_x_session_id: {session}\r\ncontent-length: {len(body)}\r\n\r\n"
    )
    sock.sendall(head.encode() + body)
    received = b""
    while True:
        start, border, rest = received.partition(b"\r\n\r\n")
        if border and len(rest) >= int(start.lower().partition(b"content-length:")[2].split(b"\r\n")[0]):
            break
        more = sock.recv(1 << 16)
        if not more:
            raise ConnectionError(f"the connection was closed after {received[:200]!r}")
        received += more
    if not start.startswith(b"HTTP/1.1 200"):
        raise ConnectionError(f"refused: {received[:300]!r}")
    found: dict = json.loads(rest)  # type: ignore[type-arg]
    return found


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
