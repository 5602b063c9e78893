"""How a command that answers on standard output begins and ends: a wrong command line, and whoever ends it."""

import argparse
import os
import sys
from collections.abc import Callable
from typing import NoReturn


class Arguments(argparse.ArgumentParser):
    """Tells of a wrong command line in one line."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {message}; see {self.prog} --help\n")

    def require_streams(self) -> None:
        """Where requests and answers are lines of the standard streams: a shell may have closed them."""
        for name, stream in (("stdin", sys.stdin), ("stdout", sys.stdout)):
            if stream is None:
                self.error(f"--jsonl: {name} is closed; requests are read from stdin, and answered on stdout")


def exit_status_of(answer_all: Callable[[], None]) -> int:
    """0 once all is answered, 130 after Ctrl-C, 1 where nobody reads the answers any more."""
    try:
        answer_all()
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        # What is left in the buffer would be written, and complained about, when the interpreter ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    return 0
