"""The configuration is judged before anything is served, and whatever is wrong with it is one line."""

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.reference.capture.running import COMMAND, JSON, Proxy, route
from tests.reference.capture.scripted_engine import ScriptedEngine

pytestmark = pytest.mark.unit

HEAD = "routes:\n  policy: {target: served, base_url: 'http://127.0.0.1:1/v1', token_capture_engine: vllm"

WRONG: dict[str, tuple[str, list[str]]] = {
    "engine": (
        "routes: {p: {target: t, base_url: 'http://h:1', token_capture_engine: sglang}}",
        ["token_capture_engine", "'sglang'", "vllm"],
    ),
    "engine_in_capitals": ("routes: {p: {target: t, base_url: 'http://h:1', token_capture_engine: vLLM}}", ["'vLLM'"]),
    "engine_null": ("routes: {p: {target: t, base_url: 'http://h:1', token_capture_engine: }}", ["None", "vllm"]),
    "engine_in_defaults": (
        "defaults: {token_capture_engine: vllm}\n" + HEAD + "}",
        ["defaults", "token_capture_engine"],
    ),
    "engine_in_target": (
        "routes: {p: {target: {model: t, token_capture_engine: vllm}, base_url: 'http://h:1'}}",
        ["routes.p.target", "token_capture_engine"],
    ),
    "top_key": (HEAD + "}\nserver: {}", ["server", "defaults, routes"]),
    "route_key": (HEAD + ", timeout: 3}", ["routes.policy", "timeout", "timeout_secs"]),
    "type": (HEAD + ", type: random_routing}", ["routes.policy.type", "'random_routing'", "model"]),
    "no_routes": ("routes: {}", ["routes", "at least one"]),
    "no_target": ("routes: {p: {base_url: 'http://h:1'}}", ["routes.p.target"]),
    "no_base_url": ("routes: {p: {target: t}}", ["routes.p.base_url", "missing"]),
    "base_url": ("routes: {p: {target: t, base_url: 'h:1/v1'}}", ["routes.p.base_url", "'h:1/v1'"]),
    "base_url_name": (f"routes: {{p: {{target: t, base_url: 'http://{'a' * 64}.b:1'}}}}", ["routes.p.base_url"]),
    "base_url_port": ("routes: {p: {target: t, base_url: 'http://h:99999'}}", ["routes.p.base_url"]),
    "format": (HEAD + ", format: anthropic}", ["routes.policy.format", "'anthropic'", "openai"]),
    "timeout_text": (HEAD + ", timeout_secs: '5'}", ["routes.policy.timeout_secs", "'5'", "number"]),
    "timeout_bool": (HEAD + ", timeout_secs: true}", ["routes.policy.timeout_secs", "True"]),
    "timeout_nan": (HEAD + ", timeout_secs: .nan}", ["routes.policy.timeout_secs"]),
    "ping_zero": (HEAD + ", ping_secs: 0}", ["routes.policy.ping_secs", "above 0"]),
    "transport": (HEAD + ", injection_transport: grpc}", ["injection_transport", "'grpc'", "prefix_chat"]),
    "injection_parser": (
        HEAD + ", token_injection: true, tool_parser: mistral}",
        ["routes.policy.tool_parser", "'mistral'", "hermes"],
    ),
    "injection_thinker": (
        HEAD + ", token_injection: true, reasoning_parser: deepseek_r1}",
        ["routes.policy.reasoning_parser", "'deepseek_r1'", "qwen3"],
    ),
    "injection_text": (HEAD + ", token_injection: 'yes'}", ["token_injection", "true or false"]),
    "injection_without_engine": (
        "routes: {p: {target: t, base_url: 'http://h:1', token_injection: true}}",
        ["token_injection", "token_capture_engine"],
    ),
    "parser": (HEAD + ", tool_parser: 7}", ["tool_parser", "7"]),
    "pin": (HEAD + ", pins: {temprature: 1}}", ["routes.policy.pins", "temprature", "temperature"]),
    "pin_text": (HEAD + ", pins: {temperature: '1'}}", ["routes.policy.pins.temperature", "'1'", "number"]),
    "pin_float": (HEAD + ", pins: {top_k: 1.0}}", ["routes.policy.pins.top_k", "whole"]),
    "fill_owned": (HEAD + ", extra_body: {return_token_ids: false}}", ["extra_body.return_token_ids", "False"]),
    "fill_stream": (HEAD + ", extra_body: {stream: true}}", ["extra_body.stream"]),
    "fill_top": (HEAD + ", extra_body: {top_logprobs: '5'}}", ["extra_body.top_logprobs", "'5'"]),
    "fill_date": (HEAD + ", extra_body: {x: 2026-01-01}}", ["extra_body.x", "JSON"]),
    "header_break": (HEAD + ', extra_headers: {x: "a\\r\\nb: c"}}', ["extra_headers.x", "one line"]),
    "header_name": (HEAD + ", extra_headers: {Content-Length: '3'}}", ["extra_headers.Content-Length"]),
    "key_number": (HEAD + ", api_key: 12345678}", ["routes.policy.api_key", "not shown"]),
    "unset": (HEAD + ", api_key: '${TG_B}', extra_body: {x: ['${TG_A}', '$TG_C', '${TG_B}']}}", ["TG_A, TG_B not set"]),
    "twice": (HEAD + "}\n  policy: {target: other, base_url: 'http://h:1'}", ["'policy'", "twice", "line 3"]),
    "number_key": ("routes: {1: {target: t, base_url: 'http://h:1'}}", ["'1'", "quote"]),
    "list": ("[]", ["top level"]),
    "empty": ("", ["top level"]),
    "torn": ("routes: {", ["not YAML"]),
    "itself": ("routes: &a {p: *a}", ["policy.yaml"]),
    "two_documents": ("a: 1\n---\nb: 1", ["not YAML"]),
    "tag": ("!!python/object/apply:os.system ['true']", ["not YAML"]),
}


