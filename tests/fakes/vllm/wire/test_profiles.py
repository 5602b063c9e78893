"""What each version does differently, seen on the wire. The expectations are the facts' tables, version by version."""

import re
from typing import Any

import pytest

from fakes.vllm.profiles import PROFILES, UnknownProfile, profile
from tests.fakes.vllm.wire.conftest import Play, Script

VERSIONS = [name for name in PROFILES if name != "nemo-rl"]
TOOLS = [{"type": "function", "function": {"name": "execute_bash"}}]
CALL = {"name": "execute_bash", "arguments": {"command": "ls  # {tag}"}}


def before(version: str) -> tuple[int, ...]:
    """A version as a tuple, to be compared."""
    return tuple(int(part) for part in version.split("."))


every_version = pytest.mark.parametrize("version", VERSIONS)


def _tenant(version: str, **more: Any) -> dict[str, Any]:
    return {"profile": version, "reasoning_parser": "qwen3"} | more


def _thinking(play: Play, version: str) -> Script:
    return play({"reasoning": "Hm.", "text": "{tag} Done."}, tenant=_tenant(version))


def test_every_named_version_is_there() -> None:
    assert [
        *("0.33", "0.32", "0.31", "0.30", "0.28", "0.26", "0.24", "0.22", "0.20"),
        *("0.16", "0.15", "0.13", "0.12", "0.11.2", "0.10.2"),
    ] == VERSIONS


def test_an_unknown_version_names_those_that_exist() -> None:
    with pytest.raises(UnknownProfile, match=r"unknown '9\.9'; allowed: 0\.33, 0\.32"):
        profile("9.9")


@every_version
def test_reasoning_travels_under_the_keys_of_its_version(play: Play, version: str) -> None:
    script = _thinking(play, version)
    if before(version) <= (0, 10, 2):
        keys = ["reasoning_content"]
    elif before(version) <= (0, 15):
        keys = ["reasoning", "reasoning_content"]
    else:
        keys = ["reasoning"]
    message = script.ask().json()["choices"][0]["message"]
    assert [key for key in message if key.startswith("reasoning")] == keys
    assert {message[key] for key in keys} == {"\nHm.\n"}
    deltas = [c["choices"][0]["delta"] for c in script.ask(stream=True).chunks()]
    shown = [delta for delta in deltas if any(key.startswith("reasoning") for key in delta)]
    assert [list(delta) for delta in shown] == [keys] * len(shown)
    assert "".join(delta[keys[0]] for delta in shown) == "\nHm.\n"


@every_version
def test_the_keys_of_a_buffered_body_are_those_of_its_version(play: Play, version: str) -> None:
    body = _thinking(play, version).ask().json()
    at = before(version)
    top = ["id", "object", "created", "model", "choices", "service_tier", "system_fingerprint", "usage"]
    top += ["prompt_logprobs", "prompt_token_ids"]
    top += ["prompt_text"] if at >= (0, 22) else []
    top += ["kv_transfer_params"]
    top += ["ec_transfer_params", "metrics"] if at >= (0, 26) else []
    assert list(body) == top
    choice = ["index", "message", "logprobs", "finish_reason", "stop_reason", "token_ids"]
    choice += ["routed_experts"] if at >= (0, 22) else []
    choice += ["weight_versions"] if at >= (0, 33) else []
    assert list(body["choices"][0]) == choice
    usage = ["prompt_tokens", "total_tokens", "completion_tokens", "prompt_tokens_details"]
    usage += ["completion_tokens_details"] if at >= (0, 28) else []
    assert list(body["usage"]) == usage
    assert (body["system_fingerprint"] is None) == (at < (0, 22))
    assert ("tool_calls" in body["choices"][0]["message"]) == (at <= (0, 22))


@every_version
def test_ids_have_the_length_of_their_version(play: Play, version: str) -> None:
    digits = 32 if before(version) <= (0, 11, 2) else 16
    script = play({"calls": [CALL]}, tenant=_tenant(version))
    body = script.ask(tools=TOOLS).json()
    assert re.fullmatch(rf"chatcmpl-[0-9a-f]{{{digits}}}", body["id"])
    call = body["choices"][0]["message"]["tool_calls"][0]
    assert re.fullmatch(rf"chatcmpl-tool-[0-9a-f]{{{digits}}}", call["id"])


@every_version
def test_hidden_chunks_keep_or_lose_their_ids_and_log_probs(play: Play, version: str) -> None:
    at = before(version)
    script = play({"calls": [CALL]}, tenant=_tenant(version))
    everything = len(script.ask(tools=TOOLS).json()["choices"][0]["token_ids"])

    def shown(**asked: Any) -> tuple[int, int]:
        chunks = script.ask(tools=TOOLS, stream=True, **asked).chunks()
        choices = [choice for chunk in chunks for choice in chunk["choices"]]
        ids = [token for choice in choices for token in choice.get("token_ids") or ()]
        return len(ids), len([e for c in choices for e in (c["logprobs"] or {"content": ()})["content"]])

    ids, log_probs = shown()
    assert (ids == everything, log_probs == everything) == (at >= (0, 13), at >= (0, 13))
    _, log_probs = shown(return_token_ids=False)
    assert (log_probs == everything) == (at >= (0, 31))


