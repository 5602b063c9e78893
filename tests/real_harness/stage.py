"""Where a real agent plays: its own home and workspace, a tap in front of the proxy, and what came of it."""

import asyncio
import subprocess
from collections.abc import Coroutine, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypedDict

import yaml

from conformance.oracle import records, rollouts
from conformance.oracle.judgement import Judgement
from conformance.systems import guard
from fakes.harnesses.conversation import Conversation
from fakes.harnesses.exchanges import Exchange
from fakes.vllm.tags import format_tag
from harness_shims.launching import Launch
from harness_shims.tap import Tap
from tests.real_harness.forms import Asked, compare

if TYPE_CHECKING:
    from conformance.gauge.world import World

JSON = Any
PLAYBOOKS = Path(__file__).parent / "playbooks"
MODEL = "policy-model"
TENANT = "main"
RUN_SECONDS = 150.0
GENERATING = ("chat", "completions", "generate")


@dataclass(frozen=True, slots=True)
class Played:
    """What one run of a real agent came to. ``output`` is all it wrote."""

    output: str
    exchanges: list[Exchange]

    def named_by(self, header: str) -> list[str]:
        """The values of a header, in order of appearance."""
        values = (exchange.request.header(header) for exchange in self.exchanges)
        return list(dict.fromkeys(value for value in values if value is not None))

    @property
    def said(self) -> str:
        """The bodies of all requests: what a tool printed has to stand in one of them."""
        return "\n".join(exchange.request.body_text for exchange in self.exchanges)


class Agent(Protocol):
    """A fake agent, set up."""

    async def run(self, task: str) -> Conversation: ...


class Setting(TypedDict):
    home: Path
    workspace: Path
    elsewhere: str | None


class Stage:
    """One scenario's: its run number, its sessions, its workspace (a git repository) and home, both empty."""

    def __init__(self, world: "World", program: Path, version: str, files: Path) -> None:
        self.program, self.version = program, version
        self.engine, self.proxy, self.rebuild = world.engine, world.proxy, world.rebuild
        self.run, self.fake_run = world.next_run(), world.next_run()
        self.home, self.workspace = files / "home", files / "workspace"
        self.compared = 0
        self._files = files
        self._tap = Tap(self.proxy.url)
        self._elsewhere = Tap(None)

    def __enter__(self) -> "Stage":
        self._tap.__enter__()
        self._elsewhere.__enter__()
        (self.home / "tmp").mkdir(parents=True)
        self.workspace.mkdir()
        who = ("-c", "user.name=n", "-c", "user.email=a@b")
        for words in (("init", "-q"), (*who, "commit", "-q", "--allow-empty", "-m", "begin")):
            subprocess.run(["git", *words], cwd=self.workspace, check=True, capture_output=True)
        return self

    def __exit__(self, *_: object) -> None:
        self._tap.__exit__()
        self._elsewhere.__exit__()

    @property
    def url(self) -> str:
        """Where the real agent goes: the tap in front of the proxy."""
        return self._tap.url

    @property
    def strays(self) -> list[str]:
        """Whom it asked for outside of the loopback, in vain; each once."""
        return sorted(set(self._elsewhere.strays))

    def script(self, playbook: str) -> None:
        """Says what the model does, for the real agent and, in a run of its own, for the fake."""
        playing = yaml.safe_load((PLAYBOOKS / f"{playbook}.yaml").read_text(encoding="utf-8"))
        for run in (self.run, self.fake_run):
            asyncio.run(self.engine.play(TENANT, run, playing))

    @property
    def task(self) -> str:
        return _task(self.run)

    def setting(self, elsewhere: str | None = "") -> Setting:
        """What every launch wants to know; ``elsewhere`` is the dead end of this stage unless given."""
        away = self._elsewhere.url if elsewhere == "" else elsewhere
        return {"home": self.home, "workspace": self.workspace, "elsewhere": away}

    def play(self, launch: Launch, seconds: float = RUN_SECONDS) -> Played:
        """Runs it to its end under the guard. An exit code other than 0 fails."""
        launch.lay_out()
        before = len(self._tap.exchanges())
        log = self._files / "harness.log"
        started = guard.start(launch.argv, log=log, env=launch.env, cwd=launch.cwd, role="command")
        code = started.wait(seconds)
        output = started.output()
        started.stop()
        assert code is not None, f"{launch.argv[0]} did not end within {seconds:g} s: {output[-2000:]}"
        assert code == 0, f"{launch.argv[0]} ended with {code}: {output[-2000:]}"
        return Played(output, self._tap.exchanges()[before:])

    @contextmanager
    def meanwhile(self, deed: Coroutine[None, None, None]) -> Iterator[None]:
        """Does something while the real agent runs; what fails there fails the test."""
        with ThreadPoolExecutor(1) as aside:
            doing = aside.submit(asyncio.run, deed)
            yield
            doing.result()

    def play_fake(self, fake: Agent) -> Conversation:
        """The same playbook, played by the fake."""
        return asyncio.run(fake.run(_task(self.fake_run)))

    # What came of it

    def ledger(self) -> list[dict[str, JSON]]:
        """The generations of this run."""
        rows = asyncio.run(self.engine.ledger(run=self.run))
        return [row for row in rows if row["endpoint"] in GENERATING]

    def judge(self, sessions: Sequence[str]) -> list[dict[str, JSON]]:
        """The law, over these sessions, which together are the whole run; the rebuild's answers, one a session."""
        rows = self.ledger()
        assert rows, "the engine generated nothing in this run"
        assert [row["turn"] for row in rows if row["off_script"]] == []
        captured = {session: asyncio.run(self.proxy.records(session)) for session in sessions}
        everything = [record for found in captured.values() for record in found]
        ok(records.law(everything, rows))
        ok(records.none_lost(everything, rows))
        answers = []
        for session, found in captured.items():
            truth = rollouts.sampled(record for record in found if record["is_valid"])
            envelope = {"schema_version": 1, "session_id": session, "completions": found}
            answer = self.rebuild.ask_now({"envelope": envelope})
            ok(rollouts.never_wrong(answer, truth))
            ok(rollouts.conserved(answer, truth))
            answers.append(answer)
        return answers

    def compare(self, real: Sequence[Exchange], fake: Conversation) -> list[str]:
        """Where the real agent's requests differ in form from the fake's."""
        mine, theirs = Asked.all_of(real), Asked.all_of(fake.all_exchanges)
        self.compared += len(mine)
        return compare(mine, theirs)


def _task(run: int) -> str:
    return f"{format_tag(run, 0, 0)} Look around."


def ok(judgement: Judgement) -> None:
    assert judgement.ok, f"expected {judgement.expected!r}, seen {judgement.seen!r}, {judgement.where}"