def start(folder: Path, text: str | bytes, *words: str, env: Mapping[str, str] | None = None) -> tuple[int, str]:
    """Exit status and stderr of a proxy that should not start."""
    path = folder / "policy.yaml"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    arguments = words or (
        "--routing-profiles",
        str(path),
        "--enable-rl-logging",
        "--rl-log-dir",
        str(folder / "r"),
        "--",
        "serve",
    )
    done = subprocess.run(
        [*COMMAND, *arguments, "--port", "0"],
        capture_output=True,
        text=True,
        env={**os.environ, **(env or {})},
        timeout=120,
    )
    assert done.stdout == ""
    return done.returncode, done.stderr


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_configuration_ends_with_one_line(name: str, tmp_path: Path) -> None:
    text, told = WRONG[name]
    status, stderr = start(tmp_path, text)
    assert (status, stderr.count("\n")) == (2, 1), stderr
    assert stderr.startswith("error: ")
    assert [word for word in told if word not in stderr] == [], stderr
    assert "12345678" not in stderr


LINES: dict[str, list[str]] = {
    "no_file": ["--routing-profiles", "missing.yaml", "--enable-rl-logging", "--", "serve"],
    "no_profile": ["--enable-rl-logging", "--", "serve"],
    "no_verb": ["--routing-profiles", "missing.yaml"],
    "flag_after_the_verb": ["--routing-profiles", "missing.yaml", "--", "serve", "--enable-rl-logging"],
    "port": ["--routing-profiles", "missing.yaml", "--", "serve", "--port", "x"],
}


@pytest.mark.parametrize("name", LINES)
def test_a_wrong_command_line_ends_with_one_line(name: str, tmp_path: Path) -> None:
    status, stderr = start(tmp_path, "", *LINES[name])
    assert (status, stderr.count("\n")) == (2, 1), stderr
    assert stderr.startswith("error: ")


