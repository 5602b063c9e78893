"""Which of several calls for the same turn is the turn: retries, nudges and forks, told by what continues them."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field

from conformance.reference.rebuild.chain import Link, roles_added
from conformance.reference.rebuild.tokens import Node
from conformance.reference.rebuild.turns import Keys, Turn

Place = tuple[str, str]


@dataclass(frozen=True)
class Twins:
    """``kept`` stand for all, ``orphans`` are their equals; ``unsure`` are kept though equals had other log probs.

    ``unheard`` are kept, and no client had the answer of them or of one of their equals.
    """

    kept: list[Turn]
    orphans: list[Turn]
    doubled: set[str]
    unsure: set[str]
    unheard: set[str]


def without_twins(turns: Sequence[Turn], undelivered: Set[str], keys: Keys) -> Twins:
    """One turn for each prompt and generation; the later stands for all that are equal to it."""
    equal: dict[tuple[Node, Node], list[Turn]] = defaultdict(list)
    for turn in turns:
        equal[turn.prompt_end, turn.history_end].append(turn)
    twins = Twins([], [], set(), set(), set())
    for group in equal.values():
        chosen = group[-1] if len(group) == 1 else _standing(group, turns, keys)
        twins.kept.append(chosen)
        twins.orphans.extend(turn for turn in group if turn is not chosen)
        if len(group) > 1:
            twins.doubled.add(chosen.uuid)
        if any((turn.log_probs, turn.model) != (chosen.log_probs, chosen.model) for turn in group):
            twins.unsure.add(chosen.uuid)
        if all(turn.uuid in undelivered for turn in group):
            twins.unheard.add(chosen.uuid)
    twins.kept.sort(key=lambda turn: turn.place)
    return twins


def _standing(group: Sequence[Turn], turns: Sequence[Turn], keys: Keys) -> Turn:
    """The latest of the group whose answer, call ids included, stands in a later history; else the latest."""
    at = group[0].request_length
    later = [t for t in turns if t.request_length > at and t.prompt_end.starts_with(group[0].history_end)]
    for turn in reversed(group):
        if any(keys.agree(turn.exact[-1], other.exact[at]) for other in later):
            return turn
    return group[-1]


@dataclass
class Family:
    """The turns as a forest in which each turn stands once.

    ``children`` holds only the turns kept; more than one child of a parent, or more than one root in a set of
    ``roots``, is a fork. ``unresolved`` are turns kept although nothing tells them from their siblings.
    """

    roots: list[list[Turn]] = field(default_factory=list)
    children: dict[str, list[Turn]] = field(default_factory=dict)
    orphans: list[Turn] = field(default_factory=list)
    unresolved: set[str] = field(default_factory=set)

    def heard(self, turns: Sequence[Turn], lost: Set[Turn]) -> list[Turn]:
        """Those that are not ``lost``: an answer that nobody had and nothing goes on with is no turn."""
        self.orphans.extend(turn for turn in turns if turn in lost)
        return [turn for turn in turns if turn not in lost]

    def stands_in(self, firsts: Sequence[Turn], lost: Set[Turn]) -> set[Turn]:
        """The last lost first call, unresolved, where all were lost, or all that had tools: else a title would do."""
        with_tools = [turn for turn in firsts if turn.tools] or firsts
        if not set(with_tools) <= lost:
            return set()
        self.unresolved.add(with_tools[-1].uuid)
        return {with_tools[-1]}


def family(turns: Sequence[Turn], links: Mapping[str, Link], unheard: Set[str] = frozenset()) -> Family:
    """The forest of ``turns``, which are in the contract's order. ``unheard`` are answers that no client had."""
    result = Family()
    offspring: dict[str, list[Turn]] = defaultdict(list)
    firsts: list[Turn] = []
    for turn in turns:
        link = links.get(turn.uuid)
        (firsts if link is None else offspring[link.parent.uuid]).append(turn)
    echoed = last_echoes(turns)
    lost = {turn for turn in turns if turn.uuid in unheard and not (offspring.get(turn.uuid) or _is_kept(turn, echoed))}
    for parent in turns:
        siblings = offspring.get(parent.uuid, [])
        attempts, detached = split_rewritten(parent, siblings)
        firsts.extend(detached)
        if attempts := result.heard(attempts, lost):
            result.children[parent.uuid] = settle(attempts, offspring, echoed, result)
    firsts.sort(key=lambda turn: turn.place)
    lost -= result.stands_in(firsts, lost)
    for attempts in same_start(result.heard(firsts, lost), offspring):
        result.roots.append(settle(attempts, offspring, echoed, result))
    return result


