"""A real vLLM with the tiny model, as a server of its own."""

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

from conformance.systems import guard
from conformance.systems.servers import Server, ServerCommand

HERE = Path(__file__).parent
TOKENIZER = HERE.parent / "data" / "vllm" / "tokenizer.json"
NAMES = ("tiny",)
LENGTH = 1024
"""Of the bodies that are compared, as they were recorded; in tokens."""
START_SECONDS = 600
OFFLINE = {
    "HF_HUB_OFFLINE": "1",
    "DO_NOT_TRACK": "1",
    "VLLM_NO_USAGE_STATS": "1",
    "VLLM_TARGET_DEVICE": "cpu",
    "VLLM_CPU_KVCACHE_SPACE": "1",
    "VLLM_CPU_OMP_THREADS_BIND": "nobind",
    # Two threads wait for each other longer than so small a model computes.
    "OMP_NUM_THREADS": "1",
}
FLAGS = (
    *(
        "--max-num-seqs",
        "8",
        "--enforce-eager",
        "--distributed-executor-backend",
        "uni",
        "--enable-server-load-tracking",
        "--enable-scale-out",
    ),
    # On a CPU a prompt that is computed in parts ends the engine where the request has a seed.
    "--no-enable-chunked-prefill",
    *("--enable-auto-tool-choice", "--tool-call-parser", "hermes", "--reasoning-parser", "qwen3"),
    # Without it a forced text would be free to begin with thoughts.
    *("--structured-outputs-config", '{"enable_in_reasoning": true}'),
)


def make_model(place: Path, folder: Path) -> Path:
    """``place`` is the environment that has vLLM. Raises CalledProcessError."""
    model = folder / "tiny"
    python, script = place / "bin" / "python", HERE / "make_model.py"
    words = [str(python), str(script), str(TOKENIZER), str(HERE / "template.jinja"), str(model)]
    subprocess.run(words, check=True, capture_output=True, timeout=START_SECONDS, env={**os.environ, **OFFLINE})
    return model


def start(place: Path, model: Path, files: Path, names: Sequence[str] = NAMES, length: int = LENGTH) -> Server:
    """Blocks until it answers, a minute or two. Raises :class:`conformance.systems.servers.SystemNotStarted`."""
    home = files / "home"
    home.mkdir()
    return Server(
        ServerCommand(
            name="vLLM",
            command=[
                *(str(place / "bin" / "python"), "-m", "vllm.entrypoints.cli.main", "serve", str(model)),
                *("--served-model-name", *names, "--host", "127.0.0.1", "--port", "{port}"),
                *("--max-model-len", str(length), "--max-num-batched-tokens", str(length)),
                *FLAGS,
            ],
            env=guard.environment(home, OFFLINE),
            cwd=files,
            log=files / "vllm.log",
            address="given",
            ready="/health",
            deadline_seconds=START_SECONDS,
            grace_seconds=30,
        )
    )
