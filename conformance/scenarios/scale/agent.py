"""A harness of the standard library alone, so that many of them cost little beside what is judged.

``python -I -S agent.py BASE_URL MODEL SESSION TASK TURNS [forgets]`` has a conversation of so many turns, each call
with the whole history, or, if it ``forgets``, the last one with a summary in its place. It writes
``{"began": …, "calls": …}`` (seconds since the epoch, answered calls) into ``metrics.json``, and ends with a traceback
when a call is refused.
"""

import json
import socket
import sys
import time
from typing import Any

JSON = Any
PATIENCE_SECONDS = 900


def main(base_url: str, model: str, session: str, task: str, turns: str, habit: str = "") -> int:
    began = time.time()
    host, _, port = base_url.removeprefix("http://").rstrip("/").rpartition(":")
    messages = [{"role": "user", "content": task}]
    calls = 0
    try:
        with socket.create_connection((host, int(port)), timeout=PATIENCE_SECONDS) as sock:
            for turn in range(int(turns)):
                if habit == "forgets" and turn + 1 == int(turns):
                    messages = [{"role": "user", "content": f"{task} So far: {messages[-2]['content']}"}]
                answer = ask(sock, json.dumps({"model": model, "messages": messages}).encode(), session)
                said = answer["choices"][0]["message"]["content"]
                messages += [{"role": "assistant", "content": said}, {"role": "user", "content": "Go on."}]
                calls += 1
    finally:
        with open("metrics.json", "w", encoding="utf-8") as told:
            json.dump({"began": began, "calls": calls}, told)
    return 0


def ask(sock: socket.socket, body: bytes, session: str) -> JSON:
    """One call; raises ConnectionError where it is not answered with 200."""
    head = (
        "POST /v1/chat/completions HTTP/1.1\r\nHost: proxy\r\nContent-Type: application/json\r\n"
        f"proxy_x_session_id: {session}\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    sock.sendall(head.encode() + body)
    received = b""
    while not is_whole(received):
        more = sock.recv(1 << 16)
        if not more:
            raise ConnectionError(f"the connection was closed after {received[:200]!r}")
        received += more
    if not received.startswith(b"HTTP/1.1 200"):
        raise ConnectionError(f"refused: {received[:300]!r}")
    return json.loads(received.partition(b"\r\n\r\n")[2])


def is_whole(received: bytes) -> bool:
    head, border, body = received.partition(b"\r\n\r\n")
    _, found, length = head.lower().partition(b"content-length:")
    return bool(border and found) and len(body) >= int(length.split(b"\r\n")[0])


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
