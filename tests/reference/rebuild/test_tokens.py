"""The tree of token sequences, held against lists."""

from hypothesis import given, settings
from hypothesis import strategies as st

from conformance.reference.rebuild.tokens import Tokens, TokenTree, common_prefix, token_bytes

SEQUENCES = st.lists(st.lists(st.integers(0, 2), min_size=1, max_size=12), min_size=1, max_size=12)


@settings(max_examples=300, deadline=None)
@given(SEQUENCES)
def test_each_sequence_comes_out_as_it_went_in_whatever_went_in_beside_it(sequences: list[list[int]]) -> None:
    tree = TokenTree()
    nodes = [tree.add(token_bytes(one)) for one in sequences]
    for one, node in zip(sequences, nodes, strict=True):
        assert Tokens(node) == one
        assert [Tokens(node)[at:] for at in range(14)] == [one[at:] for at in range(14)]
        assert Tokens(node)[-1] == one[-1]
        for other, elsewhere in zip(sequences, nodes, strict=True):
            assert (node is elsewhere) == (one == other)
            assert node.starts_with(elsewhere) == (one[: len(other)] == other)


@settings(max_examples=300, deadline=None)
@given(SEQUENCES, st.data())
def test_a_sequence_may_go_on_from_any_part_of_another(sequences: list[list[int]], data: st.DataObject) -> None:
    tree = TokenTree()
    known = [(one, tree.add(token_bytes(one))) for one in sequences]
    for added in sequences:
        one, node = data.draw(st.sampled_from(known))
        depth = data.draw(st.integers(0, len(one)))
        grown = [*one[:depth], *added]
        found = tree.extend(node, depth, token_bytes(added))
        assert Tokens(found) == grown
        assert found is tree.add(token_bytes(grown))
        known.append((grown, found))
    assert all(Tokens(node) == one for one, node in known)


@given(st.binary(max_size=40), st.binary(max_size=8), st.binary(max_size=8))
def test_what_two_texts_have_in_common(both: bytes, one: bytes, other: bytes) -> None:
    length = common_prefix(both + one, both + other)
    assert (both + one)[:length] == (both + other)[:length]
    assert (both + one)[length : length + 1] != (both + other)[length : length + 1] or length == min(
        len(both + one), len(both + other)
    )
