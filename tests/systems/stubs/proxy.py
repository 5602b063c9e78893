"""As little of a capture proxy as the suite's own tests need: `proxy.py CONFIG LOG_DIR PORT [MANNER]`."""

import hashlib
import json
import os
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote

CONFIG, LOG_DIR, PORT, MANNER = Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]), sys.argv[4]


def folder(session: str) -> Path:
    return LOG_DIR / "sessions" / hashlib.sha256(session.encode()).hexdigest()


class Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        if self.path == "/health":
            return self.answer(200 if (LOG_DIR / "posted").exists() or MANNER != "set-up" else 503, {})
        if self.path == "/v1/sessions":
            rows = [{"id": path.read_text()} for path in LOG_DIR.glob("sessions/*/name")]
            return self.answer(200, {"rows": rows})
        if self.path == "/target":
            return self.answer(200, {"headers": self.headers.items()})
        session = unquote(self.path.split("/")[3])
        if not folder(session).exists():
            return self.answer(404, {"error": "no such session"})
        return self.answer(200, [json.loads(path.read_text()) for path in sorted(folder(session).glob("*.json"))])

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.path == "/set-up":
            (LOG_DIR / "posted").write_text(json.dumps(body))
            return self.answer(201 if body == {"engine": "http://engine"} else 400, {})
        if self.path == "/crash":
            sys.stderr.write("the cat is on the keyboard\n")
            os._exit(9)
        session = body["stub_session"]
        folder(session).mkdir(parents=True, exist_ok=True)
        (folder(session) / "name").write_text(session)
        number = len(list(folder(session).glob("*.json")))
        record = {"uuid": f"u{9 - number}", "captured_at": f"2026-0{number}", "tokens": {"out": body["ids"]}}
        (folder(session) / f"{number}.json").write_text(json.dumps(record))
        return self.answer(200, {})

    def answer(self, status: int, body: object) -> None:
        text = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, format: str, *args: object) -> None:
        pass


def main() -> int:
    if "broken" in CONFIG.read_text():
        sys.stderr.write("error: broken: expected something whole\n")
        return 2
    if MANNER == "silent":
        time.sleep(1000)
    LOG_DIR.mkdir(parents=True, exist_ok=True)
    server = ThreadingHTTPServer(("127.0.0.1", PORT), Handler)
    sys.stdout.write(
        "warming up\n" if MANNER == "quiet" else f"INFO listening on http://127.0.0.1:{server.server_port}\n"
    )
    sys.stdout.flush()
    server.serve_forever()
    return 0


sys.exit(main())
