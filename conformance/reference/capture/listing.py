"""The proxy's list of models: its routes, and what the engines say about their length."""

import asyncio
from collections.abc import Mapping

from conformance.reference.capture import jsontext
from conformance.reference.capture.config import Route
from conformance.reference.capture.jsontext import JSON, JSONObject
from conformance.reference.capture.upstream import Engine, Reply


class Listing:
    """Asks the engines whenever it is asked, so that an engine which comes up later appears."""

    def __init__(self, routes: Mapping[str, Route], engine: Engine) -> None:
        self._routes = routes
        self._engine = engine
        self._lengths: dict[str, int] = {}

    async def models(self) -> JSONObject:
        """The list in the form of ``GET /v1/models``."""
        captured = [route for route in self._routes.values() if route.captured]
        await asyncio.gather(*(self._learn(route) for route in captured))
        return {"object": "list", "data": [self._entry(route) for route in self._routes.values()]}

    def _entry(self, route: Route) -> JSONObject:
        entry: JSONObject = {"id": route.name, "object": "model", "created": 0, "owned_by": "trackgauge"}
        if route.name in self._lengths:
            entry["max_model_len"] = self._lengths[route.name]
        return entry

    async def _learn(self, route: Route) -> None:
        length = _listed_length(await self._engine.models(route), route.target)
        if length is None:
            length = _length(_object(await self._engine.tokenize_nothing(route)))
        if length is not None:
            self._lengths[route.name] = length


def _listed_length(reply: Reply | None, target: str) -> int | None:
    """The length of the served model itself; another model's length would be plausible and wrong."""
    models = _object(reply).get("data")
    for model in models if isinstance(models, list) else []:
        if isinstance(model, dict) and model.get("id") == target:
            return _length(model)
    return None


def _length(described: JSONObject) -> int | None:
    value: JSON = described.get("max_model_len")
    return value if type(value) is int and value > 0 else None


def _object(reply: Reply | None) -> JSONObject:
    if reply is None or reply.status != 200:
        return {}
    try:
        value = jsontext.read_engine(reply.body)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}