@every_version
def test_prompt_and_output_beyond_the_length_are_clamped_or_refused(play: Play, version: str) -> None:
    script = play({"text": "{tag} " + "word " * 200}, tenant=_tenant(version, max_model_len=100))
    reply = script.ask(max_tokens=90)
    at = before(version)
    if at >= (0, 32):
        body = reply.json()
        assert body["choices"][0]["finish_reason"] == "length"
        assert body["usage"]["total_tokens"] == 100
        return
    assert reply.status == 400
    message = reply.json()["error"]["message"]
    if at >= (0, 18):
        assert "However, you requested 90 output tokens and your prompt contains at least" in message
    elif at >= (0, 16):
        assert "input tokens and requested 90 output tokens. However, the model's context length" in message
    else:
        assert message.startswith("'max_tokens' or 'max_completion_tokens' is too large: 90.")
    assert script.served.rows(f"run={script.run}") == []


@every_version
def test_a_prompt_beyond_the_length_is_refused_in_the_words_of_the_version(play: Play, version: str) -> None:
    script = play({"text": "{tag} x"}, tenant=_tenant(version, max_model_len=64))
    content = script.request()["messages"][0]["content"] + " word" * 90
    error = script.ask(messages=[{"role": "user", "content": content}]).json()["error"]
    at = before(version)
    assert error["code"] == 400
    assert "maximum context length is 64" in error["message"] or "only 64 tokens" in error["message"]
    if at >= (0, 18):
        assert "contains at least 65 input tokens" in error["message"]
    elif at < (0, 16):
        assert error["message"].partition(" (parameter=")[0].endswith("the length of the input messages.")
    assert error["message"].endswith(")") == (at >= (0, 14))
    assert error["param"] == ("input_tokens" if at >= (0, 14) else None)


@every_version
def test_an_unknown_model_is_refused_in_the_words_of_the_version(play: Play, version: str) -> None:
    reply = play({"text": "{tag} x"}, tenant=_tenant(version)).ask(model="nope")
    at = before(version)
    aliases = " Valid aliases: tiny." if at >= (0, 32) else ""
    assert reply.status == 404
    assert reply.json()["error"] == {
        "message": f"The model `nope` does not exist.{aliases}",
        "type": "NotFoundError",
        "param": "model" if at >= (0, 14) else None,
        "code": 404,
    }


@every_version
def test_explicit_null_for_top_logprobs_drops_log_probs_before_0_32(play: Play, version: str) -> None:
    choice = play({"text": "{tag} x"}, tenant=_tenant(version)).ask(top_logprobs=None).json()["choices"][0]
    assert (choice["logprobs"] is None) == (before(version) <= (0, 31))
    assert choice["token_ids"]


@every_version
def test_hiding_reasoning_hides_ids_and_log_probs_since_0_26(play: Play, version: str) -> None:
    script = _thinking(play, version)
    choice = script.ask(include_reasoning=False).json()["choices"][0]
    hidden = before(version) >= (0, 26)
    assert (choice["logprobs"] is None, choice["token_ids"] is None) == (hidden, hidden)
    assert choice["message"]["content"].endswith("Done.")
    streamed = script.ask(include_reasoning=False, stream=True).chunks()
    assert any(c["choices"][0].get("token_ids") for c in streamed) != hidden


@every_version
def test_a_call_cut_by_length_shows_its_finish_as_the_version_does(play: Play, version: str) -> None:
    """Text in front keeps the first call whole, so that a call was parsed although the engine ran out of room."""
    script = play({"calls": [CALL, CALL]}, tenant=_tenant(version, reasoning_parser=None))
    whole = script.ask(tools=TOOLS).json()["choices"][0]
    first = whole["token_ids"].index(whole["token_ids"][0], 1)
    chunks = script.ask(tools=TOOLS, max_tokens=first, stream=True).chunks()
    at = before(version)
    assert chunks[-1]["choices"][0]["finish_reason"] == ("length" if at >= (0, 31) else "tool_calls")
    buffered = script.ask(tools=TOOLS, max_tokens=first).json()["choices"][0]
    assert len(buffered["message"]["tool_calls"]) == 1
    assert buffered["finish_reason"] == ("length" if at >= (0, 33) else "tool_calls")


@every_version
def test_thinking_cut_by_length_stays_in_the_content_before_0_17(play: Play, version: str) -> None:
    script = _thinking(play, version)
    message = script.ask(max_tokens=3).json()["choices"][0]["message"]
    if before(version) <= (0, 16):
        assert message["content"].startswith("<think>")
    else:
        assert message["content"] is None


