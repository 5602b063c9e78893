"""A capture proxy under test: given sessions, asked for its records, restarted and killed.

Everything here goes over HTTP, files and signals, as the system's profile describes them.
"""

import asyncio
import hashlib
import json
import signal
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from conformance.systems.calls import Answer, Headers, SystemFailed, call
from conformance.systems.profile import PARENT_CAPABILITY, SESSION_PREFIX, Profile, Retrieval
from conformance.systems.retrieval import DiskRecord, Form, Record, in_contract_form, read_file, rows_of
from conformance.systems.routing import Route
from conformance.systems.servers import (
    Server,
    accepts,
    answers,
    ask,
)

JSON = Any

DEATH_SECONDS = 2.0
SILENT = "no longer answers"
"""What is said of a proxy that still runs and accepts, but does not answer."""


class NotOurs(Exception):
    """Raised when a scenario wants to end, restart or read what belongs to a proxy that the suite only attached to."""


@dataclass(frozen=True, slots=True)
class Carried:
    """What a call has to bring along to belong to a session.

    ``headers`` and ``body`` (top-level keys) are added to the call; ``base_path`` takes the place of ``/v1``;
    ``api_key`` is what the client is configured with, None if any will do.
    """

    headers: tuple[tuple[str, str], ...] = ()
    body: Mapping[str, str] | None = None
    base_path: str = "/v1"
    api_key: str | None = None


