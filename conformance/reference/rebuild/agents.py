"""A session split by the ids that tell its agents apart: native sessions and the agents inside them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from conformance.reference.rebuild.turns import Turn


@dataclass(frozen=True, eq=False)
class Agent:
    """The turns of one agent in order. ``name`` is null for a session's own agent where no id names it."""

    name: str | None
    parent: str | None
    is_root: bool
    turns: list[Turn]


def agents(turns: Sequence[Turn]) -> list[Agent]:
    """The agents of a session, its own first: the root with most sampled tokens, ties by id."""
    groups: dict[tuple[str | None, str | None], list[Turn]] = {}
    for turn in turns:
        groups.setdefault((turn.native_session_id, turn.agent_id), []).append(turn)
    _adopt_the_nameless(groups)
    found = [_agent(native, agent_id, group) for (native, agent_id), group in groups.items()]
    # The native id of the session's own agent is no name of a trajectory: what hangs below it hangs below the session.
    own = {agent.turns[0].native_session_id for agent in found if agent.is_root}
    found = [replace(agent, parent=None) if agent.parent in own else agent for agent in found]
    return sorted(found, key=lambda agent: (not agent.is_root, -_sampled(agent.turns), agent.name or ""))


def _adopt_the_nameless(groups: dict[tuple[str | None, str | None], list[Turn]]) -> None:
    """Calls without a native id belong to the one native root there is, if there is just one."""
    nameless = groups.get((None, None))
    roots = [key for key, group in groups.items() if key[0] and not key[1] and not _native_parent(group)]
    if nameless is not None and len(roots) == 1:
        groups[roots[0]] = sorted([*groups[roots[0]], *nameless], key=lambda turn: turn.place)
        del groups[None, None]


def _agent(native: str | None, agent_id: str | None, turns: list[Turn]) -> Agent:
    if agent_id is not None:
        parent = next((turn.parent_agent_id for turn in turns if turn.parent_agent_id), native)
        return Agent(agent_id, parent, False, turns)
    parent = _native_parent(turns)
    return Agent(native if parent else None, parent, parent is None, turns)


def _native_parent(turns: Sequence[Turn]) -> str | None:
    return next((turn.native_parent_id for turn in turns if turn.native_parent_id), None)


def hanging(parents: Mapping[str, str | None]) -> set[str]:
    """The names whose parents, followed upwards, never end."""
    found: set[str] = set()
    for name in parents:
        passed: set[str] = set()
        at: str | None = name
        while at is not None and at in parents and at not in passed:
            passed.add(at)
            at = parents[at]
        if at in passed:
            found.add(name)
    return found


def _sampled(turns: Sequence[Turn]) -> int:
    return sum(len(turn.generation) for turn in turns)
