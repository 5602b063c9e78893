"""The habits of Claude Code that no recording at hand shows, as the facts say."""

import json
from typing import Any

import pytest

from fakes.harnesses import claude_code_texts as texts
from fakes.harnesses.claude_code import DEFAULT_MODEL, ClaudeCode, Environment, Leave
from tests.fakes.harnesses.claude_code.messages import Script, bash, refuses, says, text, think
from tests.fakes.harnesses.claude_code.plays import agent
from tests.fakes.harnesses.conftest import ScriptedServer, Seen, Serve

pytestmark = pytest.mark.anyio

DONE = says(text("Done."))
NO_SYSTEM = (
    "role 'system' is not supported on this model",
    "Unexpected value(s) `mid-conversation-system-2026-04-07` for the `anthropic-beta` header.",
)


def bodies(server: ScriptedServer) -> list[Any]:
    return [seen.json() for seen in server.seen if seen.method == "POST"]


def shape(messages: list[Any]) -> list[str]:
    """Each message as its role's first letter and its blocks: ``u:text+text``, ``s``, ``u:str``."""
    return [
        message["role"][0]
        + (
            ("" if message["role"] == "system" else ":str")
            if isinstance(message["content"], str)
            else ":" + "+".join(block["type"] for block in message["content"])
        )
        for message in messages
    ]


def header(seen: Seen, name: str) -> str | None:
    return dict(seen.headers).get(name)


async def test_compaction_by_hand_leaves_the_last_words_and_speaks_of_the_command(serve: Serve) -> None:
    step = says(bash("toolu_1", "echo one"))
    replies = [step, DONE, says(text("The summary.")), DONE, DONE]
    async with serve(answering=Script(replies)) as server:
        talk = await ClaudeCode(server.url).run("Do it.", follow_ups=["/compact", "Go on.", "And on."])
    assert talk.ended == "answered"
    compaction, after, later = bodies(server)[2:]
    assert shape(compaction["messages"]) == ["u:text+text", "s", "a:tool_use", "u:tool_result+text"]
    assert compaction["messages"][2]["content"][-1]["cache_control"] == {"type": "ephemeral"}
    assert "cache_control" not in compaction["messages"][3]["content"][-1]
    summed_up = ["u:text+text", "a:text", "u:text+text+text+text", "s"]
    assert shape(after["messages"]) == [*summed_up, "a:text", "u:text", "s"]
    assert "The summary." in after["messages"][0]["content"][1]["text"]
    assert shape(later["messages"]) == [*summed_up, "a:text", "u:str", "s", "a:text", "u:text"]
    assert compaction["system"] == bodies(server)[0]["system"]
    assert after["system"][0] != compaction["system"][0]
    assert [seen.method for seen in server.seen].count("HEAD") == 4


async def test_a_window_makes_it_compact_before_the_next_turn(serve: Serve) -> None:
    huge = {"input_tokens": 100, "cache_read_input_tokens": 900, "output_tokens": 20}
    steps = [says(bash("toolu_1", "echo 1")), says(bash("toolu_2", "echo 2"), usage=huge)]
    async with serve(answering=Script([*steps, says(text("Summary.")), DONE])) as server:
        await ClaudeCode(server.url, env=Environment(auto_compact_window=1000)).run("Do it.")
    compaction, after = bodies(server)[2:]
    assert shape(compaction["messages"]) == ["u:text+text", "s", "a:tool_use", "u:tool_result+text"]
    assert shape(after["messages"]) == ["u:text+text", "a:tool_use", "u:tool_result", "s"]
    assert after["messages"][1]["content"][0]["id"] == "toolu_2"


async def test_an_overlong_prompt_with_nothing_to_compact_ends_the_run(serve: Serve) -> None:
    async with serve(answering=Script([refuses(400, "prompt is too long: 10 tokens > 5 maximum")])) as server:
        talk = await ClaudeCode(server.url).run("Do it.")
    assert (talk.ended, len(bodies(server))) == ("error", 1)


async def test_an_overlong_prompt_in_other_words_is_not_recognised(serve: Serve) -> None:
    said = "This model's maximum context length is 32768 tokens. However, your request has 40000 input tokens."
    async with serve(answering=Script([says(bash("toolu_1", "echo")), refuses(400, said)])) as server:
        talk = await ClaudeCode(server.url).run("Do it.")
    assert (talk.ended, len(bodies(server))) == ("error", 2)


