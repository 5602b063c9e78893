"""Plays one conversation of one agent through the reference, rebuilds it, and counts what became of its tokens."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from conformance.demo.casts import GATE, Cast, Kind
from conformance.demo.cutting import CuttingWire
from conformance.oracle.fate import Fate, fate
from conformance.oracle.law import account
from conformance.oracle.matching import Row
from conformance.systems.engine import FakeEngine
from conformance.systems.proxy import ProxyUnderTest
from conformance.systems.rebuild import RebuildUnderTest
from fakes.vllm.tags import format_tag

TENANT = "main"


@dataclass(frozen=True, slots=True)
class Stage:
    """The three systems that a demo runs on."""

    engine: FakeEngine
    proxy: ProxyUnderTest
    rebuild: RebuildUnderTest

    async def play(self, cast: Cast, kind: Kind, run: int) -> Fate:
        await self.engine.play(TENANT, run, cast.playbook(kind))
        before = {row["session_id"] for row in await self.proxy.sessions()}
        start = cast.starts.get(kind, cast.start)
        task = f"{format_tag(run, 0, 0)} Find out why the build fails."
        if kind is Kind.CUT:
            async with CuttingWire(self.proxy.url, cast.cut_after) as wire:
                await start(wire.url, f"demo-{run}").run(task)
        elif kind is Kind.SUBAGENT and cast.beside_child is not None:
            done = asyncio.Event()
            agent = cast.beside_child(self.proxy.url, f"demo-{run}", done.set)
            await asyncio.gather(agent.run(task), self._open_after(done, run))
        else:
            await start(self.proxy.url, f"demo-{run}").run(task)
        after = [row["session_id"] for row in await self.proxy.sessions()]
        envelopes = [(await self.proxy.completions_answer(one)).json() for one in after if one not in before]
        answer = await self.rebuild.ask({"sessions": envelopes})
        return told(answer, envelopes, await self.engine.ledger(tenant=TENANT, run=run))

    async def _open_after(self, done: asyncio.Event, run: int) -> None:
        await done.wait()
        await self.engine.open_gate(TENANT, GATE.replace("{run}", f"{run:06d}"))


def told(answer: Mapping[str, Any], envelopes: Sequence[Mapping[str, Any]], rows: Sequence[Row]) -> Fate:
    """``rows`` are the engine's of the run, of which the answer is a rollout."""
    records = [record for envelope in envelopes for record in envelope["completions"]]
    return fate(dict(answer), len(records), account(dict(answer), records, rows), rows)
