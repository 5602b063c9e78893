"""The systems that conversations are played on: one engine, one proxy, one rebuild, and connections that stay open."""

import hashlib
import http.client
import itertools
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

from conformance.systems import routing
from conformance.systems.engine import start_engine
from conformance.systems.profile import Profile
from conformance.systems.profiles import find
from conformance.systems.proxy import ProxyUnderTest
from conformance.systems.proxy_start import start_proxy
from conformance.systems.rebuild import RebuildUnderTest
from conformance.systems.routing import Route

JSON = Any

KEPT = "kept"
"""A model whose template keeps all history as it was sampled, reasoning too."""
STRIPPED = "stripped"
"""The same behind a template that drops the reasoning of earlier turns."""
CONTINUED = "continued"
"""The same again, through a route on which the proxy continues chains in their own tokens, as token prompts."""
SPLICED = "spliced"
"""The same for a trainer's server, which is told the tokens that a prompt has to start with."""
SECONDS = 30.0

_COMMON: Mapping[str, JSON] = {
    "models": [routing.SERVED, routing.SMALL],
    "max_model_len": routing.LONG_LENGTH,
    "tool_parser": "hermes",
    "reasoning_parser": "qwen3",
}
TENANTS: Mapping[str, Mapping[str, JSON]] = {
    KEPT: {**_COMMON, "template": {"strip_history_reasoning": False}},
    STRIPPED: {**_COMMON},
    CONTINUED: {**_COMMON},
    SPLICED: {**_COMMON, "profile": "nemo-rl"},
}
_INJECTION = {CONTINUED: "completions", SPLICED: "prefix_chat"}
_PINS: Mapping[str, JSON] = {"temperature": 1.0, "top_p": 1.0}
"""The trainer's sampling, without which its server refuses a call."""
ROUTES = tuple(
    Route(
        f"{tenant}{suffix}",
        tenant=tenant,
        target=target,
        injection=_INJECTION.get(tenant),
        pins=_PINS if tenant == SPLICED else {},
    )
    for tenant in TENANTS
    for suffix, target in (("", routing.SERVED), ("-small", routing.SMALL))
)


class Line:
    """One kept connection to a server. Blocks; not for an event loop."""

    def __init__(self, url: str) -> None:
        self.move(url)
        self._connection: http.client.HTTPConnection | None = None

    def move(self, url: str) -> None:
        """From now on to that server."""
        self._address = urlsplit(url)

    def send(self, method: str, path: str, body: JSON = None, headers: Mapping[str, str] | None = None) -> None:
        """Puts a request on the wire; ``answer`` waits for what comes of it."""
        raw = None if body is None else json.dumps(body).encode()
        kind = {} if body is None else {"Content-Type": "application/json"}
        connection = self._open()
        connection.request(method, path, raw, {**kind, **(headers or {})})

    def answer(self) -> tuple[int | None, str]:
        """Status and body; None where the connection broke, with what had come until then."""
        connection = self._open()
        read = b""
        try:
            response = connection.getresponse()
            status: int | None = response.status
            try:
                read = response.read()
            except http.client.IncompleteRead as cut:
                status, read = None, cut.partial
        except (http.client.HTTPException, OSError):
            status = None
        if status is None:
            self.close()
        return status, read.decode(errors="replace")

    def ask(
        self, method: str, path: str, body: JSON = None, headers: Mapping[str, str] | None = None
    ) -> tuple[int | None, str]:
        self.send(method, path, body, headers)
        return self.answer()

    def close(self) -> None:
        """Leaves, whatever is under way; the next request opens a new connection."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _open(self) -> http.client.HTTPConnection:
        if self._connection is None:
            self._connection = http.client.HTTPConnection(
                self._address.hostname or "", self._address.port, timeout=SECONDS
            )
        return self._connection


class StageError(RuntimeError):
    """Raised when the engine's administration or the retrieval of records says no: a fault of ours or of the stage."""


@dataclass
class Stage:
    """``first`` and ``second`` are the client's connections to the proxy, ``engine`` leads to the administration."""

    first: Line
    second: Line
    engine: Line
    rebuild: RebuildUnderTest
    proxy: ProxyUnderTest
    start_another: Callable[[], Line]
    runs: "itertools.count[int]" = field(default_factory=lambda: itertools.count(1))

    @cached_property
    def elsewhere(self) -> Line:
        """A connection to a second proxy on the same records, which is started once it is asked for."""
        return self.start_another()

    def kill_the_proxy(self) -> None:
        """And start it again: what it had in memory is gone."""
        self.proxy.process.kill()
        self.proxy.process.restart()
        for line in (self.first, self.second):
            line.close()
            line.move(self.proxy.url)

    def mark_undelivered(self, session: str, record: str) -> None:
        """As a proxy does that finds its client gone before the answer was through."""
        assert self.proxy.log_dir is not None
        digest = hashlib.sha256(session.encode()).hexdigest()
        (self.proxy.log_dir / "sessions" / digest / f"{record}.undelivered").touch()

    def administer(self, method: str, path: str, body: JSON = None) -> JSON:
        status, text = self.engine.ask(method, f"/_fake{path}", body)
        if status is None or not 200 <= status < 300:
            raise StageError(f"the engine: {method} {path}: {status} {text[:200]}")
        return json.loads(text)

    def ledger(self, tenant: str, run: int) -> list[dict[str, JSON]]:
        rows: list[dict[str, JSON]] = self.administer("GET", f"/ledger?tenant={tenant}&run={run}")["rows"]
        return rows

    def envelope(self, session: str) -> dict[str, JSON] | None:
        """What the proxy hands out of a session; None of one that it does not know."""
        status, text = self.first.ask("GET", f"/v1/sessions/{quote(session, safe='')}/completions")
        if status == 404:
            return None
        if status != 200:
            raise StageError(f"the proxy: the records of {session}: {status} {text[:200]}")
        found: dict[str, JSON] = json.loads(text)
        return found


@contextmanager
def stage(files: Path, *, proxy: Profile | None = None, rebuild: Profile | None = None) -> Iterator[Stage]:
    """Starts the systems, the reference where none is given. ``files`` is a directory for records and logs."""
    with ExitStack() as closing:
        engine = start_engine(files)
        closing.callback(engine.close)

        def serve(name: str) -> ProxyUnderTest:
            place = files / name
            served = start_proxy(proxy or find("reference"), engine.url, files / "records", routes=ROUTES, files=place)
            closing.callback(served.close)
            return served

        served = serve("proxy")
        (files / "rebuild").mkdir()
        asked = RebuildUnderTest(rebuild or find("reference-rebuild"), files / "rebuild")
        closing.callback(asked.close)
        lines = (Line(served.url), Line(served.url), Line(engine.url))
        for line in lines:
            closing.callback(line.close)

        def another() -> Line:
            line = Line(serve("another").url)
            closing.callback(line.close)
            return line

        made = Stage(*lines, asked, served, another)
        for name, body in TENANTS.items():
            made.administer("PUT", f"/tenants/{name}", dict(body))
        yield made
