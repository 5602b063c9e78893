"""Starts a command of ``trackgauge``, and tells of a wrong command line in one line."""

import sys
from typing import Protocol, cast

import typer

from conformance.report.summary import ExitStatus

USAGE_ERROR: type[Exception] = next(each for each in typer.BadParameter.__mro__ if each.__name__ == "UsageError")
"""What typer raises for a wrong command line: its own or click's, as its version has it; it exports only this child."""


class _Context(Protocol):
    command_path: str


class _UsageError(Protocol):
    ctx: _Context | None

    def format_message(self) -> str: ...


def started(app: typer.Typer, name: str) -> int:
    """The exit status. ``trackgauge`` alone prints what there is, and has done nothing."""
    if not sys.argv[1:]:
        app(["--help"], prog_name=name, standalone_mode=False)
        return ExitStatus.USAGE
    try:
        status = app(prog_name=name, standalone_mode=False)
    except USAGE_ERROR as error:
        typer.echo(_told(cast("_UsageError", error), name), err=True)
        return ExitStatus.USAGE
    except typer.Abort:
        return 130
    return status if isinstance(status, int) else 0


def _told(error: _UsageError, name: str) -> str:
    """``trackgauge shapes: No such option: --markdwn (Possible options: --markdown); see trackgauge shapes --help``"""
    command = " ".join([name, *sys.argv[1:2]]) if error.ctx is None else error.ctx.command_path
    why = " ".join(error.format_message().split()).rstrip(".")
    return f"{command}: {why}{'' if why.endswith('?') else ';'} see {command} --help"
