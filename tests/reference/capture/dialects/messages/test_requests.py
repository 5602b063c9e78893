"""What goes upstream for a Messages request."""

import json
from typing import Any

import pytest

from conformance.reference.capture import jsontext
from conformance.reference.capture.dialects.messages.request import chat_request
from conformance.reference.capture.errors import Refusal

pytestmark = pytest.mark.unit

JSON = Any
HI: JSON = [{"role": "user", "content": "hi"}]
WEATHER: JSON = {"name": "weather", "description": "Tells it.", "input_schema": {"zone": 1, "city": {"b": 1, "a": 2}}}


def chat(**body: JSON) -> JSON:
    return chat_request({"model": "m", "max_tokens": 9, "messages": HI, **body})


def messages(*turns: JSON, **body: JSON) -> JSON:
    return chat(messages=list(turns), **body)["messages"]


def user(*blocks: JSON) -> JSON:
    return {"role": "user", "content": list(blocks)}


def assistant(*blocks: JSON) -> JSON:
    return {"role": "assistant", "content": list(blocks)}


def text(said: str, **more: JSON) -> JSON:
    return {"type": "text", "text": said, **more}


def result(content: JSON = None, **more: JSON) -> JSON:
    block = {"tool_use_id": "c1", "type": "tool_result", **more}
    return block if content is None else block | {"content": content}


CACHED = {"cache_control": {"type": "ephemeral"}}


@pytest.mark.parametrize(
    ("system", "expected"),
    [
        ("Be good.", ["Be good."]),
        ([text("Be good."), text("Be brief.", **CACHED)], ["Be good.\n\nBe brief."]),
        ([text("Be good."), text(""), text("Be brief.")], ["Be good.\n\nBe brief."]),
        (" \n", [" \n"]),
        ("", []),
        ([], []),
        (None, []),
    ],
    ids=["string", "blocks", "with-an-empty-block", "blank", "empty", "no-blocks", "null"],
)
def test_the_system_prompt_becomes_one_message_in_front(system: JSON, expected: list[str]) -> None:
    told = [message["content"] for message in messages(*HI, system=system) if message["role"] == "system"]
    assert told == expected
    assert messages(*HI, system=system)[-1] == {"role": "user", "content": "hi"}


def test_a_system_message_inside_the_conversation_keeps_its_place_and_role() -> None:
    told = messages(*HI, {"role": "system", "content": "The date is new."}, user(text("go")), system="Be good.")
    assert [message["role"] for message in told] == ["system", "user", "system", "user"]
    assert told[2] == {"role": "system", "content": "The date is new."}


@pytest.mark.parametrize(
    ("flipped", "same"),
    [
        (user(text("hi")), user(text("hi", **CACHED))),
        (user(text("hi")), {"role": "user", "content": "hi"}),
        (user(result("ok")), user(result([text("ok")], **CACHED))),
        (user(result("ok", is_error=False)), user(result("ok"))),
    ],
    ids=["cache-mark", "string-or-list", "result-string-or-list", "no-error"],
)
def test_what_harnesses_flip_between_calls_does_not_change_the_prompt(flipped: JSON, same: JSON) -> None:
    assert messages(flipped) == messages(same)


def test_text_blocks_of_a_user_are_lines_of_one_string() -> None:
    told = messages(user(text(" a"), text(""), text("b \n")))
    assert told == [{"role": "user", "content": " a\nb \n"}]


def test_each_tool_result_is_a_message_and_text_around_it_a_users() -> None:
    more = {"type": "tool_result", "tool_use_id": "c 2/odd:id", "content": "two", "is_error": True}
    told = messages(user(result([text("on"), text("e")]), more, text("go on")))
    assert told == [
        {"role": "tool", "tool_call_id": "c1", "content": "on\ne"},
        {"role": "tool", "tool_call_id": "c 2/odd:id", "content": "two"},
        {"role": "user", "content": "go on"},
    ]


@pytest.mark.parametrize("content", [None, "", [], [text("")]], ids=["absent", "empty", "no-blocks", "empty-block"])
def test_an_empty_tool_result_is_still_a_message(content: JSON) -> None:
    assert messages(user(result(content))) == [{"role": "tool", "tool_call_id": "c1", "content": ""}]


def test_a_block_of_an_unknown_kind_in_a_result_is_shown_not_dropped() -> None:
    (told,) = messages(user(result([{"type": "tool_reference", "tool_name": "Läufer", **CACHED}])))
    assert told["content"] == '{"type": "tool_reference", "tool_name": "Läufer"}'


def test_images_become_parts_in_their_place_in_turns_and_in_results() -> None:
    picture = {"type": "image", "source": {"type": "base64", "data": "aGk=", "media_type": "image/png"}}
    linked = {"type": "image", "source": {"type": "url", "url": "https://example.org/x.png"}}
    shown, far = (
        {"type": "image_url", "image_url": {"url": url}}
        for url in ("data:image/png;base64,aGk=", "https://example.org/x.png")
    )
    told = messages(user(result([picture]), text("see"), linked))
    assert told == [
        {"role": "tool", "tool_call_id": "c1", "content": [shown]},
        {"role": "user", "content": [{"type": "text", "text": "see"}, far]},
    ]