def test_bytes_that_are_no_text_and_a_useless_log_folder_are_told(tmp_path: Path) -> None:
    assert start(tmp_path, b"routes: \xff\xfe")[0] == 2
    (tmp_path / "r").write_text("in the way")
    status, stderr = start(tmp_path, HEAD + "}")
    assert (status, stderr.count("\n")) == (2, 1)
    assert "--rl-log-dir" in stderr


@pytest.mark.parametrize("text", [WRONG["engine"][0], WRONG["unset"][0], "routes: {"], ids=["engine", "unset", "torn"])
def test_no_server_library_is_loaded_for_a_configuration_that_cannot_be_served(text: str, tmp_path: Path) -> None:
    path = tmp_path / "policy.yaml"
    path.write_text(text)
    code = (
        "import sys; from conformance.reference.capture.command import main; "
        f"status = main(['--routing-profiles', {str(path)!r}, '--enable-rl-logging', '--', 'serve']); "
        "loaded = {'starlette', 'uvicorn', 'aiohttp', 'uvloop', 'asyncio', 'pydantic'} & set(sys.modules); "
        "print(status, sorted(loaded))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.stdout == "2 []\n"


def test_values_reach_the_engine_as_they_were_written(engine: ScriptedEngine, tmp_path: Path) -> None:
    text = f"""
defaults: {{base_url: 'http://127.0.0.1:1/v1', timeout_secs: 1e1, extra_body: {{seed: 1}}}}
routes:
  policy:
    type: model
    target: {{model: served, base_url: '{engine.base_url}/'}}
    api_key: ${{TG_KEY}}
    timeout_secs: ${{TG_TIME}}
    extra_body: {{seed: 7, min_p: 1e-3, a: 1.0, text: '$TG_KEY ${{TG_KEY}}'}}
    token_capture_engine: vllm
  short: other
"""
    with Proxy(tmp_path, text, env={"TG_KEY": "12345", "TG_TIME": "5"}) as proxy:
        proxy.chat("s")
    (asked,) = engine.chats()
    assert asked.header("authorization") == "Bearer 12345"
    filled = {key: asked.body[key] for key in ("seed", "min_p", "a", "text")}
    assert repr(filled) == repr({"seed": 7, "min_p": 0.001, "a": 1.0, "text": "$TG_KEY 12345"})


def test_without_the_capture_flag_nothing_is_captured(engine: ScriptedEngine, tmp_path: Path) -> None:
    profile: JSON = {"routes": {"policy": route(engine.base_url) | {"token_capture_engine": "bogus"}}}
    with Proxy(tmp_path, profile, capture=False) as proxy:
        assert proxy.chat("s").status == 200
        assert proxy.call("GET", "/v1/sessions").status == 404
    assert engine.chats()[0].body == {"model": "served", "messages": [{"role": "user", "content": "hi"}]}
    assert not proxy.log_dir.exists()


def test_the_end_of_the_lifeline_ends_the_proxy(engine: ScriptedEngine, tmp_path: Path) -> None:
    path = tmp_path / "policy.yaml"
    path.write_text(HEAD + "}")
    reading, writing = os.pipe()
    process = subprocess.Popen(
        [*COMMAND, "--routing-profiles", str(path), "--", "serve", "--port", "0"],
        stdout=subprocess.PIPE,
        pass_fds=[reading],
        env={**os.environ, "TRACKGAUGE_LIFELINE_FD": str(reading)},
    )
    os.close(reading)
    assert process.stdout is not None
    assert process.stdout.readline().startswith(b"listening on")
    os.close(writing)
    assert process.wait(10) == 0
    process.stdout.close()


def test_a_taken_port_is_told_in_one_line(proxy: Proxy, tmp_path: Path) -> None:
    path = tmp_path / "policy.yaml"
    path.write_text(HEAD + "}")
    words = [*COMMAND, "--routing-profiles", str(path), "--", "serve", "--port", str(proxy.port)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    assert str(proxy.port) in done.stderr
