"""An engine that answers what a test tells it to, over a real socket, and remembers what it was asked."""

import asyncio
import contextlib
import json
import threading
from collections import deque
from dataclasses import dataclass, field
from typing import Any, Self

JSON = Any


@dataclass(frozen=True)
class Asked:
    """One request as it arrived; ``connection`` numbers the connections."""

    method: str
    path: str
    headers: list[tuple[str, str]]
    raw: bytes
    connection: int

    @property
    def body(self) -> JSON:
        return json.loads(self.raw)

    def header(self, name: str) -> str | None:
        return next((value for given, value in self.headers if given.lower() == name.lower()), None)


@dataclass
class Answer:
    """One response. ``send`` cuts it after so many bytes of the body; ``gate`` holds it back until it is set.

    With ``pause_at`` the first so many bytes of the body are sent, and only what follows waits for the gate.
    """

    status: int = 200
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)
    send: int | None = None
    gate: threading.Event | None = None
    pause_at: int = 0
    hang_up: bool = False
    hang_up_after: bool = False


def completion(**changes: JSON) -> JSON:
    """A healthy chat completion of three tokens; ``changes`` are put into its top level."""
    log_probs = [-0.6457429528236389, 0.0, -0.25]
    entries = [{"token": "x", "logprob": value, "bytes": [120], "top_logprobs": []} for value in log_probs]
    message = {"role": "assistant", "content": "Yes.", "refusal": None, "reasoning": None}
    choice = {
        "index": 0,
        "message": message,
        "logprobs": {"content": entries},
        "finish_reason": "stop",
        "stop_reason": None,
        "token_ids": [56, 274, 2000],
        "routed_experts": None,
    }
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1795975524,
        "model": "served",
        "choices": [choice],
        "usage": {"prompt_tokens": 2, "total_tokens": 5, "completion_tokens": 3},
        "prompt_logprobs": None,
        "prompt_token_ids": [2001, 1998],
        "prompt_text": None,
        "kv_transfer_params": None,
        "metrics": None,
        **changes,
    }


def with_message(**message: JSON) -> JSON:
    """A healthy completion whose message has other keys."""
    answer = completion()
    answer["choices"][0]["message"] |= message
    return answer


def with_choice(**choice: JSON) -> JSON:
    """A healthy completion whose choice has other keys."""
    answer = completion()
    answer["choices"][0] |= choice
    return answer


class ScriptedEngine:
    """Serves on a thread of its own. Without a planned answer it gives a healthy completion."""

    def __init__(self) -> None:
        self.asked: list[Asked] = []
        self.hung_up = threading.Event()
        self.arrived = threading.Event()
        self._planned: deque[Answer] = deque()
        self._by_path: dict[str, Answer] = {}
        self.connections = 0
        self._latest: asyncio.StreamWriter | None = None
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._ready = threading.Event()
        self.port = 0

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    def plan(self, *answers: Answer | JSON) -> None:
        """Queue answers to chat calls; JSON is answered with status 200."""
        self._planned.extend(
            answer if isinstance(answer, Answer) else Answer(body=json.dumps(answer).encode()) for answer in answers
        )

    def serve(self, path: str, answer: Answer) -> None:
        """Answer one path always alike."""
        self._by_path[path] = answer

    def chats(self) -> list[Asked]:
        return [asked for asked in self.asked if asked.path.endswith("/chat/completions")]

    def forget(self) -> None:
        self.asked.clear()
        self._by_path.clear()
        self._planned.clear()
        self.hung_up.clear()
        self.arrived.clear()

    def say_unasked(self, body: bytes) -> None:
        """Send a whole answer on the connection that was last used, whether or not anybody asked."""
        head = f"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"

        async def say() -> None:
            assert self._latest is not None
            self._latest.write(head.encode() + body)
            await self._latest.drain()

        asyncio.run_coroutine_threadsafe(say(), self._loop).result(10)

    def __enter__(self) -> Self:
        self._thread.start()
        self._ready.wait(10)
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        server = self._loop.run_until_complete(asyncio.start_server(self._connection, "127.0.0.1", self.port))
        self.port = server.sockets[0].getsockname()[1]
        self._ready.set()
        self._loop.run_forever()
        server.close()
        for task in asyncio.all_tasks(self._loop):
            task.cancel()
        self._loop.run_until_complete(asyncio.sleep(0.01))
        self._loop.close()

    async def _connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        number = self.connections
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            while await self._exchange(reader, writer, number):
                pass
        with contextlib.suppress(Exception):
            writer.close()

    async def _exchange(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, number: int) -> bool:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        method, path, _ = head[0].split(" ")
        headers = [(name, value.strip()) for name, _, value in (line.partition(":") for line in head[1:] if line)]
        length = next((int(value) for name, value in headers if name.lower() == "content-length"), 0)
        raw = await reader.readexactly(length)
        self.asked.append(Asked(method, path, headers, raw, number))
        self.arrived.set()
        self._latest = writer
        answer = self._answer_to(path)
        if not answer.pause_at and not await self._passed(answer, reader):
            return False
        if answer.hang_up:
            return False
        fields = {"content-type": "application/json", "content-length": str(len(answer.body)), **answer.headers}
        lines = [f"HTTP/1.1 {answer.status} Whatever", *(f"{name}: {value}" for name, value in fields.items())]
        writer.write("\r\n".join([*lines, "", ""]).encode("latin-1") + answer.body[: answer.pause_at])
        if answer.pause_at and not await self._passed(answer, reader):
            return False
        writer.write(answer.body[answer.pause_at : answer.send])
        await writer.drain()
        return answer.send is None and not answer.hang_up_after

    async def _passed(self, answer: Answer, reader: asyncio.StreamReader) -> bool:
        """Whether the answer may go on."""
        if answer.gate is None or await self._held(answer.gate, reader):
            return True
        self.hung_up.set()
        return False

    async def _held(self, gate: threading.Event, reader: asyncio.StreamReader) -> bool:
        """Wait at the gate; False if the other side hung up meanwhile."""
        while not gate.is_set():
            if reader.at_eof():
                return False
            await asyncio.sleep(0.005)
        return True

    def _answer_to(self, path: str) -> Answer:
        if path in self._by_path:
            return self._by_path[path]
        if not path.endswith("/chat/completions"):
            return Answer(404, b'{"detail":"Not Found"}')
        return self._planned.popleft() if self._planned else Answer(body=json.dumps(completion()).encode())
