"""Other splits of the same text: what a model may well sample and no tokenizer ever gives back."""

import hashlib
from collections.abc import Sequence

import tiktoken

# Splittable tokens are dealt into this many groups; each variant splits another set of groups.
_GROUPS = 6


class Splitter:
    """Splits tokens of one vocabulary into two that spell the same bytes."""

    def __init__(self, encoding: tiktoken.Encoding) -> None:
        self._encoding = encoding
        self._specials = {encoding.encode_single_token(text) for text in encoding.special_tokens_set}
        self._halves: dict[int, tuple[tuple[int, int], ...]] = {}

    def can_split(self, ids: Sequence[int]) -> bool:
        return any(self.halves(token) for token in ids)

    def halves(self, token: int) -> tuple[tuple[int, int], ...]:
        """All pairs of tokens that spell this one; empty for single bytes and special tokens."""
        known = self._halves.get(token)
        if known is None:
            known = self._halves[token] = self._find_halves(token)
        return known

    def drifted(self, ids: Sequence[int], place: str, variant: int) -> list[int]:
        """The text of ``ids`` in another split; variants below 2^n - 1 differ, n splittable tokens, six at most.

        ``place`` says which tokens are split, so that conversations drift at different positions. Ids that cannot be
        split come back as they are.
        """
        positions = [position for position, token in enumerate(ids) if self.halves(token)]
        if not positions:
            return list(ids)
        digest = hashlib.shake_128(place.encode()).digest(2 * len(positions))
        order = sorted(range(len(positions)), key=lambda rank: (digest[rank], rank))
        groups = min(_GROUPS, len(positions))
        cycle, chosen = divmod(variant, 2**groups - 1)
        split_at = {positions[at]: at for rank, at in enumerate(order) if (chosen + 1) >> (rank % groups) & 1}
        result: list[int] = []
        for position, token in enumerate(ids):
            at = split_at.get(position)
            if at is None:
                result.append(token)
            else:
                pairs = self.halves(token)
                result.extend(pairs[(digest[len(positions) + at] + cycle) % len(pairs)])
        return result

    def _find_halves(self, token: int) -> tuple[tuple[int, int], ...]:
        if token in self._specials:
            return ()
        spelling = self._encoding.decode_single_token_bytes(token)
        pairs = []
        for cut in range(1, len(spelling)):
            left, right = self._token(spelling[:cut]), self._token(spelling[cut:])
            if left is not None and right is not None:
                pairs.append((left, right))
        return tuple(pairs)

    def _token(self, spelling: bytes) -> int | None:
        try:
            return self._encoding.encode_single_token(spelling)
        except KeyError:
            return None
