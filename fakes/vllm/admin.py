"""The administration under /_fake: tenants, playbooks, ledger, gates. Never part of vLLM."""

import math
from typing import get_args

import orjson
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from fakes.vllm.calls import JSON, World
from fakes.vllm.jsontext import json_bytes
from fakes.vllm.ledger import Listing, State
from fakes.vllm.playbook import Playbook, PlaybookError
from fakes.vllm.profiles import UnknownProfile, profile
from fakes.vllm.reading import read_playbook
from fakes.vllm.tenants import TenantConfig, read_tenant

STATES: dict[str, State] = {state: state for state in get_args(State)}
LONGEST_WAIT = 600.0
CANNOT = 501
"""For a tenant or playbook that is well formed and that this engine cannot be or play."""


class _Misuse(Exception):
    """Raised when an administrative request cannot be carried out; answered as 400 with the sentence."""


def _json(body: object, status: int = 200) -> Response:
    return Response(orjson.dumps(body), status, media_type="application/json")


def _number(request: Request, name: str) -> int | None:
    text = request.query_params.get(name)
    if text is None:
        return None
    if not text.isdigit():
        raise _Misuse(f"{name}: expected a whole number, seen {text!r}")
    return int(text)


class Administration:
    """The handlers, over one world. ``unlike`` are tenants that this engine cannot be, and why."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.unlike: dict[str, str] = {}

    def why_no_tenant(self, config: TenantConfig) -> str | None:
        """Why this engine cannot be that tenant; the fake can be any."""
        return None

    def why_not_played(self, playbook: Playbook) -> dict[str, str]:
        """By scope, why this engine cannot play it; the fake can play all."""
        return {}

    async def _document(self, request: Request) -> dict[str, object]:
        raw = await request.body()
        try:
            document = orjson.loads(raw or b"{}")
        except orjson.JSONDecodeError as error:
            raise _Misuse(f"body: no JSON: {error}") from None
        if not isinstance(document, dict):
            raise _Misuse(f"body: expected an object, seen {type(document).__name__}")
        return document

    async def listing(self, request: Request) -> Response:
        """What can be asked here: method, path and one line for each route."""
        told = [
            {"method": method, "path": route.path, "about": (route.endpoint.__doc__ or "").partition("\n")[0]}
            for route in self.routes()
            for method in sorted((route.methods or set()) - {"HEAD"})
        ]
        return _json({"administration": told})

    def routes(self) -> list[Route]:
        return [
            Route("/_fake/", self.listing, methods=["GET"]),
            Route("/_fake/tenants/{tenant}", self.put_tenant, methods=["PUT"]),
            Route("/_fake/tenants/{tenant}/runs/{run:int}", self.put_run, methods=["PUT"]),
            Route("/_fake/ledger", self.get_ledger, methods=["GET"]),
            Route("/_fake/ledger", self.delete_ledger, methods=["DELETE"]),
            Route("/_fake/wait", self.wait, methods=["GET"]),
            Route("/_fake/gates/{tenant}/{gate:path}/open", self.open_gate, methods=["POST"]),
            Route("/_fake/connections/idle", self.close_idle, methods=["DELETE"]),
        ]

    async def put_tenant(self, request: Request) -> Response:
        """Create or replace a tenant (models, profile, faults); its gates close and its attempts begin anew."""
        name = request.path_params["tenant"]
        try:
            config = read_tenant(await self._document(request))
            if config.profile is not None:
                profile(config.profile)
        except (ValueError, UnknownProfile) as error:
            raise _Misuse(str(error)) from None
        why = self.why_no_tenant(config)
        if why is not None:
            self.unlike[name] = why
            return _json({"error": why}, CANNOT)
        self.world.tenants.put(name, config)
        self.world.gates.forget(name)
        return _json({"tenant": name})

    async def put_run(self, request: Request) -> Response:
        """Register what the model does for a run: a playbook (trackgauge schema playbook)."""
        name = request.path_params["tenant"]
        if name in self.unlike:
            return _json({"error": self.unlike[name]}, CANNOT)
        tenant = self.world.tenants.get(name)
        if tenant is None:
            raise _Misuse(f"tenant: {name!r} is not there; PUT it first")
        run = int(request.path_params["run"])
        try:
            playbook = read_playbook(await self._document(request), f"run {run}", self.world.encoding)
        except PlaybookError as error:
            raise _Misuse(str(error)) from None
        scopes = self.why_not_played(playbook)
        if scopes:
            return _json({"error": next(iter(scopes.values())), "scopes": scopes}, CANNOT)
        tenant.register(run, playbook)
        return _json({"tenant": tenant.name, "run": run})

    async def get_ledger(self, request: Request) -> Response:
        """Rows in order of arrival, of a tenant, run or request_id; with answers=true each with its answer as sent."""
        found = self.world.ledger.listing(
            tenant=request.query_params.get("tenant"),
            run=_number(request, "run"),
            request_id=request.query_params.get("request_id"),
        )
        if request.query_params.get("answers") == "true":
            rows = [{**row.to_json(), "answer": self.world.ledger.sent.of(row.seq)} for row in found.rows]
            return Response(json_bytes({**Listing([], found.evicted).to_json(), "rows": rows}), media_type=JSON)
        return self._listing(found)

    async def delete_ledger(self, request: Request) -> Response:
        """Forget rows of a tenant or a run; one of them must be named."""
        try:
            count = self.world.ledger.delete(tenant=request.query_params.get("tenant"), run=_number(request, "run"))
        except ValueError as error:
            raise _Misuse(str(error)) from None
        return _json({"deleted": count})

    async def wait(self, request: Request) -> Response:
        """Answer once count rows of a tenant or run are in a state; 408 when timeout seconds are over."""
        query = request.query_params
        state = STATES.get(query.get("state", "finished"))
        if state is None:
            raise _Misuse(f"state: unknown {query.get('state')!r}; allowed: {', '.join(STATES)}")
        try:
            seconds = min(float(query.get("timeout", "10")), LONGEST_WAIT)
            if math.isnan(seconds):
                raise ValueError
        except ValueError:
            raise _Misuse(f"timeout: expected seconds, seen {query.get('timeout')!r}") from None
        count = _number(request, "count")
        found = await self.world.ledger.wait(
            state,
            1 if count is None else count,
            seconds,
            tenant=query.get("tenant"),
            run=_number(request, "run"),
        )
        if found is None:
            present = self.world.ledger.listing(tenant=query.get("tenant"), run=_number(request, "run")).rows
            states = ", ".join(row.state for row in present[-20:]) or "none"
            return _json(
                {"error": f"no {count or 1} rows in state {state} after {seconds:g} s; there are: {states}"}, 408
            )
        return self._listing(found)

    async def open_gate(self, request: Request) -> Response:
        """Open a gate; it stays open."""
        self.world.gates.open(request.path_params["tenant"], request.path_params["gate"])
        return _json({"opened": request.path_params["gate"]})

    async def close_idle(self, request: Request) -> Response:
        """Close the connections, of all tenants, that wait for a request."""
        close = request.scope.get("extensions", {}).get("trackgauge.close_idle")
        return _json({"closed": 0 if close is None else await close()})

    def _listing(self, found: Listing) -> Response:
        return Response(json_bytes(found.to_json()), media_type="application/json")


async def _misuse(_request: Request, error: Exception) -> Response:
    return _json({"error": str(error)}, 400)


def administration(handlers: Administration) -> Starlette:
    """The application under /_fake."""
    return Starlette(routes=handlers.routes(), exception_handlers={_Misuse: _misuse})
