"""How a command refuses what it was given: one line, and the status of a usage error."""

import sys
from typing import NoReturn

import typer

from conformance.report.summary import ExitStatus


def refuse(line: str) -> NoReturn:
    typer.echo(line, err=True)
    sys.exit(ExitStatus.USAGE)
