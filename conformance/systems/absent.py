"""What a profile needs that is not there: told before anything is started, since it will not come by waiting."""

import os
import shutil
from pathlib import Path

from conformance.systems import needs
from conformance.systems.profile import Profile

BESIDE = "{here}/"


def absent(profile: Profile) -> str | None:
    """One line on what keeps a system from being started, where, and what to do; None if nothing is seen to."""
    if profile.start is None:
        return None
    lacking = None if profile.install is None else needs.lacking(profile.install)
    if lacking is not None:
        return f"{profile.name} did not start: {lacking}"
    program, *arguments = (profile.fill(word, {}) for word in profile.start.command)
    path = profile.fill(profile.start.env.get("PATH", ""), {}) or os.environ.get("PATH", os.defpath)
    why = _no_program(program, path)
    script = profile.start.command[1] if arguments else ""
    if why is None and script.startswith(BESIDE) and not Path(arguments[0]).exists():
        why = f"there is no {arguments[0]}; put it beside the profile, or mend its name"
    return None if why is None else f"{profile.name} did not start: {profile.file}: start.command: {why}"


def _no_program(program: str, path: str) -> str | None:
    if shutil.which(program, path=path) is not None and (os.path.isabs(program) or os.sep not in program):
        return None
    if os.path.isabs(program):
        return f"there is no program {program}; install it, or mend its path"
    if os.sep in program:
        return f"{program} is relative, and it runs in a folder of its own; write {BESIDE}… or its absolute path"
    return f"{program} is not on PATH; install it, or give its absolute path, or {BESIDE}{program} if it lies there"
