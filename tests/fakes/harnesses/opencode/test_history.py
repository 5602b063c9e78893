"""What opencode's fake makes of an answer before it sends it again, as the facts say."""

import json
from typing import Any

import pytest

from fakes.harnesses.opencode import OpenCode
from tests.fakes.harnesses.conftest import Serve
from tests.fakes.harnesses.opencode.conftest import DONE, Script, streamed

pytestmark = pytest.mark.anyio


async def sent_again(serve: Serve, calls: list[tuple[str, str, str]], **options: Any) -> list[dict[str, Any]]:
    """The messages that follow the prompt after an answer with these calls."""
    async with serve(answering=Script([[streamed("Hm.", calls), DONE]])) as server:
        await OpenCode(server.url, title=False, **options).run("Fix it.")
    messages: list[dict[str, Any]] = json.loads(server.seen[-1].body)["messages"]
    return messages[2:]


@pytest.mark.parametrize(
    ("raw", "again"),
    [
        pytest.param('{"command" : "a" }', '{"command":"a"}', id="white space"),
        pytest.param('{"command":"\\u00e9\\/\\u2028"}', '{"command":"é/\u2028"}', id="escapes"),
        pytest.param('{"command":"\\ud83d"}', '{"command":"\\ud83d"}', id="lone surrogate"),
        pytest.param(
            '{"command":[10.0,1.50,1e3,-0,12345678901234567890,1e-7,1e400]}',
            '{"command":[10,1.5,1000,0,12345678901234567000,1e-7,null]}',
            id="numbers",
        ),
        pytest.param('{"command":"a","10":1,"2":1}', '{"2":1,"10":1,"command":"a"}', id="keys like integers"),
        pytest.param('{"command":"a","command":"b"}', '{"command":"b"}', id="a key twice"),
        pytest.param('{"command":"a","extra":[]}', '{"command":"a","extra":[]}', id="a key too many"),
        pytest.param("", "{}", id="nothing"),
        pytest.param("[1, 2]", "[1,2]", id="no object"),
    ],
)
async def test_arguments_are_read_and_written_again_as_javascript_does(serve: Serve, raw: str, again: str) -> None:
    turn, result = await sent_again(serve, [("c1", "bash", raw)])
    assert turn["tool_calls"][0]["function"] == {"name": "bash", "arguments": again}
    assert result["tool_call_id"] == "c1"


@pytest.mark.parametrize(
    ("name", "raw", "why"),
    [
        ("bash", '{"command": "ls', "JSON parsing failed"),
        ("bash", '{"command": NaN}', "JSON parsing failed"),
        ("bash", '{"command":' + "[" * 700 + "]" * 700 + "}", "JSON parsing failed"),
        ("nosuchtool", "{}", "unavailable tool 'nosuchtool'"),
        ("task ", "{}", "unavailable tool 'task '"),
    ],
    ids=["cut", "NaN", "too deep", "unknown", "almost known"],
)
async def test_a_call_that_cannot_be_run_becomes_one_of_invalid(serve: Serve, name: str, raw: str, why: str) -> None:
    turn, result = await sent_again(serve, [("c1", name, raw)])
    (call,) = turn["tool_calls"]
    assert (call["id"], call["function"]["name"]) == ("c1", "invalid")
    arguments = json.loads(call["function"]["arguments"])
    assert list(arguments) == ["tool", "error"]
    assert arguments["tool"] == name
    assert why in arguments["error"]
    assert result["content"].endswith(arguments["error"])


async def test_a_name_in_the_wrong_case_is_repaired_and_the_call_runs(serve: Serve) -> None:
    turn, result = await sent_again(serve, [("c1", "Bash", '{"command": "echo hi"}')])
    assert turn["tool_calls"][0]["function"]["name"] == "bash"
    assert result["content"] == "hi\n"


async def test_arguments_that_miss_something_stay_and_are_answered_with_an_error(serve: Serve) -> None:
    turn, result = await sent_again(serve, [("c1", "write", '{"content": "x"}')])
    assert turn["tool_calls"][0]["function"] == {"name": "write", "arguments": '{"content":"x"}'}
    assert "filePath" in result["content"]


async def test_results_stand_in_the_order_of_the_calls_and_ids_may_repeat(serve: Serve) -> None:
    calls = [("same", "bash", '{"command": "echo one"}'), ("same", "bash", '{"command": "true # two"}')]
    turn, *results = await sent_again(serve, calls)
    assert [call["id"] for call in turn["tool_calls"]] == ["same", "same"]
    assert [(result["tool_call_id"], result["content"]) for result in results] == [
        ("same", "one\n"),
        ("same", "(no output)"),
    ]


async def test_a_result_with_a_lone_surrogate_is_sent_escaped(serve: Serve) -> None:
    _, result = await sent_again(serve, [("c1", "bash", '{"command": "a"}')], tool_results={"bash": "a\ud83db"})
    assert result["content"] == "a\ud83db"


@pytest.mark.parametrize(
    ("interleaved", "keys"),
    [
        (None, ["role", "content", "reasoning_content", "tool_calls"]),
        ("reasoning_content", ["role", "content", "tool_calls", "reasoning_content"]),
        ("reasoning", ["role", "content", "tool_calls", "reasoning"]),
    ],
)
@pytest.mark.parametrize("field", ["reasoning", "reasoning_content"])
async def test_reasoning_of_either_name_goes_back_where_the_configuration_says(
    serve: Serve, interleaved: Any, keys: list[str], field: str
) -> None:
    thinking = streamed("  said\n", [("c1", "bash", '{"command": "a"}')], **{field: " thought \n"})  # type: ignore[arg-type]
    async with serve(answering=Script([[thinking, DONE]])) as server:
        await OpenCode(server.url, title=False, interleaved=interleaved).run("Fix it.")
    turn = server.seen[-1].json()["messages"][2]
    assert list(turn) == keys
    assert turn["content"] == "  said\n"
    assert turn[interleaved or "reasoning_content"] == " thought \n"
