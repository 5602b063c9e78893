"""Who acts in a scene: whole runs of the fake agents through the proxy, each under a session of the scene's own."""

from dataclasses import replace
from typing import Any

from conformance.systems.proxy import Carried, NotOurs, ProxyUnderTest
from conformance.systems.routing import SHARED_ROUTES
from fakes.harnesses.claude_code import ClaudeCode, Environment
from fakes.harnesses.codex import Codex
from fakes.harnesses.conversation import Conversation
from fakes.harnesses.opencode import OpenCode
from fakes.harnesses.openhands_nv import OpenHandsNV
from fakes.harnesses.openhands_sdk import OpenHandsSDK
from fakes.vllm.tags import format_tag

JSON = Any

MODEL = "policy-model"


class Agents:
    """Keywords that are not named here go to the fake agent, or with ``run`` (a mapping) to its ``run``.

    ``session`` "" is the scene's own. ``by`` is the session capability that carries it; None is the harness's own id
    where the system reads that one (the SDK's only if asked for), else whatever it declares first.
    """

    def __init__(self, proxy: ProxyUnderTest, run: int) -> None:
        self.proxy = proxy
        self.run = run
        self.address = proxy.url
        self.conversations: list[Conversation] = []
        self.sessions: list[str] = []
        self.calls_made = 0

    def over(self, address: str) -> "Agents":
        """The same run and sessions, with the agents pointed at another address, such as a wire to the proxy."""
        other = Agents(self.proxy, self.run)
        other.address, other.conversations, other.sessions = address, self.conversations, self.sessions
        return other

    def tag(self, turn: int = 0, scope: int = 0) -> str:
        return format_tag(self.run, scope, turn)

    def task(self, text: str = "Find out why the build fails.", scope: int = 0) -> str:
        """A task prompt that asks for turn 0 of a scope."""
        return f"{self.tag(0, scope)} {text}"

    def session(self, label: str = "main") -> str:
        """A session id of this scenario's own; the same label gives the same id."""
        return self._remember(f"run-{self.run:06d}-{label}")

    def takes(self, *, model: str = MODEL, stream: bool = False, session: bool = True) -> bool:
        """Whether the system claims to take such a call. A model that is no route of the suite's is always tried."""
        return self._unclaimed(model, stream, session) is None

    def why_not(self, model: str) -> str | None:
        """Why the system takes no calls of a model, or None where it does."""
        return self._unclaimed(model, stream=False, session=True)

    def claims(self, *, model: str = MODEL, stream: bool = False, session: bool = True) -> None:
        """Before each call, and each agent. Raises NotOurs where it does not: the scenario cannot be played to it."""
        self.calls_made += 1
        unclaimed = self._unclaimed(model, stream, session)
        if unclaimed is not None:
            raise NotOurs(unclaimed)

    def _unclaimed(self, model: str, stream: bool, session: bool) -> str | None:
        if model in self.proxy.nowhere:
            return self.proxy.nowhere[model]
        undeclared = self._undeclared(model, stream, session)
        return None if undeclared is None else f"{self.proxy.profile.name} does not declare {undeclared}"

    def _undeclared(self, model: str, stream: bool, session: bool) -> str | None:
        there = {route.name for route in self.proxy.routes}
        if model not in there and model in {route.name for route in SHARED_ROUTES}:
            return f"routes, and has none like {model}"
        needed = [name for name, asked in (("streams", stream), ("sessionless", not session)) if asked]
        return next((name for name in needed if name not in self.proxy.capabilities), None)

    async def openhands_nv(self, task: str | None = None, *, session: str = "", **agent: JSON) -> Conversation:
        """The Gym fork's agent, with its session in the body; in its base address too where that is what names it."""
        identity = self._own(session)
        max_turns, model = agent.pop("max_turns", 20), agent.pop("model", MODEL)
        self.claims(model=model)
        own = "session-body" in self.proxy.capabilities
        base = self.address if own else self._base(self.proxy.carry(identity))
        player = OpenHandsNV(base, session=identity, model=model, **agent)
        return self._keep(await player.run(task or self.task(), max_turns=max_turns))

    async def openhands_sdk(
        self, task: str | None = None, *, session: str = "", by: str | None = None, **agent: JSON
    ) -> Conversation:
        """The SDK's agent; by its own id, the session is its conversation, and each subagent has one of its own."""
        identity = self._own(session)
        max_turns = agent.pop("max_turns", 20)
        self.claims(model=agent.get("model", MODEL), stream=bool(agent.get("stream")))
        carried = None if by == "session-litellm" else self.proxy.carry(identity, by=by)
        own = {"conversation": identity} if carried is None else {"extra_body": _body(carried), **_key(carried)}
        headers = {**_headers(carried), **agent.pop("extra_headers", {})}
        settings = {"model": MODEL, **own, **agent}
        player = OpenHandsSDK(self._base(carried), extra_headers=headers, **settings)
        return self._keep(await player.run(task or self.task(), max_turns=max_turns))

    async def opencode(
        self, task: str | None = None, *, session: str = "", by: str | None = None, **agent: JSON
    ) -> Conversation:
        """opencode with its subagents; by its own id, the session is that of its root. No title unless asked for."""
        self.claims(model=agent.get("model", MODEL), stream=True)
        identity, carried = self._carried(session, by, "session-opencode")
        own = {"session": identity} if carried is None else _key(carried)
        headers = {**_headers(carried), **agent.pop("headers", {})}
        options = {**_body(carried), **agent.pop("options", {})}
        run = {"max_turns": agent.pop("max_turns", 20), **agent.pop("run", {})}
        settings = {"model": MODEL, "title": False, **own, **agent}
        player = OpenCode(self._base(carried), headers=headers, options=options, **settings)
        return self._keep(await player.run(task or self.task(), **run))

    async def claude_code(
        self, task: str | None = None, *, session: str = "", by: str | None = None, prefix: str = "", **agent: JSON
    ) -> Conversation:
        """Claude Code with its subagents, which share its session. ``env`` is an ``Environment``.

        ``prefix`` is a path in its base address.
        """
        self.claims(model=agent.get("model", MODEL))
        identity, carried = self._carried(session, by, "session-claude")
        own = {"session": identity} if carried is None else {}
        env: Environment = agent.pop("env", Environment())
        key = _key(carried).get("api_key", env.api_key)
        env = replace(env, custom_headers={**_headers(carried), **env.custom_headers}, api_key=key)
        run = {"max_turns": agent.pop("max_turns", 20), **agent.pop("run", {})}
        player = ClaudeCode(self._base(carried) + prefix, env=env, **{"model": MODEL, **own, **agent})
        return self._keep(await player.run(task or self.task(), **run))

    async def codex(
        self, task: str | None = None, *, session: str = "", by: str | None = None, **agent: JSON
    ) -> Conversation:
        """Codex with its subagents; by its own id, the session is that of its root thread."""
        self.claims(model=agent.get("model", MODEL))
        identity, carried = self._carried(session, by, "session-codex")
        own = {"thread": identity} if carried is None else _key(carried)
        headers = {**_headers(carried), **agent.pop("http_headers", {})}
        run = {"max_turns": agent.pop("max_turns", 20), **agent.pop("run", {})}
        player = Codex(self._base(carried), http_headers=headers, **{"model": MODEL, **own, **agent})
        return self._keep(await player.run(task or self.task(), **run))

    def _carried(self, session: str, by: str | None, native: str) -> tuple[str, Carried | None]:
        """The session's id, and what has to carry it; None where the harness's own id does."""
        identity = self._own(session)
        if by == native or (by is None and native in self.proxy.capabilities):
            return identity, None
        return identity, self.proxy.carry(identity, by=by)

    def _base(self, carried: Carried | None) -> str:
        return self.address + ("" if carried is None else carried.base_path.removesuffix("/v1"))

    def _keep(self, conversation: Conversation) -> Conversation:
        self.conversations.append(conversation)
        return conversation

    def _own(self, session: str) -> str:
        return self._remember(session) if session else self.session()

    def _remember(self, session: str) -> str:
        if session not in self.sessions:
            self.sessions.append(session)
        return session


def _headers(carried: Carried | None) -> dict[str, str]:
    return {} if carried is None else dict(carried.headers)


def _body(carried: Carried | None) -> dict[str, str]:
    return {} if carried is None else dict(carried.body or {})


def _key(carried: Carried | None) -> dict[str, str]:
    return {} if carried is None or carried.api_key is None else {"api_key": carried.api_key}
