"""OpenHands under Gym: what is changed for a routed agent, and that nothing else is."""

import shlex
import tomllib

import pytest
import yaml

from harness_shims import openhands
from harness_shims.launching import ProxyAddress, ShimError

PROXY = ProxyAddress("node-7", 41_234)
TOML = """\
# the agent
[core]
workspace = "/w"

[llm.model]
model = ""        # set by the run
base_url = ""
temperature = 1.0
top_p = 0.95
native_tool_calling = true

[llm.model.extra]
deep = [1, 2]

[agent]
enable_browsing = false
"""
CONFIG = """\
head_server: {host: 10.0.0.1, port: 8000}
policy_model:
  responses_api_models:
    vllm_model: {host: 10.0.0.2, port: 8001, base_url: 'http://10.0.0.3:1/v1', note: "it's \\u00e9"}
other: ${policy_model.responses_api_models.vllm_model.port}
odd: [1e-5, 0o17, '010', yes, null, 2026-11-29]
"""


def test_the_agent_is_sent_to_the_route_with_its_session() -> None:
    model = tomllib.loads(openhands.agent_toml(TOML, "policy_model", "ab12"))["llm"]["model"]
    assert model["model"] == "policy_model"
    assert model["completion_kwargs"] == {"proxy_x_session_id": "ab12"}


def test_only_the_model_s_own_lines_change() -> None:
    changed = openhands.agent_toml(TOML, "policy_model", "ab12").splitlines()
    assert [line for line in TOML.splitlines() if line not in changed] == ['model = ""        # set by the run']
    assert len([line for line in changed if line not in TOML.splitlines()]) == 2


def test_completion_kwargs_that_were_there_stay() -> None:
    text = TOML.replace("top_p = 0.95", 'completion_kwargs = { seed = 7, stop = ["a\\n"], "x y" = { z = 1.5 } }')
    model = tomllib.loads(openhands.agent_toml(text, "m", "s"))["llm"]["model"]
    expected = {"seed": 7, "stop": ["a\n"], "x y": {"z": 1.5}, "proxy_x_session_id": "s"}
    assert model["completion_kwargs"] == expected


@pytest.mark.parametrize(
    "session", ['quo"te', "back\\slash", "ü\u2028\x7f", "'"], ids=["quote", "backslash", "odd", "apostrophe"]
)
def test_any_session_id_arrives_as_it_is(session: str) -> None:
    model = tomllib.loads(openhands.agent_toml(TOML, "m", session))["llm"]["model"]
    assert model["completion_kwargs"]["proxy_x_session_id"] == session


@pytest.mark.parametrize(
    ("text", "told"),
    [
        pytest.param("[core]\n", "expected a table", id="no model"),
        pytest.param("[llm.model\n", "agent TOML", id="not TOML"),
        pytest.param('[llm.model]\nmodel = """\na\n"""\n', "one key a line", id="over several lines"),
        pytest.param("[llm.model]\n[llm.model.completion_kwargs]\na = 1\n", "inline", id="a table of its own"),
    ],
)
def test_what_cannot_be_changed_safely_is_refused_in_one_line(text: str, told: str) -> None:
    with pytest.raises(ShimError, match=told) as raised:
        openhands.agent_toml(text, "m", "s")
    assert "\n" not in str(raised.value)


def test_only_that_server_s_address_changes() -> None:
    before, after = yaml.safe_load(CONFIG), yaml.safe_load(openhands.config_dict(CONFIG, "policy_model", PROXY))
    server = after["policy_model"]["responses_api_models"]["vllm_model"]
    assert (server["host"], server["port"]) == ("node-7", 41_234)
    before["policy_model"]["responses_api_models"]["vllm_model"] |= {"host": "node-7", "port": 41_234}
    assert after == before


def test_spellings_that_another_reader_takes_otherwise_are_kept() -> None:
    changed = openhands.config_dict(CONFIG, "policy_model", PROXY)
    for spelling in (
        "1e-5",
        "0o17",
        "'010'",
        "yes",
        "2026-11-29",
        "${policy_model.responses_api_models.vllm_model.port}",
    ):
        assert spelling in changed


def test_a_quoted_port_becomes_the_number_that_it_has_to_be() -> None:
    text = "m: {a: {b: {host: 'x', port: '1'}}}\n"
    assert yaml.safe_load(openhands.config_dict(text, "m", PROXY)) == {
        "m": {"a": {"b": {"host": "node-7", "port": 41_234}}}
    }


def test_the_agent_s_container_alone_hears_of_the_proxy_and_quoting_survives_a_shell() -> None:
    lines = openhands.containers(CONFIG, "policy_model", PROXY)
    agent, evaluation = (shlex.split(line) for line in (lines.agent, lines.evaluation))
    assert evaluation == ["export", f"NEMO_GYM_CONFIG_DICT={CONFIG}"]
    assert agent == ["export", f"NEMO_GYM_CONFIG_DICT={openhands.config_dict(CONFIG, 'policy_model', PROXY)}"]
    assert "node-7" not in lines.evaluation


@pytest.mark.parametrize(
    "text",
    ["a: 1\n", "m: 1\n", "m: {}\n", "m: {a: {b: {host: x}}}\n", "m: {a: {b: {host: x, port: [1]}}}\n", "m: [\n", ""],
)
def test_a_configuration_without_that_address_is_refused_in_one_line(text: str) -> None:
    with pytest.raises(ShimError, match="NEMO_GYM_CONFIG_DICT") as raised:
        openhands.config_dict(text, "m", PROXY)
    assert "\n" not in str(raised.value)


def test_with_capture_off_every_text_is_given_back_to_the_byte() -> None:
    odd = "\ufeff# no newline at the end \t"
    assert openhands.agent_toml(odd, "m", None) == odd
    assert openhands.config_dict(odd, "m", None) == odd
    lines = openhands.containers(CONFIG, "policy_model", None)
    assert lines.agent == lines.evaluation
