"""What engines say when they refuse or fail, in the forms in which they say it."""

from typing import Any

from conformance.scenarios.errors.faults import Fault, engine_says


def error(status: int, message: str, kind: str = "BadRequestError", param: str | None = None) -> dict[str, Any]:
    """An error body in the form of vLLM."""
    return {"error": {"message": message, "type": kind, "param": param, "code": status}}


BAD_VALUE = error(400, "temperature must be non-negative, got -1.0. (parameter=temperature)", param="temperature")
STATUSES: dict[str, tuple[int, Fault]] = {
    "400": (400, engine_says(400, BAD_VALUE)),
    "401": (401, engine_says(401, error(401, "Unauthorized", "AuthenticationError"))),
    "429": (429, engine_says(429, error(429, "Too many requests.", "RateLimitError"), Retry_After="17")),
    "500": (500, engine_says(500, error(500, "EngineCore encountered an issue.", "InternalServerError"))),
    "503": (503, engine_says(503, error(503, "The engine is busy.", "Service Unavailable"), retry_after="0.5")),
}
RETRY_AFTER = {"429": "17", "503": "0.5"}

OTHER_FORMS: dict[str, tuple[int, Fault]] = {
    "a flat object": (400, engine_says(400, {"object": "error", "message": "no such value", "code": 400})),
    "a string for an error": (401, engine_says(401, {"error": "Unauthorized"})),
    "a detail": (404, engine_says(404, {"detail": "Not Found"})),
    "a list of details": (422, engine_says(422, {"detail": [{"loc": ["body"], "msg": "field required"}]})),
    "a text": (503, engine_says(503, "no healthy upstream", Content_Type="text/plain")),
    "nothing at all": (500, engine_says(500, "")),
    "a page": (502, engine_says(502, "<html><h1>502 Bad Gateway</h1></html>", Content_Type="text/html")),
}

OVERFLOWS = {
    "0.15": "This model's maximum context length is 4096 tokens. However, your request has 5000 input tokens. "
    "Please reduce the length of the input messages.",
    "0.17": "You passed 4000 input tokens and requested 500 output tokens. However, the model's context length is only "
    "4096 tokens, resulting in a maximum input length of 3596 tokens. Please reduce the length of the input prompt.",
    "0.32": "This model's maximum context length is 4096 tokens. However, your prompt contains at least 4097 input "
    "tokens, which exceeds this limit even without any output tokens. Please reduce the length of the input prompt. "
    "(parameter=input_tokens, value=4097)",
}
TOO_MUCH_OUTPUT = {
    "0.15": "'max_tokens' or 'max_completion_tokens' is too large: 9000. This model's maximum context length is "
    "4096 tokens and your request has 20 input tokens (9000 > 4096 - 20).",
    "0.32": "max_tokens=9000 cannot be greater than max_model_len=4096. Please request fewer output tokens. "
    "(parameter=max_tokens, value=9000)",
}
"""What vLLM says, by version."""
