"""opencode: its ``opencode.json`` and its headless launch. The session rides in its own ``x-session-id``."""

import json
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from harness_shims.launching import DUMMY_KEY, Launch, ShimError, clean_environment

VERSION = "1.18.33"
PROVIDER = "trackgauge"
MOST_OUTPUT = 32_000
"""opencode never asks for more tokens than this, and for as many where no limit is declared."""

CONFIGURATION = "opencode.json"
INSTRUCTIONS = "task-instructions.md"
TASK_INSTRUCTIONS = """\
When you call the task tool for a new task, leave out task_id. It is only for going on with an earlier task, and then
it is the id, beginning with "ses", that the task tool gave you. Any other value makes the call fail.
"""

QUIET: Mapping[str, str] = {
    "OPENCODE_DISABLE_MODELS_FETCH": "1",
    "OPENCODE_DISABLE_AUTOUPDATE": "1",
    "OPENCODE_DISABLE_DEFAULT_PLUGINS": "1",
    "OPENCODE_DISABLE_LSP_DOWNLOAD": "1",
}


def limit(max_model_len: int | None) -> dict[str, int] | None:
    """Context and output tokens to declare for a model of that length; None where it is not known.

    Without a limit opencode asks for 32000 tokens flat and never compacts.
    """
    if max_model_len is None:
        return None
    return {"context": max_model_len, "output": min(MOST_OUTPUT, max_model_len // 4)}


def configuration(
    base_url: str,
    model: str,
    *,
    limits: Mapping[str, int] | None = None,
    instructions: str | None = None,
    provider: str = PROVIDER,
    headers: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """``opencode.json`` for a proxy at ``base_url`` (without ``/v1``).

    ``instructions`` is the path of a file that the agent reads; ``headers`` are added to each call. Raises ShimError
    for a provider id under which opencode keeps its session headers to itself.
    """
    if provider.startswith("opencode"):
        raise ShimError(
            f"opencode provider id: expected one that does not start with 'opencode', seen {provider!r}; "
            "opencode then sends no x-session-id"
        )
    entry: dict[str, Any] = {"name": model}
    if limits is not None:
        entry["limit"] = dict(limits)
    options: dict[str, Any] = {"baseURL": f"{base_url}/v1", "apiKey": DUMMY_KEY}
    if headers:
        options["headers"] = dict(headers)
    written: dict[str, Any] = {
        "$schema": "https://opencode.ai/config.json",
        "provider": {
            provider: {
                "npm": "@ai-sdk/openai-compatible",
                "name": "Trackgauge",
                "options": options,
                "models": {model: entry},
            }
        },
        "model": f"{provider}/{model}",
        "autoupdate": False,
        "share": "disabled",
        # Headless, nobody can be asked; without it sub-agents also lose a tool.
        "permission": "allow",
    }
    if instructions is not None:
        written["instructions"] = [instructions]
    return written


def files(base_url: str | None, model: str, **settings: Any) -> dict[PurePosixPath, str]:
    """What is laid into the workspace; nothing with capture off (no ``base_url``)."""
    if base_url is None:
        return {}
    written = configuration(base_url, model, instructions=INSTRUCTIONS, **settings)
    return {
        PurePosixPath(CONFIGURATION): json.dumps(written, indent=2) + "\n",
        PurePosixPath(INSTRUCTIONS): TASK_INSTRUCTIONS,
    }


def launch(
    program: Path,
    base_url: str,
    model: str,
    prompt: str,
    *,
    home: Path,
    workspace: Path,
    elsewhere: str | None,
    **settings: Any,
) -> Launch:
    """One ``opencode run`` in ``workspace``, which has to be a git repository. Prints one JSON event a line."""
    argv = (str(program), "run", "--model", f"{PROVIDER}/{model}", "--format", "json", prompt)
    return Launch(
        argv, clean_environment(home, QUIET, elsewhere=elsewhere), workspace, files(base_url, model, **settings)
    )
