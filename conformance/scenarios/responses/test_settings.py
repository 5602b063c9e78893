"""A Responses client's tools and settings mean the same to the engine; what only OpenAI knows breaks nothing."""

from typing import Any

from conformance.contract.difference import tree_difference
from conformance.gauge.check import Check
from conformance.gauge.covers import covers
from conformance.gauge.scene import Scene
from conformance.oracle import upstream
from conformance.oracle.chat_answers import function_of, json_object
from conformance.oracle.judgement import Judgement
from conformance.oracle.named_events import of_kind
from conformance.oracle.responses_answers import buffered
from conformance.oracle.translation import objects
from conformance.scenarios.responses.asking import Ask, Item, ask_all, body_of, respond, tool

JSON = Any

LOOK = {
    **tool("look"),
    "description": "Look at a file.\n  Größe zählt.",
    "parameters": {
        "type": "object",
        "required": ["path", "from"],
        "properties": {
            "zone": {"type": "string"},
            "path": {"type": "string"},
            "from": {"type": "integer", "minimum": 1},
        },
        "additionalProperties": False,
    },
}
WAIT = tool("wait", "seconds")
HOSTED: list[Item] = [
    {"type": "web_search", "external_web_access": True},
    {"type": "image_generation"},
    {"type": "local_shell"},
]
NAMED = {"type": "function", "name": "wait"}
CHOICES: dict[str, JSON] = {"auto": "auto", "required": "required", "none": "none", "named": NAMED}
SAMPLING = {"temperature": 0.25, "top_p": 0.5, "parallel_tool_calls": False}
ONLY_OPENAIS: dict[str, JSON] = {
    "store": False,
    "include": ["reasoning.encrypted_content"],
    "client_metadata": {"thread_id": "01a2286e-06d0", "x-codex-turn-metadata": "{}"},
    "prompt_cache_key": "01a2286e-06d0",
    "service_tier": "auto",
    "truncation": "disabled",
    "metadata": {"team": "blue"},
    "safety_identifier": "u-1",
}
"""The first four Codex sends on each call, the others the official client knows."""


@covers("RSP-013", "RSP-014", "RSP-016", "RSP-017", "RSP-018", "RSP-019")
async def test_tools_and_settings_mean_the_same_to_the_engine(scene: Scene, check: Check) -> None:
    both = {"tools": [LOOK, WAIT]}
    asks = {
        "settings": Ask(body={**both, **SAMPLING, "max_output_tokens": 300}),
        "hosted beside": Ask(body={"tools": [HOSTED[0], LOOK, *HOSTED[1:], WAIT], "tool_choice": "auto"}),
        "hosted alone": Ask(body={"tools": HOSTED, "tool_choice": "auto", "parallel_tool_calls": True}),
    }
    asks |= {f"choice {name}": Ask(body={**both, "tool_choice": choice}) for name, choice in CHOICES.items()}
    asks |= {f"key {key}": Ask(body={key: value}) for key, value in ONLY_OPENAIS.items()}
    asks["all keys"] = Ask(body=ONLY_OPENAIS)
    asked = await ask_all(scene, asks)
    settings = asked["settings"].got
    check.that("RSP-017", _is("max_output_tokens", 300, upstream.limit_of(settings)))
    for key, value in SAMPLING.items():
        check.that("RSP-018", _is(key, value, settings.get(key)))
    offered = {label: [_declared(one) for one in objects(one.got.get("tools"))] for label, one in asked.items()}
    difference = tree_difference(
        [_declared({"function": one}) for one in (LOOK, WAIT)], offered["settings"], key_order=True
    )
    check("RSP-013", difference is None, expected="both functions", seen=str(difference or "both"))
    names = [one["name"] for one in offered["hosted beside"]]
    check.equal("RSP-014", expected=["look", "wait"], seen=names, where="functions beside hosted tools")
    for name in CHOICES:
        got = asked[f"choice {name}"].got
        choice, tools = got.get("tool_choice"), len(objects(got.get("tools")))
        ok = bool(got) and _means(name, choice, tools)
        check("RSP-016", ok, expected=f"the same as {name}", seen={"tool_choice": choice, "tools": tools}, where=name)
    for label, one in asked.items():
        if label.startswith(("hosted", "key", "all keys")):
            requirement = "RSP-014" if label.startswith("hosted") else "RSP-019"
            seen = [one.reply.status, buffered(json_object(body_of(one.reply)) or {}).status]
            check.equal(requirement, expected=[200, "completed"], seen=seen, where=label)


def _means(choice: str, tool_choice: JSON, tools: int) -> bool:
    if choice == "named":
        return bool(tool_choice == {"type": "function", "function": {"name": "wait"}}) and tools == 2
    if choice == "none":
        return tool_choice == "none" or not tools
    return tools == 2 and tool_choice in ((None, "auto") if choice == "auto" else (choice,))


def _is(key: str, expected: JSON, seen: JSON) -> Judgement:
    return upstream.values_kept({key: expected}, {key: seen}, [(key,)], "the engine's request,")


def _declared(tool: Item) -> Item:
    function = function_of(tool)
    return {key: function.get(key) for key in ("name", "description", "parameters")}


AGENTS = {
    "type": "namespace",
    "name": "multi_agent_v1",
    "description": "Handle sub-agents.",
    "tools": [tool("spawn_agent", "message"), tool("wait_agent", "targets")],
}


@covers("RSP-015")
async def test_functions_of_a_namespace_are_offered_and_called_by_their_name(scene: Scene, check: Check) -> None:
    tools = [WAIT, AGENTS]
    asked = (await ask_all(scene, {"offered": Ask(body={"tools": tools})}))["offered"]
    functions = [function_of(one) for one in objects(asked.got.get("tools"))]
    spawning = [one for one in functions if "The tool spawn_agent." in str(one.get("description"))]
    check.equal("RSP-015", expected=[3, 1], seen=[len(functions), len(spawning)], where="functions upstream")
    name = spawning[0]["name"] if spawning else "spawn_agent"
    calls = [{"name": name, "arguments": {"message": "{tag} Look."}}, {"name": "wait", "arguments": {"seconds": "1"}}]
    scopes = {"main": {"turns": [{"calls": calls}]}}
    await scene.script({"about": "One call in a namespace, one outside.", "sampling": "drifting", "scopes": scopes})
    reply = await respond(scene, scene.task(), tools=tools)
    called = of_kind(buffered(json_object(body_of(reply)) or {}).items, "function_call")
    seen = [[one.get("namespace"), one.get("name")] for one in called]
    check.equal("RSP-015", expected=[["multi_agent_v1", "spawn_agent"], [None, "wait"]], seen=seen)
