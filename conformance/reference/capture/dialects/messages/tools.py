"""The tools of a Messages request, and which of them may be called, as chat has them."""

import logging

from conformance.reference.capture.dialects.messages.mistakes import as_list, as_object, as_text, mistake
from conformance.reference.capture.jsontext import JSON, JSONObject

log = logging.getLogger(__name__)

OWN_TOOL_TYPES = (None, "custom")
CHOICES = {"auto": "auto", "any": "required", "none": "none"}


def chat_tools(body: JSONObject) -> JSONObject:
    """The chat keys ``tools``, ``tool_choice`` and ``parallel_tool_calls``, as far as there is anything to say.

    A tool without a schema is one that Anthropic's servers run or know; the engine does neither, so it is left out.
    Raises Refusal.
    """
    given = as_list(body["tools"], "tools") if body.get("tools") is not None else []
    tools = []
    for number, tool in enumerate(given):
        where = f"tools.{number}"
        kind = as_object(tool, where).get("type")
        if kind in OWN_TOOL_TYPES:
            tools.append(_function(tool, where))
        else:
            log.info("tool %r is left out: the engine knows no tools of type %r", str(tool.get("name"))[:80], kind)
    chat: JSONObject = {"tools": tools} if tools else {}
    if body.get("tool_choice") is not None:
        chat |= _choice(as_object(body["tool_choice"], "tool_choice"), tools)
    return chat


def _function(tool: JSONObject, where: str) -> JSONObject:
    function: JSONObject = {"name": as_text(tool.get("name"), f"{where}.name")}
    if tool.get("description") is not None:
        function["description"] = as_text(tool["description"], f"{where}.description")
    function["parameters"] = as_object(tool.get("input_schema"), f"{where}.input_schema")
    if isinstance(tool.get("strict"), bool):
        function["strict"] = tool["strict"]
    return {"type": "function", "function": function}


def _choice(choice: JSONObject, tools: list[JSONObject]) -> JSONObject:
    kind = choice.get("type")
    if kind != "tool" and kind not in CHOICES:
        raise mistake("tool_choice.type", "must be 'auto', 'any', 'tool' or 'none'")
    chosen: JSON = CHOICES.get(kind)
    if kind == "tool":
        name = as_text(choice.get("name"), "tool_choice.name")
        if not any(tool["function"]["name"] == name for tool in tools):
            raise mistake("tool_choice.name", f"no tool that the engine can call is named {name[:200]!r}")
        chosen = {"type": "function", "function": {"name": name}}
    if not tools:
        if kind == "any":
            raise mistake("tool_choice", "there is no tool that the engine can call")
        return {}
    if choice.get("disable_parallel_tool_use") is True:
        return {"tool_choice": chosen, "parallel_tool_calls": False}
    return {"tool_choice": chosen}