def last_echoes(turns: Sequence[Turn]) -> dict[int, Place]:
    """For each answer that was given once and stands in a history, by its normal number, the last place it does."""
    given = Counter(turn.answer for turn in turns)
    once = {answer for answer, times in given.items() if times == 1}
    return {normal: turn.place for turn in turns for normal in once.intersection(turn.request)}


def _is_kept(turn: Turn, echoed: Mapping[int, Place]) -> bool:
    return turn.place < echoed.get(turn.answer, turn.place)


def split_rewritten(parent: Turn, siblings: Sequence[Turn]) -> tuple[list[Turn], list[Turn]]:
    """Attempts at one turn, and those that hold another answer to it in their history: a rewritten conversation."""
    if len(siblings) < 2:
        return list(siblings), []
    rewritten = [turn for turn in siblings if "assistant" in roles_added(parent, turn)]
    if len(rewritten) == len(siblings):
        return list(siblings), []
    return [turn for turn in siblings if turn not in rewritten], rewritten


def settle(
    siblings: Sequence[Turn], offspring: dict[str, list[Turn]], echoed: dict[int, Place], result: Family
) -> list[Turn]:
    """The siblings that stay: those that are continued, else the one that a rewritten history keeps, else the last."""
    kept = [turn for turn in siblings if offspring.get(turn.uuid)]
    if not kept:
        kept = [turn for turn in siblings if _is_kept(turn, echoed)]
        if len(siblings) > 1 and len(kept) != 1:
            result.unresolved.add(siblings[-1].uuid)
        if len(kept) != 1:
            kept = [siblings[-1]]
    result.orphans.extend(turn for turn in siblings if turn not in kept)
    return kept


def same_start(firsts: Iterable[Turn], offspring: Mapping[str, Sequence[Turn]]) -> list[list[Turn]]:
    """First turns in sets that start with the same prompt, a nudge after it allowed; sets by their first place.

    Whoever has gone on with the answer nudges no more: a longer start after that is a rewritten history, such as
    Codex's, which keeps what the user said and adds a summary.
    """
    sets: list[list[Turn]] = []
    places: dict[object, list[int]] = defaultdict(list)
    for turn in firsts:
        beginnings = _beginnings(turn)
        near = (sets[place] for place in sorted({place for one in beginnings for place in places[one]}))
        home = next(
            (group for group in near if _same_start(group[0], turn) and not _went_on(group, turn, offspring)), None
        )
        if home is not None:
            home.append(turn)
            continue
        for one in beginnings:
            places[one].append(len(sets))
        sets.append([turn])
    return sets


def _beginnings(turn: Turn) -> list[object]:
    """What two turns that start with the same prompt have in common, one of these at least."""
    opened = len(turn.system) + 1
    if turn.request_length < opened:
        return [turn.prompt_end]
    return [turn.prompt_end, (turn.tools_key, turn.normal[:opened].tobytes())]


def _went_on(group: Sequence[Turn], later: Turn, offspring: Mapping[str, Sequence[Turn]]) -> bool:
    return later.request_length > group[0].request_length and any(
        child.place < later.place for turn in group for child in offspring.get(turn.uuid, ())
    )


def _same_start(one: Turn, other: Turn) -> bool:
    if one.prompt_end is other.prompt_end:
        return True
    if one.tools_key != other.tools_key:
        return False
    short, long = sorted((one, other), key=lambda turn: turn.request_length)
    if long.request[: short.request_length] != short.request or short.request_length == len(short.system):
        return False
    nudge = [message["role"] for message in long.messages[short.request_length : -1]]
    return "assistant" not in nudge
