"""The vocabulary is what its corpus gives, and encodes everything."""

from pathlib import Path

import pytest
import tiktoken
from hypothesis import given
from hypothesis import strategies as st

from fakes.vllm import tokenizer
from fakes.vllm.tags import format_tag
from fakes.vllm.vocabulary import CORPUS_FILE, SPECIAL_TOKENS, VOCABULARY_FILE, build, train


def test_the_shipped_vocabulary_is_what_the_corpus_gives() -> None:
    assert VOCABULARY_FILE.read_text() == build(CORPUS_FILE.read_text(encoding="utf-8"))


def test_training_takes_the_most_frequent_pair_first_and_breaks_ties_by_bytes() -> None:
    assert train("ab ab cd cd ab", 259)[256:] == [b"ab", b" ab", b" c"]


def test_special_tokens_stand_last_and_keep_their_ids_together(encoding: tiktoken.Encoding) -> None:
    ids = [encoding.encode_single_token(token) for token in SPECIAL_TOKENS]
    assert ids == list(range(encoding.n_vocab - len(SPECIAL_TOKENS), encoding.n_vocab))


@given(st.text())
def test_any_text_survives(text: str) -> None:
    encoding = tokenizer.load()
    assert encoding.decode(encoding.encode(text, allowed_special="all")) == text


def test_a_tag_takes_few_tokens(encoding: tiktoken.Encoding) -> None:
    assert len(encoding.encode(format_tag(123456, 12, 1234))) == 16


def test_a_tokenizer_of_another_kind_is_refused_by_name(tmp_path: Path) -> None:
    path = tmp_path / "tokenizer.json"
    path.write_text('{"model": {"type": "Unigram"}, "pre_tokenizer": {"type": "ByteLevel"}}')
    with pytest.raises(ValueError, match=r"tokenizer.json: expected a byte-level BPE model, seen Unigram"):
        tokenizer.from_tokenizer_json(path)
