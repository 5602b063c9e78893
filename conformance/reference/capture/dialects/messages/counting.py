"""Counts the tokens of a prompt without generating; nothing of it is recorded."""

from collections.abc import Mapping

from conformance.reference.capture import jsontext
from conformance.reference.capture.client import Client
from conformance.reference.capture.config import Route
from conformance.reference.capture.dialects import Dialect
from conformance.reference.capture.errors import engine_garbage
from conformance.reference.capture.jsontext import JSON, JSONObject
from conformance.reference.capture.requests import read_call
from conformance.reference.capture.upstream import Engine
from conformance.reference.capture.work import Workers

PROMPT_KEYS = (
    *("model", "messages", "tools", "chat_template_kwargs"),
    *("add_generation_prompt", "continue_final_message"),
)
"""What of a chat request the engine's tokenizer takes."""


class TokenCounts:
    """Answers requests for a count with the engine's own."""

    def __init__(self, routes: Mapping[str, Route], engine: Engine, workers: Workers) -> None:
        self._routes = routes
        self._engine = engine
        self._workers = workers

    async def answer(self, client: Client, dialect: Dialect) -> None:
        """Answer one request; raises Refusal."""
        raw = await client.body()
        route, question = await self._workers.sized(len(raw), lambda: self._question(raw, client, dialect))
        body = await self._engine.tokenize(route, question)
        count = await self._workers.sized(len(body), lambda: _count(body))
        await client.json(200, {"input_tokens": count})

    def _question(self, raw: bytes, client: Client, dialect: Dialect) -> tuple[Route, bytes]:
        call = read_call(raw, client.headers, self._routes, dialect)
        prompt: JSONObject = {key: call.body[key] for key in PROMPT_KEYS if key in call.body}
        return call.route, jsontext.write(prompt)


def _count(body: bytes) -> int:
    try:
        told: JSON = jsontext.read_engine(body)
    except ValueError:
        raise engine_garbage("a count that is not JSON") from None
    count = told.get("count") if isinstance(told, dict) else None
    if type(count) is not int:
        raise engine_garbage("no count of tokens")
    return count
