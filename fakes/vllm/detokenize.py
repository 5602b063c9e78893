"""Text of token ids: whole, token by token, and with what a stop condition hides or delays."""

import codecs
from collections.abc import Sequence
from functools import lru_cache

import tiktoken

HIDDEN = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
TURN_BORDERS = ("<|im_start|>", "<|im_end|>")
MARKS = ("<think>", "</think>", "<tool_call>", "</tool_call>")


class Detokenizer:
    """Texts of one vocabulary, remembered per id. Ids outside of it have no text."""

    def __init__(self, encoding: tiktoken.Encoding) -> None:
        self.encoding = encoding
        self._bytes: dict[int, bytes] = {}
        self._whole: dict[int, str | None] = {}
        known = encoding.special_tokens_set
        self.marks: dict[int, str] = {encoding.encode_single_token(m): m for m in MARKS if m in known}
        self.hidden: frozenset[int] = frozenset(encoding.encode_single_token(name) for name in HIDDEN if name in known)
        self.turn_borders: frozenset[int] = frozenset(
            encoding.encode_single_token(name) for name in TURN_BORDERS if name in known
        )
        self.size = encoding.n_vocab

    def bytes_of(self, token: int) -> bytes:
        """Raw bytes of one id; empty for an id outside of the vocabulary."""
        found = self._bytes.get(token)
        if found is None:
            try:
                found = self.encoding.decode_single_token_bytes(token)
            except (KeyError, OverflowError, TypeError):
                found = b""
            self._bytes[token] = found
        return found

    def _text_of(self, token: int) -> str | None:
        """Text of an id whose bytes are characters of their own, else None."""
        if token in self._whole:
            return self._whole[token]
        try:
            text: str | None = self.bytes_of(token).decode()
        except UnicodeDecodeError:
            text = None
        self._whole[token] = text
        return text

    def pieces(self, ids: Sequence[int], *, skip_hidden: bool = False) -> list[str]:
        """What each token adds to the text; a token that only begins a character adds nothing.

        Bytes that never complete a character at the end are not part of any piece, as in vLLM's detokenizer.
        """
        out: list[str] = []
        decoder: codecs.IncrementalDecoder | None = None
        for token in ids:
            if skip_hidden and token in self.hidden:
                out.append("")
                continue
            text = self._text_of(token)
            if decoder is None:
                if text is not None:
                    out.append(text)
                    continue
                decoder = codecs.getincrementaldecoder("utf-8")("replace")
            out.append(decoder.decode(self.bytes_of(token)))
            if not decoder.getstate()[0]:
                decoder = None
        return out

    def alone(self, ids: Sequence[int]) -> list[str]:
        """Each token decoded by itself, broken characters as U+FFFD."""
        return [self.bytes_of(token).decode("utf-8", "replace") for token in ids]

    def text(self, ids: Sequence[int], *, skip_hidden: bool = False) -> str:
        """The whole text of the ids."""
        return "".join(self.pieces(ids, skip_hidden=skip_hidden))


@lru_cache(maxsize=8)
def detokenizer(encoding: tiktoken.Encoding) -> Detokenizer:
    """The detokenizer of an encoding, made once."""
    return Detokenizer(encoding)


def spoken_pieces(
    words: Detokenizer,
    ids: Sequence[int],
    *,
    stop_reason: int | str | None,
    finish_reason: str,
    include_stop: bool = False,
    skip_hidden: bool = False,
) -> list[str]:
    """Pieces of the generated text; a token that ended the generation has none.

    ``stop_reason`` is vLLM's: None for the model's own end token, an id, or the stop string that was hit.
    """
    pieces = words.pieces(ids, skip_hidden=skip_hidden)
    if finish_reason != "stop" or not pieces or isinstance(stop_reason, str) or include_stop:
        return pieces
    if ids[-1] == stop_reason if stop_reason is not None else ids[-1] in words.hidden:
        pieces[-1] = ""
    return pieces


def cut_at(pieces: list[str], stop: str, include_stop: bool) -> list[str]:
    """Pieces up to the stop string, which completes within the last piece."""
    if not pieces:
        return pieces
    text = "".join(pieces)
    at = text.find(stop, max(0, len(text) - len(pieces[-1]) - len(stop)))
    if at < 0:
        return pieces
    room = at + (len(stop) if include_stop else 0)
    out = []
    for piece in pieces:
        out.append(piece[:room])
        room -= len(out[-1])
    return out
