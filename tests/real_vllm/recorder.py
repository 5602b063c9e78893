"""A pass-through before a real engine that keeps what it was asked and what it answered, as rows of a ledger."""

import http.client
import itertools
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

from conformance.oracle.sse import parse
from fakes.vllm.ledger import SCHEMA_VERSION, Row

JSON = Any
ENDPOINTS = {"/v1/chat/completions": "chat", "/v1/completions": "completions"}


@dataclass
class Recorder:
    """``url`` is its address; rows are in order of arrival, each entered once its answer is whole."""

    url: str
    rows: list[dict[str, JSON]] = field(default_factory=list)

    def of_session(self, request_ids: set[str]) -> list[dict[str, JSON]]:
        return [row for row in self.rows if row["request_id"] in request_ids]


@contextmanager
def recording(engine: str) -> Iterator[Recorder]:
    """Serves on a port of its own before ``engine`` for the time of a ``with`` block."""
    numbers = itertools.count(1)
    found = Recorder("")
    lock = threading.Lock()

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, format: str, *args: object) -> None:
            """Says nothing."""

        def do_GET(self) -> None:
            self._pass_on(b"")

        def do_POST(self) -> None:
            self._pass_on(self.rfile.read(int(self.headers.get("content-length") or 0)))

        def _pass_on(self, body: bytes) -> None:
            upstream = http.client.HTTPConnection(urlsplit(engine).netloc, timeout=600)
            try:
                upstream.request(self.command, self.path, body or None, {"content-type": "application/json"})
                answer = upstream.getresponse()
                text = answer.read()
            finally:
                upstream.close()
            self.send_response(answer.status)
            self.send_header("content-type", answer.headers.get("content-type") or "application/json")
            self.send_header("content-length", str(len(text)))
            self.end_headers()
            if self.path in ENDPOINTS:
                # Entered before it is handed on: whoever has the answer finds its row.
                with lock:
                    head = list(self.headers.items())
                    found.rows.append(row_of(next(numbers), self.path, head, body, answer.status, text).to_json())
            self.wfile.write(text)

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    found.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield found
    finally:
        server.shutdown()
        server.server_close()
        thread.join(20)


def row_of(number: int, path: str, head: list[tuple[str, str]], body: bytes, status: int, answer: bytes) -> Row:
    """What a real engine said of one call, in the form in which the fake tells of its own."""
    asked = json.loads(body)
    row = Row(
        v=SCHEMA_VERSION,
        seq=number,
        tenant="default",
        profile="real",
        endpoint=ENDPOINTS[path],
        request={"method": "POST", "path": path, "headers": head, "body_text": body.decode()},
        model=asked.get("model"),
        streamed=bool(asked.get("stream")),
        status=status,
        state="finished" if status == 200 else "refused",
    )
    if status != 200:
        return row
    parts = _parts(answer.decode(), row.streamed)
    choices = [choice for part in parts for choice in part["choices"]]
    tops = [part["prompt_token_ids"] for part in parts if part.get("prompt_token_ids")]
    inner = [choice["prompt_token_ids"] for choice in choices if choice.get("prompt_token_ids")]
    entries = [entry for choice in choices for entry in (choice.get("logprobs") or {}).get("content") or []]
    row.request_id = parts[0]["id"]
    row.prompt_token_ids = next(iter([*tops, *inner]), None)
    row.generation_token_ids = [token for choice in choices for token in choice.get("token_ids") or []] or None
    row.generation_log_probs = [entry["logprob"] for entry in entries] or None
    row.finish_reason = choices[-1]["finish_reason"]
    row.stop_reason = choices[-1].get("stop_reason")
    row.usage = parts[-1].get("usage")
    return row


def _parts(text: str, streamed: bool) -> list[JSON]:
    if not streamed:
        return [json.loads(text)]
    return [json.loads(event.data) for event in parse(text).events if event.data != "[DONE]"]
