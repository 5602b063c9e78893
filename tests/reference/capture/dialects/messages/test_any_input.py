"""Whatever a client sends as a Messages request, it is translated or refused."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conformance.reference.capture import jsontext
from conformance.reference.capture.dialects.messages.request import chat_request
from conformance.reference.capture.errors import Refusal

pytestmark = pytest.mark.unit

_KEYS = st.sampled_from(
    [
        "type",
        "text",
        "role",
        "content",
        "id",
        "name",
        "input",
        "tool_use_id",
        "thinking",
        "source",
        "data",
        "media_type",
    ]
)
_WORDS = st.sampled_from(
    [
        *("text", "image", "document", "tool_use", "tool_result", "thinking", "redacted_thinking", "user", "assistant"),
        *("system", "base64", "url", "content", "auto", "any", "tool", "none", "custom", "json_schema", "", "\ud83d"),
    ]
)
_LEAVES = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | _WORDS
_JSON = st.recursive(
    _LEAVES, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(_KEYS, inner, max_size=5), max_leaves=20
)
_BODIES = st.fixed_dictionaries(
    {"model": st.just("m")},
    optional={
        **dict.fromkeys(["system", "tools", "tool_choice", "output_config", "output_format", "stop_sequences"], _JSON),
        "messages": st.lists(st.fixed_dictionaries({"role": _WORDS, "content": _JSON}), max_size=4) | _JSON,
        "max_tokens": st.integers() | _LEAVES,
        "stream": st.none() | st.booleans(),
    },
)


@settings(max_examples=300, deadline=None)
@given(_BODIES, st.booleans())
def test_any_body_is_translated_or_refused(body: dict[str, Any], counting: bool) -> None:
    before = jsontext.write(body)
    status, roles = translated(body, counting)
    assert (status == 400) == (not roles)
    assert roles <= {"system", "user", "assistant", "tool"}
    assert jsontext.write(body) == before


def translated(body: dict[str, Any], counting: bool) -> tuple[int, set[str]]:
    """The roles of the chat messages, or the status of the refusal."""
    try:
        sent = chat_request(body, counting=counting)
    except Refusal as refusal:
        return refusal.status, set()
    return 200, {message["role"] for message in sent["messages"]}
