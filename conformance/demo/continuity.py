"""The same conversations of each fake agent, captured as the template renders them and continued in their own tokens.

The model samples every turn in another split than the tokenizer gives, and thinks, which no history shows it again.
"""

import asyncio
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, cast

from rich.console import Console
from rich.table import Table

from conformance.demo.casts import CASTS, Cast
from conformance.demo.playing import told
from conformance.oracle.fate import Fate
from conformance.systems import routing
from conformance.systems.engine import FakeEngine, start_engine
from conformance.systems.profiles import find
from conformance.systems.proxy import ProxyUnderTest
from conformance.systems.proxy_start import start_proxy
from conformance.systems.rebuild import RebuildUnderTest
from conformance.systems.routing import Route
from fakes.vllm.tags import format_tag

JSON = Any

WIDTH = 136
THOUGHT = "I think of what there is to be done, and then I do that."
FOLLOW_UPS = ("Are you sure?",)
"""Said once the task is done: the template then leaves out what was thought before."""

ONE_TASK = ("OpenHands (Gym fork)",)
"""Agents that cannot be asked further."""

DIALECTS = {"Claude Code": "Messages", "Codex": "Responses"}
"""Of the agents that do not speak chat completions."""

PINS = {"temperature": 1.0, "top_p": 1.0}
"""The trainer's sampling, without which its server refuses a call."""


class _Answering(Protocol):
    """An agent whose user goes on after its first answer."""

    async def run(self, task: str, *, follow_ups: Sequence[str]) -> object: ...


@dataclass(frozen=True, slots=True)
class Way:
    """One way to capture: its name in the table, and the route that agents call ``policy-model``."""

    name: str
    route: Route


WAYS = (
    Way("as rendered", Route("policy-model", tenant="continued", pins=PINS)),
    Way("completions", Route("policy-model", tenant="continued", injection="completions", pins=PINS)),
    Way("prefix_chat", Route("policy-model", tenant="spliced", injection="prefix_chat", pins=PINS)),
)


@dataclass(frozen=True, slots=True)
class Line:
    """What came of one agent's conversation, captured one way.

    ``later`` counts the calls with an answer in their history, ``contiguous`` those of them whose prompt starts with
    prompt and generation of another record.
    """

    player: Cast
    way: Way
    later: int
    contiguous: int
    fate: Fate


def playbook(player: Cast) -> dict[str, JSON]:
    """Commands, two of them at once, an end and another one; every turn is thought about, and drifts."""
    alone = [player.command(f"echo {word} and look at it  # {{tag}}") for word in ("one", "two")]
    both = {"calls": [*player.command("echo three  # {tag}")["calls"], *player.command("echo four")["calls"]]}
    ends = [player.end("{tag} All of it is done."), player.end("{tag} I am quite sure of it.")]
    turns = [{**turn, "reasoning": THOUGHT} for turn in (*alone, both, *ends)]
    scopes = {"main": {"turns": turns}}
    drifting = [{**side_call, "sampling": "drifting"} for side_call in player.side_calls]
    return {"about": player.name, "sampling": "drifting", "scopes": scopes, "side_calls": drifting}


def demo() -> int:
    """0 if with continuity every later turn is contiguous, every rollout clean, and nothing fell back; else 1.

    And only if every token, continued or not, is where the law has it.
    """
    progress = Console(stderr=True)
    with tempfile.TemporaryDirectory(prefix="demo-") as folder, progress.status("starting the systems"):
        place = Path(folder)
        engine = start_engine(place)
        rebuild = RebuildUnderTest(find("reference-rebuild"), place)
        try:
            lines, counts = asyncio.run(_play_all(engine, rebuild, place, progress))
        finally:
            rebuild.close()
            engine.close()
    console = Console()
    if not console.is_terminal:  # a line of a file is as long as it is
        console.width = WIDTH
    console.print(_table(lines))
    for way, count in counts.items():
        console.print(f"{way}: injected {count['injected']}, plain {count['plain']}, fallback {count['fallback']}")
    continued = [line for line in lines if line.way.route.injection is not None]
    good = all(line.contiguous == line.later and line.fate.outcome == "clean" for line in continued)
    lawful = all(line.fate.law for line in lines)
    return 0 if good and lawful and not any(count["fallback"] for count in counts.values()) else 1


async def _play_all(
    engine: FakeEngine, rebuild: RebuildUnderTest, place: Path, progress: Console
) -> tuple[list[Line], dict[str, JSON]]:
    lines, counts = [], {}
    for tenant in {way.route.tenant for way in WAYS}:
        await engine.tenant(tenant, routing.tenants()[tenant])
    for way in WAYS:
        progress.print(way.name, highlight=False)
        records = place / way.name.replace(" ", "-")
        proxy = await asyncio.to_thread(start_proxy, find("reference"), engine.url, records, routes=(way.route,))
        try:
            lines += [await _play(engine, proxy, rebuild, one, way, run) for run, one in enumerate(CASTS, start=1)]
            if way.route.injection is not None:
                counts[way.name] = (await proxy.get("/v1/continuity")).json()
        finally:
            await asyncio.to_thread(proxy.close)
    return sorted(lines, key=lambda line: CASTS.index(line.player)), counts


async def _play(
    engine: FakeEngine, proxy: ProxyUnderTest, rebuild: RebuildUnderTest, player: Cast, way: Way, run: int
) -> Line:
    await engine.play(way.route.tenant, run, playbook(player))
    before = {row["session_id"] for row in await proxy.sessions()}
    agent, task = player.start(proxy.url, f"demo-{run}"), f"{format_tag(run, 0, 0)} Find out why the build fails."
    if player.name in ONE_TASK:
        await agent.run(task)
    else:
        await cast("_Answering", agent).run(task, follow_ups=FOLLOW_UPS)
    after = [row["session_id"] for row in await proxy.sessions()]
    envelopes = [(await proxy.completions_answer(one)).json() for one in after if one not in before]
    answer = await rebuild.ask({"sessions": envelopes})
    records = [record for envelope in envelopes for record in envelope["completions"]]
    later = [record for record in records if _has_answers(record)]
    fate = told(answer, envelopes, await engine.ledger(tenant=way.route.tenant, run=run))
    return Line(player, way, len(later), sum(_continues(one, records) for one in later), fate)


def _has_answers(record: Mapping[str, JSON]) -> bool:
    return any(message["role"] == "assistant" for message in record["messages"][:-1])


def _continues(record: Mapping[str, JSON], records: Sequence[Mapping[str, JSON]]) -> bool:
    prompt = record["prompt_token_ids"]
    histories = [[*other["prompt_token_ids"], *other["generation_token_ids"]] for other in records]
    return any(prompt[: len(history)] == history for history in histories)


def _table(lines: Sequence[Line]) -> Table:
    table = Table("agent", "dialect", "captured", "later turns", "contiguous", "outcome", box=None, pad_edge=False)
    for column in table.columns:
        column.overflow = "fold"
    for name in ("sampled", "trained", "withheld", "excluded"):
        table.add_column(name, justify="right", no_wrap=True)  # on a narrow terminal words are broken, numbers never
    before = ""
    for line in lines:
        shown, dialect = line.player.name, DIALECTS.get(line.player.name, "chat")
        if shown == before:
            shown = dialect = ""
        before = line.player.name
        fate = line.fate
        tokens = (fate.sampled, fate.trained, fate.withheld, fate.excluded)
        cells = (shown, dialect, line.way.name, str(line.later), str(line.contiguous), fate.standing)
        table.add_row(*cells, *map(str, tokens))
    return table
