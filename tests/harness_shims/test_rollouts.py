"""A real harness in a rollout request: of the contract's form, its addresses and limits left to the runner."""

import json
from pathlib import Path
from typing import Any

from conformance.contract.rollouts import Harness
from harness_shims.rollouts import claude_code_harness, codex_harness, opencode_harness

JSON = Any


def configuration(text: str | None) -> JSON:
    assert text is not None
    filled = text.replace("{context_length}", "32768").replace("{output_length}", "8192")
    return json.loads(filled.replace("{base_url}", "http://127.0.0.1:4000").replace("{model}", "policy"))


def test_opencode_is_sent_to_the_proxy_with_limits_only_where_they_are_known(tmp_path: Path) -> None:
    asked = opencode_harness(tmp_path / "opencode", "Go.", home=tmp_path, before=["git init -q"], patch="fix.patch")
    harness = Harness.model_validate(asked)
    file = harness.files["opencode.json"]
    known, unknown = configuration(file.text), configuration(file.unlimited)
    provider = known["provider"]["trackgauge"]
    assert provider["options"]["baseURL"] == "http://127.0.0.1:4000/v1"
    assert provider["models"]["policy"].pop("limit") == {"context": 32768, "output": 8192}
    assert known == unknown, "but for the limits"
    assert (harness.session, harness.patch) == ("own", "fix.patch")
    assert harness.command[:3] == ["bash", "-c", 'git init -q && exec "$@"']


def test_codex_and_claude_code_live_in_the_workspace_under_the_id_that_is_minted() -> None:
    codex = codex_harness(Path("/opt/codex"), "Look.")
    assert codex["env"]["CODEX_HOME"] == "{workspace}/.codex"
    assert 'proxy_x_session_id = "{session}"' in codex["files"][".codex/config.toml"]["text"]
    claude = claude_code_harness(Path("/opt/claude"), "Look.")
    told = {name: claude["env"][name] for name in ("HOME", "ANTHROPIC_BASE_URL", "ANTHROPIC_CUSTOM_HEADERS")}
    assert told == {
        "HOME": "{workspace}",
        "ANTHROPIC_BASE_URL": "{base_url}",
        "ANTHROPIC_CUSTOM_HEADERS": "proxy_x_session_id: {session}",
    }
    assert [each["session"] for each in (codex, claude)] == ["minted", "minted"]
