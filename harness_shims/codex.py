"""Codex: its ``config.toml`` and its headless launch. The rollout's id rides in a header of the provider."""

import json
from collections.abc import Mapping
from pathlib import Path, PurePosixPath

from harness_shims.launching import DUMMY_KEY, Launch, ShimError, clean_environment

VERSION = "0.171.0"
HEADER = "proxy_x_session_id"
PROVIDER = "trackgauge"
REQUEST_RETRIES, STREAM_RETRIES = 2, 1
KEY_VARIABLE = "TRACKGAUGE_CODEX_KEY"


def configuration(
    base: str, base_url: str | None, model: str, *, session: str | None = None, compact_at: int | None = None
) -> str:
    """``config.toml``: ``base`` and a provider for the proxy at ``base_url``; ``base`` alone with capture off.

    From ``compact_at`` tokens on Codex compacts; by default it guesses a window for a model it does not know. Raises
    ShimError where ``base`` sets what has to be ours.
    """
    if base_url is None:
        return base
    top = {
        "model": model,
        "model_provider": PROVIDER,
        "approval_policy": "never",
        "sandbox_mode": "danger-full-access",
        "check_for_update_on_startup": False,
        **({} if compact_at is None else {"model_auto_compact_token_limit": compact_at}),
    }
    for key in top:
        if any(line.split("=")[0].strip() == key for line in base.splitlines()):
            raise ShimError(f"codex config.toml: expected no {key!r} in the given text, seen one; take it out")
    provider: dict[str, object] = {
        "name": "Trackgauge",
        "base_url": f"{base_url}/v1",
        "env_key": KEY_VARIABLE,
        "wire_api": "responses",
        "request_max_retries": REQUEST_RETRIES,
        "stream_max_retries": STREAM_RETRIES,
    }
    lines = [f"{key} = {_toml(value)}" for key, value in top.items()]
    table = [f"[model_providers.{PROVIDER}]", *(f"{key} = {_toml(value)}" for key, value in provider.items())]
    if session is not None:
        table.append(f"http_headers = {{ {HEADER} = {_toml(session)} }}")
    # Top-level keys have to stand before the first table, ours and the user's.
    return "\n".join([*lines, "", base.rstrip("\n"), "", *table, ""])


def _toml(value: object) -> str:
    """A string, a whole number or a boolean as TOML writes it, which for these is as JSON does."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def launch(
    program: Path,
    base_url: str,
    model: str,
    prompt: str,
    *,
    home: Path,
    workspace: Path,
    elsewhere: str | None,
    session: str | None = None,
    compact_at: int | None = None,
) -> Launch:
    """One ``codex exec`` in ``workspace``; prints one JSON event a line."""
    own: Mapping[str, str] = {"CODEX_HOME": str(home / ".codex"), KEY_VARIABLE: DUMMY_KEY}
    argv = (str(program), "exec", "--skip-git-repo-check", "--json", prompt)
    text = configuration("", base_url, model, session=session, compact_at=compact_at)
    files = {PurePosixPath(home / ".codex" / "config.toml"): text}
    return Launch(argv, clean_environment(home, own, elsewhere=elsewhere), workspace, files)
