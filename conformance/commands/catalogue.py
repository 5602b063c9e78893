"""Commands that tell what is required and whether the scenarios bite: requirements, mutants, schema."""

from typing import Annotated

import typer

from conformance.commands.refusal import refuse
from conformance.requirements.catalogue import load
from conformance.requirements.form import CatalogueError
from conformance.requirements.listing import entry, listing


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
