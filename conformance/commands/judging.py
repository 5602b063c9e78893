"""Commands that judge systems and compare what came of it: run, repro, scoreboard, compare."""

from pathlib import Path
from typing import Annotated

import typer

from conformance.commands.refusal import refuse
from conformance.requirements.catalogue import load
from conformance.requirements.form import CatalogueError


def run(
    context: typer.Context,
    system: Annotated[
        list[str] | None,
        typer.Option(metavar="FILE|NAME", help="Profile of a system to judge; one per kind. Default: the reference."),
    ] = None,
    requirements: Annotated[str | None, typer.Option(metavar="SET", help="A frozen set, like 2026-12.")] = None,
    covering: Annotated[
        str,
        typer.Option(
            metavar="IDS",
            help="Only scenarios that reach these ids or families: STR-007,CAP. What else they reach is judged too.",
        ),
    ] = "",
    strict: Annotated[bool, typer.Option("--strict", help="SHOULD and MAY fail the run too.")] = False,
    with_project: Annotated[
        bool, typer.Option("--with-project", help="This project's own decisions count for others too.")
    ] = False,
    known_failures: Annotated[
        str | None,
        typer.Option(metavar="FILE|DIR|none", help="What the system is known to fail. Default: the list that ships."),
    ] = None,
    write_known_failures: Annotated[
        bool, typer.Option("--write-known-failures", help="Write that list from this run; reasons stay.")
    ] = False,
    report: Annotated[Path, typer.Option(help="The folder that the report goes to.")] = Path("report"),
) -> None:
    """Judge a system and write a report (index.html is for looking). Further arguments go to pytest (-k, -x, -n auto).

    Exit status: 0 as expected; 1 a gating requirement failed, or the suite could not judge; 2 usage;
    3 a listed known failure passes; 4 the system did not start; 5 nothing ran.
    """
    from conformance.gauge.launch import ReportFolderError, launch

    arguments = [f"--system={name}" for name in system or []]
    arguments += [f"--requirements={requirements}"] if requirements else []
    arguments += [f"--covering={covering}"] if covering else []
    arguments += ["--strict-levels"] if strict else []
    arguments += ["--with-project"] if with_project else []
    arguments += [f"--known-failures={known_failures}"] if known_failures is not None else []
    arguments += ["--write-known-failures"] if write_known_failures else []
    try:
        raise typer.Exit(launch([*arguments, *context.args], report.absolute(), *_typed(context)))
    except ReportFolderError as error:
        refuse(str(error))


def repro(
    context: typer.Context,
    name: Annotated[
        str, typer.Argument(metavar="ID", help="A requirement (STR-007), or a scenario as reports name it.")
    ],
    system: Annotated[
        list[str] | None,
        typer.Option(metavar="FILE|NAME", help="Profile of the system; one per kind. Default: the reference."),
    ] = None,
    hold: Annotated[
        bool,
        typer.Option(
            "--hold", help="Keep engine and system running where something did not hold; tells their addresses."
        ),
    ] = False,
    with_project: Annotated[
        bool, typer.Option("--with-project", help="This project's own decisions count for others too.")
    ] = False,
    known_failures: Annotated[
        str | None, typer.Option(metavar="FILE|DIR|none", help="What the system is known to fail; none to see it fail.")
    ] = None,
    report: Annotated[Path, typer.Option(help="Where the report and its evidence go.")] = Path("report/repro"),
) -> None:
    """Play the scenarios of one requirement, or one scenario, alone. Further arguments go to pytest (--tb=short, …).

    Exit status as for trackgauge run; of a requirement by that one alone, whatever its level and origin: what else its
    scenarios reach is told and fails nothing.
    """
    from conformance.gauge.launch import HOLD, ReportFolderError, launch
    from conformance.gauge.repro import ALONE, NothingToPlay, selection

    arguments = [f"--system={one}" for one in system or []]
    arguments += ["--with-project"] if with_project else []
    arguments += [f"--known-failures={known_failures}"] if known_failures is not None else []
    try:
        chosen = selection(name, load())
        held = [HOLD] if hold else []
        played = [*arguments, *ALONE, *held, *context.args, *chosen]
        raise typer.Exit(launch(played, report.absolute(), *_typed(context)))
    except (CatalogueError, NothingToPlay, ReportFolderError) as error:
        refuse(str(error))


def scoreboard(
    context: typer.Context,
    system: Annotated[
        list[str] | None,
        typer.Option(metavar="FILE|NAME", help="A column; may be repeated. Default: every system that ships."),
    ] = None,
    report: Annotated[Path, typer.Option(help="Where the report of each run goes, and the board.")] = Path(
        "report/scoreboard"
    ),
    publish: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Write scoreboard.md and scoreboard.ndjson there too.")
    ] = None,
    draw: Annotated[
        bool, typer.Option("--draw", help="Run nothing: draw what earlier runs left in the report folder.")
    ] = False,
) -> None:
    """Judge each system alone and write one table, requirements by systems: scoreboard.md and scoreboard.ndjson.

    Systems that are not installed are listed with the reason (see trackgauge systems). Further arguments go to
    trackgauge run, such as -n auto or --covering STR. Exit status: 0 the board is drawn, whatever it says; 1 nothing
    could be judged, or it was ended before all were; 2 usage.
    """
    from conformance.gauge import scoreboard as board
    from conformance.systems import profiles
    from conformance.systems.tables import ProfileError

    try:
        chosen = [profiles.find(name) for name in system or board.everything()]
    except ProfileError as error:
        refuse(str(error))
    twice = [one.file.stem for one in chosen if [other.file.stem for other in chosen].count(one.file.stem) > 1]
    if draw and context.args:
        refuse(f"--draw runs nothing, so {context.args[0]} means nothing; leave out the one or the other")
    if twice:
        refuse(f"--system {twice[0]}: two columns of that name; a profile's file name is its column")
    try:
        raise typer.Exit(board.board(chosen, report.absolute(), publish, None if draw else context.args, load()))
    except board.NothingToDraw as error:
        refuse(str(error))
    except OSError as error:
        refuse(f"{error.filename}: {error.strerror}; give folders that can be written")


def compare(
    before: Annotated[
        Path, typer.Argument(metavar="A", help="results.ndjson of a run, its report folder, or that of a scoreboard.")
    ],
    after: Annotated[Path, typer.Argument(metavar="B", help="The same of a later run, or of another system.")],
    equal: Annotated[
        bool, typer.Option(help="Any difference of a verdict ends with status 1, not only a worse one.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="As JSON.")] = False,
) -> None:
    """Say which verdicts changed between two runs, what got worse first.

    Exit status: 0 nothing got worse; 1 something did (with --equal: something changed); 2 one cannot be read.
    """
    from conformance.report import compare as comparison
    from conformance.report.ndjson import ReportError

    try:
        found = comparison.compare_places(before, after)
    except ReportError as error:
        refuse(str(error))
    typer.echo(comparison.as_json(found) if as_json else comparison.text(found, str(before), str(after)))
    raise typer.Exit(1 if any(not one.equal if equal else one.regressed for one in found.values()) else 0)


def _typed(context: typer.Context) -> tuple[str, list[str]]:
    """The command as people typed it, and the options that it has itself."""
    return context.command_path, [name for each in context.command.params for name in each.opts if name[0] == "-"]
