"""The OpenHands SDK: the settings of its model client and its headless launch. The session rides in the body."""

import json
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from harness_shims.launching import Launch, clean_environment

VERSION = "1.58.2"
BODY_KEY = "proxy_x_session_id"
AGENT = Path(__file__).with_name("openhands_sdk_agent.py")
SETTINGS = "sdk-settings.json"

QUIET: Mapping[str, str] = {
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    "LITELLM_TELEMETRY": "False",
    "OPENHANDS_SUPPRESS_BANNER": "1",
    "DO_NOT_TRACK": "1",
    "HF_HUB_OFFLINE": "1",
    "LOG_LEVEL": "ERROR",
}


def model_client(base: Mapping[str, Any], base_url: str | None, model: str, session: str | None) -> dict[str, Any]:
    """The keywords of the SDK's ``LLM``: ``base`` and what sends its calls to the proxy, with the session.

    ``base`` alone with capture off. The id goes into ``litellm_extra_body``: litellm's own session header is always the
    conversation's id, and the sub-agents have ids of their own.
    """
    if base_url is None:
        return dict(base)
    ours: dict[str, Any] = {"model": f"openai/{model}", "base_url": f"{base_url}/v1", "api_key": "EMPTY"}
    if session is not None:
        ours["litellm_extra_body"] = {**base.get("litellm_extra_body", {}), BODY_KEY: session}
    return {**base, **ours}


def launch(
    python: Path,
    base_url: str,
    model: str,
    prompt: str,
    *,
    home: Path,
    workspace: Path,
    elsewhere: str | None,
    session: str | None = None,
    subagents: bool = False,
    condense_at: int | None = None,
) -> Launch:
    """One conversation, run by the interpreter ``python`` that has the SDK. ``condense_at`` counts events."""
    quick = {"usage_id": "agent", "num_retries": 3, "retry_min_wait": 1, "retry_max_wait": 2, "retry_multiplier": 1}
    settings = {
        "llm": model_client(quick, base_url, model, session),
        "prompt": prompt,
        "workspace": str(workspace),
        "subagents": subagents,
        "condense_at": condense_at,
    }
    place = home / SETTINGS
    # -P: the folder of the script holds modules of ours that are named like the SDK's.
    argv = (str(python), "-P", "-W", "ignore", str(AGENT), str(place))
    env = clean_environment(home, QUIET, elsewhere=elsewhere)
    return Launch(argv, env, workspace, {PurePosixPath(place): json.dumps(settings)})
