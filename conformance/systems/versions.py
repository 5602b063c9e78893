"""Which version of a system is being judged: written in its profile, or asked of the system itself."""

from pathlib import Path

from conformance.systems import guard, needs
from conformance.systems.profile import Profile

UNKNOWN = "unknown"
SECONDS = 30.0


def version_of(profile: Profile, files: Path) -> str:
    """The profile's text, else the last line its version command prints, else ``unknown`` with the reason.

    Never raises for a bad command: a run is not lost for want of a version. ``files`` is an existing directory.
    """
    if profile.version is not None:
        return profile.version
    if not profile.version_command:
        return UNKNOWN
    lacking = None if profile.install is None else needs.lacking(profile.install)
    if lacking is not None:
        return f"{UNKNOWN} ({lacking})"
    command = [profile.fill(word, {}) for word in profile.version_command]
    log = files / f"{profile.name}-version.log"
    try:
        started = guard.start(command, log=log, env=guard.environment(files), cwd=files, role="command")
    except guard.CannotRun as error:
        return f"{UNKNOWN} ({error})"
    code = started.wait(SECONDS)
    started.stop()
    lines = started.output().split("\n")
    if code != 0:
        return f"{UNKNOWN} (its version command ended with {'a time-out' if code is None else f'exit code {code}'})"
    return next((line.strip() for line in reversed(lines) if line.strip()), UNKNOWN)
