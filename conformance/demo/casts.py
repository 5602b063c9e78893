"""Each fake agent as it appears in the demo: how it is started, what its model says to make a conversation happen."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Protocol

from fakes.harnesses.claude_code import ClaudeCode, Environment
from fakes.harnesses.codex import Codex
from fakes.harnesses.conversation import Conversation
from fakes.harnesses.opencode import OpenCode
from fakes.harnesses.openhands_nv import OpenHandsNV
from fakes.harnesses.openhands_sdk import OpenHandsSDK

JSON = Any
Turn = dict[str, JSON]
MODEL = "policy-model"
GATE = "child-is-done-{run}"
"""The playbook's form; the run number stands in it with six digits."""


class Kind(StrEnum):
    """The five conversations."""

    PLAIN = "plain"
    PARALLEL = "parallel tools"
    SUBAGENT = "subagent"
    COMPACTION = "compaction"
    CUT = "retry after a cut stream"


class Agent(Protocol):
    """A fake agent, ready to be given its task."""

    async def run(self, task: str) -> Conversation: ...


Start = Callable[[str, str], Agent]
"""From the proxy's URL and a session id to an agent."""


@dataclass(frozen=True)
class Cast:
    """One fake agent. ``command(text)`` and ``end(text)`` are a model's turn in its own tools.

    ``delegate`` is the turn that starts a sub-agent, None if it has none. ``starts`` tells how the agent is started
    for a conversation that needs more than its default; a kind in ``unrecorded`` is not played, with the reason.
    ``beside_child`` starts an agent that goes on while its sub-agent works, with what to call when that one is done:
    the model's next answer is held until then. None for one that waits by itself.
    ``cut_after`` is how many bytes of the answer get through before the cut, head included.
    """

    name: str
    start: Start
    command: Callable[[str], Turn]
    end: Callable[[str], Turn]
    delegate: Turn | None = None
    beside_child: Callable[[str, str, Callable[[], None]], Agent] | None = None
    side_calls: Sequence[JSON] = ()
    starts: dict[Kind, Start] = field(default_factory=dict)
    commands_before_compaction: int = 4
    cut_after: int = 600
    unrecorded: dict[Kind, str] = field(default_factory=dict)

    def playbook(self, kind: Kind) -> dict[str, JSON]:
        """What the model does in that conversation."""
        turns = [self.command("echo one  # {tag}"), self.end("{tag} All of it is done.")]
        scopes: dict[str, JSON] = {"main": {"turns": turns}}
        if kind is Kind.PARALLEL:
            both = self.command("echo one  # {tag}")["calls"] + self.command("echo two")["calls"]
            scopes["main"]["turns"] = [{"calls": both}, turns[-1]]
        elif kind is Kind.SUBAGENT and self.delegate is not None:
            meanwhile = [] if self.beside_child is None else [{**turns[0], "gate": GATE}]
            scopes["main"]["turns"] = [self.delegate, *meanwhile, turns[-1]]
            scopes["child"] = {"turns": [self.command("echo child  # {tag}"), self.end("{tag} Looked into it.")]}
        elif kind is Kind.COMPACTION:
            scopes["main"]["turns"] = [
                *(
                    self.command(f"seq 1 {600 + number}  # {{tag}}")
                    for number in range(self.commands_before_compaction)
                ),
                turns[-1],
            ]
        about = f"{self.name}: {kind}"
        return {"about": about, "sampling": "faithful", "scopes": scopes, "side_calls": list(self.side_calls)}


def _call(name: str, **arguments: str) -> Turn:
    return {"calls": [{"name": name, "arguments": arguments}]}


def _says(text: str) -> Turn:
    return {"text": text}


def _much(_: JSON) -> str:
    """Enough output that a history of a few commands grows beyond a small context."""
    return "\n".join(str(number) for number in range(1, 1201))


_OPENCODE_SIDE = (
    {"name": "title", "when": {"tools": "none", "roles": ["system", "user", "user"]}, "text": "A title"},
    {"name": "summary", "when": {"tools": "none", "roles": ["system", "user"]}, "text": "{tag} There was counting."},
)
_CLAUDE_SIDE = ({"name": "summary", "when": {"last_user_contains": "summary of th"}, "text": "{tag} One was said."},)
_TOOLLESS_SUMMARY = ({"name": "summary", "when": {"tools": "none"}, "text": "{tag} There was counting."},)


def _claude(url: str, session: str) -> ClaudeCode:
    headers = {"proxy_x_session_id": session}
    environment = Environment(custom_headers=headers, haiku_model=MODEL, subagent_model=MODEL)
    return ClaudeCode(url, model=MODEL, env=environment)


class _CompactedByHand:
    """Claude Code whose user types /compact once the first answer is there, and goes on."""

    def __init__(self, url: str, session: str) -> None:
        self._agent = _claude(url, session)

    async def run(self, task: str) -> Conversation:
        return await self._agent.run(task, follow_ups=("/compact", "Go on."))


CASTS: tuple[Cast, ...] = (
    Cast(
        "OpenHands (Gym fork)",
        lambda url, session: OpenHandsNV(url, session=session, model=MODEL),
        command=lambda text: _call("execute_bash", command=text, security_risk="LOW"),
        end=lambda text: _call("finish", message=text),
        cut_after=0,
        unrecorded={Kind.SUBAGENT: "it has none", Kind.COMPACTION: "Gym runs it without"},
    ),
    Cast(
        "OpenHands SDK",
        lambda url, session: OpenHandsSDK(url, session=session, model=MODEL),
        command=lambda text: _call("terminal", command=text),
        end=lambda text: _call("finish", message=text),
        delegate=_call("task", description="Look {tag}", prompt="{tag:child} Look into it."),
        side_calls=_TOOLLESS_SUMMARY,
        starts={
            Kind.SUBAGENT: lambda url, session: OpenHandsSDK(url, session=session, model=MODEL, subagents=True),
            Kind.COMPACTION: lambda url, session: OpenHandsSDK(url, session=session, model=MODEL, condense_at=10),
        },
        commands_before_compaction=5,
    ),
    Cast(
        "opencode",
        lambda url, session: OpenCode(url, session=session, model=MODEL),
        command=lambda text: _call("bash", command=text, description="Run it"),
        end=_says,
        delegate=_call("task", description="Look {tag}", prompt="{tag:child} Look into it.", subagent_type="general"),
        side_calls=_OPENCODE_SIDE,
        starts={
            Kind.COMPACTION: lambda url, session: OpenCode(
                url, session=session, model=MODEL, context=8192, output=2048, tool_results={"bash": _much}
            )
        },
    ),
    Cast(
        "Claude Code",
        _claude,
        command=lambda text: _call("Bash", command=text, description="Run it"),
        end=_says,
        delegate=_call(
            "Agent", description="Look {tag}", prompt="{tag:child} Look into it.", subagent_type="general-purpose"
        ),
        side_calls=_CLAUDE_SIDE,
        starts={Kind.COMPACTION: _CompactedByHand},
    ),
    Cast(
        "Codex",
        lambda url, session: Codex(url, session=session, model=MODEL),
        command=lambda text: _call("exec_command", cmd=text),
        end=_says,
        beside_child=lambda url, session, done: Codex(url, session=session, model=MODEL, child_ended=done),
        delegate=_call("multi_agent_v1__spawn_agent", message="{tag:child} Look into it. {tag}"),
        side_calls=_TOOLLESS_SUMMARY,
        starts={Kind.COMPACTION: lambda url, session: Codex(url, session=session, model=MODEL, compact_at=1500)},
    ),
)
