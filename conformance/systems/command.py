"""``trackgauge systems``: which systems can be judged here, and how to have those that are not there yet."""

import json
import sys
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(
    rich_markup_mode=None,
    invoke_without_command=True,
    help="List the systems that can be judged: what is there, in which version. `systems install` gets the others.",
)


@app.callback()
def systems(
    context: typer.Context,
    as_json: Annotated[bool, typer.Option("--json", help="All fields, as JSON.")] = False,
) -> None:
    if context.invoked_subcommand is not None:
        return
    from conformance.systems.inventory import inventory, table

    rows = inventory()
    typer.echo(json.dumps([row.as_json() for row in rows], indent=2) if as_json else table(rows))


@app.command(short_help="Get systems, each into an environment of its own.")
def install(
    names: Annotated[list[str], typer.Argument(metavar="NAME|FILE", help="Profiles of the systems, or `all`.")],
    checkout: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Where its sources are, for one that is on no package index.")
    ] = None,
) -> None:
    """Install systems, each into a virtual environment of its own in the cache folder (TRACKGAUGE_CACHE).

    Exit status: 0 all are there; 1 one cannot be had; 2 usage.
    """
    from conformance.systems import profiles
    from conformance.systems.install import CannotInstall
    from conformance.systems.install import install as get
    from conformance.systems.tables import ProfileError

    every = names == ["all"]
    try:
        chosen = [profiles.find(name) for name in (profiles.names() if every else names)]
    except ProfileError as error:
        typer.echo(str(error), err=True)
        sys.exit(2)
    if checkout is not None and len(chosen) > 1:
        typer.echo("--checkout: names the sources of one system; install the others by themselves", err=True)
        sys.exit(2)
    failed = False
    done: set[str] = set()
    for profile in chosen:
        needs = profile.install
        if needs is None or needs.name in done:
            continue
        done.add(needs.name)
        what = f"{profile.name}: installing {', '.join(needs.packages) or 'its checkout'} …"
        try:
            get(needs, checkout, partial(typer.echo, what, err=True))
        except CannotInstall as error:
            failed = True
            typer.echo(f"{profile.name}: cannot be installed: {error}", err=True)
        else:
            typer.echo(f"{profile.name}: is there", err=True)
    if failed:
        raise typer.Exit(1)
