"""The ``trackgauge`` command."""

import importlib
import sys

SERVERS = {
    "proxy": "conformance.reference.capture.command",
    "fake-vllm": "fakes.vllm.command",
    "engine-recorder": "fakes.recorder.command",
    "rebuild": "conformance.reference.rebuild.command",
    "rollout": "conformance.reference.rollout.command",
}
"""Commands with an argument form of their own. They are reached without importing anything else, to start at once."""


def main() -> None:
    """Entry point. Ends with the exit status of the command."""
    argv = sys.argv[1:]
    if argv and argv[0] in SERVERS:
        command = importlib.import_module(SERVERS[argv[0]])
        sys.exit(command.main(argv[1:]))
    from conformance.commands import app
    from conformance.commands.one_line import started

    sys.exit(started(app, "trackgauge"))


if __name__ == "__main__":
    main()