@pytest.mark.parametrize("said", NO_SYSTEM, ids=["role", "beta"])
async def test_a_model_without_system_messages_gets_them_folded(serve: Serve, said: str) -> None:
    steps = [says(bash(f"toolu_{n}", "echo")) for n in range(10)]
    async with serve(answering=Script([refuses(400, said), *steps, DONE])) as server:
        talk = await ClaudeCode(server.url).run("Do it.")
    assert talk.ended == "answered"
    first, second, *_, last = bodies(server)
    assert shape(first["messages"]) == ["u:text+text", "s"]
    assert shape(second["messages"]) == ["u:text+text+text+text"]
    folded = [block["text"] for block in second["messages"][0]["content"]]
    assert folded[:2] == [texts.reminder(texts.AGENT_TYPES), texts.reminder(texts.SKILLS)]
    assert "system" not in {message["role"] for message in last["messages"]}
    assert last["messages"][-1]["content"][0]["content"].endswith("\n\n" + texts.reminder(texts.TASK_REMINDER))
    assert "mid-conversation" not in str(header(server.seen[2], "anthropic-beta"))
    assert talk.exchanges[2].planned_wait is None


async def test_a_model_without_adaptive_thinking_gets_a_budget_for_the_whole_session(serve: Serve) -> None:
    refusal = refuses(400, "adaptive thinking is not supported on this model")
    async with serve(answering=Script([refusal, says(bash("toolu_1", "echo")), DONE])) as server:
        await ClaudeCode(server.url).run("Do it.")
    thinking = [body["thinking"] for body in bodies(server)]
    assert thinking == [{"type": "adaptive"}, *[{"budget_tokens": 31999, "type": "enabled"}] * 2]


async def test_too_little_room_for_the_answer_asks_for_a_shorter_one(serve: Serve) -> None:
    said = "input length and `max_tokens` exceed context limit: 190000 + 32000 > 200000, decrease it"
    async with serve(answering=Script([refuses(400, said), DONE])) as server:
        await ClaudeCode(server.url).run("Do it.")
    assert [body["max_tokens"] for body in bodies(server)] == [32000, 9000]


@pytest.mark.parametrize(
    "said",
    ["messages.1.role: Input should be 'user' or 'assistant'", "context_management: Extra inputs are not permitted"],
)
async def test_other_complaints_about_its_form_end_the_run(serve: Serve, said: str) -> None:
    async with serve(answering=Script([refuses(400, said)])) as server:
        talk = await ClaudeCode(server.url).run("Do it.")
    assert (talk.ended, len(bodies(server))) == ("error", 1)


async def test_an_interrupted_answer_keeps_its_text_and_the_next_prompt_says_so(serve: Serve) -> None:
    async with serve(answering=Script([says(text("Half and half.")), DONE])) as server:
        agent_ = ClaudeCode(server.url, leave={0: Leave(after_events=3)}, one_process=True)
        talk = await agent_.run("Do it.", follow_ups=["Do that instead."])
    assert [exchange.ended for exchange in talk.exchanges[1:]] == ["abandoned", "complete"]
    kept, said = bodies(server)[1]["messages"][2:]
    assert kept == {"role": "assistant", "content": [text("Half an")]}
    assert [block["text"] for block in said["content"]] == [texts.INTERRUPTED, "Do that instead."]
    assert [seen.method for seen in server.seen] == ["HEAD", "POST", "POST"]


async def test_a_killed_process_says_nothing_more(serve: Serve) -> None:
    async with serve(answering=Script([says(text("Half and half.")), DONE])) as server:
        agent_ = ClaudeCode(server.url, leave={0: Leave(after_events=1, kill=True)})
        talk = await agent_.run("Do it.", follow_ups=["Go on."])
    assert (talk.ended, talk.error, len(bodies(server))) == ("gave_up", "killed", 1)


async def test_what_the_user_says_meanwhile_is_a_system_message(serve: Serve) -> None:
    async with serve(answering=Script([says(bash("toolu_1", "echo")), DONE])) as server:
        await ClaudeCode(server.url, queued={0: "Hurry up."}).run("Do it.")
    last = bodies(server)[1]["messages"][-1]
    assert last["role"] == "system"
    assert "Hurry up." in last["content"]


async def test_the_terminal_asks_for_a_title_beside_the_first_turn(serve: Serve) -> None:
    async with serve(answering=Script([DONE])) as server:
        await ClaudeCode(server.url, env=Environment(interactive=True)).run("Do it.", follow_ups=["And now?"])
    titles = [seen for seen in server.seen if "structured-outputs" in str(header(seen, "anthropic-beta"))]
    assert len(titles) == 1
    assert len(bodies(server)) == 3
    assert titles[0].json()["tools"] == []
    assert {header(seen, "User-Agent") for seen in server.seen[1:2]} == {"claude-cli/2.1.197 (external, cli)"}


