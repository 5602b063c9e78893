"""Installs real agents, each into a folder of its own, and runs ``pytest -m real_harness`` with those that are there.

What cannot be installed is skipped with the reason. Ends as pytest does; with ``--latest`` always with 0.
"""

import json
import os
import platform
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
CACHE = ROOT / ".cache" / "real-harness"
MANIFEST_VARIABLE = "TRACKGAUGE_REAL_HARNESS"
INSTALL_SECONDS = 300
STAMP = "installed-as"
ARCHITECTURES = {"x86_64": "x64", "aarch64": "arm64", "arm64": "arm64"}


class CannotInstall(Exception):
    """Raised with the reason, one line, why an agent cannot be had here."""


@dataclass(frozen=True)
class Agent:
    """``version`` is the one that was recorded; ``constraints`` pin what it was recorded with."""

    name: str
    package: str
    version: str
    install: Callable[["Agent", Path, bool], Path]
    program: str = ""
    constraints: tuple[str, ...] = ()
    extra: tuple[str, ...] = ()


def with_npm(agent: Agent, place: Path, latest: bool) -> Path:
    """The native program inside the package: its own starter would want Node at run time, and the network."""
    npm = shutil.which("npm")
    if npm is None:
        raise CannotInstall("npm is not there; on Debian: apt-get install npm")
    architecture = ARCHITECTURES.get(platform.machine())
    if platform.system() != "Linux" or architecture is None:
        raise CannotInstall(f"no program is known for {platform.system()} on {platform.machine()}")
    pattern = agent.program.format(architecture=architecture)

    def installed() -> Path | None:
        return next(iter(sorted((place / "node_modules").glob(pattern))), None)

    if not (found := installed()) or latest or not _is_stamped(place, agent):
        place.mkdir(parents=True, exist_ok=True)
        (place / "package.json").write_text('{"private": true}\n', encoding="utf-8")
        options = ("--no-audit", "--no-fund", "--no-progress", "--ignore-scripts", "--loglevel=error")
        wanted = f"{agent.package}@{'latest' if latest else agent.version}"
        _run([npm, "install", *options, wanted], place)
        found = installed()
    if found is None:
        raise CannotInstall(f"{agent.package} holds no {pattern}")
    return found


def with_pip(agent: Agent, place: Path, latest: bool) -> Path:
    """A virtual environment of its own, of a Python that is new enough."""
    python = place / "bin" / "python"
    if python.exists() and not latest and _is_stamped(place, agent):
        return python
    if not python.exists():
        _run([_new_python(), "-m", "venv", str(place)], CACHE)
    packages = [f"{name}" if latest else f"{name}=={agent.version}" for name in (agent.package, *agent.extra)]
    pins = place / "constraints.txt"
    pins.write_text("\n".join(() if latest else (*agent.constraints, "")), encoding="utf-8")
    # Not compiled ahead: most of what comes along is never imported.
    options = ("--quiet", "--disable-pip-version-check", "--no-compile", "--upgrade", "-c", str(pins))
    _run([str(python), "-m", "pip", "install", *options, *packages], CACHE)
    return python


AGENTS = (
    Agent("opencode", "opencode-ai", "1.18.33", with_npm, "opencode-linux-{architecture}/bin/opencode"),
    Agent(
        "claude-code",
        "@anthropic-ai/claude-code",
        "2.1.197",
        with_npm,
        "@anthropic-ai/claude-code-linux-{architecture}/claude",
    ),
    Agent("codex", "@openai/codex", "0.171.0", with_npm, "@openai/codex-linux-{architecture}/vendor/*/bin/codex"),
    Agent(
        "openhands-sdk",
        "openhands-sdk",
        "1.58.2",
        with_pip,
        constraints=("litellm==1.105.7", "openai==2.54.0"),
        extra=("openhands-tools",),
    ),
)


