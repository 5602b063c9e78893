"""Sessions as a tree: which is the root, which only stood beside it, and which hang on nothing."""

from collections.abc import Sequence
from dataclasses import dataclass

from conformance.contract.vocabulary import ExcludedWhy, ReasonCode
from conformance.reference.rebuild.agents import hanging
from conformance.reference.rebuild.outcome import held_back
from conformance.reference.rebuild.pieces import Finding
from conformance.reference.rebuild.session import SessionRollout


@dataclass(frozen=True)
class Tree:
    """The root first, then the other sessions in order; ``findings`` are what is wrong with the root's place."""

    sessions: list[SessionRollout]
    findings: list[Finding]


def grow(rebuilt: Sequence[SessionRollout]) -> Tree:
    """The tree of sessions that come in order of their ids. What hangs on a ring of parents is withheld."""
    hang = hanging({session.session_id: session.parent for session in rebuilt})
    for session in rebuilt:
        if session.session_id in hang:
            withhold(session, "its parents lead back to themselves")
    root, findings = choose_root(rebuilt)
    return Tree([root, *(session for session in rebuilt if session is not root)], findings)


def choose_root(rebuilt: Sequence[SessionRollout]) -> tuple[SessionRollout, list[Finding]]:
    """The session without a parent; of several the one with most sampled tokens, ties by id."""
    roots = [session for session in rebuilt if session.parent is None]
    roots = without_side_calls(roots, {session.parent for session in rebuilt})
    by_size = sorted(roots or rebuilt, key=lambda session: (-session.sampled, session.session_id))
    if not roots:
        return by_size[0], [Finding(ReasonCode.NO_ROOT, "each session names a parent, so the root is missing")]
    if len(roots) > 1:
        return by_size[0], [Finding(ReasonCode.SEVERAL_ROOTS, f"{len(roots)} sessions name no parent")]
    return by_size[0], []


def without_side_calls(roots: Sequence[SessionRollout], parents: set[str | None]) -> list[SessionRollout]:
    """The roots but for those of one call without tools beside a root with tools: titles under a session of their own.

    Their calls are excluded as side calls.
    """
    lone = [root for root in roots if root.lone is not None and not root.lone.tools]
    beside = [root for root in lone if root.session_id not in parents]
    if not any(trajectory.tools for root in roots for trajectory in root.trajectories):
        return list(roots)
    for root in beside:
        root.exclude([uuid for one in root.trajectories for uuid in one.record_uuids], ExcludedWhy.SIDE_CALL)
        root.trajectories.clear()
        root.broken = None
    return [root for root in roots if root not in beside]


def withhold(session: SessionRollout, detail: str) -> None:
    """Its trajectories are told of as they are and withheld, since nobody knows where they belong."""
    finding = Finding(ReasonCode.NO_ROOT, detail)
    session.broken = session.broken or finding
    session.finding = session.finding or finding
    session.trajectories = [held_back(one, finding.reason) for one in session.trajectories]
