"""Messages streams in the public form, event by event: what the grammar has to hold for good."""

import json
from typing import Any


def event(kind: str, **data: Any) -> str:
    return f"event: {kind}\ndata: {json.dumps({'type': kind, **data}, ensure_ascii=False)}\n\n"


def start(**message: Any) -> str:
    whole = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "served",
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": {"input_tokens": 9, "output_tokens": 0},
        **message,
    }
    return event("message_start", message=whole)


def opens(index: Any, kind: str, **block: Any) -> str:
    return event("content_block_start", index=index, content_block={"type": kind, **block})


def delta(index: Any, kind: str, **piece: Any) -> str:
    return event("content_block_delta", index=index, delta={"type": kind, **piece})


def closes(index: Any) -> str:
    return event("content_block_stop", index=index)


def ending(reason: Any = "tool_use", sequence: Any = None, **usage: Any) -> str:
    counted = usage or {"output_tokens": 12}
    return event("message_delta", delta={"stop_reason": reason, "stop_sequence": sequence}, usage=counted)


START = start()
PING = event("ping")
STOP = event("message_stop")
THINKING = (
    opens(0, "thinking", thinking="", signature="")
    + delta(0, "thinking_delta", thinking="Hm")
    + delta(0, "thinking_delta", thinking=".")
    + delta(0, "signature_delta", signature="a83b")
    + closes(0)
)
TEXT = opens(1, "text", text="") + delta(1, "text_delta", text="Straße ") + delta(1, "text_delta", text="🛠️") + closes(1)
FIRST = (
    opens(2, "tool_use", id="toolu_1", name="run", input={})
    + delta(2, "input_json_delta", partial_json='{"z": 1.0, ')
    + delta(2, "input_json_delta", partial_json='"a": [1]}')
    + closes(2)
)
SECOND = opens(3, "tool_use", id="toolu_2", name="look", input={}) + closes(3)
END = ending() + STOP
WHOLE = START + PING + THINKING + TEXT + FIRST + SECOND + END
PLAIN_TEXT = TEXT.replace('"index": 1', '"index": 0')
PLAIN = START + PLAIN_TEXT + ending("end_turn") + STOP
ERROR = event("error", error={"type": "overloaded_error", "message": "Overloaded"})
OF_VLLM = (
    START.replace('"stop_reason": null, "stop_sequence": null, ', "").replace("msg_1", "chatcmpl-b8")
    + PLAIN_TEXT
    + event("message_delta", delta={"stop_reason": "max_tokens"}, usage={"input_tokens": 9, "output_tokens": 60})
    + STOP
)
"""As vLLM streams it, nulls left out."""

GOOD = {
    "thinking, text and two calls": WHOLE,
    "text only": PLAIN,
    "as vLLM streams": OF_VLLM,
    "nothing at all": START + ending("end_turn") + STOP,
    "an empty text": START + opens(0, "text", text="") + closes(0) + ending("end_turn") + STOP,
    "a block that comes whole": START + opens(0, "redacted_thinking", data="x") + closes(0) + ending("end_turn") + STOP,
    "a stop sequence": START + PLAIN_TEXT + ending("stop_sequence", "END") + STOP,
    "pings before the start": PING + PING + PLAIN,
    "counts before the reason": START + PLAIN_TEXT + ending(None, output_tokens=3) + ending("end_turn") + STOP,
    "thinking without a signature": START
    + THINKING.replace('"signature_delta", "signature"', '"thinking_delta", "thinking"')
    + ending("end_turn")
    + STOP,
}
