"""The profile of NeMo-RL's own server: the triple in the message, its assertion on sampling, its spliced prefix."""

import json
from typing import Any

import pytest

from tests.fakes.vllm.wire.conftest import Play, Script

TOOLS = [{"type": "function", "function": {"name": "execute_bash"}}]
CALL = {"name": "execute_bash", "arguments": {"command": "ls  # {tag}"}}


def _nemo_rl(play: Play, **tenant: Any) -> Script:
    turns = [{"calls": [CALL]}, {"text": "{tag} done"}]
    return play(*turns, tenant={"profile": "nemo-rl"} | tenant)


def _ask_as_trainer(script: Script, **extra: Any) -> Any:
    return script.ask(**({"temperature": 1.0, "top_p": 1.0, "tools": TOOLS} | extra))


def test_nemo_rl_repeats_the_triple_in_the_message(play: Play) -> None:
    body = _ask_as_trainer(_nemo_rl(play)).json()
    choice = body["choices"][0]
    assert choice["message"]["prompt_token_ids"] == body["prompt_token_ids"]
    assert choice["message"]["generation_token_ids"] == choice["token_ids"]
    shown = [entry["logprob"] for entry in choice["logprobs"]["content"]]
    assert choice["message"]["generation_log_probs"] == shown


@pytest.mark.parametrize(
    "sampling", [{"temperature": 0.7}, {"top_p": 0.9}, {"top_k": 20}, {"temperature": None}], ids=json.dumps
)
def test_nemo_rl_answers_500_to_other_sampling_than_the_trainers(play: Play, sampling: dict[str, Any]) -> None:
    script = _nemo_rl(play)
    reply = _ask_as_trainer(script, **sampling)
    assert (reply.status, reply.json()["error"]["type"]) == (500, "InternalServerError")
    assert _ask_as_trainer(script).status == 200
    assert script.row()["attempt"] == 0


def test_nemo_rl_asserts_the_sampling_that_the_tenant_names(play: Play) -> None:
    script = _nemo_rl(play, trainer_sampling={"temperature": 0.6, "top_p": 0.95, "top_k": 20})
    assert _ask_as_trainer(script, temperature=0.6, top_p=0.95, top_k=20).status == 200
    assert _ask_as_trainer(script).status == 500


@pytest.mark.parametrize("carried", ["field", "message"])
def test_nemo_rl_begins_the_next_prompt_with_the_prefix(play: Play, carried: str) -> None:
    script = _nemo_rl(play)
    message = _ask_as_trainer(script).json()["choices"][0]["message"]
    prefix = message["prompt_token_ids"] + message["generation_token_ids"]
    turn = {key: message[key] for key in ("role", "content", "tool_calls")}
    asked: dict[str, Any] = {"required_prefix_token_ids": prefix}
    if carried == "message":
        turn |= {key: message[key] for key in ("prompt_token_ids", "generation_token_ids")}
        asked = {}
    result = {"role": "tool", "tool_call_id": message["tool_calls"][0]["id"], "content": "ok"}
    messages = [*script.request()["messages"], turn, result]
    reply = _ask_as_trainer(script, messages=messages, **asked).json()
    assert reply["prompt_token_ids"][: len(prefix)] == prefix
    tokenized = script.served.call(
        "POST", f"/t/{script.tenant}/tokenize", {"messages": messages, "tools": TOOLS} | asked
    ).json()
    assert tokenized["tokens"] == reply["prompt_token_ids"]


def test_nemo_rl_fails_on_a_prefix_for_a_conversation_without_a_turn_end(play: Play) -> None:
    script = _nemo_rl(play)
    messages = [{"role": "nobody", "content": script.request()["messages"][0]["content"]}]
    reply = script.served.call(
        "POST", f"/t/{script.tenant}/tokenize", {"messages": messages, "required_prefix_token_ids": [1, 2]}
    )
    assert (reply.status, reply.json()["error"]["type"]) == (500, "InternalServerError")
