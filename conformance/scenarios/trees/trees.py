"""Trees of agents as live harnesses grow them, and which calls each of their agents made."""

from collections.abc import Iterable, Mapping
from typing import Any

from conformance.gauge.scene import Record, Row, Scene
from fakes.harnesses.conversation import Conversation
from fakes.vllm.tags import find_tags

JSON = Any
Turn = dict[str, JSON]


def turns(*found: Turn) -> dict[str, list[Turn]]:
    return {"turns": list(found)}


def says(text: str) -> Turn:
    return {"text": f"{{tag}} {text}"}


def calls(*found: Mapping[str, JSON]) -> Turn:
    return {"calls": list(found)}


async def script(scene: Scene, **scopes: dict[str, list[Turn]]) -> None:
    """Agents that can be continued to the token: what is judged here is who spoke, and not what was rendered anew."""
    await scene.script({"about": "A tree of agents at work.", "sampling": "faithful", "scopes": scopes})


def opencode_task(child: str, kind: str = "general", **more: str) -> dict[str, JSON]:
    """The task opens with the child's first tag, and the description gives the parent its next one."""
    given = {"description": "{tag} Look", "prompt": f"{{tag:{child}}} Look.", "subagent_type": kind}
    return {"name": "task", "arguments": {**given, **more}}


def claude_agent(child: str, *, behind: bool = False) -> dict[str, JSON]:
    given: dict[str, JSON] = {"description": "{tag} Look", "prompt": f"{{tag:{child}}} Look."}
    return {"name": "Agent", "arguments": {**given, **({"run_in_background": True} if behind else {})}}


def agents(talk: Conversation) -> list[Conversation]:
    """An agent and all below it."""
    return [talk, *(below for child in talk.children for below in agents(child))]


def by_scope(talk: Conversation) -> dict[int, Conversation]:
    """The agents of a tree by the scope that their first call asked for."""
    return {_scope(agent): agent for agent in agents(talk)}


def _scope(agent: Conversation) -> int:
    asked = next(exchange for exchange in agent.exchanges if exchange.request.method == "POST")
    return find_tags(asked.request.body_text)[0].scope


def with_scopes(records: Iterable[Record], rows: Iterable[Row]) -> list[tuple[Record, int | None]]:
    """Each record with the scope of the generation that it tells of; None for one that nobody asked for."""
    scopes = {row["request_id"]: row["scope"] for row in rows}
    return [(record, scopes.get(record.get("request_id"))) for record in records]
