"""What a client asked for, and what goes upstream for it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from conformance.reference.capture import jsontext
from conformance.reference.capture.config import Route
from conformance.reference.capture.errors import Refusal
from conformance.reference.capture.jsontext import JSON, JSONObject
from conformance.reference.capture.sessions import SESSION_KEY, Caller, Headers, identify

if TYPE_CHECKING:
    from conformance.reference.capture.dialects import Dialect

TRIPLE_KEYS = ("prompt_token_ids", "generation_token_ids", "generation_log_probs")
"""Token fields that some servers put into messages, and that would steer them when they come back."""

NEUTRAL_KEYS = ("include_reasoning", "n", "echo", "use_beam_search", "required_prefix_token_ids", "kv_transfer_params")


@dataclass(frozen=True)
class Asked:
    """What the client itself wants to see; the proxy asks the engine for more."""

    stream: bool = False
    usage_chunk: bool = False
    log_probs: bool = False
    top_log_probs: int = 0
    token_ids: bool = False
    prompt_text: bool = False
    reasoning: bool = True


@dataclass(frozen=True)
class Call:
    """One call: ``request`` is the client's, ``body`` the chat request that goes upstream, ``payload`` its bytes.

    Without a caller it is not captured.
    """

    route: Route
    caller: Caller | None
    asked: Asked
    body: JSONObject
    payload: bytes
    dialect: "Dialect"
    request: JSONObject


def read_call(raw: bytes, headers: Headers, routes: Mapping[str, Route], dialect: "Dialect") -> Call:
    """Judge a client's request and prepare it for the engine; raises Refusal. Costs time with the size of the body."""
    body = request = _read_object(raw)
    caller = identify(headers, body.pop(SESSION_KEY, None))
    route = _route_of(body.get("model"), routes)
    stream = body.get("stream")
    if not isinstance(stream, bool | None):
        raise _mistake("stream", "stream must be true or false")
    body = dialect.chat_request(request)
    _judge_messages(body.get("messages"))
    captured = route.captured and caller is not None
    asked = _asked(body)
    body["model"] = route.target
    if captured:
        _neutralise(body)
        _ask_for_tokens(body, route)
    for key, value in route.extra_body.items():
        body.setdefault(key, value)
    if captured:
        body.update(route.pins)
    try:
        payload = jsontext.write(body)
    except ValueError as error:
        raise Refusal(400, "invalid_body", f"the request body cannot be sent on: {error}") from None
    return Call(route, caller if captured else None, asked, body, payload, dialect, request)


def _read_object(raw: bytes) -> JSONObject:
    try:
        body = jsontext.read(raw)
    except ValueError as error:
        what = str(error).splitlines()[0][:200]
        raise Refusal(400, "invalid_body", f"the request body is not valid JSON: {what}") from None
    if not isinstance(body, dict):
        raise Refusal(400, "invalid_body", "the request body must be a JSON object")
    return body


def _route_of(model: JSON, routes: Mapping[str, Route]) -> Route:
    known = ", ".join(routes)
    if not isinstance(model, str) or not model:
        raise _mistake("model", f"model must name a route; routes: {known}")
    route = routes.get(model)
    if route is None:
        message = f"no route is called {model[:200]!r}; routes: {known}"
        raise Refusal(404, "model_not_found", message, param="model")
    return route


def _judge_messages(messages: JSON) -> None:
    if not isinstance(messages, list) or not all(isinstance(message, dict) for message in messages):
        raise _mistake("messages", "messages must be a list of objects")
    if not messages:
        raise Refusal(400, "empty_messages", "messages must not be empty", param="messages")


def _asked(body: JSONObject) -> Asked:
    options = body.get("stream_options")
    top = body.get("top_logprobs")
    return Asked(
        stream=body.get("stream") is True,
        usage_chunk=isinstance(options, dict) and options.get("include_usage") is True,
        log_probs=body.get("logprobs") is True,
        top_log_probs=top if type(top) is int else 0,
        token_ids=body.get("return_token_ids") is True,
        prompt_text=body.get("return_prompt_text") is True,
        reasoning=body.get("include_reasoning") is not False,
    )


def _neutralise(body: JSONObject) -> None:
    """Take out what would change which tokens the call means; refuse what cannot be taken out unnoticed."""
    if body.get("n") is True or body.get("n") not in (None, 1):
        raise _mistake("n", "a captured call has one choice: n must be 1 or absent")
    for key in ("echo", "use_beam_search"):
        if body.get(key):
            raise _mistake(key, f"a captured call cannot use {key}")
    for key in NEUTRAL_KEYS:
        body.pop(key, None)
    if any(key in message for message in body["messages"] for key in TRIPLE_KEYS):
        body["messages"] = [_without_triple(message) for message in body["messages"]]


def _without_triple(message: JSONObject) -> JSONObject:
    return {key: value for key, value in message.items() if key not in TRIPLE_KEYS}


def _ask_for_tokens(body: JSONObject, route: Route) -> None:
    client_top = body.get("top_logprobs")
    if client_top is not None and type(client_top) is not int:
        raise _mistake("top_logprobs", "top_logprobs must be a whole number")
    wanted = (client_top or 0, route.extra_body.get("top_logprobs", 0))
    body["logprobs"] = True
    body["return_token_ids"] = True
    body["top_logprobs"] = -1 if -1 in wanted else max(wanted)
    if "stream" in body:
        body["stream"] = False
    body.pop("stream_options", None)


def _mistake(param: str, message: str) -> Refusal:
    return Refusal(400, "invalid_value", message, param=param)
