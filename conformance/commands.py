"""What ``trackgauge`` offers to people: run, requirements, mutants, and the servers it can start."""

import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from conformance.contract.vocabulary import Outcome
from conformance.requirements.catalogue import load
from conformance.requirements.form import CatalogueError
from conformance.requirements.listing import entry, listing
from conformance.systems.command import app as systems_app

if TYPE_CHECKING:
    from conformance.contract.rebuilds import RebuildAnswer

SCENARIOS = Path(__file__).with_name("scenarios")

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Judge token-capture proxies and rollout rebuilds from outside.\n\n"
    "Start with: trackgauge run   (the built-in reference, in seconds, without GPU, network or Docker)",
)

app.add_typer(systems_app, name="systems")

PASS_ON = {"allow_extra_args": True, "ignore_unknown_options": True}


@app.command(context_settings=PASS_ON)
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
    strict: Annotated[bool, typer.Option(help="SHOULD and MAY fail the run too.")] = False,
    with_project: Annotated[bool, typer.Option(help="This project's own decisions count for others too.")] = False,
    known_failures: Annotated[
        str | None,
        typer.Option(metavar="FILE|DIR|none", help="What the system is known to fail. Default: the list that ships."),
    ] = None,
    write_known_failures: Annotated[bool, typer.Option(help="Write that list from this run; reasons stay.")] = False,
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
        raise typer.Exit(launch([*arguments, *context.args], report.absolute()))
    except ReportFolderError as error:
        refuse(str(error))


@app.command(context_settings=PASS_ON)
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
        bool, typer.Option(help="Keep engine and system running where something did not hold; tells their addresses.")
    ] = False,
    with_project: Annotated[bool, typer.Option(help="This project's own decisions count for others too.")] = False,
    known_failures: Annotated[
        str | None, typer.Option(metavar="FILE|DIR|none", help="What the system is known to fail; none to see it fail.")
    ] = None,
    report: Annotated[Path, typer.Option(help="Where the report and its evidence go.")] = Path("report/repro"),
) -> None:
    """Play the scenarios of one requirement, or one scenario, alone. Further arguments go to pytest (--tb=short, …).

    What else they reach is judged too. Exit status as for trackgauge run.
    """
    from conformance.gauge.launch import HOLD, ReportFolderError, launch
    from conformance.gauge.repro import ALONE, NothingToPlay, selection

    arguments = [f"--system={one}" for one in system or []]
    arguments += ["--with-project"] if with_project else []
    arguments += [f"--known-failures={known_failures}"] if known_failures is not None else []
    try:
        chosen = selection(name, load())
        held = [HOLD] if hold else []
        raise typer.Exit(launch([*arguments, *ALONE, *held, *context.args, *chosen], report.absolute()))
    except (CatalogueError, NothingToPlay, ReportFolderError) as error:
        refuse(str(error))


@app.command(context_settings=PASS_ON)
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
    draw: Annotated[bool, typer.Option(help="Run nothing: draw what earlier runs left in the report folder.")] = False,
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
    if twice:
        refuse(f"--system {twice[0]}: two columns of that name; a profile's file name is its column")
    try:
        raise typer.Exit(board.board(chosen, report.absolute(), publish, None if draw else context.args, load()))
    except OSError as error:
        refuse(f"{error.filename}: {error.strerror}; give folders that can be written")


@app.command()
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


