"""Small systems under test, written as profiles like any other."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

import pytest

from conformance.systems.profile import Profile
from conformance.systems.profile_reading import load

Listening = Callable[[bytes], AbstractAsyncContextManager[tuple[str, list[bytes]]]]

STUBS = Path(__file__).with_name("stubs")

PROXY = """
name = "stub"
kind = "proxy"
capabilities = ["chat", "session-header", "session-url", "session-key", "session-body", "parent-header",
                "records-disk", "retrieval-http", "loss-mark"]
[start]
command = ["{{python}}", "-S", "{stubs}/proxy.py", "{{config}}", "{{log_dir}}", "{{port}}", "{manner}"]
address = "{address}"
ready = "{ready}"
deadline_seconds = {deadline}
{start}
[routing]
[session]
session-header = {{header = "X-Stub-Session"}}
session-url = {{url = "/sessions/{{session}}/v1"}}
session-key = {{key = "stub:{{session}}"}}
session-body = {{body = "stub_session"}}
parent-header = {{header = "X-Stub-Parent"}}
[retrieval]
sessions = "/v1/sessions"
completions = "/v1/sessions/{{session}}/completions"
session_rows = "rows"
record_rows = ""
records_on_disk = "sessions/{{sha256}}/*.json"
loss_mark = "sessions/{{sha256}}/incomplete"
[retrieval.fields]
uuid = "uuid"
captured_at = "captured_at"
generation_token_ids = "tokens.out"
prompt_token_ids = "tokens.in"
"""

REBUILD = """
name = "stub-rebuild"
kind = "rebuild"
capabilities = ["rebuild-session"]
[start]
command = ["{{python}}", "-S", "{stubs}/rebuild.py"]
"""


@pytest.fixture
def stub_proxy(tmp_path: Path) -> Callable[..., Profile]:
    """A profile of the stub proxy; ``start`` is added to its [start] table."""

    def make(
        manner: str = "plain", address: str = "announced", ready: str = "tcp", deadline: float = 20, start: str = ""
    ) -> Profile:
        path = tmp_path / "stub.toml"
        path.write_text(
            PROXY.format(stubs=STUBS, manner=manner, address=address, ready=ready, deadline=deadline, start=start)
        )
        return load(path)

    return make


@pytest.fixture
def stub_rebuild(tmp_path: Path) -> Profile:
    path = tmp_path / "stub-rebuild.toml"
    path.write_text(REBUILD.format(stubs=STUBS))
    return load(path)


@pytest.fixture
def listening() -> Listening:
    """Answers every connection with the given bytes and closes; gives its URL and what it was sent."""

    @asynccontextmanager
    async def begin(answer: bytes) -> AsyncIterator[tuple[str, list[bytes]]]:
        heard: list[bytes] = []

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            head = await reader.readuntil(b"\r\n\r\n")
            length = int(head.lower().partition(b"content-length: ")[2].split(b"\r\n")[0])
            heard.append(head + await reader.readexactly(length))
            writer.write(answer)
            await writer.drain()
            writer.close()

        async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
            yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", heard

    return begin
