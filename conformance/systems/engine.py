"""The fake vLLM as a process of its own, and its administration.

Spoken to over HTTP only, as any engine of another make would be.
"""

import asyncio
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal
from urllib.parse import quote, urlencode, urlsplit

from conformance.systems import guard
from conformance.systems.calls import Answer, CallFailed, SystemFailed, call
from conformance.systems.profile import Profile
from conformance.systems.servers import Server, ServerCommand, accepts

JSON = Any
Row = dict[str, JSON]
RowState = Literal["received", "held", "generating", "finished", "cut", "aborted", "refused", "failed"]

DEADLINE_SECONDS = 30.0
CANNOT = 501
NO_SCOPES: Mapping[str, str] = {}
REAL_PATIENCE = 6.0
"""A real engine on a CPU that others use too generates some ten tokens a second."""


class EngineRefused(Exception):
    """Raised when the administration says no: a bad playbook, tenant or query. The message is the engine's one line."""


class EngineCannot(Exception):
    """Raised when a real engine cannot be what a scenario needs, or play it. The message is its reason.

    ``scopes`` has a reason for each scope of a playbook that it cannot play; the others it can.
    """

    def __init__(self, reason: str, scopes: Mapping[str, str] = NO_SCOPES) -> None:
        super().__init__(reason)
        self.scopes = scopes


class EngineFailed(Exception):
    """Raised when the engine itself does not answer its administration: a fault of the suite, never of a system."""


class EngineLate(SystemFailed):
    """Raised when the awaited rows did not come in time: the engine is well, but nobody asked it."""


class FakeEngine:
    """A running fake vLLM. ``close`` blocks for some milliseconds and is for fixtures."""

    def __init__(self, url: str, server: Server | None = None, *, is_real: bool = False) -> None:
        """Without a ``server`` it is one that somebody else runs. ``is_real``: a recorder, before a real vLLM."""
        self.url = url
        self.is_real = is_real
        self._server = server

    def address(self, tenant: str) -> str:
        """The base URL of a tenant, as an OpenAI client wants it."""
        return f"{self.url}/t/{tenant}/v1"

    def is_alive(self) -> bool:
        return accepts(self.url) if self._server is None else self._server.started.is_alive()

    def tail(self, lines: int = 20) -> str:
        return "" if self._server is None else self._server.started.tail(lines)

    def close(self) -> int | None:
        return None if self._server is None else self._server.close()

    async def kill(self) -> None:
        """SIGKILL; a foreign one is left alone. Tenants, playbooks and ledger are lost."""
        if self._server is not None:
            await asyncio.to_thread(self._server.kill)

    async def restart(self) -> None:
        """At the same address, empty."""
        if self._server is not None:
            await asyncio.to_thread(self._server.restart)

    async def tenant(self, name: str, body: Mapping[str, JSON] | None = None) -> None:
        """Creates or replaces a tenant."""
        await self._ask("PUT", f"/_fake/tenants/{_quoted(name)}", dict(body or {}))

    async def play(self, tenant: str, run: int, playbook: Mapping[str, JSON]) -> None:
        """Says what the model does in that run."""
        await self._ask("PUT", f"/_fake/tenants/{_quoted(tenant)}/runs/{run}", dict(playbook))

    async def ledger(
        self,
        *,
        tenant: str | None = None,
        run: int | None = None,
        request_id: str | None = None,
        answers: bool = False,
    ) -> list[Row]:
        """In order of arrival; with ``answers`` each has its answer as it was sent, under ``answer``."""
        query = _query(tenant=tenant, run=run, request_id=request_id, answers="true" if answers else None)
        return _rows(await self._ask("GET", "/_fake/ledger" + query))

    async def wait(
        self,
        state: RowState,
        *,
        tenant: str | None = None,
        run: int | None = None,
        count: int = 1,
        seconds: float = 20.0,
    ) -> list[Row]:
        """The rows in that state, as soon as there are ``count`` of them. Raises :class:`EngineLate`."""
        seconds *= REAL_PATIENCE if self.is_real else 1
        query = _query(tenant=tenant, run=run, state=state, count=count, timeout=seconds)
        answer = await self._ask("GET", "/_fake/wait" + query, seconds=seconds + 5, accepted=(200, 408))
        if answer.status == 408:
            raise EngineLate(f"{count} rows {state} (tenant {tenant}, run {run}) were not there after {seconds:g} s")
        return _rows(answer)

    async def rendered(self, tenant: str, body: Mapping[str, JSON]) -> list[int]:
        """The prompt that the engine's template makes of a chat request, without generating."""
        path = f"/t/{_quoted(tenant)}/v1/chat/completions/render"
        ids: list[int] = (await self._ask("POST", path, dict(body))).json()["token_ids"]
        return ids

    async def open_gate(self, tenant: str, name: str) -> None:
        await self._ask("POST", f"/_fake/gates/{_quoted(tenant)}/{_quoted(name)}/open")

    async def close_idle(self) -> int:
        """Closes the connections that wait for a request, as engines do after some seconds; returns how many."""
        closed: int = (await self._ask("DELETE", "/_fake/connections/idle")).json()["closed"]
        return closed

    async def forget(self, *, tenant: str | None = None, run: int | None = None) -> None:
        """Drops ledger rows; one of the two is required."""
        await self._ask("DELETE", "/_fake/ledger" + _query(tenant=tenant, run=run))

    async def _ask(
        self,
        method: str,
        path: str,
        body: JSON = None,
        *,
        seconds: float = 30.0,
        accepted: Sequence[int] = (200, 201, 204),
    ) -> Answer:
        try:
            answer = await call(method, self.url, path=path, json_body=body, seconds=seconds)
        except CallFailed as error:
            died = "" if self.is_alive() else f"; the engine has died: {self.tail()}"
            raise EngineFailed(f"{error}{died}") from None
        if answer.status == CANNOT:
            told = answer.json()
            raise EngineCannot(told["error"], told.get("scopes", NO_SCOPES))
        if answer.status not in accepted:
            raise EngineRefused(f"{method} {path}: {answer.status} {answer.text}")
        return answer


