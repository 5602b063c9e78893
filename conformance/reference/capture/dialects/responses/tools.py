"""The tools of a request in chat form, and the names by which their calls come back."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from conformance.reference.capture.dialects.responses.errors import mistake
from conformance.reference.capture.jsontext import JSON, JSONObject

CHOICES = ("auto", "none", "required")
SEPARATOR = "__"


@dataclass(frozen=True)
class Offered:
    """What the engine is offered. ``told`` are the client's own declarations of it, without what was left out.

    ``namespaced`` gives namespace and name of each function that has another name upstream.
    """

    functions: list[JSONObject] = field(default_factory=list)
    told: list[JSONObject] = field(default_factory=list)
    namespaced: dict[str, tuple[str, str]] = field(default_factory=dict)


def offered(tools: JSON) -> Offered:
    """The function tools among ``tools``; raises Refusal for what is no list of tools, or two tools of one name."""
    if tools is None:
        return Offered()
    if not isinstance(tools, list) or not all(isinstance(tool, dict) for tool in tools):
        raise mistake("tools", "tools must be a list of objects")
    found = Offered()
    for index, tool in enumerate(tools):
        kept = list(_functions(tool, f"tools[{index}]"))
        for namespace, function in kept:
            _offer(found, namespace, function, f"tools[{index}]")
        if kept:
            told = {"tools": [function for _, function in kept]} if tool["type"] == "namespace" else {}
            found.told.append(tool | told)
    return found


def upstream_name(namespace: JSON, name: str) -> str:
    """The name that a function has upstream, where there are no namespaces."""
    if not isinstance(namespace, str) or not namespace:
        return name
    return namespace + name if namespace.endswith(SEPARATOR) else namespace + SEPARATOR + name


def tool_choice(choice: JSON, offer: Offered) -> JSON:
    """The choice in chat form; None for none made, or where there is nothing left to choose from."""
    if choice is None:
        return None
    if isinstance(choice, str) and choice in CHOICES:
        if choice == "required" and not offer.functions:
            raise mistake("tool_choice", "tool_choice requires a call, but none of the tools can be offered")
        return choice if offer.functions else None
    if isinstance(choice, dict) and choice.get("type") == "function" and isinstance(choice.get("name"), str):
        name = upstream_name(choice.get("namespace"), choice["name"])
        if any(function["function"]["name"] == name for function in offer.functions):
            return {"type": "function", "function": {"name": name}}
    allowed = f"{', '.join(CHOICES)}, or a function that is offered"
    raise mistake("tool_choice", f"tool_choice must be one of {allowed}; got {str(choice)[:80]}")


def _functions(tool: JSONObject, where: str) -> Iterator[tuple[str | None, JSONObject]]:
    kind = tool.get("type")
    if kind == "function":
        yield None, tool
    elif kind == "namespace":
        members = tool.get("tools")
        if not isinstance(tool.get("name"), str) or not isinstance(members, list):
            raise mistake(where, "a namespace must have a name and a list of tools")
        for member in members:
            if isinstance(member, dict) and member.get("type") == "function":
                yield tool["name"], member


def _offer(found: Offered, namespace: str | None, tool: JSONObject, where: str) -> None:
    if not isinstance(tool.get("name"), str) or not tool["name"]:
        raise mistake(f"{where}.name", "a function must have a name")
    name = upstream_name(namespace, tool["name"])
    taken = any(function["function"]["name"] == name for function in found.functions)
    if taken and (namespace or name in found.namespaced):
        raise mistake(f"{where}.name", f"two tools have the name {name[:80]!r}")
    # A function that is not strict is one without the key: some engines write every key into the prompt.
    kept = {key: tool[key] for key in ("description", "parameters") if tool.get(key) is not None}
    strict = {"strict": True} if tool.get("strict") is True else {}
    found.functions.append({"type": "function", "function": {"name": name, **kept, **strict}})
    if namespace:
        found.namespaced[name] = (namespace, tool["name"])
