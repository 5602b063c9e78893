"""What ``trackgauge`` offers to people: run, requirements, mutants, and the servers it can start."""

import typer

from conformance.commands import catalogue, elsewhere, exporting, judging, playing
from conformance.systems.command import app as systems_app

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Judge token-capture proxies and rollout rebuilds from outside.\n\n"
    "Start with: trackgauge run   (the built-in reference, in seconds, without GPU, network or Docker)",
)

PASS_ON = {"allow_extra_args": True, "ignore_unknown_options": True}

app.command(context_settings=PASS_ON)(judging.run)
app.command(context_settings=PASS_ON)(judging.repro)
app.command(context_settings=PASS_ON)(judging.scoreboard)
app.command()(judging.compare)
app.add_typer(systems_app, name="systems")
app.command()(catalogue.requirements)
app.command()(catalogue.mutants)
app.command()(playing.routes)
app.command()(playing.demo)
app.command()(playing.simulate)
app.command()(playing.shapes)
app.command()(exporting.export)
app.command("check-mask")(exporting.check_mask)
app.command()(catalogue.schema)
for started_by_cli, name in (
    (elsewhere.proxy, "proxy"),
    (elsewhere.fake_vllm, "fake-vllm"),
    (elsewhere.engine_recorder, "engine-recorder"),
    (elsewhere.rebuild, "rebuild"),
    (elsewhere.rollout, "rollout"),
):
    app.command(name, context_settings=PASS_ON, add_help_option=False)(started_by_cli)
