"""Where in a prompt the new messages begin: asked of the engine, and never guessed from special tokens.

The engine renders the new messages twice: behind the whole history, as the client sent it, and behind a turn that says
nothing but a mark. What follows the mark is the end of a turn and the new messages. Only if the whole prompt ends with
exactly these tokens are they what the new messages are in it.
"""

import asyncio
from dataclasses import dataclass

from conformance.reference.capture import jsontext
from conformance.reference.capture.config import Route
from conformance.reference.capture.continuity.question import template_kwargs
from conformance.reference.capture.errors import Refusal
from conformance.reference.capture.jsontext import JSON, JSONObject
from conformance.reference.capture.upstream import Engine
from conformance.reference.capture.work import Workers

MARK = "\u2042"
"""Three asterisks in a triangle: nothing that the two messages of the probe hold besides."""


class NotRendered(Exception):
    """Raised when the engine could not tell how it renders something."""


class BorderUnknown(Exception):
    """Raised when the tokens of the new messages cannot be told apart from those before them."""


@dataclass(frozen=True)
class Rendered:
    """``ids`` is a prompt; ``max_model_len`` is in tokens, None where the engine does not tell."""

    ids: list[int]
    max_model_len: int | None


@dataclass(frozen=True)
class Addition:
    """What the new messages add. ``ids`` begin with the token that ends a turn."""

    ids: list[int]
    max_model_len: int | None

    @property
    def turn_end(self) -> int:
        return self.ids[0]

    def after(self, history: list[int], *, self_ended: bool) -> list[int]:
        """The prompt of the call: the history, then what is added; raises BorderUnknown.

        A turn that the model ended has its end already; one that was cut gets it from the template.
        """
        if history[-1] == self.turn_end:
            return history + self.ids[1:]
        if self_ended:
            raise BorderUnknown
        return history + self.ids


class Renderer:
    """Asks the engines how they render. Every failure of theirs is NotRendered: nothing has been generated yet."""

    def __init__(self, engine: Engine, workers: Workers) -> None:
        self._engine = engine
        self._workers = workers
        self._marks: dict[tuple[str, str], int] = {}

    async def addition(self, route: Route, body: JSONObject, depth: int) -> Addition:
        """What the messages from ``depth`` on add to the prompt; raises NotRendered or BorderUnknown."""
        new: list[JSONObject] = body["messages"][depth:]
        probe = [{"role": "user", "content": "-"}, {"role": "assistant", "content": MARK}, *new]
        asked = (self.prompt(route, body, body["messages"]), self.prompt(route, body, probe, tools=False))
        # All are waited for, whichever fails: nothing is asked of the engine behind the back of the call that goes on.
        whole, probed, mark = await asyncio.gather(*asked, self._mark(route), return_exceptions=True)
        if isinstance(whole, BaseException) or isinstance(probed, BaseException) or isinstance(mark, BaseException):
            raise next(one for one in (whole, probed, mark) if isinstance(one, BaseException))
        try:
            border = probed.ids.index(mark) + 1
        except ValueError:
            self._marks.pop((route.base_url, route.target), None)
            raise BorderUnknown from None
        added = probed.ids[border:]
        if len(added) < 2 or whole.ids[-len(added) :] != added:
            raise BorderUnknown
        return Addition(added, whole.max_model_len)

    async def prompt(
        self,
        route: Route,
        body: JSONObject,
        messages: list[JSONObject],
        *,
        tools: bool = True,
        prefix: list[int] | None = None,
    ) -> Rendered:
        """The prompt of messages, with the template settings of ``body``; raises NotRendered.

        ``prefix`` are tokens that an engine which knows such a thing is to put in the place of the history.
        """
        question: JSONObject = {"model": route.target, "messages": messages, "add_generation_prompt": True}
        if tools and body.get("tools"):
            question["tools"] = body["tools"]
        kwargs = template_kwargs(body)
        if kwargs:
            question["chat_template_kwargs"] = kwargs
        if prefix is not None:
            question["required_prefix_token_ids"] = prefix
        return await self._asked(route, question)

    async def _mark(self, route: Route) -> int:
        """The last token of the mark."""
        place = (route.base_url, route.target)
        if place not in self._marks:
            question: JSONObject = {"model": route.target, "prompt": MARK, "add_special_tokens": False}
            self._marks[place] = (await self._asked(route, question)).ids[-1]
        return self._marks[place]

    async def _asked(self, route: Route, question: JSONObject) -> Rendered:
        try:
            payload = await self._workers.run(lambda: jsontext.write(question))
            body = await self._engine.tokenize(route, payload)
            return await self._workers.sized(len(body), lambda: _rendered(body))
        except (Refusal, ValueError):
            raise NotRendered from None


def _rendered(body: bytes) -> Rendered:
    """Raises ValueError for what is no list of token ids."""
    told: JSON = jsontext.read_engine(body)
    ids = told.get("tokens") if isinstance(told, dict) else None
    if not isinstance(ids, list) or not ids or set(map(type, ids)) != {int}:
        raise ValueError("no token ids")
    length = told.get("max_model_len")
    return Rendered(ids, length if type(length) is int and length > 0 else None)


def same_opening(prompt: list[int], earlier: list[int], turn_end: int) -> bool:
    """Whether two prompts open the answer alike: the same tokens behind the last end of a turn."""
    return _opening(prompt, turn_end) == _opening(earlier, turn_end)


def _opening(prompt: list[int], turn_end: int) -> list[int]:
    backwards = prompt[::-1]
    return backwards[: backwards.index(turn_end)] if turn_end in backwards else backwards
