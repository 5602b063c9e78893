"""The commands of a rollout, harness and evaluation, in the workspace: files laid out, run, ended in time."""

import os
from pathlib import Path

from conformance.contract.rollouts import Command, Ended, Stage
from conformance.reference.rollout import processes
from conformance.reference.rollout.failures import RolloutFailed
from conformance.reference.rollout.filling import Values, filled, words_of

INHERITED = ("PATH", "LANG", "LC_ALL", "TMPDIR", "TZ")


def run(command: Command, stage: Stage, workspace: Path, log: Path, values: Values) -> Ended:
    """Blocks until it has ended, it and all it started. Raises RolloutFailed where it cannot be run."""
    _lay_out(command, stage, workspace, values)
    words = words_of(command.command, values)
    env = environment(command, workspace, values)
    try:
        kept = processes.start(words, env=env, cwd=workspace, log=log, grace=command.grace_seconds)
        try:
            code = kept.ended(command.timeout_seconds)
        finally:
            kept.end()
    except processes.CannotRun as error:
        raise RolloutFailed(stage, f"cannot run {words[0]}: {error}") from None
    return Ended(exit_code=code, timed_out=code is None, log=str(log))


def environment(command: Command, workspace: Path, values: Values) -> dict[str, str]:
    """The same wherever the task runs: a few variables of the machine, and what the request says."""
    inherited = {name: os.environ[name] for name in INHERITED if name in os.environ}
    own = {name: filled(text, values) for name, text in command.env.items()}
    return {"PATH": os.defpath, "LANG": "C.UTF-8", **inherited, "HOME": str(workspace), **own}


def _lay_out(command: Command, stage: Stage, workspace: Path, values: Values) -> None:
    known = values["context_length"] is not None
    for name, file in command.files.items():
        text = file.text if known or file.unlimited is None else file.unlimited
        path = workspace / name
        try:
            if not Path(os.path.realpath(path)).is_relative_to(os.path.realpath(workspace)):
                raise RolloutFailed(Stage.REQUEST, f"file {name!r} of the {stage}: expected a path below the workspace")
            path.parent.mkdir(parents=True, exist_ok=True)
            if path.exists() and not path.is_file() and not path.is_dir():
                path.unlink()  # a pipe that a harness left there would be written to without end
            path.write_bytes(filled(text, values).encode("utf-8", "surrogateescape"))
        except (OSError, ValueError) as error:
            raise RolloutFailed(stage, f"cannot write {name!r}: {error}") from None
