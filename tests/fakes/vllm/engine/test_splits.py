"""Another split spells the same text and is never what the tokenizer gives."""

import pytest
import tiktoken
from hypothesis import given
from hypothesis import strategies as st

from fakes.vllm import tokenizer
from fakes.vllm.splits import Splitter

SPLITTER = Splitter(tokenizer.load())
TEXTS = st.text().map(lambda text: f"I look first. {text} <tool_call>")


@given(TEXTS, st.text(), st.integers(0, 200))
def test_a_drifted_text_decodes_to_itself_and_is_never_the_tokenizers_split(
    text: str, place: str, variant: int
) -> None:
    encoding = tokenizer.load()
    ids = encoding.encode(text, allowed_special="all")
    drifted = SPLITTER.drifted(ids, place, variant)
    assert encoding.decode_bytes(drifted) == encoding.decode_bytes(ids)
    assert drifted != ids


@given(TEXTS, st.text())
def test_the_first_variants_all_differ(text: str, place: str) -> None:
    ids = tokenizer.load().encode(text, allowed_special="all")
    count = 2 ** min(6, sum(bool(SPLITTER.halves(token)) for token in ids)) - 1
    assert len({tuple(SPLITTER.drifted(ids, place, variant)) for variant in range(count)}) == count


def test_special_tokens_and_single_bytes_are_never_split(encoding: tiktoken.Encoding) -> None:
    ids = encoding.encode("<think>\n</think>7", allowed_special="all")
    assert not SPLITTER.can_split(ids)
    assert SPLITTER.drifted(ids, "here", 0) == ids


@pytest.mark.parametrize("text", ["look", "⟦", " 🙂"])
def test_every_token_longer_than_a_byte_can_be_split(text: str, encoding: tiktoken.Encoding) -> None:
    assert SPLITTER.can_split(encoding.encode(text))
