"""What a shape is: a conversation with a name, and what the contract says must become of each of its calls."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from conformance.contract.vocabulary import Outcome, ReasonCode
from conformance.shapes.play import Play
from conformance.shapes.stage import KEPT
from conformance.shapes.tongues import CHAT, Tongue

JSON = Any
Turn = Mapping[str, JSON]


def look(path: str) -> Turn:
    """A turn that calls a tool; each time it is asked again, it looks elsewhere."""
    return {"calls": [_call(path)], "attempts": [{"calls": [_call(f"{place}/{path}")]} for place in ("other", "third")]}


def says(text: str) -> Turn:
    return {"text": f"{{tag}} {text}", "attempts": [{"text": f"{{tag}} Or rather: {text}"}]}


def thinks(path: str) -> Turn:
    return {"reasoning": "I wonder why it fails.", "calls": [_call(path)]}


def _call(path: str) -> JSON:
    return {"name": "look", "arguments": {"path": f"{path} {{tag}}"}}


MAIN: tuple[Turn, ...] = (*(look(f"{name}.py") for name in ("main", "util", "test", "conf", "data")), says("Done."))
CHILD: tuple[Turn, ...] = (look("lib.py"), look("doc.md"), says("Looked into it."))


@dataclass(frozen=True)
class Expected:
    """``trained``, ``withheld`` and ``excluded`` are labels of calls; equal calls stand for one another."""

    outcome: Outcome
    reason: ReasonCode | None
    trained: str = ""
    withheld: str = ""
    excluded: str = ""


@dataclass(frozen=True)
class Shape:
    """``rule`` is the contract's word for it. ``turns`` are the main scope's; the others are children's."""

    name: str
    rule: str
    expected: Expected
    act: Callable[[Play], None]
    turns: Sequence[Turn] = MAIN
    sampling: str = "faithful"
    tenant: str = KEPT
    tongue: Tongue = CHAT

    def playbook(self) -> dict[str, JSON]:
        scopes = {"main": self.turns, "child": CHILD, "grandchild": CHILD}
        side_calls = (
            {"name": "title", "when": {"tools": "none"}, "text": "A title for it"},
            {"name": "search", "when": {"tools": 1}, "text": "Nothing was found"},
            {"name": "slow", "when": {"last_contains": "Hold on."}, "text": "{tag} Too late", "gate": "never-{run}"},
        )
        return {
            "about": self.name,
            "sampling": self.sampling,
            "scopes": {name: {"turns": [dict(turn) for turn in turns]} for name, turns in scopes.items()},
            "side_calls": [dict(one) for one in side_calls],
        }


SHAPES: list[Shape] = []


def clean(trained: str, excluded: str = "") -> Expected:
    return Expected(Outcome.CLEAN, None, trained=trained, excluded=excluded)


def broken(turn: Turn) -> Turn:
    """The same with an answer that a client takes for whole, and whose record cannot be valid."""
    return {**turn, "fault": {"name": "null_logprob_entry"}}


def withheld(reason: ReasonCode, calls: str, excluded: str = "", trained: str = "") -> Expected:
    return Expected(Outcome.PARTIAL, reason, trained=trained, withheld=calls, excluded=excluded)


def shape(
    name: str, rule: str, expected: Expected, **more: JSON
) -> Callable[[Callable[[Play], None]], Callable[[Play], None]]:
    """Registers a conversation under its name."""

    def register(act: Callable[[Play], None]) -> Callable[[Play], None]:
        SHAPES.append(Shape(name, rule, expected, act, **more))
        return act

    return register
