"""Does a prompt go on from an earlier call in that call's own tokens, and add only what is new?"""

from collections.abc import Sequence
from typing import Any

from conformance.contract.difference import list_difference
from conformance.oracle.judgement import Judgement

Row = dict[str, Any]


def history(row: Row) -> list[int]:
    """Prompt and generation of a call, as the engine has them."""
    return [*row["prompt_token_ids"], *row["generation_token_ids"]]


def starts_with(before: Row, row: Row) -> bool:
    known = history(before)
    return bool(row["prompt_token_ids"][: len(known)] == known)


def continues(before: Row, row: Row) -> Judgement:
    """The prompt starts with prompt and generation of the call before. The judgement shows where it leaves them."""
    known, prompt = history(before), row["prompt_token_ids"]
    difference = list_difference(known, prompt[: len(known)])
    if difference is None:
        return Judgement(True, f"{len(known)} tokens, then more", f"{len(prompt)} tokens", _where(row))
    wanted, found = difference.shown()
    return Judgement(False, wanted, found, f"{_where(row)}, prompt from index {difference.index} on")


def adds(before: Row, row: Row, plain: Sequence[int], turn_ends: int, turn_end: int) -> Judgement:
    """Behind the call before stands what the template renders for the new messages, and nothing else.

    ``plain`` is what the engine would have rendered for the whole request. What is new is its last part, which follows
    a turn's end and holds ``turn_ends`` of them.
    """
    if not starts_with(before, row):
        return Judgement(False, "a prompt that starts with the call before", "another", _where(row))
    added = row["prompt_token_ids"][len(history(before)) :]
    if before["generation_token_ids"][-1] != turn_end:
        # Of a turn that was cut, the template's own end is the first thing that is new.
        if added[:1] != [turn_end]:
            return Judgement(False, f"{turn_end} behind a turn that was cut", added[:4], _where(row))
        added = added[1:]
    rendered = list(plain[len(plain) - len(added) :])
    difference = list_difference(rendered, added)
    if difference is not None:
        wanted, found = difference.shown()
        return Judgement(False, wanted, found, f"{_where(row)}, from new token {difference.index} on")
    before_it = plain[len(plain) - len(added) - 1]
    seen = [before_it == turn_end, added.count(turn_end)]
    return Judgement(seen == [True, turn_ends], [True, turn_ends], seen, f"{_where(row)}, ends of turns in what is new")


def is_plain(row: Row, plain: Sequence[int]) -> Judgement:
    """The prompt is exactly what the engine's template makes of the request."""
    difference = list_difference(plain, row["prompt_token_ids"])
    if difference is None:
        return Judgement(True, f"{len(plain)} tokens", f"{len(plain)} tokens", _where(row))
    wanted, found = difference.shown()
    return Judgement(False, wanted, found, f"{_where(row)}, prompt from index {difference.index} on")


def plain_or_from(before: Row | None, row: Row, plain: Sequence[int]) -> Judgement:
    """The prompt is the template's, or it goes on from the one call whose answer its history ends with."""
    as_rendered = is_plain(row, plain)
    return as_rendered if as_rendered or before is None else continues(before, row)


def _where(row: Row) -> str:
    return f"ledger row {row['seq']} ({row['endpoint']})"
