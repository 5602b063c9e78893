"""Commands that play or compute something to look at: routes, demo, simulate, shapes."""

from typing import Annotated

import typer

from conformance.commands.refusal import refuse


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
