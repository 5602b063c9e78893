"""The record of one captured call, as the contract lays it out."""

import logging

from conformance.reference.capture.jsontext import JSON, JSONObject
from conformance.reference.capture.requests import Call
from conformance.reference.capture.sessions import Caller
from conformance.reference.capture.triples import Triple, triple_of
from conformance.reference.capture.validity import count_warning, invalid_reason
from conformance.reference.store import SCHEMA_VERSION, timestamp

log = logging.getLogger(__name__)

SAMPLING_KEYS = (
    *("temperature", "top_p", "top_k", "min_p", "seed"),
    *("presence_penalty", "frequency_penalty", "repetition_penalty"),
    *("max_tokens", "max_completion_tokens", "min_tokens", "stop", "stop_token_ids", "ignore_eos"),
    *("logit_bias", "bad_words", "allowed_token_ids", "response_format", "structured_outputs"),
    *("reasoning_effort", "chat_template_kwargs"),
)
MESSAGE_KEYS = ("tool_calls", "refusal", "function_call")


def record_of(call: Call, caller: Caller, answer: JSONObject, started_at: int) -> JSONObject:
    """The record of an answered call; the store adds ``uuid``, ``captured_at`` and the settled parent.

    ``started_at`` is in microseconds since the epoch, on the store's clock.
    """
    triple = triple_of(answer)
    reason = invalid_reason(answer, triple)
    _tell(answer, triple, reason)
    choices = answer["choices"]
    choice: JSONObject = choices[0] if choices else {}
    message: JSONObject = choice.get("message") or {}
    return {
        "schema_version": SCHEMA_VERSION,
        "uuid": None,
        "session_id": caller.session_id,
        "parent_session_id": caller.parent_session_id,
        "captured_at": None,
        "request_id": answer.get("id"),
        "model": answer.get("model"),
        "messages": [*call.body["messages"], _assistant_turn(message)],
        "tools": _tools(call.body.get("tools")),
        "tool_choice": _tool_choice(call.body.get("tool_choice")),
        "token_count": _token_count(answer.get("usage")),
        "prompt_token_ids": triple.prompt_token_ids,
        "generation_token_ids": triple.generation_token_ids,
        "generation_log_probs": triple.generation_log_probs,
        "finish_reason": choice.get("finish_reason"),
        "is_valid": reason is None,
        "x_trackgauge": {
            "invalid_reason": reason,
            "started_at": timestamp(started_at),
            "sampling": {key: call.body[key] for key in SAMPLING_KEYS if key in call.body},
            "stop_reason": choice.get("stop_reason"),
            "reasoning": _reasoning(message),
            "agent_id": caller.agent_id,
            "parent_agent_id": caller.parent_agent_id,
            "native_session_id": caller.native_session_id,
            "native_parent_id": caller.native_parent_id,
            "weight_version": _weight_version(choice),
            "injected": False,
        },
    }


def _assistant_turn(message: JSONObject) -> JSONObject:
    turn: JSONObject = {"role": "assistant"}
    if message.get("content") is not None:
        turn["content"] = message["content"]
    return turn | {key: message[key] for key in MESSAGE_KEYS if message.get(key)}


def _reasoning(message: JSONObject) -> str | None:
    texts = (message.get("reasoning"), message.get("reasoning_content"))
    return next((text for text in texts if isinstance(text, str)), None)


def _tools(tools: JSON) -> list[JSONObject]:
    return [_tool(tool) for tool in tools if isinstance(tool, dict)] if isinstance(tools, list) else []


def _tool(tool: JSONObject) -> JSONObject:
    function = tool["function"] if isinstance(tool.get("function"), dict) else tool
    kept = {"id": function.get("name", ""), "description": function.get("description") or ""}
    if function.get("parameters") is not None:
        kept["inputSchema"] = {"jsonSchema": function["parameters"]}
    return kept


def _tool_choice(choice: JSON) -> str:
    if isinstance(choice, dict):
        choice = choice.get("type")
    return choice if isinstance(choice, str) else "auto"


def _token_count(usage: JSON) -> dict[str, int]:
    counts = usage if isinstance(usage, dict) else {}
    names = ("prompt_tokens", "completion_tokens", "total_tokens")
    return {name: counts[name] if type(counts.get(name)) is int else 0 for name in names}


def _weight_version(choice: JSONObject) -> str | None:
    """The weights that sampled the tokens; several, in order, if they changed on the way."""
    spans = choice.get("weight_versions")
    found = [span.get("version") for span in spans if isinstance(span, dict)] if isinstance(spans, list) else []
    return ",".join(dict.fromkeys(str(version) for version in found)) or None


def _tell(answer: JSONObject, triple: Triple, reason: str | None) -> None:
    if reason is not None:
        log.warning("call %s is recorded as invalid: %s", answer.get("id"), reason)
    warning = count_warning(answer, triple)
    if warning is not None:
        log.warning("call %s: %s", answer.get("id"), warning)
