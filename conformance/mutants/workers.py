"""Takes a mutant along to where its rollouts run: Ray's workers are interpreters of their own.

The reference knows nothing of it. Ray asks the driver for the environment of its workers (``RAY_RUNTIME_ENV_HOOK``),
and calls what it is told there in each worker before that has loaded a task.
"""

import json
import os
from pathlib import Path
from typing import Any

from conformance.mutants.loader import install
from conformance.mutants.patch import load

JSON = Any

VARIABLE = "TRACKGAUGE_MUTANT"


def take_along(name: str, ran: Path) -> None:
    """For all Ray workers of this process, whenever it connects."""
    os.environ[VARIABLE] = json.dumps([name, str(ran.absolute())])
    os.environ["RAY_RUNTIME_ENV_HOOK"] = f"{__name__}.environment"


def environment(given: dict[str, JSON] | None) -> dict[str, JSON]:
    """What Ray is told of its workers, in the driver."""
    told = given or {}
    variables = {**told.get("env_vars", {}), VARIABLE: os.environ[VARIABLE]}
    return {**told, "env_vars": variables, "worker_process_setup_hook": f"{__name__}.arrive"}


def arrive() -> None:
    """On the worker, first of all."""
    name, ran = json.loads(os.environ[VARIABLE])
    install(load()[name], Path(ran))
