"""Log probs of the fake: a pure function of where a token stands, with every bit of the mantissa in use.

No two conversations share a row of them, and a value that lost one bit on the way is seen.
"""

import hashlib
from array import array
from collections.abc import Sequence
from typing import Literal

Bits = Literal[32, 64]

# Exponents 2^-12 … 2^1, so that values lie between -4 and about -0.0001: most small, none zero, none far out.
_LOWEST_EXPONENT = -12
_EXPONENTS = 14
_KNUTH = 0x9E3779B97F4A7C15
_MASK = 0xFFFFFFFFFFFFFFFF


def draw(place: str, ids: Sequence[int], bits: Bits = 32) -> list[float]:
    """One log prob per id, strictly below 0; ``place`` names tenant, run, scope, turn and attempt.

    With 32 bits the values are float32 widened to double, as vLLM reports them.
    """
    stream = array("Q", hashlib.shake_128(place.encode("utf-8", "surrogatepass")).digest(8 * len(ids)))
    words = [((word ^ (token * _KNUTH)) * _KNUTH) & _MASK for word, token in zip(stream, ids, strict=True)]
    if bits == 64:
        lowest = 1023 + _LOWEST_EXPONENT
        return array(
            "d",
            array(
                "Q",
                [
                    0x8000000000000000 | (lowest + (word >> 56) % _EXPONENTS) << 52 | word & 0xFFFFFFFFFFFFF | 1
                    for word in words
                ],
            ).tobytes(),
        ).tolist()
    lowest = 127 + _LOWEST_EXPONENT
    return array(
        "f",
        array(
            "I",
            [0x80000000 | (lowest + (word >> 56) % _EXPONENTS) << 23 | (word >> 32) & 0x7FFFFF | 1 for word in words],
        ).tobytes(),
    ).tolist()


def draw_alternatives(
    place: str, ids: Sequence[int], chosen: Sequence[float], count: int, vocabulary_size: int, bits: Bits = 32
) -> list[list[tuple[int, float]]]:
    """The ``count`` best candidates of each position, best first: the chosen id, then others that are less likely."""
    fewer = max(count - 1, 0)
    others = draw(f"{place}|others", [0] * (len(ids) * fewer), bits)
    rows: list[list[tuple[int, float]]] = []
    for position, (token, log_prob) in enumerate(zip(ids, chosen, strict=True)):
        steps = others[position * fewer : (position + 1) * fewer]
        # Doubling a float32 keeps it one, so the candidates stay float32 values too.
        likely = sorted((2 * min(log_prob, step) for step in steps), reverse=True)
        near = ((token + 7 * rank) % vocabulary_size for rank in range(1, count))
        rows.append([(token, log_prob), *zip(near, likely, strict=True)] if count else [])
    return rows
