"""Builds the shipped vocabulary from the corpus: ``python -m fakes.vllm.vocabulary`` rewrites the data file.

A byte-level BPE trained the plain way: the most frequent neighbouring pair inside a word becomes a token, ties go to
the smaller bytes, until the vocabulary is full. The same corpus gives the same file, byte for byte; a test proves it.
"""

import base64
from collections import Counter, defaultdict
from itertools import pairwise
from pathlib import Path

import regex  # type: ignore[import-untyped]

# Qwen's own split, so that digits stand alone and a newline joins the punctuation before it, as in the real model.
SPLIT_PATTERN = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
SPECIAL_TOKENS = (
    "<|endoftext|>",
    "<|im_start|>",
    "<|im_end|>",
    "<tool_call>",
    "</tool_call>",
    "<tool_response>",
    "</tool_response>",
    "<think>",
    "</think>",
)
SIZE = 4096
DATA = Path(__file__).parent / "data"
CORPUS_FILE = DATA / "corpus.txt"
VOCABULARY_FILE = DATA / "vocabulary.bpe"

Pair = tuple[bytes, bytes]


def train(text: str, size: int) -> list[bytes]:
    """The ``size`` tokens learned from ``text`` in order of rank: the 256 bytes, then the merges.

    Returns fewer when the text has nothing left to merge.
    """
    tokens = [bytes([byte]) for byte in range(256)]
    words = Counter(regex.findall(SPLIT_PATTERN, text))
    parts = [[bytes([byte]) for byte in word.encode()] for word in words]
    weights = list(words.values())
    counts: Counter[Pair] = Counter()
    where: defaultdict[Pair, set[int]] = defaultdict(set)
    for number, word in enumerate(parts):
        for pair in pairwise(word):
            counts[pair] += weights[number]
            where[pair].add(number)
    known = set(tokens)
    while len(tokens) < size and counts:
        best = min(counts, key=lambda pair: (-counts[pair], pair))
        joined = best[0] + best[1]
        for number in sorted(where.pop(best)):
            _merge_in_word(parts, number, best, weights[number], counts, where)
        counts.pop(best, None)
        if joined not in known:
            known.add(joined)
            tokens.append(joined)
    return tokens


def _merge_in_word(
    parts: list[list[bytes]],
    number: int,
    pair: Pair,
    weight: int,
    counts: Counter[Pair],
    where: defaultdict[Pair, set[int]],
) -> None:
    word = parts[number]
    for old in pairwise(word):
        counts[old] -= weight
        if counts[old] <= 0:
            del counts[old]
    merged: list[bytes] = []
    position = 0
    while position < len(word):
        if tuple(word[position : position + 2]) == pair:
            merged.append(pair[0] + pair[1])
            position += 2
        else:
            merged.append(word[position])
            position += 1
    parts[number] = merged
    for new in pairwise(merged):
        counts[new] += weight
        where[new].add(number)


def build(corpus: str) -> str:
    """The text of the vocabulary file: one token a line in base64, in order of rank."""
    return "".join(base64.b64encode(token).decode() + "\n" for token in train(corpus, SIZE - len(SPECIAL_TOKENS)))


if __name__ == "__main__":
    VOCABULARY_FILE.write_text(build(CORPUS_FILE.read_text(encoding="utf-8")), encoding="ascii")
