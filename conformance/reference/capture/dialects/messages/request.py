"""A Messages request as a chat request."""

from conformance.reference.capture.dialects.messages.mistakes import as_object, mistake
from conformance.reference.capture.dialects.messages.tools import chat_tools
from conformance.reference.capture.dialects.messages.turns import chat_messages
from conformance.reference.capture.jsontext import JSONObject

SAME_IN_CHAT = (
    *("temperature", "top_p", "top_k", "min_p", "seed"),
    *("presence_penalty", "frequency_penalty", "repetition_penalty"),
    *("min_tokens", "stop_token_ids", "ignore_eos", "logit_bias", "bad_words", "allowed_token_ids"),
    *("include_stop_str_in_output", "skip_special_tokens", "spaces_between_special_tokens", "truncate_prompt_tokens"),
    *("structured_outputs", "response_format", "chat_template_kwargs", "priority", "cache_salt", "user"),
)
"""What steers the sampling or the template has the same name in chat, in the API itself or as vLLM's extra.

All other keys (``metadata``, ``thinking``, ``context_management``, …) speak to Anthropic's servers and stay behind.
"""


def chat_request(body: JSONObject, *, counting: bool = False) -> JSONObject:
    """The chat request for a Messages request; raises Refusal. ``counting`` needs no limit of the answer."""
    chat: JSONObject = {"model": body["model"], "messages": _nested_safely(body)}
    chat |= chat_tools(body)
    if not counting:
        limit = body.get("max_tokens")
        if type(limit) is not int:
            raise mistake("max_tokens", "a whole number is required")
        chat["max_completion_tokens"] = limit
    if body.get("stop_sequences"):
        chat["stop"] = body["stop_sequences"]
    chat |= {key: body[key] for key in SAME_IN_CHAT if body.get(key) is not None}
    chat |= _output(body)
    if chat["messages"][-1]["role"] == "assistant":
        # The client begins the answer itself, and the engine is to go on from there.
        chat |= {"add_generation_prompt": False, "continue_final_message": True}
    if "stream" in body:
        chat["stream"] = body["stream"]
        if body["stream"]:
            chat["stream_options"] = {"include_usage": True}
    return chat


def _nested_safely(body: JSONObject) -> list[JSONObject]:
    try:
        return chat_messages(body)
    except ValueError as error:
        raise mistake("messages", str(error)) from None


def _output(body: JSONObject) -> JSONObject:
    """The form and the effort asked for, where chat has the same idea."""
    config = body.get("output_config")
    asked = as_object(config, "output_config") if config is not None else {}
    chat: JSONObject = {}
    if isinstance(asked.get("effort"), str):
        chat["reasoning_effort"] = asked["effort"]
    form = asked.get("format", body.get("output_format"))
    if isinstance(form, dict) and form.get("type") == "json_schema":
        schema = {"name": "answer", "schema": as_object(form.get("schema"), "output_config.format.schema")}
        chat["response_format"] = {"type": "json_schema", "json_schema": schema}
    return chat
