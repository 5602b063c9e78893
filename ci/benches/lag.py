"""How late a 10 ms ticker on the reference proxy's event loop is while 5 MB bodies pass through it.

Run as ``python -m ci.benches.lag``. Prints one line with the median, the 99th percentile and the worst, in ms.
"""

import argparse
import asyncio
import json
import multiprocessing
import statistics
import sys
import tempfile
import threading
import time
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from multiprocessing.connection import Connection
from pathlib import Path

TICK_SECS = 0.01
BODY_BYTES = 5_000_000
ENTRY = '{"token":"x","logprob":-0.6457429528236389,"bytes":[120],"top_logprobs":[]}'


class _Engine(BaseHTTPRequestHandler):
    """Answers each call with 10,000 tokens and their log probs."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        entries = ",".join([ENTRY] * 10_000)
        answer = (
            '{"id":"chatcmpl-1","object":"chat.completion","created":1,"model":"served","choices":[{"index":0,"message":'
            '{"role":"assistant","content":"x"},"finish_reason":"stop","token_ids":' + json.dumps([7] * 10_000) + ","
            '"logprobs":{"content":[' + entries + "]}}],"
            '"usage":{"prompt_tokens":1,"total_tokens":10001,"completion_tokens":10000},"prompt_token_ids":[1]}'
        ).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing of each request."""


def _engine(told: Connection) -> None:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Engine)
    told.send(server.server_address[1])
    server.serve_forever()


def _load(port: int, calls: int, told: Connection) -> None:
    """Send calls with a history of many messages, two at a time."""
    history = [{"role": "user", "content": "x" * 1000} for _ in range(BODY_BYTES // 1040)]
    body = json.dumps({"model": "policy", "messages": history, "proxy_x_session_id": "lag"}).encode()

    def send() -> None:
        connection = HTTPConnection("127.0.0.1", port)
        for _ in range(calls // 2):
            connection.request("POST", "/v1/chat/completions", body, {"content-type": "application/json"})
            answer = connection.getresponse()
            answer.read()
            assert answer.status == 200

    threads = [threading.Thread(target=send) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    told.send(calls)


async def _tick(lags: list[float]) -> None:
    while True:
        due = time.perf_counter() + TICK_SECS
        await asyncio.sleep(TICK_SECS)
        lags.append((time.perf_counter() - due) * 1000)


async def _measure(engine_port: int, calls: int, folder: Path) -> list[float]:
    from conformance.reference.capture.config import Route
    from conformance.reference.capture.serving import bound, serve_on
    from conformance.reference.store import Store

    store = Store(folder)
    store.prepare()
    route = Route("policy", "served", f"http://127.0.0.1:{engine_port}/v1", captured=True)
    listener = bound("127.0.0.1", 0)
    serving = asyncio.create_task(serve_on(listener, {"policy": route}, store))
    ours, theirs = multiprocessing.get_context("spawn").Pipe()
    load = multiprocessing.get_context("spawn").Process(
        target=_load, args=(listener.getsockname()[1], calls, theirs), daemon=True
    )
    load.start()
    lags: list[float] = []
    ticking = asyncio.create_task(_tick(lags))
    await asyncio.to_thread(ours.recv)
    ticking.cancel()
    serving.cancel()
    await asyncio.gather(ticking, serving, return_exceptions=True)
    load.join()
    return lags


def main(argv: list[str]) -> int:
    """Print the lag; returns 0, for a number on a shared machine is no verdict."""
    parser = argparse.ArgumentParser(prog="bench lag", description=__doc__)
    parser.add_argument("--calls", type=int, default=40, help="how many 5 MB bodies to send")
    calls = parser.parse_args(argv).calls
    ours, theirs = multiprocessing.get_context("spawn").Pipe()
    engine = multiprocessing.get_context("spawn").Process(target=_engine, args=(theirs,), daemon=True)
    engine.start()
    try:
        with tempfile.TemporaryDirectory() as folder:
            lags = sorted(asyncio.run(_measure(ours.recv(), calls, Path(folder))))
    finally:
        engine.terminate()
        engine.join()
    median, late = statistics.median(lags), lags[int(len(lags) * 0.99)]
    sys.stdout.write(
        f"lag of a 10 ms ticker while {calls} bodies of 5 MB pass: "
        f"median {median:.2f} ms, p99 {late:.2f} ms, worst {lags[-1]:.2f} ms, {len(lags)} ticks\n"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
