"""A capture proxy of the rollout's own: found, given its environment, started, and waited for."""

import os
import re
import socket
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from conformance.contract.rollouts import Spawn, Stage
from conformance.reference.rollout import processes
from conformance.reference.rollout.failures import RolloutFailed
from conformance.reference.rollout.filling import Values, filled_wholly
from conformance.reference.rollout.starts import in_flight

ASK_AGAIN_SECONDS = 0.02
ATTEMPT_SECONDS = 1.0
LOG = "proxy.log"
RECORDS = "records"
REFERENCE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")


@dataclass(frozen=True)
class SpawnedProxy:
    """A proxy that listens at ``host``:``port`` and writes records below ``log_dir``."""

    kept: processes.Kept
    host: str
    port: int
    log_dir: Path


def spawn(asked: Spawn, folder: Path, values: Values) -> SpawnedProxy:
    """Blocks until it is ready. ``folder`` takes its log and records. Raises RolloutFailed, and leaves no process."""
    program = beside_the_interpreter(asked.command[0])
    env = environment(asked, values, os.environ)
    log, log_dir = folder / LOG, folder / RECORDS
    with in_flight(asked.starts_in_flight), socket.socket() as held:
        # Held while the proxy starts, so that no other rollout is dealt the port; a server can bind beside it.
        held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        held.bind((asked.host, 0))
        port: int = held.getsockname()[1]
        # It works in a folder of its own; what is relative is meant from where the rollout was asked for.
        profile = str(Path(asked.profile).absolute())
        words = [
            *(program, *asked.command[1:], "--routing-profiles", profile, "--enable-rl-logging"),
            *("--rl-log-dir", str(log_dir), "--", "serve", "--host", asked.host, "--port", str(port)),
        ]
        try:
            kept = processes.start(words, env=env, cwd=folder, log=log, grace=asked.grace_seconds)
        except processes.CannotRun as error:
            raise RolloutFailed(Stage.SPAWN, f"cannot run {words[0]}: {error}") from None
        try:
            _until_ready(kept, asked, port, words[0])
        except BaseException:
            kept.end()
            raise
    return SpawnedProxy(kept, asked.host, port, log_dir)


def beside_the_interpreter(word: str) -> str:
    """Where a program is: a bare name is looked for beside the interpreter, since PATH may hold none or another.

    Raises RolloutFailed.
    """
    if os.sep in word:
        return str(Path(word).absolute())
    found = Path(sys.executable).parent / word
    if not os.access(found, os.X_OK):
        why = f"no program {word} beside the interpreter in {found.parent}; install it there or give its path"
        raise RolloutFailed(Stage.SPAWN, why)
    return str(found)


def environment(asked: Spawn, values: Values, inherited: Mapping[str, str]) -> dict[str, str]:
    """Of the proxy: what is inherited, and over it each variable that can be derived, whatever became of the others.

    Raises RolloutFailed naming every variable that the routing profile references and nobody has.
    """
    own = {name: filled_wholly(text, values) for name, text in asked.variables.items()}
    env = {**inherited, **{name: value for name, value in own.items() if value is not None}}
    if asked.python_path:
        own_path = [str(Path(one).absolute()) for one in asked.python_path]
        env["PYTHONPATH"] = os.pathsep.join([*own_path, *filter(None, [inherited.get("PYTHONPATH")])])
    lacking = sorted(referenced(asked.profile) - set(env))
    if lacking:
        why = f"{asked.profile} references {', '.join(lacking)}: neither given in spawn.variables nor inherited"
        raise RolloutFailed(Stage.SPAWN, why)
    return env


def referenced(profile: str) -> set[str]:
    """The variables that a routing profile names. Raises RolloutFailed where it cannot be read."""
    try:
        return set(REFERENCE.findall(Path(profile).read_text(encoding="utf-8")))
    except (OSError, ValueError) as error:
        raise RolloutFailed(Stage.SPAWN, f"routing profile {profile}: {error}") from None


def _until_ready(kept: processes.Kept, asked: Spawn, port: int, program: str) -> None:
    """Raises RolloutFailed at once when it has ended, and when the deadline is over."""
    deadline = time.monotonic() + asked.deadline_seconds
    while True:
        accepted = _accepts(asked.host, port)
        code = _code_of(kept, program, 0.0 if accepted else ASK_AGAIN_SECONDS)
        if code is not None:
            why = f"the proxy ended with exit code {code} before it was ready; its log is {kept.log}"
            raise RolloutFailed(Stage.READY, why, exit_code=code, tail=kept.tail())
        if accepted:
            return
        if time.monotonic() >= deadline:
            where = f"{asked.host}:{port}"
            why = f"the proxy does not accept connections at {where} after {asked.deadline_seconds:g} s"
            raise RolloutFailed(Stage.READY, f"{why}; its log is {kept.log}", tail=kept.tail())


def _code_of(kept: processes.Kept, program: str, seconds: float) -> int | None:
    try:
        return kept.ended(seconds)
    except processes.CannotRun as error:
        raise RolloutFailed(Stage.SPAWN, f"cannot run {program}: {error}") from None


def _accepts(host: str, port: int) -> bool:
    try:
        socket.create_connection((host, port), timeout=ATTEMPT_SECONDS).close()
    except OSError:
        return False
    return True
