"""``python -m conformance.mutants NAME RAN_FILE ARGUMENTS…`` is the reference's command with that one fault in it."""

import importlib
import sys
from pathlib import Path

from conformance.mutants.loader import install
from conformance.mutants.patch import MutantError, load
from conformance.mutants.workers import take_along

COMMANDS = {
    "proxy": "conformance.reference.capture.command",
    "rebuild": "conformance.reference.rebuild.command",
    "rollout": "conformance.reference.rollout.command",
}


def main(argv: list[str]) -> int:
    if len(argv) < 2:
        print("usage: python -m conformance.mutants NAME RAN_FILE [arguments of the reference]", file=sys.stderr)  # noqa: T201
        return 2
    name, ran, *arguments = argv
    try:
        mutants = load()
        if name not in mutants:
            raise MutantError(f"no mutant {name!r}; trackgauge mutants --list names them")
        install(mutants[name], Path(ran))
        take_along(name, Path(ran))
    except MutantError as error:
        print(error, file=sys.stderr)  # noqa: T201 - a command entry point
        return 2
    command = importlib.import_module(COMMANDS[mutants[name].kind])
    status: int = command.main(arguments)
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
