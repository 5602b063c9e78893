"""pytest as ``trackgauge run`` starts it: of a wrong option it says one line, for those who never asked for pytest.

A script, not a module: pytest rewrites the asserts of this package, and can do so only before it is imported.
Its first argument is the command that people typed, the second the options that this command has, by commas.
"""

import difflib
import os
import re
import sys
from collections.abc import Generator, Sequence

sys.path[0] = ""  # as python -m pytest has it, instead of this folder

import pytest  # noqa: E402 - not from this folder

OFTEN = ("-k", "-x", "-n", "-v", "-q", "-s", "-p", "--tb", "--pdb", "--maxfail", "--durations", "--timeout", "--lf")
"""Options of pytest's own that may have been meant."""


class OneLine:
    """Given to pytest.main, it hears of a command line before anything is configured."""

    def __init__(self, command: str, options: Sequence[str]) -> None:
        self._command = command
        self._options = (*options, *OFTEN)

    @pytest.hookimpl(wrapper=True)
    def pytest_cmdline_parse(self) -> Generator[None, pytest.Config, pytest.Config]:
        try:
            return (yield)
        except pytest.UsageError as error:
            raise pytest.UsageError(self.told(str(error))) from None

    def told(self, text: str) -> str:
        """Of pytest's usage text the line that says what is wrong."""
        found = re.search(r"error: (.*)", text)
        why = found[1] if found else text.partition("\n")[0]
        unknown = why.removeprefix("unrecognized arguments: ").split()
        if why.startswith("unrecognized arguments: ") and unknown:
            option = next((word for word in unknown if word.startswith("-")), unknown[0]).partition("=")[0]
            near = difflib.get_close_matches(option, self._options, n=1)
            why = f"no such option {option}{f'; did you mean {near[0]}?' if near else ''}"
        return f"{self._command}: {why}{'' if why.endswith('?') else ';'} see {self._command} --help, or pytest --help"


def main(command: str, options: str, arguments: list[str]) -> int:
    """pytest's exit status."""
    try:
        status = int(pytest.main(arguments, plugins=[OneLine(command, options.split(","))]))
        sys.stdout.flush()
    except BrokenPipeError:
        # What is left in the buffer would be written, and complained about, when the interpreter ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2], sys.argv[3:]))
