"""The application: one exact route table for all tenants.

A table instead of a router, since every millisecond of the fake counts and nothing but the tenant varies in a path.
"""

import logging
from urllib.parse import unquote

import tiktoken
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from fakes.vllm import chat, completions, generate, render, service
from fakes.vllm.admin import Administration, administration
from fakes.vllm.calls import Call, ClientLeft, Handler, World
from fakes.vllm.engine import PlaybookEngine
from fakes.vllm.errors import ENGINE_DEAD, Refusal, not_found, refusal, unauthorized
from fakes.vllm.gates import Gates
from fakes.vllm.ledger import Ledger
from fakes.vllm.profiles import DEFAULT, Profile, profile
from fakes.vllm.sample import Engine, PrefixNotSpliced
from fakes.vllm.tenants import DEFAULT_TENANT, Tenants

log = logging.getLogger(__name__)

GUARDED = ("/v1", "/v2", "/inference", "/cohere")

ROUTES: dict[str, dict[str, Handler]] = {
    "/health": {"GET": service.health},
    "/ping": {"GET": service.health, "POST": service.health},
    "/version": {"GET": service.version},
    "/load": {"GET": service.load},
    "/tokenize": {"POST": service.tokenize},
    "/detokenize": {"POST": service.detokenize},
    "/v1/models": {"GET": service.models},
    "/v1/chat/completions": {"POST": chat.chat_completions},
    "/v1/chat/completions/render": {"POST": render.render_chat},
    "/v1/completions": {"POST": completions.completions},
    "/v1/completions/render": {"POST": render.render_completion},
    "/v1/messages": {"POST": service.messages},
    "/v1/messages/count_tokens": {"POST": service.count_tokens},
    "/inference/v1/generate": {"POST": generate.generate},
}


ENDPOINTS = {
    "/tokenize": "tokenize",
    "/detokenize": "detokenize",
    "/v1/models": "models",
    "/v1/chat/completions": "chat",
    "/v1/completions": "completions",
    "/inference/v1/generate": "generate",
}


def _exists(path: str, profile: Profile) -> bool:
    """Whether the version has the route at all."""
    missing = {
        "/v1/messages": not profile.messages_route,
        "/v1/messages/count_tokens": not profile.count_tokens_route,
        "/v1/chat/completions/render": not profile.render_route,
        "/v1/completions/render": not profile.render_route,
        "/inference/v1/generate": not profile.generate_route,
    }
    return not missing.get(path, False)


class FakeVllm:
    """The ASGI application."""

    def __init__(self, world: World) -> None:
        self.world = world
        self._admin: ASGIApp = administration(Administration(world))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        path: str = scope["path"]
        if path.startswith("/_fake/"):
            await self._admin(scope, receive, send)
            return
        name, path = tenant_of(path)
        tenant = self.world.tenants.get(name)
        if tenant is None:
            await JSONResponse({"detail": f"no tenant is named {name!r}"}, 404)(scope, receive, send)
            return
        await self._serve(Call(self.world, tenant, path, scope, receive, send))

    async def _serve(self, call: Call) -> None:
        try:
            await self._handler(call)(call)
        except ClientLeft:
            call.note(state="aborted")
        except Refusal as error:
            if call.row is None:
                await self._enter_refused(call)
            await call.refuse(error)
        except PrefixNotSpliced as error:
            await call.refuse(refusal(str(error), kind="InternalServerError", status=500))
        except RecursionError:
            await call.refuse(refusal("The body is nested too deeply.", kind="Bad Request"))
        except Exception:
            log.exception("the fake itself failed on %s %s", call.method, call.path)
            await call.refuse(refusal(ENGINE_DEAD, kind="InternalServerError", status=500))

    async def _enter_refused(self, call: Call) -> None:
        """Enter a call that no handler took, so that the ledger shows who knocks at doors that are not there."""
        try:
            body = await call.read()
        except ClientLeft:
            body = b""
        call.open_row(ENDPOINTS.get(call.path, "unknown"), body)

    def _handler(self, call: Call) -> Handler:
        if call.path.startswith(GUARDED):
            key = call.tenant.config.api_key
            if key is not None and call.header(b"authorization") != f"Bearer {key}":
                raise unauthorized()
        methods = ROUTES.get(call.path)
        if methods is None or not _exists(call.path, call.profile):
            raise not_found()
        handler = methods.get(call.method)
        if handler is None:
            raise Refusal(405, {"detail": "Method Not Allowed"})
        return handler


def tenant_of(path: str) -> tuple[str, str]:
    """The tenant a path names, and the path as vLLM would see it."""
    if not path.startswith("/t/"):
        return DEFAULT_TENANT, path
    name, _, rest = path[3:].partition("/")
    return unquote(name), f"/{rest}"


def build_world(encoding: tiktoken.Encoding, default_profile: str = DEFAULT, engine: Engine | None = None) -> World:
    """A fresh world; raises ``UnknownProfile``."""
    profile(default_profile)
    tenants = Tenants()
    return World(tenants, Ledger(), Gates(), engine or PlaybookEngine(encoding, tenants), encoding, default_profile)
