"""Proxies that do nothing right, one per word: what a stranger's first attempt may look like, or a broken one."""

import http.client
import json
import sys
import threading
import uuid
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote, urlsplit

import yaml

WAY, ARGUMENTS = sys.argv[1], sys.argv[2:]
WHOLE = {"refusing": (500, b"boom"), "empty": (200, b"{}"), "null": (200, b"null"), "listing": (200, b"[1, [2]]")}
with open(ARGUMENTS[ARGUMENTS.index("--routing-profiles") + 1], encoding="utf-8") as file:
    ROUTES = yaml.safe_load(file)["routes"]
RECORDS: dict[str, list[dict[str, Any]]] = {}


class Stub(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: object) -> None:
        """Nothing."""

    def do_GET(self) -> None:
        if not self.is_answered_alike():
            self.say(*retrieved(urlsplit(self.path).path))

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if not self.is_answered_alike():
            self.say(*forwarded(self.path, body, self.headers.get("proxy_x_session_id")))

    def is_answered_alike(self) -> bool:
        """Whatever was asked."""
        if WAY == "silent":
            threading.Event().wait()
        if WAY == "babbling":
            self.wfile.write(b"\x00\xff no HTTP\r\n\r\n")
            self.close_connection = True
        elif WAY in WHOLE:
            self.say(*WHOLE[WAY])
        return WAY == "babbling" or WAY in WHOLE

    def say(self, status: int, body: bytes, form: str = "application/json") -> None:
        self.send_response(status)
        self.send_header("Content-Type", form)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def retrieved(path: str) -> tuple[int, bytes]:
    if path == "/v1/sessions":
        rows = [{"session_id": session, "parent_session_id": None} for session in RECORDS]
        return 200, json.dumps({"schema_version": 1, "sessions": rows}).encode()
    parts = path.split("/")
    if len(parts) == 5 and unquote(parts[3]) in RECORDS:
        session = unquote(parts[3])
        told = {"schema_version": 1, "session_id": session, "completions": RECORDS[session]}
        return 200, json.dumps(told).encode()
    return 404, b'{"error": "no such thing"}'


def forwarded(path: str, body: bytes, session: str | None) -> tuple[int, bytes, str]:
    """To the engine and back, kept by nobody (``passing``), or recorded with wrong values throughout (``lying``)."""
    try:
        asked = json.loads(body)
        route = ROUTES[asked["model"]]
    except (ValueError, LookupError, TypeError):
        return 404, json.dumps({"error": {"message": ", ".join(ROUTES)}}).encode(), "application/json"
    asked["model"] = route["target"]
    address = urlsplit(route["base_url"])
    try:
        engine = http.client.HTTPConnection(address.netloc, timeout=20)
        head = {"Content-Type": "application/json"}
        engine.request("POST", address.path + path.removeprefix("/v1"), json.dumps(asked).encode(), head)
        answer = engine.getresponse()
        content = answer.read()
    except OSError:
        return 502, b'{"error": {"message": "no engine"}}', "application/json"
    if WAY == "lying" and session and answer.status == 200:
        RECORDS.setdefault(session, []).append(lie(session, len(RECORDS)))
    return answer.status, content, answer.getheader("Content-Type") or "application/json"


def lie(session: str, number: int) -> dict[str, Any]:
    said = [{"role": "user", "content": "Hello."}, {"role": "assistant", "content": "Good-bye."}]
    return {
        **{"schema_version": 1, "uuid": str(uuid.uuid4()), "session_id": session, "parent_session_id": None},
        **{"captured_at": f"2026-01-01T00:00:00.{number:06}+00:00", "request_id": f"chatcmpl-{uuid.uuid4().hex}"},
        **{"model": "another", "messages": said, "tools": [], "tool_choice": "auto", "token_count": 5},
        **{"prompt_token_ids": [1, 2], "generation_token_ids": [3, 4, 5], "generation_log_probs": [-0.1, -0.2, -0.3]},
        **{"finish_reason": "stop", "is_valid": True},
    }


class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 512


if __name__ == "__main__":
    server = Server(("127.0.0.1", 0), Stub)
    sys.stdout.write(f"listening on http://127.0.0.1:{server.server_address[1]}\n")
    sys.stdout.flush()
    server.serve_forever()