def install(agent: Agent, latest: bool) -> dict[str, str]:
    """An entry of the manifest: ``program`` and ``version``, or ``skipped`` with the reason."""
    place = CACHE / f"{agent.name}-{'latest' if latest else agent.version}"
    began = time.monotonic()
    try:
        program = agent.install(agent, place, latest)
    except CannotInstall as why:
        say(f"ci/real-harness: {agent.name} is skipped: {why}")
        return {"skipped": str(why)}
    (place / STAMP).write_text(_stamp(agent), encoding="utf-8")
    version = _version(program, agent) if latest else agent.version
    say(f"ci/real-harness: {agent.name} {version} is there ({time.monotonic() - began:.0f} s)")
    return {"program": str(program), "version": version}


def _version(program: Path, agent: Agent) -> str:
    if agent.install is with_pip:
        code = f"import importlib.metadata as m; print(m.version({agent.package!r}))"
        return _run([str(program), "-c", code], CACHE).strip()
    metadata = program.parents[len(Path(agent.program).parts) - 1] / agent.package / "package.json"
    version: str = json.loads(metadata.read_text(encoding="utf-8"))["version"]
    return version


def _new_python() -> str:
    """A Python of at least 3.12, from the path or from pyenv's folder."""
    for candidate in _pythons():
        code = "import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 12))"
        if subprocess.run([candidate, "-c", code], capture_output=True, check=False).returncode == 0:
            return candidate
    raise CannotInstall("it needs Python 3.12 or newer with its venv module, which is not there")


def _pythons() -> Iterator[str]:
    # 3.12 first: that is what was recorded with.
    names = ("python3.12", "python3.13", "python3.14", "python3")
    yield from (found for name in names if (found := shutil.which(name)) is not None)
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    yield from (str(path) for pattern in ("3.12*", "3.1[3-9]*") for path in sorted(pyenv.glob(f"{pattern}/bin/python")))


def _run(command: list[str], place: Path) -> str:
    place.mkdir(parents=True, exist_ok=True)
    try:
        done = subprocess.run(command, cwd=place, capture_output=True, text=True, timeout=INSTALL_SECONDS, check=False)
    except subprocess.TimeoutExpired:
        raise CannotInstall(f"{Path(command[0]).name} was not done within {INSTALL_SECONDS} s") from None
    if done.returncode != 0:
        lines = [line for line in (done.stderr or done.stdout).splitlines() if line.strip()]
        raise CannotInstall(f"{Path(command[0]).name} ended with {done.returncode}: {lines[-1] if lines else ''}")
    return done.stdout


def _stamp(agent: Agent) -> str:
    return json.dumps([agent.package, agent.version, agent.constraints, agent.extra])


def _is_stamped(place: Path, agent: Agent) -> bool:
    stamp = place / STAMP
    return stamp.exists() and stamp.read_text(encoding="utf-8") == _stamp(agent)


def say(line: str) -> None:
    print(line, flush=True)  # noqa: T201 - this is a command


def main(arguments: list[str]) -> int:
    latest, only = "--latest" in arguments, "--install-only" in arguments
    others = [word for word in arguments if word not in ("--latest", "--install-only")]
    with ThreadPoolExecutor(len(AGENTS)) as pool:
        entries = pool.map(lambda agent: install(agent, latest), AGENTS)
        manifest = dict(zip((agent.name for agent in AGENTS), entries, strict=True))
    file = CACHE / ("latest.json" if latest else "installed.json")
    file.write_text(json.dumps(manifest, indent=2) + "\n", encoding="utf-8")
    if only:
        return 0
    command = [sys.executable, "-m", "pytest", "-q", "-rs", "-n", "2", "-m", "real_harness", "tests/real_harness"]
    env = {**os.environ, MANIFEST_VARIABLE: str(file)}
    status = subprocess.run([*command, *others], cwd=ROOT, env=env, check=False).returncode
    if latest:
        say(f"ci/real-harness: newer versions are for information; pytest ended with {status}")
        return 0
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
