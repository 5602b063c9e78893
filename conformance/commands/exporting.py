"""Commands between records and a trainer: export, check-mask."""

import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from conformance.commands.refusal import refuse
from conformance.contract.vocabulary import Outcome

if TYPE_CHECKING:
    from conformance.contract.rebuilds import RebuildAnswer


def export(
    source: Annotated[
        str,
        typer.Option("--from", metavar="WHERE", help="A log directory, a proxy's URL, envelopes or rebuild answers."),
    ],
    form: Annotated[str, typer.Option("--format", help="ndjson, arrow, parquet, responses or atif.")] = "ndjson",
    to: Annotated[Path | None, typer.Option(metavar="FILE", help="Default: stdout, where the format allows.")] = None,
    rebuild_with: Annotated[
        str, typer.Option("--rebuild", metavar="FILE|NAME", help="Profile of the rebuild that makes the rollout.")
    ] = "reference-rebuild",
) -> None:
    """Write rollouts as files for a trainer: one training sequence a row, or one document each.

    arrow and parquet need pyarrow, the extra named arrow. A log directory or a proxy is one rollout; its outcome stands
    in its rows, and one that failed has none. Exit status: 0 written; 1 a rollout failed; 2 what could not be.
    """
    from conformance.exports.errors import ExportError
    from conformance.exports.files import Format, write
    from conformance.exports.sources import answers
    from conformance.systems import profiles
    from conformance.systems.tables import ProfileError

    failed: list[str] = []
    try:
        wanted = Format(form)
    except ValueError:
        refuse(f"--format: {form!r}; allowed: {', '.join(Format)}")
    try:
        written = write(_failures_told(answers(source, profiles.find(rebuild_with)), failed), wanted, to, sys.stdout)
    except (ExportError, ProfileError) as error:
        refuse(str(error))
    typer.echo(f"{written} training sequences", err=True)
    sys.exit(1 if failed else 0)


def _failures_told(answers: Iterable["RebuildAnswer"], failed: list[str]) -> Iterator["RebuildAnswer"]:
    """A rollout that failed has no row that could tell of it."""
    for answer in answers:
        if answer.outcome is Outcome.FAILED:
            failed.append(answer.id)
            why = answer.reason or answer.reason_code or "no reason given"
            typer.echo(f"{answer.id}: failed, no row: {why}", err=True)
        yield answer


def check_mask(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Rows as NDJSON, .parquet or .arrow.")],
    ledger: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The engine's ledger: what was really sampled.")
    ] = None,
) -> None:
    """Check the loss mask of training rows: {tokens, mask, log_probs, …}.

    Equal lengths, mask of 0 and 1, a log prob exactly where mask is 1, each record once; with a ledger, each token that
    is masked in was sampled there, once, behind its own prompt. Without one, tokens that nobody sampled
    pass. Exit status: 0 sound; 1 a fault; 2 not readable.
    """
    from conformance.exports.errors import ExportError
    from conformance.exports.masks import check, summary

    try:
        found = check(file, ledger)
    except ExportError as error:
        refuse(str(error))
    for line in summary(found.faults):
        typer.echo(line, err=True)
    typer.echo(found.line())
    raise typer.Exit(1 if found.faults else 0)
