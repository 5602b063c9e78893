"""Claude Code: its environment and its headless launch. The rollout's id rides in a custom header."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from harness_shims.launching import DUMMY_KEY, Launch, ShimError, clean_environment

VERSION = "2.1.197"
HEADER = "proxy_x_session_id"
TOOLS = ("Bash", "Write", "Read", "Edit", "Agent")

QUIET: Mapping[str, str] = {
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    "DISABLE_TELEMETRY": "1",
    "DISABLE_AUTOUPDATER": "1",
    "DISABLE_ERROR_REPORTING": "1",
}


def environment(
    base: Mapping[str, str], base_url: str | None, model: str, *, session: str | None = None
) -> dict[str, str]:
    """``base`` and what sends every call to the proxy at ``base_url``; ``base`` alone with capture off.

    The small model and the sub-agents' are named too: a server of one model would answer 404 to their own defaults.
    ``session`` goes beside the user's own custom headers. Raises ShimError for an id that no header can carry.
    """
    if base_url is None:
        return dict(base)
    ours = {
        "ANTHROPIC_BASE_URL": base_url,
        "ANTHROPIC_API_KEY": DUMMY_KEY,
        "ANTHROPIC_DEFAULT_HAIKU_MODEL": model,
        "CLAUDE_CODE_SUBAGENT_MODEL": model,
    }
    if session is not None:
        if not re.fullmatch(r"[\x21-\x7e]([\x20-\x7e]*[\x21-\x7e])?", session):
            raise ShimError(f"session id for Claude Code: expected printable ASCII in one line, seen {session!r}")
        already = base.get("ANTHROPIC_CUSTOM_HEADERS")
        ours["ANTHROPIC_CUSTOM_HEADERS"] = "\n".join([*([already] if already else []), f"{HEADER}: {session}"])
    return {**base, **ours}


def launch(
    program: Path,
    base_url: str,
    model: str,
    prompt: str,
    *,
    home: Path,
    workspace: Path,
    elsewhere: str | None = None,
    session: str | None = None,
    settings: Mapping[str, str] | None = None,
    arguments: Sequence[str] = (),
) -> Launch:
    """One ``claude -p`` in ``workspace``; prints one JSON object, in which ``is_error`` tells how it went.

    ``settings`` are further variables, such as ``CLAUDE_CODE_AUTO_COMPACT_WINDOW``. With ``elsewhere`` the client does
    not probe the proxy at its start.
    """
    base = clean_environment(home, {**QUIET, **(settings or {})}, elsewhere=elsewhere)
    env = environment(base, base_url, model, session=session)
    options = ("--model", model, "--output-format", "json", "--allowedTools", ",".join(TOOLS))
    return Launch((str(program), "-p", prompt, *options, *arguments), env, workspace)
