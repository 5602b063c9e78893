"""Claude Code, Codex, OpenClaw, the OpenHands SDK: what is added for a routed agent, and nothing with capture off."""

import tomllib
from pathlib import Path, PurePosixPath

import pytest

from harness_shims import claude_code, codex, openclaw, openhands_sdk
from harness_shims.launching import Launch, ProxyAddress, ShimError, clean_environment

URL = "http://127.0.0.1:1234"
HOME = Path("home")


@pytest.mark.parametrize("url", ["http://a:1", "http://a:1/", "http://127.0.0.1:65535", "http://[::1]:8"])
def test_a_proxy_s_address_is_a_host_and_a_port(url: str) -> None:
    assert ProxyAddress.read(url).url == url.rstrip("/")


@pytest.mark.parametrize(
    "url",
    [
        "https://a:1",
        "http://a",
        "a:1",
        "http://:1",
        "http://a:1/v1",
        "http://a:1?",
        "http://a:1/#",
        "http://u@a:1",
        "http://a:0",
        "http://a:99999",
        "http://a:x",
        " http://a:1",
        "http://a:1//",
        "",
    ],
)
def test_anything_else_is_refused_in_one_line(url: str) -> None:
    with pytest.raises(ShimError, match="expected http://HOST:PORT"):
        ProxyAddress.read(url)


def test_claude_code_is_sent_to_the_proxy_with_all_its_models() -> None:
    env = claude_code.environment({"A": "b"}, URL, "policy", session="s1")
    assert env["ANTHROPIC_BASE_URL"] == URL
    assert env["ANTHROPIC_CUSTOM_HEADERS"] == "proxy_x_session_id: s1"
    assert {env["ANTHROPIC_DEFAULT_HAIKU_MODEL"], env["CLAUDE_CODE_SUBAGENT_MODEL"]} == {"policy"}
    assert env["A"] == "b"


def test_the_user_s_own_custom_headers_stay() -> None:
    env = claude_code.environment({"ANTHROPIC_CUSTOM_HEADERS": "X-A: 1"}, URL, "m", session="s1")
    assert env["ANTHROPIC_CUSTOM_HEADERS"] == "X-A: 1\nproxy_x_session_id: s1"


@pytest.mark.parametrize("session", ["a\nX-Evil: 1", "", " a", "é"])
def test_an_id_that_a_header_cannot_carry_is_refused(session: str) -> None:
    with pytest.raises(ShimError, match="printable ASCII"):
        claude_code.environment({}, URL, "m", session=session)


def test_codex_speaks_responses_to_the_proxy_with_the_session_in_a_header() -> None:
    found = tomllib.loads(codex.configuration("[tui]\nx = 1\n", URL, "policy", session='a"b\\', compact_at=9))
    provider = found["model_providers"][found["model_provider"]]
    assert (provider["base_url"], provider["wire_api"]) == (f"{URL}/v1", "responses")
    assert provider["http_headers"] == {"proxy_x_session_id": 'a"b\\'}
    assert (found["model"], found["model_auto_compact_token_limit"], found["tui"]) == ("policy", 9, {"x": 1})


def test_codex_settings_that_have_to_be_ours_are_not_overridden_in_silence() -> None:
    with pytest.raises(ShimError, match="'model_provider'"):
        codex.configuration('model_provider = "x"\n', URL, "m")


def test_openclaw_s_key_carries_the_session() -> None:
    env = openclaw.environment({"A": "b"}, "s 1")
    assert env == {"A": "b", "SWITCHYARD_API_KEY": "sycap-session:s 1", "SWITCHYARD_SESSION_ID": "s 1"}


def test_a_blank_session_is_no_mark_on_a_key() -> None:
    with pytest.raises(ShimError, match="not blank"):
        openclaw.environment({}, "  ")


def test_the_sdk_carries_the_session_in_the_body_beside_what_was_there() -> None:
    found = openhands_sdk.model_client({"litellm_extra_body": {"metadata": 1}}, URL, "policy", "s1")
    assert found["litellm_extra_body"] == {"metadata": 1, "proxy_x_session_id": "s1"}
    assert (found["model"], found["base_url"]) == ("openai/policy", f"{URL}/v1")


def test_with_capture_off_each_gets_what_it_had() -> None:
    base = {"ANTHROPIC_BASE_URL": "x", "ANTHROPIC_CUSTOM_HEADERS": "X-A: 1", "SWITCHYARD_API_KEY": "switchyard"}
    assert claude_code.environment(base, None, "m", session="s") == base
    assert openclaw.environment(base, None) == base
    assert codex.configuration("odd \t", None, "m", session="s") == "odd \t"
    assert openhands_sdk.model_client({"model": "x"}, None, "m", "s") == {"model": "x"}


def test_a_launch_inherits_nothing_and_sends_the_rest_of_the_network_nowhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "a real one")
    launch = codex.launch(
        Path("codex"), URL, "m", "Go.", home=HOME, workspace=Path("w"), elsewhere="http://127.0.0.1:9"
    )
    assert "a real one" not in launch.env.values()
    assert launch.env["HTTPS_PROXY"] == "http://127.0.0.1:9"
    assert launch.env["HOME"] == str(HOME)
    assert not {"HTTPS_PROXY", "NO_PROXY"} & set(clean_environment(HOME, {}, elsewhere=None))


def test_files_are_laid_out_for_their_owner_alone(tmp_path: Path) -> None:
    launch = Launch(("x",), {}, tmp_path / "w", {PurePosixPath("a/b.json"): "é"})
    launch.lay_out()
    written = tmp_path / "w" / "a" / "b.json"
    assert written.read_text(encoding="utf-8") == "é"
    assert written.stat().st_mode & 0o077 == 0
