"""A scene: what one scenario plays in. Its own run number and sessions, on the worker's shared engine and proxy."""

import asyncio
import copy
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from conformance.gauge.agents import MODEL as MODEL
from conformance.gauge.agents import Agents
from conformance.gauge.check import Inconclusive
from conformance.systems.engine import EngineCannot, FakeEngine
from conformance.systems.proxy import ProxyUnderTest
from fakes.harnesses.plain import AnyHeaders, Call, PlainClient, Reply

PLAYBOOKS = Path(__file__).parent.parent / "playbooks"
EVIDENCE_SECONDS = 5.0
RECORDED_SECONDS = 20.0
ASK_AGAIN_SECONDS = 0.005
JSON = Any
Record = dict[str, JSON]
Row = dict[str, JSON]
Playbook = dict[str, JSON]

TENANT = "main"


class Scene(Agents):
    """Everything a scenario says goes through here, so that a failure can show all of it.

    ``left_out`` says why a real engine did not play all of what it was given.

    Sessions, runs and playbooks are this scenario's alone; shared listings hold those of others too.
    """

    def __init__(self, engine: FakeEngine, proxy: ProxyUnderTest, run: int) -> None:
        super().__init__(proxy, run)
        self.engine = engine
        self.client = PlainClient(proxy.url)
        self._elsewhere: list[Scene] = []
        self._tenants: list[str] = []
        self._settled = -1
        self.left_out: str | None = None

    def at(self, proxy: ProxyUnderTest) -> "Scene":
        """The same run played through another proxy."""
        other = Scene(self.engine, proxy, self.run)
        other.conversations, other.sessions, other._tenants = self.conversations, self.sessions, self._tenants
        self._elsewhere.append(other)
        return other

    async def close(self) -> None:
        """Leaves every call that is still under way, at other proxies too."""
        for scene in (self, *self._elsewhere):
            await scene.client.close()

    # What the model does

    async def script(self, playbook: str | Playbook, *, tenant: str = TENANT, **first_turn: JSON) -> None:
        """Say what the model does in this run: a playbook by name or as it is.

        ``first_turn`` changes keys of the first turn of the first scope, such as ``fault={"name": "nan_logprob"}``.
        """
        script = load_playbook(playbook) if isinstance(playbook, str) else copy.deepcopy(playbook)
        if first_turn:
            first_scope = next(iter(script["scopes"].values()))
            first_scope["turns"][0].update(first_turn)
        self._tenants.append(tenant)
        await self.engine.play(tenant, self.run, script)

    async def script_shapes(self, playbook: Playbook) -> Playbook:
        """Say what the model does, in scopes that have nothing to do with one another.

        Returns what is played of it: a real engine cannot play each of them. Raises EngineCannot for none.
        """
        try:
            await self.script(playbook)
        except EngineCannot as error:
            rest = {name: scope for name, scope in playbook["scopes"].items() if name not in error.scopes}
            if not rest or not error.scopes:
                raise
            self.left_out = str(error)
            playbook = {**playbook, "scopes": rest}
            await self.script(playbook)
        return playbook

    def renders_as_sampled(self) -> bool:
        """Whether a faithful playbook is: a real engine writes its text in tokens of its own."""
        if self.engine.is_real:
            self.left_out = "a real engine does not sample as its template renders"
        return not self.engine.is_real

    # Who speaks

    async def ask(self, task: str | list[JSON] | None = None, **call: JSON) -> Reply:
        """One chat completion through the proxy; see ``start`` for the keywords."""
        return await self.start(task, **call)

    def start(
        self,
        task: str | list[JSON] | None = None,
        *,
        session: str | None = "",
        by: str | None = None,
        parent: str | None = None,
        model: str = MODEL,
        stream: bool = False,
        headers: AnyHeaders = (),
        **body: JSON,
    ) -> Call:
        """A chat completion under way. ``session`` "" is this scene's own, None none; ``by`` is a session capability.

        ``task`` is the user's text or a whole list of messages; further keywords go into the body as they are.
        """
        if task is None:
            task = self.task()
        messages = [{"role": "user", "content": task}] if isinstance(task, str) else task
        streaming: dict[str, JSON] = {"stream": True, "stream_options": {"include_usage": True}} if stream else {}
        whole = {"model": model, "messages": messages, **streaming, **body}
        return self.post("/chat/completions", whole, session=session, by=by, parent=parent, headers=headers)

    def post(
        self,
        path: str,
        body: JSON,
        *,
        session: str | None = "",
        by: str | None = None,
        parent: str | None = None,
        headers: AnyHeaders = (),
    ) -> Call:
        """A call of any dialect under way; ``path`` is what stands behind ``/v1``. ``session`` and ``by`` as above.

        ``body`` may be anything that is JSON, or bytes; only an object can carry a session.
        """
        identity = self.session() if session == "" else session
        asked = body if isinstance(body, Mapping) else {}
        model, stream = asked.get("model"), asked.get("stream") is True
        self.claims(model=model if isinstance(model, str) else MODEL, stream=stream, session=identity is not None)
        pairs = list(headers.items()) if isinstance(headers, Mapping) else list(headers)
        base_path = "/v1"
        if identity is not None:
            self._remember(identity)
            carried = self.proxy.carry(identity, by=by, parent=parent)
            pairs += list(carried.headers)
            if carried.body and isinstance(body, Mapping):
                body = {**body, **carried.body}
            base_path = carried.base_path
            if carried.api_key is not None:
                pairs.append(("Authorization", f"Bearer {carried.api_key}"))
        return self.client.send("POST", f"{base_path}{path}", body, headers=pairs)

    # What came of it

    async def records(self, session: str = "", *, at_once: bool = False) -> list[Record]:
        """The captured calls of a session, by (captured_at, uuid); none if the proxy does not know it.

        A proxy that says that it writes them after the answer is asked until they do not change any more, unless
        ``at_once``.
        """
        found = await self._records_now(session)
        lag, made = self.proxy.record_lag, self.calls_made
        while lag and not at_once and self._settled != made:
            await asyncio.sleep(lag)
            before, found = found, await self._records_now(session)
            self._settled = made if found == before else self._settled
        return found

    async def _records_now(self, session: str) -> list[Record]:
        identity = self._own(session)
        if "retrieval-http" not in self.proxy.capabilities:
            return [found.record for found in self.proxy.disk_records(identity) if found.record is not None]
        answer = await self.proxy.completions_answer(identity)
        return [] if answer.status == 404 else self.proxy.records_in(answer, identity)

    async def until_recorded(self, session: str, count: int) -> None:
        """Until the proxy tells so many records of a session: an engine that is done says nothing of their order.

        Raises Inconclusive where they are not there within ``RECORDED_SECONDS``.
        """
        deadline = asyncio.get_running_loop().time() + RECORDED_SECONDS
        while (found := len(await self.records(session))) < count:
            if asyncio.get_running_loop().time() > deadline:
                raise Inconclusive(f"{found} calls of {session} were recorded, not {count}")
            await asyncio.sleep(ASK_AGAIN_SECONDS)

    async def ledger(self, *, tenant: str | None = None, everything: bool = False) -> list[Row]:
        """The engine's account of this run: its generations, or ``everything`` it was asked."""
        rows = await self.engine.ledger(tenant=tenant, run=self.run)
        return rows if everything else [row for row in rows if row["endpoint"] in ("chat", "completions", "generate")]

    def without(self) -> str | None:
        """``left_out``, of this scene and of those at other proxies."""
        return next(filter(None, (scene.left_out for scene in (self, *self._elsewhere))), None)

    async def evidence(self) -> dict[str, JSON]:
        """All that was said, sampled and recorded, for the report. Never raises: what cannot be had is said so."""
        records = await self._all_records()
        for scene in self._elsewhere:
            more = await scene._all_records()
            records.update({f"{session} at {scene.proxy.url}": its for session, its in more.items() if its})
        return {
            "run": self.run,
            "hops": [json.loads(told.to_json()) for told in self._told()],
            "records": records,
            "ledger": await _or_why(self.engine.ledger(run=self.run, answers=True)),
        }

    async def _all_records(self) -> dict[str, JSON]:
        found = await asyncio.gather(*(_or_why(self.records(session)) for session in self.sessions))
        return dict(zip(self.sessions, found, strict=True))

    def _told(self) -> list[Any]:
        clients = [scene.client.told() for scene in (self, *self._elsewhere)]
        return [*clients, *(conversation.told() for conversation in self.conversations)]


async def _or_why(asked: Any) -> JSON:
    try:
        return await asyncio.wait_for(asked, EVIDENCE_SECONDS)
    except Exception as error:  # the evidence of a failure must not be lost to a second one
        return f"not to be had: {error or type(error).__name__}"


def load_playbook(name: str) -> Playbook:
    """A playbook of the suite, by its name below ``playbooks/`` without ending."""
    import yaml

    found: Playbook = yaml.safe_load((PLAYBOOKS / f"{name}.yaml").read_text(encoding="utf-8"))
    return found
