"""A conversation that goes on call by call, in any dialect, with the engine's account of it beside it."""

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from conformance.gauge.check import Inconclusive
from conformance.gauge.scene import Row, Scene
from conformance.oracle.matching import GENERATING
from conformance.scenarios.dialects.tongues import TONGUES, Heard, Tongue, Tool
from fakes.harnesses.plain import Reply

JSON = Any
Body = dict[str, JSON]
Past = Sequence["str | tuple[Heard, Sequence[str]]"]

LIMIT = 4096
SYSTEM = "You look at files.\n  Größe zählt."
TOOLS = (
    Tool("look", "Look at one path.", {"properties": {"path": {"type": "string"}}, "type": "object"}),
    Tool("note", "Keep a note.", {"properties": {"text": {"type": "string"}}, "type": "object"}),
)
CHAT_TOOLS = [
    {"function": {"description": one.description, "name": one.name, "parameters": one.parameters}, "type": "function"}
    for one in TOOLS
]
"""Keys in alphabetical order: what becomes of prompts where a proxy sorts them is judged elsewhere."""


@dataclass(frozen=True)
class Transport:
    """A route that continues chains, the tenant behind it, and the capability that is needed."""

    model: str
    tenant: str
    capability: str


BY_COMPLETIONS = Transport("continued", "continued", "continuity-completions")
BY_PREFIX = Transport("spliced", "spliced", "continuity-prefix-chat")


def transports(scene: Scene) -> list[Transport]:
    """Those that the proxy declares, and that lead to an engine here."""
    declared = [each for each in (BY_COMPLETIONS, BY_PREFIX) if each.capability in scene.proxy.capabilities]
    without = {each: scene.why_not(each.model) for each in declared}
    scene.left_out = next(filter(None, without.values()), scene.left_out)
    return [each for each, why in without.items() if why is None]


def tongue(capability: str) -> Tongue:
    return next(each for each in TONGUES if each.capability == capability)


@dataclass(frozen=True)
class Asked:
    """An answered chat request: the engine's row of it, what its template makes of the request, and the reply."""

    row: Row
    plain: list[int]
    reply: Reply


@dataclass
class Talk:
    """``past`` holds what a user said as a text, and what was heard with the results of its calls.

    ``settings`` go into each request.
    """

    scene: Scene
    model: str
    tenant: str
    scope: int
    tongue: Tongue = field(default_factory=lambda: tongue("chat"))
    past: list[str | tuple[Heard, Sequence[str]]] = field(default_factory=list)
    settings: Body = field(default_factory=dict)
    label: str = ""

    @property
    def session(self) -> str:
        return self.scene.session(f"{self.model}-{self.tongue.capability}-{self.scope}{self.label}")

    async def ask(self, *, stream: bool = False, **more: JSON) -> Heard:
        """Say all of it, and hear the answer; what is done with its calls is told by ``results`` or ``say``."""
        reply = await self.send(stream=stream, **more)
        heard = self.tongue.heard(reply)
        self.past.append((heard, ()))
        return heard

    async def send(self, *, stream: bool = False, **more: JSON) -> Reply:
        """The same, without taking the answer into the conversation."""
        body = {"model": self.model, **self.body(), **({"stream": True} if stream else {}), **more}
        if stream and self.tongue.capability == "chat":
            body["stream_options"] = {"include_usage": True}
        return await self.scene.post(self.tongue.path, body, session=self.session)

    def results(self, *results: str) -> None:
        last = self.past[-1]
        assert not isinstance(last, str)
        self.past[-1] = (last[0], results[: len(last[0].calls)])

    def say(self, text: str) -> None:
        self.past.append(text)

    async def rows(self) -> list[Row]:
        """The engine's generations of this conversation, in order."""
        rows = await self.scene.engine.ledger(tenant=self.tenant, run=self.scene.run)
        return [row for row in rows if row["endpoint"] in GENERATING and row["scope"] == self.scope]

    async def plain(self) -> list[int]:
        """What the engine's template makes of a chat conversation as it stands."""
        return await self.rendered(self.body())

    async def rendered(self, body: Body) -> list[int]:
        """The same of any chat request."""
        known = ("messages", "tools", "chat_template_kwargs")
        return await self.scene.engine.rendered(self.tenant, {key: body[key] for key in known if key in body})

    async def asked(self, messages: list[JSON], *, headers: Mapping[str, str] | None = None, **more: JSON) -> Asked:
        """A chat request of one's own in the session. Raises Inconclusive if the engine has no row of its answer."""
        body = {"model": self.model, **self.body(), "messages": messages, **more}
        body = {key: value for key, value in body.items() if value is not None}
        reply = await self.scene.post("/chat/completions", body, session=self.session, headers=headers or {})
        identity = reply.answer.request_id
        rows = [] if identity is None else await self.scene.engine.ledger(request_id=identity)
        if not rows:
            raise Inconclusive(f"a call of {self.session} ended {reply.status}: {reply.text[:200]}")
        return Asked(rows[0], await self.rendered(body), reply)

    def messages(self) -> list[JSON]:
        """The chat conversation as it stands, to be changed at will."""
        messages: list[JSON] = copy.deepcopy(self.body()["messages"])
        return messages

    def body(self) -> Body:
        said = _BODIES[self.tongue.capability](self.scene.task(scope=self.scope), self.past)
        return said | self.settings


def _chat(task: str, past: Past) -> Body:
    messages: list[JSON] = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": task}]
    for one in past:
        if isinstance(one, str):
            messages.append({"role": "user", "content": one})
            continue
        heard, results = one
        messages += heard.again
        called = zip(heard.calls, results, strict=False)
        messages += [{"role": "tool", "tool_call_id": call[0], "content": result} for call, result in called]
    return {"max_tokens": LIMIT, "messages": messages, "tools": CHAT_TOOLS}


def _messages(task: str, past: Past) -> Body:
    messages: list[JSON] = [{"role": "user", "content": task}]
    for one in past:
        if isinstance(one, str):
            messages.append({"role": "user", "content": one})
            continue
        heard, results = one
        messages.append({"role": "assistant", "content": list(heard.again)})
        called = zip(heard.calls, results, strict=False)
        blocks = [{"type": "tool_result", "tool_use_id": call[0], "content": result} for call, result in called]
        if blocks:
            messages.append({"role": "user", "content": blocks})
    tools = [{"name": one.name, "description": one.description, "input_schema": one.parameters} for one in TOOLS]
    return {"max_tokens": LIMIT, "system": SYSTEM, "messages": messages, "tools": tools}


def _responses(task: str, past: Past) -> Body:
    items: list[JSON] = [_said(task)]
    for one in past:
        if isinstance(one, str):
            items.append(_said(one))
            continue
        heard, results = one
        items += heard.again
        called = zip(heard.calls, results, strict=False)
        items += [{"type": "function_call_output", "call_id": call[0], "output": result} for call, result in called]
    tools = [
        {"type": "function", "name": one.name, "description": one.description, "parameters": one.parameters}
        for one in TOOLS
    ]
    return {"max_output_tokens": LIMIT, "instructions": SYSTEM, "input": items, "tools": tools}


def _said(text: str) -> JSON:
    return {"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]}


_BODIES = {"chat": _chat, "messages": _messages, "responses": _responses}
