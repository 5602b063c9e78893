"""What the engine is asked when a client speaks the Responses dialect."""

import json

import pytest

from tests.reference.capture.dialects.responses.speaking import JSON, respond
from tests.reference.capture.running import Proxy
from tests.reference.capture.scripted_engine import ScriptedEngine

pytestmark = pytest.mark.unit


def said(role: str, text: str) -> JSON:
    kind = "output_text" if role == "assistant" else "input_text"
    return {"type": "message", "role": role, "content": [{"type": kind, "text": text}]}


def call(call_id: str, **keys: JSON) -> JSON:
    return {
        "type": "function_call",
        "id": f"fc_{call_id}",
        "call_id": call_id,
        "name": "run",
        "arguments": "{}",
        **keys,
    }


def output(call_id: str, value: JSON = "done") -> JSON:
    return {"type": "function_call_output", "call_id": call_id, "output": value}


def thought(text: str, **keys: JSON) -> JSON:
    return {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": text}], **keys}


def chat_call(call_id: str, name: str = "run", arguments: str = "{}") -> JSON:
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


def tool(call_id: str, content: JSON = "done") -> JSON:
    return {"role": "tool", "content": content, "tool_call_id": call_id}


def in_order(value: JSON) -> str:
    return json.dumps(value, sort_keys=True)


USER = {"role": "user", "content": "hi"}
TWO_TEXTS = [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]
PICTURE = "data:image/png;base64,AAAA"
HISTORIES: dict[str, tuple[JSON, list[JSON]]] = {
    "a text": ("hi", [USER]),
    "items without a type": ([{"role": "user", "content": "hi"}], [USER]),
    "one text part": ([said("user", "hi")], [USER]),
    "several text parts": (
        [{"role": "developer", "content": [{"type": "input_text", "text": t} for t in "ab"]}],
        [{"role": "developer", "content": TWO_TEXTS}],
    ),
    "developer and system": (
        [said("developer", "d"), said("system", "s"), said("user", "hi")],
        [{"role": "developer", "content": "d"}, {"role": "system", "content": "s"}, USER],
    ),
    "an answer": ([said("assistant", "a"), said("user", "hi")], [{"role": "assistant", "content": "a"}, USER]),
    "an answer in parts": (
        [{"role": "assistant", "content": [{"type": "output_text", "text": t} for t in "ab"]}],
        [{"role": "assistant", "content": "ab"}],
    ),
    "an empty answer": ([said("assistant", "")], [{"role": "assistant", "content": ""}]),
    "a refusal": (
        [{"role": "assistant", "content": [{"type": "refusal", "refusal": "No."}]}],
        [{"role": "assistant", "refusal": "No."}],
    ),
    "parallel calls": (
        [call("1"), call("2"), output("1"), output("2")],
        [{"role": "assistant", "tool_calls": [chat_call("1"), chat_call("2")]}, tool("1"), tool("2")],
    ),
    "calls of two turns": (
        [call("1"), output("1"), call("2"), output("2")],
        [
            {"role": "assistant", "tool_calls": [chat_call("1")]},
            tool("1"),
            {"role": "assistant", "tool_calls": [chat_call("2")]},
            tool("2"),
        ],
    ),
    "reasoning, text and a call are one turn": (
        [thought("Hm."), said("assistant", "a"), call("1"), output("1")],
        [{"role": "assistant", "content": "a", "reasoning": "Hm.", "tool_calls": [chat_call("1")]}, tool("1")],
    ),
    "reasoning before a call": (
        [said("user", "hi"), thought("Hm."), call("1"), output("1")],
        [USER, {"role": "assistant", "reasoning": "Hm.", "tool_calls": [chat_call("1")]}, tool("1")],
    ),
    "reasoning alone adds nothing": ([said("user", "hi"), thought("Hm."), said("user", "hi")], [USER, USER]),
    "reasoning nobody can read": (
        [thought("", summary=[], encrypted_content="gAAAA"), said("assistant", "a")],
        [{"role": "assistant", "content": "a"}],
    ),
    "reasoning with its own text": (
        [thought("short", content=[{"type": "reasoning_text", "text": "long"}]), said("assistant", "a")],
        [{"role": "assistant", "content": "a", "reasoning": "long"}],
    ),
    "reasoning after text is the next turn's": (
        [said("assistant", "a"), thought("Hm."), said("assistant", "b")],
        [{"role": "assistant", "content": "a"}, {"role": "assistant", "content": "b", "reasoning": "Hm."}],
    ),
    "arguments to the letter": (
        [call("1", arguments='{"z": 1.0,\n"a": "\\u00fc", "a": 2}')],
        [{"role": "assistant", "tool_calls": [chat_call("1", arguments='{"z": 1.0,\n"a": "\\u00fc", "a": 2}')]}],
    ),
    "a call of a namespace": (
        [call("1", name="spawn_agent", namespace="multi_agent_v1"), call("2", name="go", namespace="mcp__x__")],
        [
            {
                "role": "assistant",
                "tool_calls": [chat_call("1", "multi_agent_v1__spawn_agent"), chat_call("2", "mcp__x__go")],
            }
        ],
    ),
    "an odd call id": (
        [call("functions.run:1"), output("functions.run:1")],
        [{"role": "assistant", "tool_calls": [chat_call("functions.run:1")]}, tool("functions.run:1")],
    ),
    "an output without its call": ([output("lost")], [tool("lost")]),
    "an output in parts": (
        [output("1", [{"type": "input_text", "text": t} for t in "ab"]), output("2", [])],
        [tool("1", TWO_TEXTS), tool("2", "")],
    ),
    "a picture in an output": (
        [output("1", [{"type": "input_text", "text": "a"}, {"type": "input_image", "image_url": PICTURE}])],
        [tool("1", [{"type": "text", "text": "a"}, {"type": "image_url", "image_url": {"url": PICTURE}}])],
    ),
    "a picture of the user's": (
        [{"role": "user", "content": [{"type": "input_image", "image_url": PICTURE, "detail": "low"}]}],
        [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": PICTURE, "detail": "low"}}]}],
    ),
    "a lone surrogate": ([said("user", "\ud83d")], [{"role": "user", "content": "\ud83d"}]),
    "the word of another agent": (
        [
            {
                "type": "agent_message",
                "author": "lead",
                "content": [{"type": "encrypted_content", "encrypted_content": "do"}],
            }
        ],
        [{"role": "user", "content": "do"}],
    ),
}


@pytest.mark.parametrize("name", HISTORIES)
def test_a_history_reaches_engine_and_record_in_chat_form(
    name: str, proxy: Proxy, engine: ScriptedEngine, session: str
) -> None:
    given, messages = HISTORIES[name]
    assert respond(proxy, session, input=given).status == 200
    assert engine.chats()[0].body["messages"] == messages
    recorded = proxy.records(session)[0]["messages"]
    assert recorded == [*messages, {"role": "assistant", "content": "Yes."}]


def test_instructions_come_first_as_the_system(proxy: Proxy, engine: ScriptedEngine, session: str) -> None:
    respond(proxy, session, instructions="Be brief.", input=[said("developer", "d")])
    respond(proxy, session, instructions="")
    asked = [chat.body["messages"] for chat in engine.chats()]
    assert asked == [
        [{"role": "system", "content": "Be brief."}, {"role": "developer", "content": "d"}],
        [USER],
    ]


FUNCTION: JSON = {
    "type": "function",
    "name": "run",
    "description": "d",
    "strict": False,
    "parameters": {"z": 1.0, "a": 10**30},
}
CHAT_FUNCTION: JSON = {
    "type": "function",
    "function": {"name": "run", "description": "d", "parameters": {"z": 1.0, "a": 10**30}},
}
SCHEMA = {"type": "object", "properties": {"z": {}, "a": {}}}
FORMAT = {"type": "json_schema", "name": "n", "schema": SCHEMA, "strict": True}
IGNORED: dict[str, JSON] = {
    **{"store": True, "include": ["reasoning.encrypted_content"], "metadata": {"a": "b"}, "truncation": "auto"},
    **{"prompt_cache_key": "k", "client_metadata": {"s": "t"}, "user": "u", "service_tier": "auto"},
}
OWNED: dict[str, JSON] = {
    **{"n": 1, "logprobs": False, "top_logprobs": 20, "echo": False, "required_prefix_token_ids": [1]},
    **{"messages": [{"role": "user", "content": "other"}], "max_tokens": 1, "stream_options": {}},
}
SETTINGS: dict[str, tuple[JSON, JSON]] = {
    "length": ({"max_output_tokens": 64}, {"max_completion_tokens": 64}),
    "sampling": ({"temperature": 0.5, "top_p": 1}, {"temperature": 0.5, "top_p": 1}),
    "effort": ({"reasoning": {"effort": "low", "summary": "auto"}}, {"reasoning_effort": "low"}),
    "no effort": ({"reasoning": {"summary": "auto"}}, {}),
    "plain text": ({"text": {"format": {"type": "text"}, "verbosity": "low"}}, {}),
    "json": ({"text": {"format": {"type": "json_object"}}}, {"response_format": {"type": "json_object"}}),
    "schema": (
        {"text": {"format": FORMAT}},
        {"response_format": {"type": "json_schema", "json_schema": {"name": "n", "schema": SCHEMA, "strict": True}}},
    ),
    "a function": (
        {"tools": [FUNCTION], "tool_choice": "required", "parallel_tool_calls": False},
        {"tools": [CHAT_FUNCTION], "tool_choice": "required", "parallel_tool_calls": False},
    ),
    "a named function": (
        {"tools": [FUNCTION], "tool_choice": {"type": "function", "name": "run"}},
        {"tools": [CHAT_FUNCTION], "tool_choice": {"type": "function", "function": {"name": "run"}}},
    ),
    "a strict function": (
        {"tools": [{"type": "function", "name": "run", "strict": True, "parameters": {}}]},
        {"tools": [{"type": "function", "function": {"name": "run", "parameters": {}, "strict": True}}]},
    ),
    "a bare function": (
        {"tools": [{"type": "function", "name": "run"}]},
        {"tools": [{"type": "function", "function": {"name": "run"}}]},
    ),
    "tools that the engine cannot have": (
        {"tools": [{"type": "web_search"}, {"type": "custom", "name": "c"}, FUNCTION], "tool_choice": "auto"},
        {"tools": [CHAT_FUNCTION], "tool_choice": "auto"},
    ),
    "nothing but such tools": (
        {"tools": [{"type": "web_search"}], "tool_choice": "auto", "parallel_tool_calls": True},
        {},
    ),
    "a namespace": (
        {
            "tools": [{"type": "namespace", "name": "ns", "tools": [FUNCTION, {"type": "custom", "name": "c"}]}],
            "tool_choice": {"type": "function", "name": "run", "namespace": "ns"},
        },
        {
            "tools": [CHAT_FUNCTION | {"function": CHAT_FUNCTION["function"] | {"name": "ns__run"}}],
            "tool_choice": {"type": "function", "function": {"name": "ns__run"}},
        },
    ),
    "keys of the engine": (
        {"top_k": 20, "min_p": 0.1, "seed": 10**30, "chat_template_kwargs": {"b": 1, "a": None}, "stop": ["x"]},
        {"top_k": 20, "min_p": 0.1, "seed": 10**30, "chat_template_kwargs": {"b": 1, "a": None}, "stop": ["x"]},
    ),
    "keys that change no token": (IGNORED, {}),
    "nulls": (dict.fromkeys(("tools", "tool_choice", "reasoning", "text", "max_output_tokens", "instructions")), {}),
    "keys that the proxy owns": (OWNED, {}),
}
OWN = {"model": "served", "messages": [USER], "logprobs": True, "return_token_ids": True, "top_logprobs": 0}


@pytest.mark.parametrize("name", SETTINGS)
def test_a_setting_reaches_the_engine_under_its_chat_name(
    name: str, proxy: Proxy, engine: ScriptedEngine, session: str
) -> None:
    given, expected = SETTINGS[name]
    assert respond(proxy, session, **given).status == 200
    # As text, since 1 equals 1.0 and true.
    assert in_order(engine.chats()[0].body) == in_order(OWN | expected)


def test_the_keys_of_a_schema_keep_their_order(proxy: Proxy, engine: ScriptedEngine, session: str) -> None:
    respond(proxy, session, tools=[FUNCTION], text={"format": FORMAT})
    raw = engine.chats()[0].raw.decode()
    assert '"parameters":{"z":1.0,"a":1000000000000000000000000000000}' in raw
    assert '"properties":{"z":{},"a":{}}' in raw


MISTAKES: dict[str, tuple[JSON, str]] = {
    "no input": ({"input": None}, "input"),
    "empty input": ({"input": []}, "input"),
    "an item that is no object": ({"input": ["hi"]}, "input[0]"),
    "an unknown item": ({"input": [{"type": "web_search_call", "id": "x"}]}, "input[0]"),
    "a reference": ({"input": [{"type": "item_reference", "id": "x"}]}, "input[0]"),
    "an unknown role": ({"input": [{"role": "critic", "content": "x"}]}, "input[0].role"),
    "a call without an id": ({"input": [call("")]}, "input[0].call_id"),
    "arguments that are no text": ({"input": [call("1", arguments={})]}, "input[0].arguments"),
    "a stored picture": (
        {"input": [{"role": "user", "content": [{"type": "input_image", "file_id": "f"}]}]},
        "input[0].content[0]",
    ),
    "a file": ({"input": [output("1", [{"type": "input_file", "file_id": "f"}])]}, "input[0].output[0]"),
    "an assistant's picture": (
        {"input": [{"role": "assistant", "content": [{"type": "input_image", "image_url": PICTURE}]}]},
        "input[0].content[0]",
    ),
    "no content": ({"input": [{"role": "user"}]}, "input[0].content"),
    "instructions in parts": ({"instructions": [{"type": "input_text", "text": "x"}]}, "instructions"),
    "stored state": ({"previous_response_id": "resp_1"}, "previous_response_id"),
    "a stored conversation": ({"conversation": "conv_1"}, "conversation"),
    "background": ({"background": True}, "background"),
    "tools that are no list": ({"tools": {}}, "tools"),
    "a tool without a name": ({"tools": [{"type": "function"}]}, "tools[0].name"),
    "two names that meet": (
        {"tools": [{"type": "function", "name": "n__run"}, {"type": "namespace", "name": "n", "tools": [FUNCTION]}]},
        "tools[1].name",
    ),
    "two namespaces that meet": (
        {
            "tools": [
                {"type": "namespace", "name": "n", "tools": [FUNCTION]},
                {"type": "function", "name": "n__run"},
            ]
        },
        "tools[1].name",
    ),
    "a choice of nothing": ({"tools": [{"type": "web_search"}], "tool_choice": "required"}, "tool_choice"),
    "a choice that is not offered": ({"tools": [FUNCTION], "tool_choice": {"type": "web_search"}}, "tool_choice"),
    "an unknown format": ({"text": {"format": {"type": "grammar"}}}, "text.format"),
    "reasoning that is no object": ({"reasoning": "high"}, "reasoning"),
    "several choices": ({"n": 2}, "n"),
    "no boolean": ({"stream": "yes"}, "stream"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_what_cannot_be_told_in_full_is_refused_before_the_engine_is_asked(
    name: str, proxy: Proxy, engine: ScriptedEngine, session: str
) -> None:
    given, param = MISTAKES[name]
    reply = respond(proxy, session, **given)
    assert (reply.status, reply.json["error"]["param"]) == (400, param)
    assert engine.chats() == []


def test_the_harness_is_known_by_its_own_header_and_its_key_stays_behind(
    proxy: Proxy, engine: ScriptedEngine, session: str
) -> None:
    headers = {"session-id": session, "authorization": "Bearer own-secret", "x-codex-window-id": "w"}
    assert respond(proxy, headers=headers, proxy_x_session_id="").status == 200
    assert len(proxy.records(session)) == 1
    assert "own-secret" not in str(engine.chats()[0].headers)
    assert "proxy_x_session_id" not in engine.chats()[0].body


def test_pins_win_over_the_client(proxy: Proxy, engine: ScriptedEngine, session: str) -> None:
    respond(proxy, session, model="pinned", temperature=0.2, top_k=5)
    asked = engine.chats()[0].body
    assert (asked["temperature"], asked["top_k"], asked["seed"], asked["top_logprobs"]) == (1.0, -1, 7, 2)
    assert proxy.records(session)[0]["x_trackgauge"]["sampling"]["temperature"] == 1.0


def test_a_path_prefix_and_a_query_are_no_hindrance(proxy: Proxy, session: str) -> None:
    body = json.dumps({"model": "policy", "input": "hi", "proxy_x_session_id": session}).encode()
    assert proxy.call("POST", "/codex/v1/responses?api-version=1", body).status == 200
    assert len(proxy.records(session)) == 1
