"""How the commands of this folder tell of a wrong command line."""

import argparse
from typing import NoReturn


class Arguments(argparse.ArgumentParser):
    """In one line."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {message}; see {self.prog} --help\n")