def test_a_document_of_text_is_its_text() -> None:
    plain = {"type": "document", "title": "T", "source": {"type": "text", "media_type": "text/plain", "data": "abc"}}
    blocks = {"type": "document", "source": {"type": "content", "content": [text("d"), text("e")]}}
    assert messages(user(plain, blocks)) == [{"role": "user", "content": "abc\nd\ne"}]


def test_an_answer_comes_back_with_its_thoughts_and_calls_apart_from_its_text() -> None:
    calls = [{"type": "tool_use", "id": f"c{n}", "name": "weather", "input": {"n": n}} for n in (1, 2)]
    thinking = {"type": "thinking", "thinking": "  Hm.\n", "signature": "x"}
    hidden = {"type": "redacted_thinking", "data": "zzz"}
    (told,) = messages(assistant(thinking, hidden, text(" I look. "), *calls))
    assert told == {
        "role": "assistant",
        "content": " I look. ",
        "reasoning": "  Hm.\n",
        "tool_calls": [
            {"id": f"c{n}", "type": "function", "function": {"name": "weather", "arguments": f'{{"n": {n}}}'}}
            for n in (1, 2)
        ],
    }


@pytest.mark.parametrize("blocks", [[], [text("")]], ids=["none", "empty-text"])
def test_calls_without_text_have_null_for_content(blocks: list[JSON]) -> None:
    call = {"type": "tool_use", "id": "c1", "name": "weather", "input": {}}
    (told,) = messages(assistant(*blocks, call))
    assert told["content"] is None
    assert told["tool_calls"][0]["function"]["arguments"] == "{}"


def test_an_input_keeps_the_order_of_its_keys_and_every_value() -> None:
    given = '{"zeta":"é \\"q\\"","10":1,"2":1.0,"alpha":{"y":-0.0,"x":[true,null,12345678901234567890123]}}'
    call = {"type": "tool_use", "id": "c1", "name": "weather", "input": json.loads(given)}
    (told,) = messages(assistant(call))
    arguments = told["tool_calls"][0]["function"]["arguments"]
    assert arguments == (
        '{"zeta": "é \\"q\\"", "10": 1, "2": 1.0, "alpha": {"y": -0.0, "x": [true, null, 12345678901234567890123]}}'
    )


def test_a_lone_surrogate_survives_in_text_and_input() -> None:
    poisoned = json.loads('"\\ud83d"')
    call = {"type": "tool_use", "id": "c1", "name": "weather", "input": {"a": poisoned}}
    sent = json.loads(jsontext.write(chat(messages=[assistant(call), user(text(poisoned))])))
    assert json.loads(sent["messages"][0]["tool_calls"][0]["function"]["arguments"]) == {"a": poisoned}
    assert sent["messages"][1]["content"] == poisoned


def test_tools_keep_name_description_and_schema_to_the_letter() -> None:
    sent = chat(
        tools=[WEATHER | CACHED, {"name": "bare", "input_schema": {}}, WEATHER | {"type": "custom", "strict": True}]
    )
    assert jsontext.write(sent["tools"][0]) == (
        b'{"type":"function","function":{"name":"weather","description":"Tells it.",'
        b'"parameters":{"zone":1,"city":{"b":1,"a":2}}}}'
    )
    assert sent["tools"][1] == {"type": "function", "function": {"name": "bare", "parameters": {}}}
    assert sent["tools"][2]["function"]["strict"] is True


@pytest.mark.parametrize(
    ("choice", "expected"),
    [
        ({"type": "auto"}, {"tool_choice": "auto"}),
        ({"type": "any"}, {"tool_choice": "required"}),
        ({"type": "none"}, {"tool_choice": "none"}),
        ({"type": "tool", "name": "weather"}, {"tool_choice": {"type": "function", "function": {"name": "weather"}}}),
        ({"type": "auto", "disable_parallel_tool_use": True}, {"tool_choice": "auto", "parallel_tool_calls": False}),
        ({"type": "auto", "disable_parallel_tool_use": False}, {"tool_choice": "auto"}),
        (None, {}),
    ],
    ids=["auto", "any", "none", "named", "one-at-a-time", "several-at-a-time", "null"],
)
def test_the_tool_choice_is_told_in_the_words_of_chat(choice: JSON, expected: JSON) -> None:
    sent = chat(tools=[WEATHER], tool_choice=choice)
    assert {key: sent[key] for key in ("tool_choice", "parallel_tool_calls") if key in sent} == expected


def test_a_tool_of_anthropics_own_is_left_out_and_its_choice_with_it() -> None:
    search = {"type": "web_search_20250305", "name": "web_search", "max_uses": 8}
    assert set(chat(tools=[search], tool_choice={"type": "auto"})) == {"model", "messages", "max_completion_tokens"}
    assert [tool["function"]["name"] for tool in chat(tools=[search, WEATHER])["tools"]] == ["weather"]


