"""The shapes of chat answers that a client may get, asked for one by one, each with the engine's account of it."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from conformance.gauge.check import Inconclusive
from conformance.gauge.scene import Playbook, Row, Scene, load_playbook
from conformance.oracle.chat_answers import ChatAnswer, of_message

WITHOUT_ARGUMENTS = ("no_arguments", "empty_arguments")
BROKEN_CALLS = ("malformed", "unparsed", "cut_call")

MEGABYTE = '{"path": "größe.txt", "text": "' + "0123456789abcdef größer 🛠️ \\\\n" * 33_000 + '"}'


def _tool(name: str, *arguments: str) -> dict[str, Any]:
    parameters = {"type": "object", "properties": {one: {"type": "string"} for one in arguments}}
    return {"type": "function", "function": {"name": name, "description": name, "parameters": parameters}}


TOOLS = [
    _tool("execute_bash", "command", "timeout"),
    _tool("think", "thought"),
    _tool("list_files"),
    _tool("write_file", "path", "text"),
]


@dataclass(frozen=True, slots=True)
class Told:
    """One answer: what its client got, and the engine's row of that call."""

    shape: str
    got: Any
    row: Row

    @property
    def engine(self) -> ChatAnswer:
        """What the engine said, with the finish reason it gives a client that offered tools."""
        answer = of_message(self.row["message"])
        called = bool(answer.tool_calls) and self.row["finish_reason"] == "stop"
        answer.finish_reason = "tool_calls" if called else self.row["finish_reason"]
        answer.usage = self.row["usage"]
        return answer


def playbook() -> Playbook:
    script = load_playbook("chat_answers")
    call = script["scopes"]["megabyte"]["turns"][0]["message"]["tool_calls"][0]
    call["function"]["arguments"] = MEGABYTE
    return script


async def told(scene: Scene, *asks: Callable[[str], Awaitable[Any]]) -> list[list[Told]]:
    """Each shape asked for in each of these ways; a list of answers a way. An ask gets the task."""
    script = await scene.script_shapes(playbook())
    scopes = range(len(script["scopes"]))
    answers = [[await ask(scene.task(scope=scope)) for scope in scopes] for ask in asks]
    rows = await scene.ledger()
    # The n-th way is the n-th request of each scope.
    by_scope = [[row for row in rows if row["scope"] == scope] for scope in scopes]
    if any(len(found) != len(asks) for found in by_scope):
        raise Inconclusive(f"expected {len(asks)} generations a scope, seen {[len(found) for found in by_scope]}")
    return [
        [Told(shape, answers[way][scope], by_scope[scope][way]) for scope, shape in enumerate(script["scopes"])]
        for way in range(len(asks))
    ]
