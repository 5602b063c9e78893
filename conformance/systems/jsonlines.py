"""What rebuilds and rollout runners under test share: each is a command that speaks JSON lines on its own pipes."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from conformance.systems import guard, needs
from conformance.systems.profile import Profile
from conformance.systems.servers import SystemNotStarted

if TYPE_CHECKING:
    from pydantic import BaseModel


def start(
    profile: Profile, files: Path, log: str, env: Mapping[str, str], arguments: Sequence[str] = ()
) -> guard.Started:
    """Raises :class:`SystemNotStarted`. ``env`` wins over the profile's; ``log`` is a file name within ``files``."""
    if profile.start is None:
        raise SystemNotStarted(profile.name, "its profile has no [start]")
    lacking = None if profile.install is None else needs.lacking(profile.install)
    if lacking is not None:
        raise SystemNotStarted(profile.name, lacking)
    own = {name: profile.fill(value, {}) for name, value in profile.start.env.items()}
    try:
        return guard.start(
            [*(profile.fill(word, {}) for word in profile.start.command), *arguments],
            log=files / log,
            env=guard.environment(files, {**own, **env}),
            cwd=files,
            role="command",
            grace=profile.start.grace_seconds,
            piped=True,
        )
    except guard.CannotRun as error:
        raise SystemNotStarted(profile.name, str(error)) from None


def misfit(answer: Mapping[str, Any], form: "type[BaseModel]") -> str | None:
    """Where an answer first leaves the contract's form, and how; None where it does not."""
    # Not above: pydantic takes a while to import, and this module is loaded wherever pytest is.
    from pydantic import ValidationError

    try:
        form.model_validate(answer)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        return f"{'.'.join(map(str, first['loc']))}: {first['msg']}"
    return None