def start_engine(files: Path, *, port: int = 0, profile: str | None = None) -> FakeEngine:
    """Blocks until it listens. ``files`` is an existing directory for its log; port 0 is any.

    Raises :class:`conformance.systems.servers.SystemNotStarted`.
    """
    profiled = ("--profile", profile) if profile is not None else ()
    return _started("the fake vLLM", ("fakes.vllm", *profiled), files, port)


def start_recorder(files: Path, url: str, *, port: int = 0) -> FakeEngine:
    """A real vLLM at ``url`` behind a pass-through that keeps a ledger of it and has the fake's administration.

    Raises :class:`conformance.systems.servers.SystemNotStarted`.
    """
    module = ("fakes.recorder", "--engine", url)
    return _started("the recorder of a real vLLM", module, files, port, is_real=True)


def _started(name: str, module: Sequence[str], files: Path, port: int, *, is_real: bool = False) -> FakeEngine:
    plan = ServerCommand(
        name=name,
        command=[sys.executable, "-m", *module, "--port", "{port}"],
        env=guard.environment(files),
        cwd=files,
        log=files / "engine.log",
        port=port,
        deadline_seconds=DEADLINE_SECONDS,
    )
    server = Server(plan)
    return FakeEngine(server.url, server, is_real=is_real)


def port_for(profile: Profile) -> int:
    """Where the engine has to listen for that system: any for one that the suite starts, else as it was told."""
    return 0 if profile.attach is None else urlsplit(profile.attach.engine).port or 0


def _quoted(name: str) -> str:
    return quote(name, safe="")


def _query(**fields: str | int | float | None) -> str:
    return "?" + urlencode({name: value for name, value in fields.items() if value is not None})


def _rows(answer: Answer) -> list[Row]:
    rows = answer.json()["rows"]
    assert isinstance(rows, list)
    return rows