class ProxyUnderTest:
    """``url`` is ``http://HOST:PORT``; ``log_dir`` is where the proxy keeps its records, None if nobody can tell.

    ``nowhere`` has the routes that were left out, since they lead to what a real engine is not, and why it is not.

    ``close`` blocks and is for fixtures; scenarios use the coroutines.
    """

    def __init__(
        self, profile: Profile, url: str, log_dir: Path | None, routes: tuple[Route, ...], process: Server | None
    ) -> None:
        self.profile = profile
        self._url = url
        self.log_dir = log_dir
        self.routes = routes
        self._process = process
        self._opened: set[str] = set()
        self.nowhere: Mapping[str, str] = {}

    @property
    def url(self) -> str:
        return self._url if self._process is None else self._process.url

    @property
    def capabilities(self) -> frozenset[str]:
        return self.profile.capabilities

    @property
    def process(self) -> Server:
        """Raises :class:`NotOurs`."""
        if self._process is None:
            raise NotOurs(f"{self.profile.name} at {self.url} runs outside of the suite")
        return self._process

    @property
    def pid(self) -> int:
        return self.process.started.pid

    # Life

    def is_alive(self) -> bool:
        return accepts(self.url) if self._process is None else self._process.started.is_alive()

    def death(self) -> str | None:
        """One line on how it died by itself, with the last thing it wrote; None while it answers calls.

        A dying process resets connections a moment before anybody can learn that it has ended, hence the question
        and the wait. Blocks for as long as it takes to answer.
        """
        start = self.profile.start
        if answers(self.url, "/health" if start is None or start.ready == "tcp" else start.ready):
            return None
        code = None if self._process is None else self._process.started.wait(DEATH_SECONDS)
        return f"{self.profile.name} at {self.url} {SILENT}" if code is None else self._last_words(code)

    def ended_by_itself(self) -> str | None:
        """The same of one that has ended although nobody told it to; None while it runs, or if it was told to."""
        if self._process is None or self._process.told_to_end:
            return None
        code = self._process.started.exit_code()
        return None if code is None else self._last_words(code)

    def _last_words(self, code: int) -> str:
        last = self.tail(1).strip()
        return f"{self.profile.name} has died with exit code {code}" + (f"; its last words: {last}" if last else "")

    def whereabouts(self) -> str:
        """Its address, process, log and records in one line."""
        process = [] if self._process is None else [f"pid {self.pid}", f"log {self._process.started.log}"]
        records = [] if self.log_dir is None else [f"records {self.log_dir}"]
        return " · ".join([self.url, *process, *records])

    def tail(self, lines: int = 20) -> str:
        return "" if self._process is None else self._process.started.tail(lines)

    def close(self) -> int | None:
        """Ends a proxy of ours; returns its exit code."""
        return None if self._process is None else self._process.close()

    async def stop(self) -> int:
        """TERM, grace, KILL. Returns the exit code."""
        return await asyncio.to_thread(self.process.stop)

    async def kill(self) -> None:
        """SIGKILL for it and its children."""
        await asyncio.to_thread(self.process.kill)

    async def restart(self) -> None:
        """Ends it if need be and starts it at the same address. Raises :class:`SystemNotStarted`."""
        await asyncio.to_thread(self.process.restart)

    def send_signal(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    # Sessions

    def carry(self, session: str, *, by: str | None = None, parent: str | None = None) -> Carried:
        """``by`` is a session capability, the first declared one if None. Raises KeyError for an undeclared one.

        Nothing is carried to a system that takes no session at all. Where a session has to be opened, this blocks for
        the call that does it, the first time it is named.
        """
        if by is None and not self.takes_sessions:
            return Carried()
        way = self.profile.carriers[by or self.default_carrier()]
        self._open(session)
        headers: list[tuple[str, str]] = []
        if parent is not None:
            headers.append((self.profile.carriers[PARENT_CAPABILITY].value, parent))
        if way.form == "header":
            headers.insert(0, (way.value, session))
        return Carried(
            headers=tuple(headers),
            body={way.value: session} if way.form == "body" else None,
            base_path=way.value.replace("{session}", quote(session, safe="")) if way.form == "url" else "/v1",
            api_key=way.value.replace("{session}", session) if way.form == "key" else None,
        )

    @property
    def takes_sessions(self) -> bool:
        return any(name.startswith(SESSION_PREFIX) for name in self.profile.carriers)

    def _open(self, session: str) -> None:
        way = self.profile.open
        if way is None or session in self._opened:
            return
        quoted, text = quote(session, safe="", errors="surrogatepass"), json.dumps(session)[1:-1]
        path, body = way.path.replace("{session}", quoted), way.json.replace("{session}", text)
        status = ask(self.url, way.method, path, body)
        if not 200 <= status < 300:
            raise SystemFailed(
                f"{way.method} {path}: expected 2xx for a session to be opened, seen {status or 'nothing'}"
            )
        self._opened.add(session)

    def default_carrier(self) -> str:
        return next(name for name in self.profile.carriers if name.startswith(SESSION_PREFIX))

    # Records over HTTP

    async def get(self, path: str, headers: Headers = (), seconds: float = 30.0) -> Answer:
        """``path`` is the target on the wire, already quoted."""
        return await call("GET", self.url, path=path, headers=headers, seconds=seconds)

    async def sessions_answer(self) -> Answer:
        return await self.get(_declared(self._retrieval.sessions, "a list of sessions"))

    async def completions_answer(self, session: str) -> Answer:
        path = _declared(self._retrieval.completions, "a session's records")
        return await self.get(path.replace("{session}", quote(session, safe="", errors="surrogatepass")))

    async def sessions(self) -> list[dict[str, JSON]]:
        """The listed rows. Raises :class:`RetrievalFailed`."""
        rows = rows_of(await self.sessions_answer(), self._retrieval.session_rows, "the session list")
        name = self._retrieval.session_id
        return rows if name == "session_id" else [{**row, "session_id": row.get(name)} for row in rows]

    async def records(self, session: str) -> list[Record]:
        """The session's records in the contract's field names, in the order given. Raises :class:`RetrievalFailed`."""
        return self.records_in(await self.completions_answer(session), session)

    def records_in(self, answer: Answer, session: str) -> list[Record]:
        """The same of an answer that is there already."""
        rows = rows_of(answer, self._retrieval.record_rows, f"session {session!r}")
        return [in_contract_form(row, self._form) for row in rows]

    # Records on disk

    def record_files(self, session: str) -> list[Path]:
        """The files where the layout puts the session's records, by name."""
        return sorted(self._below_log_dir(_declared(self._retrieval.records_on_disk, "records on disk"), session))

    def disk_records(self, session: str) -> list[DiskRecord]:
        """What these files hold, by (``captured_at``, ``uuid``); those without a record come last."""
        found = [read_file(path, self._form) for path in self.record_files(session)]
        return sorted(found, key=DiskRecord.place)

    def has_loss_mark(self, session: str) -> bool:
        return bool(self._below_log_dir(_declared(self._retrieval.loss_mark, "a loss mark"), session))

    def has_delivery_mark(self, session: str, uuid: str) -> bool:
        """Whether that record is marked as one whose answer did not reach the client."""
        pattern = _declared(self._retrieval.delivery_mark, "a delivery mark")
        return bool(self._below_log_dir(pattern.replace("{uuid}", uuid), session))

    @property
    def record_lag(self) -> float:
        """Seconds for which a record may be under way behind its answer; 0 for a proxy that writes it before."""
        return 0.0 if self.profile.retrieval is None else self.profile.retrieval.lag_seconds

    def served(self, model: str) -> str:
        """The model name by which the engine is asked for what clients call so."""
        handed_on = self.profile.routing is not None and not self.profile.routing.aliases
        return model if handed_on else next((each.target for each in self.routes if each.name == model), model)

    @property
    def _form(self) -> Form:
        return Form(self._retrieval.fields, flagged=self._retrieval.validity == "flag")

    @property
    def _retrieval(self) -> Retrieval:
        if self.profile.retrieval is None:
            raise NotOurs(f"{self.profile.name} is not declared to hand out records")
        return self.profile.retrieval

    def _below_log_dir(self, pattern: str, session: str) -> list[Path]:
        if self.log_dir is None:
            raise NotOurs(f"the log directory of {self.profile.name} is not known")
        digest = hashlib.sha256(session.encode("utf-8", errors="surrogatepass")).hexdigest()
        return list(self.log_dir.glob(pattern.replace("{sha256}", digest)))


def _declared(place: str | None, what: str) -> str:
    if place is None:
        raise NotOurs(f"the profile does not say where {what} would be")
    return place