async def test_a_stop_for_a_tool_without_one_is_answered_with_a_nudge(serve: Serve) -> None:
    async with serve(answering=Script([says(text("Now:"), stop_reason="tool_use"), DONE])) as server:
        await ClaudeCode(server.url).run("Do it.")
    assert shape(bodies(server)[1]["messages"]) == ["u:text+text", "s", "a:text", "u:text"]


async def test_texts_come_back_as_they_were_and_strings_replace_lists(serve: Serve) -> None:
    async with serve(answering=Script([says(text("  Blanks around  \n\n")), DONE, DONE])) as server:
        await ClaudeCode(server.url).run("Do it.", follow_ups=["Second.", "Third."])
    last = bodies(server)[2]["messages"]
    assert last[2]["content"] == [text("  Blanks around  \n\n")]
    assert last[3] == {"role": "user", "content": "Second."}
    assert last[5]["content"][0]["text"] == "Third."


async def test_thinking_is_sent_again_to_the_letter(serve: Serve) -> None:
    thought = think("  Hm…\n\n", "c2ln\n")
    async with serve(answering=Script([says(thought, text("Yes.")), DONE])) as server:
        await ClaudeCode(server.url).run("Do it.", follow_ups=["Sure?"])
    assert bodies(server)[1]["messages"][2]["content"] == [thought, text("Yes.")]


async def test_haiku_is_asked_for_by_name_unless_told_otherwise(serve: Serve) -> None:
    explore = agent("toolu_a", "Explore", "Look.")
    models = []
    for env in (Environment(), Environment(haiku_model="mine"), Environment(subagent_model="all")):
        async with serve(answering=Script([says(explore), DONE], {"Look.": [DONE]})) as server:
            await ClaudeCode(server.url, env=env).run("Do it.")
        models.append([body["model"] for body in bodies(server)][1])
    assert models == ["claude-haiku-4-5-20251001", "mine", "all"]


async def test_a_sub_agent_that_fails_is_told_to_the_one_above_it(serve: Serve) -> None:
    task = agent("toolu_a", "general-purpose", "Look.")
    async with serve(answering=Script([says(task), DONE], {"Look.": [refuses(403)]})) as server:
        talk = await ClaudeCode(server.url).run("Do it.")
    assert [child.ended for child in talk.children] == ["error"]
    result = bodies(server)[2]["messages"][-1]["content"][0]
    assert list(result)[:4] == ["type", "content", "is_error", "tool_use_id"]
    assert "403" in result["content"]


async def test_all_calls_of_a_session_share_it_and_sub_agents_say_who_they_are(serve: Serve) -> None:
    outer = agent("toolu_o", "general-purpose", "Outer.")
    inner = agent("toolu_i", "general-purpose", "Inner.")
    script = Script([says(outer), DONE], {"Outer.": [says(inner), DONE], "Inner.": [DONE]})
    async with serve(answering=script) as server:
        talk = await ClaudeCode(server.url, session="s-1").run("Do it.")
    sent = server.seen[1:]
    assert {header(seen, "X-Claude-Code-Session-Id") for seen in sent} == {"s-1"}
    assert {json.loads(seen.json()["metadata"]["user_id"])["session_id"] for seen in sent} == {"s-1"}
    parents = [header(seen, "x-claude-code-parent-agent-id") for seen in sent]
    outer_id = header(sent[1], "x-claude-code-agent-id")
    assert parents == [None, None, outer_id, None, None]
    assert talk.children[0].conversation == outer_id
    assert talk.children[0].children[0].answers[0]["content"] == [text("Done.")]
    assert [exchange.n for exchange in talk.all_exchanges] == list(range(6))
    assert [str(seen.json()["system"][0]["text"]).endswith(" cc_is_subagent=true;") for seen in sent] == [
        *(False, True, True, True),
        False,
    ]


async def test_the_first_block_of_the_system_prompt_depends_on_the_prompt_alone(serve: Serve) -> None:
    async with serve(answering=Script([DONE])) as server:
        for prompt in ("One.", "One.", "Two."):
            await ClaudeCode(server.url).run(prompt)
    marks = [body["system"][0]["text"] for body in bodies(server)]
    assert marks[0] == marks[1] != marks[2]


