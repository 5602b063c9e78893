"""The tokenizer, as a ``tiktoken.Encoding``: the one the repository ships, or one read from a ``tokenizer.json``."""

import base64
import functools
import json
from collections.abc import Sequence
from pathlib import Path

import tiktoken

from fakes.vllm.vocabulary import SPECIAL_TOKENS, SPLIT_PATTERN, VOCABULARY_FILE

END_OF_TEXT = "<|endoftext|>"
TURN_START = "<|im_start|>"
TURN_END = "<|im_end|>"

# What the ``ByteLevel`` pre-tokenizer of the tokenizers library does when it says ``use_regex``.
_BYTE_LEVEL_PATTERN = r"'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"


@functools.cache
def load() -> tiktoken.Encoding:
    """The shipped vocabulary, the Qwen-style special tokens last; built at the first call, then kept."""
    lines = VOCABULARY_FILE.read_bytes().splitlines()
    ranks = {base64.b64decode(line): rank for rank, line in enumerate(lines)}
    specials = {token: len(ranks) + number for number, token in enumerate(SPECIAL_TOKENS)}
    return tiktoken.Encoding("trackgauge", pat_str=SPLIT_PATTERN, mergeable_ranks=ranks, special_tokens=specials)


def decode(encoding: tiktoken.Encoding, ids: Sequence[int]) -> str:
    """The text of ids; those the vocabulary does not have say nothing, as with a model that is wider than its words."""
    return b"".join(spellings(encoding, ids)).decode("utf-8", "replace")


def spellings(encoding: tiktoken.Encoding, ids: Sequence[int]) -> list[bytes]:
    """The bytes of each id, none for one the vocabulary does not have."""
    try:
        return encoding.decode_tokens_bytes(ids)
    except (KeyError, OverflowError):
        return [_spelling(encoding, token) for token in ids]


def _spelling(encoding: tiktoken.Encoding, token: int) -> bytes:
    try:
        return encoding.decode_single_token_bytes(token)
    except (KeyError, OverflowError):
        return b""


def from_tokenizer_json(path: Path) -> tiktoken.Encoding:
    """A byte-level BPE of the tokenizers library as an ``Encoding`` with the same ids.

    Added tokens become special tokens. Raises ``ValueError`` for any other kind of model.
    """
    document = json.loads(path.read_text(encoding="utf-8"))
    if document["model"]["type"] != "BPE" or document["pre_tokenizer"]["type"] != "ByteLevel":
        raise ValueError(f"{path.name}: expected a byte-level BPE model, seen {document['model']['type']}")
    byte_of = {letter: byte for byte, letter in letters().items()}
    ranks = {bytes(byte_of[letter] for letter in token): rank for token, rank in document["model"]["vocab"].items()}
    specials = {token["content"]: token["id"] for token in document["added_tokens"]}
    return tiktoken.Encoding(path.stem, pat_str=_BYTE_LEVEL_PATTERN, mergeable_ranks=ranks, special_tokens=specials)


@functools.cache
def letters() -> dict[int, str]:
    """How byte-level BPE files spell each byte: printable ones as themselves, the others from U+0100 on."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in printable]
    return {byte: chr(byte) for byte in printable} | {byte: chr(256 + shift) for shift, byte in enumerate(others)}
