"""Tools and settings of a Messages client mean the same to the engine; what it cannot know stops nothing."""

from typing import Any

from conformance.contract.difference import tree_difference
from conformance.gauge.check import Check
from conformance.gauge.covers import covers
from conformance.gauge.scene import Scene
from conformance.oracle import upstream
from conformance.oracle.chat_answers import function_of
from conformance.oracle.translation import objects
from conformance.scenarios.messages.asking import (
    LIMIT,
    PATH,
    Ask,
    Block,
    answer_of,
    answered,
    ask,
    ask_all,
    tool,
    user,
)

JSON = Any

LOOK: Block = {
    "name": "look",
    "description": "Look at a file.\n  Größe zählt.",
    "input_schema": {
        "type": "object",
        "required": ["path", "from"],
        "properties": {
            "zone": {"type": "string", "default": None},
            "path": {"type": "string"},
            "from": {"type": "number", "minimum": 1.0, "maximum": 9007199254740993},
        },
        "additionalProperties": False,
        "$schema": "http://json-schema.org/draft-07/schema#",
    },
}
WAIT = {**tool("wait", "seconds"), "type": "custom"}
SERVER_RUN: list[Block] = [
    {"type": "web_search_20250305", "name": "web_search", "max_uses": 8},
    {"type": "code_execution_20250825", "name": "code_execution"},
]
CHOICES: dict[str, Block] = {
    "auto": {"type": "auto"},
    "any": {"type": "any"},
    "none": {"type": "none"},
    "named": {"type": "tool", "name": "wait"},
}
SAMPLING = {"temperature": 0.25, "top_p": 0.5, "top_k": 7}
GREEDY = {"temperature": 0, "top_p": 1.0, "top_k": 1}
ONLY_ANTHROPICS: dict[str, JSON] = {
    "metadata": {"user_id": '{"device_id":"0a","session_id":"7c"}'},
    "thinking": {"type": "adaptive"},
    "context_management": {"edits": [{"type": "clear_thinking_20251015", "keep": "all"}]},
    "output_config": {"effort": "high"},
    "diagnostics": {"previous_message_id": None},
    "service_tier": "auto",
    "container": None,
    "mcp_servers": [],
    "inference_geo": "us",
    "speed": "standard",
}
"""The first five Claude Code sends, the others the official client knows."""
STOP = "and so on"


@covers("ANT-014", "ANT-015", "ANT-016", "ANT-017", "ANT-018", "ANT-019", "ANT-020")
async def test_tools_and_settings_mean_the_same_to_the_engine(scene: Scene, check: Check) -> None:
    both = {"tools": [LOOK, WAIT]}
    stops = [STOP, "\n\nHuman:"]
    asks = {
        "settings": Ask(body={**both, **SAMPLING, "max_tokens": 300, "stop_sequences": stops}),
        "greedy": Ask(body={**GREEDY, "max_tokens": LIMIT}),
        "server's beside": Ask(body={"tools": [SERVER_RUN[0], LOOK, SERVER_RUN[1], WAIT]}),
        "server's alone": Ask(body={"tools": SERVER_RUN, "tool_choice": CHOICES["auto"]}),
    }
    asks |= {f"choice {name}": Ask(body={**both, "tool_choice": choice}) for name, choice in CHOICES.items()}
    asks |= {f"key {key}": Ask(body={key: value}) for key, value in ONLY_ANTHROPICS.items()}
    asks["all keys"] = Ask(body=ONLY_ANTHROPICS)
    asked = await ask_all(scene, asks)
    for label, limit, sampling in (("settings", 300, SAMPLING), ("greedy", LIMIT, GREEDY)):
        got = asked[label].got
        check.equal("ANT-017", expected=limit, seen=upstream.limit_of(got), where=label)
        paths = [(key,) for key in sampling]
        check.that("ANT-019", upstream.values_kept(sampling, got, paths, f"{label},"))
    check.equal("ANT-018", expected=stops, seen=asked["settings"].got.get("stop"))
    offered = [_declared(function_of(one)) for one in objects(asked["settings"].got.get("tools"))]
    difference = tree_difference([_declared(one) for one in (LOOK, WAIT)], offered, key_order=True)
    check("ANT-014", difference is None, expected="both tools", seen=str(difference or "both"))
    names = [function_of(one).get("name") for one in objects(asked["server's beside"].got.get("tools"))]
    check.equal("ANT-015", expected=["look", "wait"], seen=names, where="beside others")
    alone = asked["server's alone"]
    seen = [answered(alone.reply), alone.got.get("tools") or []]
    check.equal("ANT-015", expected=[True, []], seen=seen, where="alone")
    for name in CHOICES:
        got = asked[f"choice {name}"].got
        choice, tools = got.get("tool_choice"), len(objects(got.get("tools")))
        ok = bool(got) and _means(name, choice, tools)
        check("ANT-016", ok, expected=f"the same as {name}", seen=[choice, f"{tools} tools"], where=name)
    for label, one in asked.items():
        if label.startswith(("key", "all keys")):
            told = [one.reply.status, answer_of(one.reply).stop_reason]
            check("ANT-020", answered(one.reply), expected="an answer", seen=told, where=label)
    beta = await ask(scene, [user(scene.task())], path=f"{PATH}?beta=true", **ONLY_ANTHROPICS)
    check("ANT-020", answered(beta), expected="an answer", seen=beta.status, where="?beta=true")


def _means(choice: str, tool_choice: JSON, tools: int) -> bool:
    if choice == "named":
        return bool(tool_choice == {"type": "function", "function": {"name": "wait"}}) and tools == 2
    if choice == "none":
        return tool_choice == "none" or not tools
    meant = {"auto": (None, "auto"), "any": ("required",)}
    return tools == 2 and tool_choice in meant[choice]


def _declared(given: Block) -> Block:
    schema = given.get("input_schema", given.get("parameters"))
    return {"name": given.get("name"), "description": given.get("description"), "schema": schema}


@covers("ANT-018", "ANT-035")
async def test_a_stop_sequence_stops_the_engine_and_is_named(scene: Scene, check: Check) -> None:
    turns = [{"text": f"{{tag}} I look here, there {STOP} and again {STOP} for ever."}]
    await scene.script({"about": "Goes on.", "sampling": "drifting", "scopes": {"main": {"turns": turns}}})
    for stream in (False, True):
        reply = await ask(scene, scene.task(), stop_sequences=["never said", STOP], stream=stream)
        row = (await scene.ledger())[-1]
        where = "streamed" if stream else "buffered"
        check.equal("ANT-018", expected=["stop", STOP], seen=[row["finish_reason"], row["stop_reason"]], where=where)
        answer = answer_of(reply)
        check.equal(
            "ANT-035", expected=["stop_sequence", STOP], seen=[answer.stop_reason, answer.stop_sequence], where=where
        )