async def test_one_connection_serves_the_session_and_the_probe_has_its_own(serve: Serve) -> None:
    async with serve(answering=Script([says(bash("toolu_1", "echo")), DONE])) as server:
        await ClaudeCode(server.url).run("Do it.")
    assert server.connections == 2


@pytest.mark.parametrize(
    ("base", "probe", "post"),
    [
        ("", "/", "/v1/messages?beta=true"),
        ("/p/x", "/p/x", "/p/x/v1/messages?beta=true"),
        ("/p/x/", "/p/x/", "/p/x/v1/messages?beta=true"),
    ],
)
async def test_a_path_in_front_leads_every_request(serve: Serve, base: str, probe: str, post: str) -> None:
    async with serve(answering=Script([DONE])) as server:
        await ClaudeCode(server.url + base).run("Do it.")
    assert [(seen.method, seen.path) for seen in server.seen] == [("HEAD", probe), ("POST", post)]
    assert {header(server.seen[0], name) for name in ("x-api-key", "X-Claude-Code-Session-Id")} == {None}


async def test_custom_headers_go_everywhere_but_on_the_probe_and_override_the_keys(serve: Serve) -> None:
    env = Environment(custom_headers={"X-API-Key": "mine", "authorization": "Basic x", "x-rollout-id": "r"})
    task = agent("toolu_a", "general-purpose", "Look.")
    async with serve(answering=Script([says(task), DONE], {"Look.": [DONE]})) as server:
        await ClaudeCode(server.url, env=env).run("Do it.")
    for seen in server.seen[1:]:
        named = [name for name, _ in seen.headers]
        assert {"X-API-Key", "authorization", "x-rollout-id"} <= set(named)
        assert not {"x-api-key", "Authorization"} & set(named)
    assert header(server.seen[0], "x-rollout-id") is None


@pytest.mark.parametrize(
    ("env", "gone"),
    [
        (Environment(thinking=False), {"thinking", "context_management"}),
        (Environment(experimental_betas=False), {"context_management"}),
    ],
    ids=["no thinking", "no experiments"],
)
async def test_the_environment_takes_keys_away(serve: Serve, env: Environment, gone: set[str]) -> None:
    async with serve(answering=Script([DONE])) as server:
        await ClaudeCode(server.url).run("Do it.")
        await ClaudeCode(server.url, env=env).run("Do it.")
    usual, other = bodies(server)
    assert set(usual) - set(other) == gone


async def test_the_environment_changes_the_rest(serve: Serve) -> None:
    env = Environment(attribution=False, prompt_caching=False, max_output_tokens=4096, experimental_betas=False)
    async with serve(answering=Script([DONE])) as server:
        await ClaudeCode(server.url, env=env, model=DEFAULT_MODEL).run("Do it.")
    body = bodies(server)[0]
    assert body["max_tokens"] == 4096
    assert len(body["system"]) == 2
    assert b"cache_control" not in server.seen[1].body
    betas = str(header(server.seen[1], "anthropic-beta")).split(",")
    assert [beta[: beta.index("-20")] for beta in betas] == [
        "claude-code",
        "context-1m",
        "interleaved-thinking",
        "mid-conversation-system",
        "effort",
    ]


async def test_the_bare_form_has_three_tools_and_no_system_message(serve: Serve) -> None:
    async with serve(answering=Script([DONE])) as server:
        await ClaudeCode(server.url, env=Environment(bare=True)).run("Do it.")
    body = bodies(server)[0]
    assert [tool["name"] for tool in body["tools"]] == ["Bash", "Edit", "Read"]
    assert shape(body["messages"]) == ["u:text+text"]


async def test_notes_at_one_place_are_one_message_with_a_blank_line_between(serve: Serve) -> None:
    async with serve(answering=Script([DONE])) as server:
        await ClaudeCode(server.url).run("Do it.")
    assert bodies(server)[0]["messages"][1]["content"] == f"{texts.AGENT_TYPES}\n\n{texts.SKILLS}"


async def test_two_runs_of_one_session_send_the_same_bytes(serve: Serve) -> None:
    async with serve(
        answering=Script([says(bash("toolu_1", "echo")), DONE, says(bash("toolu_1", "echo")), DONE])
    ) as server:
        for _ in range(2):
            await ClaudeCode(server.url, session="s").run("Do it.")
    sent = [(seen.headers, seen.body) for seen in server.seen]
    assert sent[:3] == sent[3:]
