"""A real harness as the harness of a rollout request: its launch as data, with what only the runner knows left open.

Launch it at ``BASE_URL`` and, where it takes one, with the session ``SESSION``: the runner puts the proxy's address and
the minted id in their place.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from harness_shims import claude_code, codex, opencode
from harness_shims.launching import Launch

JSON = Any

BASE_URL = "{base_url}"
SESSION = "{session}"
MODEL = "{model}"
WORKSPACE = "{workspace}"


def harness(name: str, launch: Launch, *, session: str = "minted", **keys: JSON) -> dict[str, JSON]:
    """``session`` is ``own`` for a harness with ids of its own. ``keys`` are others of the request's harness.

    Of the launch's files those below ``WORKSPACE`` can be laid out, and relative ones.
    """
    return {
        "name": name,
        "session": session,
        "command": list(launch.argv),
        "env": dict(launch.env),
        "files": {str(place).removeprefix(f"{WORKSPACE}/"): {"text": text} for place, text in launch.files.items()},
        **keys,
    }


def codex_harness(program: Path, prompt: str, *, elsewhere: str | None = None, **keys: JSON) -> dict[str, JSON]:
    """Codex under a minted id, at home in the workspace, where its configuration is laid out."""
    return harness(
        "codex", codex.launch(program, BASE_URL, MODEL, prompt, **_places(elsewhere), session=SESSION), **keys
    )


def claude_code_harness(program: Path, prompt: str, *, elsewhere: str | None = None, **keys: JSON) -> dict[str, JSON]:
    """Claude Code under a minted id, at home in the workspace."""
    launch = claude_code.launch(program, BASE_URL, MODEL, prompt, **_places(elsewhere), session=SESSION)
    return harness("claude-code", launch, **keys)


def _places(elsewhere: str | None) -> dict[str, JSON]:
    return {"home": Path(WORKSPACE), "workspace": Path(), "elsewhere": elsewhere}


def opencode_harness(
    program: Path, prompt: str, *, home: Path, before: Sequence[str] = (), elsewhere: str | None = None, **keys: JSON
) -> dict[str, JSON]:
    """opencode under its own ids, told the model's limits where the runner knows them and none where it does not.

    ``before`` are shell commands that make the workspace a git repository, as opencode needs one.
    """
    places: dict[str, JSON] = {"home": home, "workspace": Path(), "elsewhere": elsewhere}
    plain = opencode.launch(program, BASE_URL, MODEL, prompt, **places)
    limited = opencode.configuration(
        BASE_URL, MODEL, limits={"context": -1, "output": -2}, instructions=opencode.INSTRUCTIONS
    )
    text = json.dumps(limited, indent=2).replace(": -1", ": {context_length}").replace(": -2", ": {output_length}")
    found = harness("opencode", plain, session="own", **keys)
    unlimited = found["files"][opencode.CONFIGURATION]["text"]
    found["files"][opencode.CONFIGURATION] = {"text": f"{text}\n", "unlimited": unlimited}
    if before:
        found["command"] = ["bash", "-c", f'{" && ".join(before)} && exec "$@"', "sh", *found["command"]]
    return found
