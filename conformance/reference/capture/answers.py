"""The engine's answer as the client may see it."""

from conformance.reference.capture import jsontext
from conformance.reference.capture.errors import engine_garbage
from conformance.reference.capture.jsontext import JSON, JSONObject
from conformance.reference.capture.requests import TRIPLE_KEYS, Asked

ANSWER_FIELDS = ("metrics", "kv_transfer_params", "ec_transfer_params", "routed_experts")
CHOICE_FIELDS = ("routed_experts", "weight_versions", "prompt_logprobs", *TRIPLE_KEYS)
"""Fields of the engine that no client of the dialect asks for."""


def read_answer(body: bytes) -> JSONObject:
    """The chat completion in a 200 answer; raises Refusal for anything else, so that it never looks complete."""
    answer = read_choices(body)
    for choice in answer["choices"]:
        if not _is_chat_choice(choice):
            raise engine_garbage("a choice that holds no chat message")
    return answer


def read_choices(body: bytes) -> JSONObject:
    """An answer with a list of choices, whatever they are; raises Refusal."""
    try:
        answer = jsontext.read_engine(body)
    except ValueError:
        raise engine_garbage("not JSON, or broken off") from None
    if not isinstance(answer, dict):
        raise engine_garbage("not a JSON object")
    choices = answer.get("choices")
    if not isinstance(choices, list):
        raise engine_garbage("no list of choices")
    return answer


def _is_chat_choice(choice: JSON) -> bool:
    message = choice.get("message") if isinstance(choice, dict) else None
    if not isinstance(message, dict):
        return False
    calls = message.get("tool_calls")
    return calls is None or (isinstance(calls, list) and all(_is_tool_call(call) for call in calls))


def _is_tool_call(call: JSON) -> bool:
    return isinstance(call, dict) and isinstance(call.get("function"), dict)


def client_view(answer: JSONObject, asked: Asked) -> JSONObject:
    """The answer without what the proxy alone asked for. The answer itself is left as it is."""
    view = {key: value for key, value in answer.items() if key not in ANSWER_FIELDS}
    if not asked.token_ids:
        view.pop("prompt_token_ids", None)
    if not asked.prompt_text:
        view.pop("prompt_text", None)
    view["choices"] = [_choice_view(choice, asked) for choice in answer["choices"]]
    return view


def _choice_view(choice: JSONObject, asked: Asked) -> JSONObject:
    view = {key: value for key, value in choice.items() if key not in CHOICE_FIELDS}
    if not asked.token_ids:
        view.pop("token_ids", None)
    view["logprobs"] = _log_probs_view(choice.get("logprobs"), asked)
    view["message"] = {key: value for key, value in choice["message"].items() if key not in TRIPLE_KEYS}
    if not asked.reasoning:
        for key in ("reasoning", "reasoning_content"):
            if key in view["message"]:
                view["message"][key] = None
    return view


def _log_probs_view(log_probs: JSON, asked: Asked) -> JSON:
    if not asked.log_probs or not isinstance(log_probs, dict):
        return None
    entries = log_probs.get("content")
    if asked.top_log_probs < 0 or not isinstance(entries, list):
        return log_probs
    return log_probs | {"content": [_entry_view(entry, asked.top_log_probs) for entry in entries]}


def _entry_view(entry: JSON, most: int) -> JSON:
    if not isinstance(entry, dict) or not isinstance(entry.get("top_logprobs"), list):
        return entry
    return entry | {"top_logprobs": entry["top_logprobs"][:most]}
