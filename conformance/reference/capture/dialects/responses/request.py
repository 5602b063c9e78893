"""A Responses request in chat form, and what its answer says of it."""

from dataclasses import dataclass

from conformance.reference.capture.dialects.responses.errors import mistake, unsupported
from conformance.reference.capture.dialects.responses.items import chat_messages
from conformance.reference.capture.dialects.responses.tools import Offered, offered, tool_choice
from conformance.reference.capture.jsontext import JSON, JSONObject

STATEFUL = ("previous_response_id", "conversation", "prompt", "background")
"""Keys that speak of something stored; nothing is stored here but records."""

TRANSLATED = (
    *("instructions", "input", "tools", "tool_choice", "text", "reasoning", "max_output_tokens"),
    # Owned by the translation, whatever a client puts there.
    *("messages", "response_format", "reasoning_effort", "max_tokens", "max_completion_tokens", "stream_options"),
)
IGNORED = (
    *("store", "include", "metadata", "truncation", "user", "service_tier", "safety_identifier", "moderation"),
    *("prompt_cache_key", "prompt_cache_options", "prompt_cache_retention", "client_metadata", "max_tool_calls"),
    *("context_management", "background_options", "access_programs", "image", "top_logprobs", "logprobs"),
)
FORMAT_KEYS = ("name", "description", "schema", "strict")


@dataclass(frozen=True)
class Translated:
    """``chat`` is the chat request; ``settings`` are the fields of the answer that repeat the request."""

    chat: JSONObject
    settings: JSONObject
    offer: Offered


def translated(body: JSONObject) -> Translated:
    """A request in chat form. Raises Refusal for what a chat call cannot mean. ``body`` is left as it is."""
    for key in STATEFUL:
        if body.get(key):
            raise unsupported(key, f"{key} is not supported: no state is kept, send the whole conversation")
    offer = offered(body.get("tools"))
    choice = tool_choice(body.get("tool_choice"), offer)
    told: JSONObject = {
        "messages": chat_messages(body.get("instructions"), body.get("input")),
        "max_completion_tokens": body.get("max_output_tokens"),
        "reasoning_effort": _object(body, "reasoning").get("effort"),
        "response_format": _response_format(_object(body, "text").get("format")),
        "tools": offer.functions or None,
        "tool_choice": choice,
    }
    elsewhere = {*TRANSLATED, *IGNORED, *STATEFUL}
    if not offer.functions:
        elsewhere.add("parallel_tool_calls")
    chat = {key: value for key, value in body.items() if key not in elsewhere}
    chat |= {key: value for key, value in told.items() if value is not None}
    return Translated(chat, _settings(body, offer), offer)


def _response_format(form: JSON) -> JSON:
    """The chat form of ``text.format``; None for plain text."""
    if form is None:
        return None
    kind = form.get("type") if isinstance(form, dict) else None
    if kind == "text":
        return None
    if kind == "json_object":
        return {"type": "json_object"}
    if kind == "json_schema":
        return {"type": kind, "json_schema": {key: form[key] for key in FORMAT_KEYS if form.get(key) is not None}}
    raise mistake("text.format", "text.format.type must be text, json_object or json_schema")


def _settings(body: JSONObject, offer: Offered) -> JSONObject:
    """What a response repeats of its request, with the dialect's defaults."""
    return {
        "instructions": body.get("instructions"),
        "max_output_tokens": body.get("max_output_tokens"),
        "metadata": body.get("metadata") or {},
        "model": body.get("model"),
        "parallel_tool_calls": body.get("parallel_tool_calls") is not False,
        "previous_response_id": None,
        "reasoning": {key: _object(body, "reasoning").get(key) for key in ("effort", "summary")},
        "store": False,
        "temperature": body.get("temperature"),
        "text": body.get("text") or {"format": {"type": "text"}},
        "tool_choice": body.get("tool_choice") or "auto",
        "tools": offer.told,
        "top_p": body.get("top_p"),
        "truncation": "disabled",
    }


def _object(body: JSONObject, key: str) -> JSONObject:
    value = body.get(key)
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise mistake(key, f"{key} must be an object")
    return value