@app.command()
def requirements(
    name: Annotated[str | None, typer.Argument(metavar="[ID]", help="Only this one, with why it is asked.")] = None,
    family: Annotated[str | None, typer.Option(help="Only one family, like STR.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="All fields, as JSON.")] = False,
) -> None:
    """List what is required of a system: id, level, one sentence. Of one, also its harm, origin and needs."""
    if name is not None and (family is not None or as_json):
        refuse(f"{name}: --family and --json are of the list; give the one or the other")
    try:
        text = entry(load(), name) if name is not None else listing(load(), family=family, as_json=as_json)
    except CatalogueError as error:
        refuse(str(error))
    typer.echo(text)


@app.command()
def mutants(
    names: Annotated[list[str] | None, typer.Argument(help="Only these mutants, or families like STR.")] = None,
    jobs: Annotated[int, typer.Option(help="How many at once.")] = 2,
    list_only: Annotated[bool, typer.Option("--list", help="Name them and what each breaks; run nothing.")] = False,
) -> None:
    """Prove that the scenarios bite: run the reference with one fault each, and see it caught by the right requirement.

    Exit status: 0 all killed; 1 one survived or died of another cause; 2 usage.
    """
    from conformance.mutants.hunt import hunt, table
    from conformance.mutants.patch import MutantError

    try:
        if list_only:
            typer.echo(table(names or []))
            return
        raise typer.Exit(hunt(names or [], jobs))
    except MutantError as error:
        refuse(str(error))


@app.command()
def routes(
    system: Annotated[str, typer.Argument(metavar="FILE|NAME", help="Profile of the proxy.")] = "reference",
    engine: Annotated[
        str, typer.Option(metavar="URL", help="The engine's address, where the profile attaches to none.")
    ] = "http://127.0.0.1:8000",
) -> None:
    """Print the routing file that the suite starts a proxy with, and that a proxy to attach to has to be given."""
    from conformance.systems import profiles, routing
    from conformance.systems.tables import ProfileError

    try:
        profile = profiles.find(system)
        address = engine if profile.attach is None else profile.attach.engine
        typer.echo(routing.configuration_for(profile, routing.SHARED_ROUTES, address), nl=False)
    except ProfileError as error:
        refuse(str(error))
    for name, value in routing.environment().items():
        typer.echo(f"with {name}={value} in the proxy's environment", err=True)


@app.command()
def demo(
    continuity: Annotated[
        bool, typer.Option("--continuity", help="One conversation each, captured as rendered and continued in tokens.")
    ] = False,
) -> None:
    """Play five conversations by each fake agent through the reference and show what became of every sampled token.

    Exit status: 0 every token is trained, withheld or excluded; 1 one is not accounted for. With --continuity: 0 every
    later turn starts with the tokens of an earlier one and every rollout is clean, over both transports; else 1.
    """
    from conformance.demo import continuity as continued
    from conformance.demo import show

    raise typer.Exit(continued.demo() if continuity else show.demo())


@app.command()
def simulate(
    break_rate: Annotated[float, typer.Option(min=0, max=1, help="Share of sessions that break.")] = 0.04,
    sessions: Annotated[float, typer.Option(min=0.01, help="Sessions a rollout has, subagents included.")] = 1,
    group: Annotated[int, typer.Option(min=2, max=1000, help="Rollouts of one task.")] = 16,
    correlation: Annotated[
        float, typer.Option(min=0, max=0.99, help="Between rollouts of a group: hard tasks break more of theirs.")
    ] = 0,
    groups: Annotated[int, typer.Option(min=1, help="How many to play through the reference trainer.")] = 2000,
) -> None:
    """Tell what share of groups survives when sessions break: raise and discard, or withhold.

    Computed, and played through the reference's trainer; and what a public report of lost groups implies.
    """
    from conformance.reference.rollout.groups import Setting, report

    typer.echo(report(Setting(break_rate, sessions, group, correlation), groups))


@app.command()
def shapes(
    names: Annotated[list[str] | None, typer.Argument(help="Only shapes whose names hold one of these texts.")] = None,
    markdown: Annotated[bool, typer.Option("--markdown", help="As Markdown, the form of docs/shapes.md.")] = False,
    system: Annotated[
        list[str] | None, typer.Option(metavar="FILE|NAME", help="Profile of a proxy or rebuild to play them on.")
    ] = None,
) -> None:
    """Play named conversation shapes and show how many of their sampled tokens are trained, withheld, excluded.

    Each states beforehand what must become of it. Exit status: 0 all as expected; 1 a shape is not; 2 usage.
    """
    from conformance.contract.vocabulary import SystemKind
    from conformance.shapes.show import show
    from conformance.systems import profiles
    from conformance.systems.tables import ProfileError

    try:
        given = {one.kind: one for one in map(profiles.find, system or [])}
    except ProfileError as error:
        refuse(str(error))
    proxy, rebuild = given.get(SystemKind.PROXY), given.get(SystemKind.REBUILD)
    raise typer.Exit(show(names or [], markdown=markdown, proxy=proxy, rebuild=rebuild))


@app.command()
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


@app.command("check-mask")
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


@app.command()
def schema(
    name: Annotated[
        str,
        typer.Argument(
            help="playbook, ledger, exchanges, results, scoreboard, record, session-list, envelope, "
            "rebuild-request, rebuild-answer, rollout-request, rollout-answer, verify-request, verify-answer, "
            "group-request or group-answer."
        ),
    ],
) -> None:
    """Print the JSON Schema of a file form: what a playbook may say, what a record holds, what a report consists of."""
    from conformance.schemas import SCHEMAS, text

    if name not in SCHEMAS:
        refuse(f"no schema {name!r}; there are: {', '.join(SCHEMAS)}")
    typer.echo(text(name), nl=False)


@app.command(context_settings=PASS_ON, add_help_option=False)
def proxy() -> None:
    """Start the reference capture proxy (trackgauge proxy --help)."""


@app.command("fake-vllm", context_settings=PASS_ON, add_help_option=False)
def fake_vllm() -> None:
    """Start a vLLM look-alike with deterministic tokens and a ledger (trackgauge fake-vllm --help)."""


@app.command(context_settings=PASS_ON, add_help_option=False)
def rebuild() -> None:
    """Rebuild rollouts from captured sessions, JSON lines in and out (trackgauge rebuild --help)."""


@app.command(context_settings=PASS_ON, add_help_option=False)
def rollout() -> None:
    """Run a harness behind a capture proxy and collect what was captured (trackgauge rollout --help)."""


def refuse(line: str) -> NoReturn:
    typer.echo(line, err=True)
    sys.exit(2)
