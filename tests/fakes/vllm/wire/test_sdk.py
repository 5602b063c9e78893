"""The official OpenAI client against the fake."""

from typing import Any

import openai
import pytest
from openai import OpenAI

from tests.fakes.vllm.wire.conftest import Play, Script

TOOLS: Any = [{"type": "function", "function": {"name": "execute_bash", "parameters": {"type": "object"}}}]
CALL = {"name": "execute_bash", "arguments": {"command": "ls  # {tag}"}}
EXTRA = {"return_token_ids": True}


def _client(script: Script, **options: Any) -> OpenAI:
    url = f"{script.served.url}/t/{script.tenant}/v1"
    return OpenAI(base_url=url, api_key=options.pop("api_key", "none"), max_retries=options.pop("max_retries", 0))


@pytest.fixture
def script(play: Play) -> Script:
    return play({"calls": [CALL]}, {"text": "{tag} All done."})


def test_a_buffered_conversation_with_a_tool_call(script: Script) -> None:
    client = _client(script)
    messages: Any = script.request()["messages"]
    first = client.chat.completions.create(
        model="tiny", messages=messages, tools=TOOLS, logprobs=True, extra_body=EXTRA
    )
    message = first.choices[0].message
    assert message.tool_calls
    call = message.tool_calls[0]
    assert call.type == "function"
    assert call.function.name == "execute_bash"
    assert first.choices[0].finish_reason == "tool_calls"
    assert first.choices[0].logprobs
    assert first.choices[0].logprobs.content
    assert first.model_extra
    assert first.choices[0].model_extra
    ids = first.choices[0].model_extra["token_ids"]
    assert len(ids) == len(first.choices[0].logprobs.content)
    history = [
        *messages,
        message.model_dump(exclude_none=True),
        {"role": "tool", "tool_call_id": call.id, "content": "ok"},
    ]
    second = client.chat.completions.create(model="tiny", messages=history, tools=TOOLS, extra_body=EXTRA)
    assert (second.choices[0].message.content or "").endswith("All done.")
    assert second.model_extra
    prompt = first.model_extra["prompt_token_ids"] + ids
    assert second.model_extra["prompt_token_ids"][: len(prompt)] == prompt


def test_a_streamed_tool_call_accumulates(script: Script) -> None:
    with _client(script).chat.completions.stream(
        model="tiny", messages=script.request()["messages"], tools=TOOLS, extra_body=EXTRA
    ) as stream:
        final = stream.get_final_completion()
    assert final.choices[0].message.tool_calls
    assert "ls  # ⟦" in final.choices[0].message.tool_calls[0].function.arguments
    assert final.choices[0].finish_reason == "tool_calls"


def test_usage_comes_in_the_last_chunk_of_a_stream(script: Script) -> None:
    chunks = list(
        _client(script).chat.completions.create(
            model="tiny",
            messages=script.request()["messages"],
            stream=True,
            stream_options={"include_usage": True},
            extra_body=EXTRA,
        )
    )
    usage = chunks[-1].usage
    assert usage
    ids = [token for chunk in chunks for c in chunk.choices for token in (c.model_extra or {}).get("token_ids") or ()]
    assert usage.completion_tokens == len(ids)


def test_a_completion_of_ids_is_read_as_the_sdk_has_it(script: Script) -> None:
    prompt = script.ask().json()["prompt_token_ids"]
    answer = _client(script).completions.create(model="tiny", prompt=prompt, max_tokens=4096, logprobs=0)
    assert answer.choices[0].logprobs
    assert "execute_bash" in answer.choices[0].text


def test_errors_have_the_classes_of_the_sdk(play: Play) -> None:
    script = play({"text": "{tag} x", "fault": {"name": "http_error", "status": 503, "on_attempts": "all"}})
    client = _client(script)
    messages: Any = script.request()["messages"]
    with pytest.raises(openai.NotFoundError, match=r"The model `nope` does not exist\. Valid aliases: tiny\."):
        client.chat.completions.create(model="nope", messages=messages)
    with pytest.raises(openai.BadRequestError, match="max_tokens must be at least 1, got 0"):
        client.chat.completions.create(model="tiny", messages=messages, max_tokens=0)
    with pytest.raises(openai.InternalServerError, match="currently busy"):
        client.chat.completions.create(model="tiny", messages=messages)


def test_the_sdk_retries_and_every_attempt_has_its_row(play: Play) -> None:
    headers = {"Retry-After": "0"}
    script = play({"text": "{tag} x", "fault": {"name": "http_error", "headers": headers, "on_attempts": [0]}})
    _client(script, max_retries=1).chat.completions.create(model="tiny", messages=script.request()["messages"])
    rows = script.served.rows(f"run={script.run}")
    assert [(row["attempt"], row["state"]) for row in rows] == [(0, "failed"), (1, "finished")]


def test_a_wrong_key_is_refused_with_a_string(play: Play) -> None:
    script = play({"text": "{tag} x"}, tenant={"api_key": "secret"})
    with pytest.raises(openai.AuthenticationError):
        _client(script, api_key="wrong").models.list()
    assert _client(script, api_key="secret").models.list().data[0].id == "tiny"
    reply = script.served.call("GET", f"/t/{script.tenant}/v1/models")
    assert (reply.status, reply.text) == (401, '{"error":"Unauthorized"}')
    assert script.served.call("POST", f"/t/{script.tenant}/tokenize", {"prompt": "x"}).status == 200


def test_an_error_in_mid_stream_raises(play: Play) -> None:
    script = play({"text": "{tag} one two", "fault": {"name": "error_event"}})
    stream = _client(script).chat.completions.create(model="tiny", messages=script.request()["messages"], stream=True)
    with pytest.raises(openai.APIError, match="EngineCore encountered an issue"):
        list(stream)