@every_version
def test_half_a_character_is_shown_as_the_version_does(play: Play, version: str) -> None:
    script = play({"text": "{tag} 𓂀"}, tenant=_tenant(version, reasoning_parser=None))
    content = script.ask().json()["choices"][0]["logprobs"]["content"]
    texts = [entry["token"] for entry in content]
    if before(version) >= (0, 20):
        assert any("𓂀" in text for text in texts)
        assert "\ufffd" not in "".join(texts)
    else:
        assert "\ufffd" in texts


@every_version
def test_an_error_in_mid_stream_is_spaced_as_the_version_does(play: Play, version: str) -> None:
    script = play({"text": "{tag} x y z", "fault": {"name": "error_event"}}, tenant=_tenant(version))
    text = script.ask(stream=True).text
    assert ('"code": 500}}' in text) == (before(version) <= (0, 32))
    assert ('"code":500}}' in text) == (before(version) >= (0, 33))


@every_version
def test_an_empty_last_chunk_repeats_all_log_probs_until_0_28(play: Play, version: str) -> None:
    script = play({"text": "{tag} a b c d", "fault": {"name": "abort", "at_token": 3}}, tenant=_tenant(version))
    last = script.ask(stream=True).chunks()[-1]["choices"][0]
    assert len(last["logprobs"]["content"]) == (3 if before(version) <= (0, 28) else 0)
    assert last["token_ids"] == []


@every_version
def test_chat_takes_prompt_ids_since_0_32(play: Play, version: str) -> None:
    script = play({"text": "{tag} x"}, tenant=_tenant(version))
    body = script.ask(kv_transfer_params={"prompt_token_ids": [5, 6, 7]}).json()
    assert (body["prompt_token_ids"] == [5, 6, 7]) == (before(version) >= (0, 32))


@every_version
def test_an_empty_tool_list_is_refused_since_0_20(play: Play, version: str) -> None:
    reply = play({"text": "{tag} x"}, tenant=_tenant(version)).ask(tools=[])
    assert reply.status == (400 if before(version) >= (0, 20) else 200)


@every_version
def test_history_reasoning_is_read_under_the_names_of_the_version(play: Play, version: str) -> None:
    script = play({"text": "{tag} x"}, tenant=_tenant(version, template={"strip_history_reasoning": False}))
    path = f"/t/{script.tenant}/tokenize"

    def length(key: str | None) -> int:
        turn = {"role": "assistant", "content": "Yes."} | ({key: "because"} if key else {})
        body = {"messages": [{"role": "user", "content": "hi"}, turn, {"role": "user", "content": "more"}]}
        count: int = script.served.call("POST", path, body).json()["count"]
        return count

    at = before(version)
    plain = length(None)
    assert (length("reasoning") > plain) == (at > (0, 10, 2))
    reads_content_key = at >= (0, 22) or (0, 11, 2) <= at <= (0, 15)
    assert (length("reasoning_content") > plain) == reads_content_key


@every_version
def test_malformed_arguments_in_the_history_are_refused_before_0_30(play: Play, version: str) -> None:
    script = play({"text": "{tag} x"}, tenant=_tenant(version))
    call = {"id": "c", "type": "function", "function": {"name": "execute_bash", "arguments": "{bad"}}
    messages = [*script.request()["messages"], {"role": "assistant", "content": None, "tool_calls": [call]}]
    assert script.ask(messages=messages).status == (200 if before(version) >= (0, 30) else 400)


@every_version
def test_token_in_token_out_exists_and_speaks_as_its_version(play: Play, version: str) -> None:
    script = play({"text": "{tag} x"}, tenant=_tenant(version))
    at = before(version)
    body = {"token_ids": script.ask().json()["prompt_token_ids"], "sampling_params": {"logprobs": 0}}
    reply = script.served.call("POST", f"/t/{script.tenant}/inference/v1/generate", body)
    if at <= (0, 10, 2):
        assert reply.status == 404
        return
    assert ("output_mode" in reply.json()) == (at >= (0, 30))
    entry = reply.json()["choices"][0]["logprobs"]["content"][0]
    assert ("token_id" in entry, "token" in entry) == (at >= (0, 30), at < (0, 30))


def test_scale_out_routes_are_off_unless_the_server_was_started_so(play: Play) -> None:
    script = play({"text": "{tag} x"}, tenant={"scale_out": False})
    body = {"token_ids": [1], "sampling_params": {}}
    reply = script.served.call("POST", f"/t/{script.tenant}/inference/v1/generate", body)
    assert (reply.status, reply.json()["error"]["type"]) == (403, "PermissionDeniedError")


@every_version
def test_the_version_route_tells_the_version(play: Play, version: str) -> None:
    script = play({"text": "{tag} x"}, tenant=_tenant(version))
    told = script.served.call("GET", f"/t/{script.tenant}/version").json()["version"]
    assert told.startswith(version)


# NeMo-RL's server: vLLM with prefix ids, triples in messages, and a fixed way to sample.
