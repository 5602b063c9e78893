"""Where a generation stops: at an end token, a stop token, a stop string, or for want of room."""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

import tiktoken

from fakes.vllm.sample import FinishReason
from fakes.vllm.tokenizer import END_OF_TEXT, TURN_END, spellings


@dataclass(frozen=True, slots=True)
class Stopped:
    """A generation as far as it got; ``cut`` says that the request ended it before its own end."""

    ids: list[int]
    finish_reason: FinishReason
    stop_reason: int | str | None
    cut: bool


class Stopper:
    """Applies the stop conditions of a request as the engine does, with the ids of one vocabulary."""

    def __init__(self, encoding: tiktoken.Encoding) -> None:
        self._encoding = encoding
        self._turn_end = encoding.encode_single_token(TURN_END)
        self._end_of_text = encoding.encode_single_token(END_OF_TEXT)

    def stop(self, ids: list[int], *, room: int, stop: Sequence[str], stop_token_ids: Sequence[int]) -> Stopped:
        """Cut ``ids`` at the first condition that holds; ``room`` is the most tokens there may be.

        The stop token, or the tokens of the stop string up to the one that completes it, stay in the ids. An end token
        wins over the room when both fall on the same token; one in the middle is the playbook's wish and ends nothing.
        """
        length, finish = len(ids), self._own_finish(ids)
        reason: int | str | None = self._own_reason(ids)
        stop_ids = set(stop_token_ids) - {self._turn_end}
        if stop_ids:
            position = next((at for at, token in enumerate(ids) if token in stop_ids), None)
            if position is not None:
                length, finish, reason = position + 1, "stop", ids[position]
        if length > room:
            length, finish, reason = room, "length", None
        found = self._stop_string(ids[:length], stop)
        if found is not None:
            length, reason = found
            finish = "stop"
        return Stopped(ids[:length], finish, reason, cut=length < len(ids) or isinstance(reason, str))

    def _own_finish(self, ids: list[int]) -> FinishReason:
        return "stop" if ids and ids[-1] in (self._turn_end, self._end_of_text) else "length"

    def _own_reason(self, ids: list[int]) -> int | None:
        # Only the first end token is the tokenizer's own; the second comes from the generation config and is named.
        return self._end_of_text if ids and ids[-1] == self._end_of_text else None

    def _stop_string(self, ids: list[int], stop: Sequence[str]) -> tuple[int, str] | None:
        if not any(stop):
            return None
        visible = ids[:-1] if ids and ids[-1] in (self._turn_end, self._end_of_text) else ids
        pieces = spellings(self._encoding, visible)
        text = b"".join(pieces)
        ends = list(accumulate(len(piece) for piece in pieces))
        best: tuple[int, str] | None = None
        for candidate in stop:
            spelling = candidate.encode("utf-8", "surrogatepass")
            start = text.find(spelling) if spelling else -1
            if start >= 0:
                length = bisect_left(ends, start + len(spelling)) + 1
                if best is None or length < best[0]:
                    best = (length, candidate)
        return best