def test_sampling_parameters_arrive_and_what_speaks_to_anthropic_stays_behind() -> None:
    sampling = {"temperature": 1, "top_p": 0.95, "top_k": 40, "min_p": 0.1, "seed": 3, "presence_penalty": 0.5}
    theirs = {
        "metadata": {"user_id": "u"},
        "thinking": {"type": "adaptive"},
        "context_management": {"edits": []},
        "service_tier": "auto",
        "n": 2,
        "logprobs": False,
        "kv_transfer_params": {"prompt_token_ids": [1]},
        "return_token_ids": False,
        "unheard_of": 1,
    }
    sent = chat(**sampling, **theirs, stop_sequences=["END"], output_config={"effort": "high"}, top_a=None)
    assert sent == {
        "model": "m",
        "messages": HI,
        "max_completion_tokens": 9,
        "stop": ["END"],
        **sampling,
        "reasoning_effort": "high",
    }
    assert type(sent["temperature"]) is int


def test_a_schema_for_the_answer_becomes_a_response_format() -> None:
    schema = {"type": "object", "properties": {"title": {"type": "string"}}}
    sent = chat(output_config={"format": {"type": "json_schema", "schema": schema}})
    assert sent["response_format"] == {"type": "json_schema", "json_schema": {"name": "answer", "schema": schema}}


def test_an_answer_that_the_client_begins_is_continued() -> None:
    sent = chat(messages=[*HI, assistant(text("It is"))])
    assert (sent["add_generation_prompt"], sent["continue_final_message"]) == (False, True)
    assert "continue_final_message" not in chat()


def test_a_stream_asks_for_its_usage() -> None:
    assert (chat(stream=True)["stream"], chat(stream=True)["stream_options"]) == (True, {"include_usage": True})
    assert chat(stream=False)["stream"] is False
    assert "stream" not in chat()


WRONG: dict[str, tuple[JSON, str]] = {
    "no-limit": ({"max_tokens": None}, "max_tokens"),
    "limit-is-true": ({"max_tokens": True}, "max_tokens"),
    "no-messages": ({"messages": []}, "messages"),
    "messages-an-object": ({"messages": {}}, "messages"),
    "message-a-string": ({"messages": ["hi"]}, "messages.0"),
    "unknown-role": ({"messages": [{"role": "tool", "content": "x"}]}, "messages.0.role"),
    "no-content": ({"messages": [{"role": "user"}]}, "messages.0.content"),
    "content-a-number": ({"messages": [{"role": "user", "content": 5}]}, "messages.0.content"),
    "block-a-string": ({"messages": [user("x")]}, "messages.0.content.0"),
    "block-without-a-type": ({"messages": [user({})]}, "messages.0.content.0.type"),
    "text-a-number": ({"messages": [user({"type": "text", "text": 5})]}, "messages.0.content.0.text"),
    "result-of-nothing": ({"messages": [user({"type": "tool_result"})]}, "messages.0.content.0.tool_use_id"),
    "result-a-number": ({"messages": [user(result(5))]}, "messages.0.content.0.content"),
    "image-of-a-file": (
        {"messages": [user({"type": "image", "source": {"type": "file", "file_id": "f"}})]},
        "messages.0.content.0.source.type",
    ),
    "pdf": (
        {"messages": [user(result([{"type": "document", "source": {"type": "base64", "data": "JVBERi0="}}]))]},
        "messages.0.content.0.content.0.source.type",
    ),
    "server-tool-in-an-answer": (
        {"messages": [assistant({"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}})]},
        "messages.0.content.0.type",
    ),
    "input-a-string": (
        {"messages": [assistant({"type": "tool_use", "id": "c", "name": "n", "input": "{}"})]},
        "messages.0.content.0.input",
    ),
    "system-a-number": ({"system": 5}, "system"),
    "system-with-an-image": ({"system": [{"type": "image"}]}, "system.0.type"),
    "tool-without-a-schema": ({"tools": [{"name": "n"}]}, "tools.0.input_schema"),
    "tools-an-object": ({"tools": {}}, "tools"),
    "choice-a-string": ({"tools": [WEATHER], "tool_choice": "auto"}, "tool_choice"),
    "choice-unknown": ({"tools": [WEATHER], "tool_choice": {"type": "some"}}, "tool_choice.type"),
    "choice-of-no-tool": ({"tools": [WEATHER], "tool_choice": {"type": "tool", "name": "x"}}, "tool_choice.name"),
    "any-of-no-tools": ({"tool_choice": {"type": "any"}}, "tool_choice"),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_mistake_of_the_client_is_a_400_that_names_its_place(name: str) -> None:
    body, where = WRONG[name]
    with pytest.raises(Refusal) as caught:
        chat(**body)
    assert caught.value.status == 400
    assert str(caught.value).startswith(f"{where}: ")


def test_an_input_that_is_nested_too_deeply_is_a_400() -> None:
    deep: JSON = {}
    for _ in range(100_000):
        deep = {"a": deep}
    with pytest.raises(Refusal, match="nested too deeply"):
        messages(assistant({"type": "tool_use", "id": "c", "name": "n", "input": deep}))
