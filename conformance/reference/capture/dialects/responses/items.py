"""The conversation of a request in chat form: items, of which several make up one assistant turn."""

from conformance.reference.capture.dialects.responses.content import chat_content, joined_texts, spoken_text
from conformance.reference.capture.dialects.responses.errors import mistake
from conformance.reference.capture.dialects.responses.tools import upstream_name
from conformance.reference.capture.jsontext import JSON, JSONObject

ROLES = ("user", "system", "developer")
"""Roles of messages that nobody sampled; they reach the engine as they are."""


def chat_messages(instructions: JSON, given: JSON) -> list[JSONObject]:
    """The messages of a request; raises Refusal for anything that cannot be told in full."""
    conversation = _Conversation()
    if instructions is not None:
        if not isinstance(instructions, str):
            raise mistake("instructions", "instructions must be a text")
        if instructions:
            conversation.say({"role": "system", "content": instructions})
    if isinstance(given, str):
        conversation.say({"role": "user", "content": given})
    elif isinstance(given, list) and given:
        for index, item in enumerate(given):
            conversation.add(item, f"input[{index}]")
    else:
        raise mistake("input", "input must be a text or a list of items that is not empty")
    return conversation.ended()


class _Conversation:
    """Collects messages.

    Reasoning, message and calls that follow one another are one assistant turn, as they were when the engine answered.
    """

    def __init__(self) -> None:
        self._messages: list[JSONObject] = []
        self._thoughts: list[str] = []
        self._spoken: JSONObject = {}
        self._calls: list[JSONObject] = []

    def add(self, item: JSON, where: str) -> None:
        """Add one item of the input."""
        if not isinstance(item, dict):
            raise mistake(where, "an item must be an object")
        kind = item.get("type", "message" if "role" in item else None)
        if kind == "message":
            self._message(item, where)
        elif kind == "reasoning":
            self._reasoning(item, where)
        elif kind == "function_call":
            self._calls.append(_call(item, where))
        elif kind == "function_call_output":
            content = chat_content(item.get("output"), f"{where}.output")
            self.say({"role": "tool", "content": content, "tool_call_id": _call_id(item, where)})
        elif kind == "agent_message":
            # Between agents of Codex: what another agent says is a user's word to this one.
            self.say({"role": "user", "content": chat_content(item.get("content"), f"{where}.content")})
        else:
            raise mistake(where, f"an item of type {str(kind)[:80]!r} cannot be told to a chat engine")

    def say(self, message: JSONObject) -> None:
        """Add a message that is not the assistant's."""
        self._end_turn()
        self._messages.append(message)

    def ended(self) -> list[JSONObject]:
        """All messages."""
        self._end_turn()
        return self._messages

    def _message(self, item: JSONObject, where: str) -> None:
        role = item.get("role")
        if role == "assistant":
            self._next_turn()
            text, refusal = spoken_text(item.get("content"), f"{where}.content")
            said = {"content": text, "refusal": refusal}
            self._spoken = {key: value for key, value in said.items() if value is not None}
        elif role in ROLES:
            self.say({"role": role, "content": chat_content(item.get("content"), f"{where}.content")})
        else:
            known = ", ".join((*ROLES, "assistant"))
            raise mistake(f"{where}.role", f"role must be one of {known}; got {str(role)[:80]!r}")

    def _reasoning(self, item: JSONObject, where: str) -> None:
        self._next_turn()
        # What was thought, if the client still has it, else what the client was told of it.
        key = "content" if item.get("content") else "summary"
        text = joined_texts(item.get(key) or [], f"{where}.{key}")
        if text:
            self._thoughts.append(text)

    def _next_turn(self) -> None:
        """Reasoning opens a turn and text follows it: after text or calls either belongs to the next one."""
        if self._spoken or self._calls:
            self._end_turn()

    def _end_turn(self) -> None:
        """Reasoning alone is no turn: there would be nothing in it that the engine said."""
        if self._spoken or self._calls:
            turn: JSONObject = {"role": "assistant", **self._spoken}
            if self._thoughts:
                turn["reasoning"] = "\n\n".join(self._thoughts)
            if self._calls:
                turn["tool_calls"] = self._calls
            self._messages.append(turn)
        self._thoughts, self._spoken, self._calls = [], {}, []


def _call(item: JSONObject, where: str) -> JSONObject:
    name, arguments = item.get("name"), item.get("arguments")
    if not isinstance(name, str) or not name:
        raise mistake(f"{where}.name", "a function_call must have a name")
    if not isinstance(arguments, str):
        raise mistake(f"{where}.arguments", "the arguments of a function_call must be a text")
    function = {"name": upstream_name(item.get("namespace"), name), "arguments": arguments}
    return {"id": _call_id(item, where), "type": "function", "function": function}


def _call_id(item: JSONObject, where: str) -> str:
    call_id = item.get("call_id")
    if not isinstance(call_id, str) or not call_id:
        raise mistake(f"{where}.call_id", "call_id must be a text that is not empty")
    return call_id
