"""What ``trackgauge`` offers to people: run, requirements, mutants, and the servers it can start."""

from collections.abc import Callable

import typer

from conformance.commands import catalogue, elsewhere, exporting, judging, playing
from conformance.systems.command import app as systems_app

app = typer.Typer(
    rich_markup_mode=None,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Judge token-capture proxies and rollout rebuilds from outside.\n\n"
    "Start with: trackgauge run   (the built-in reference, in seconds, without GPU, network or Docker)",
)

PASS_ON = {"allow_extra_args": True, "ignore_unknown_options": True}


def offer(function: Callable[..., None], about: str, name: str | None = None, **settings: object) -> None:
    """``about`` is its line in the list of commands, which is cut at 80 columns where it is longer."""
    app.command(name, short_help=about, **settings)(function)  # type: ignore[arg-type]  # typer's own keywords


offer(judging.run, "Judge a system and write a report.", context_settings=PASS_ON)
offer(judging.repro, "Play one requirement or scenario alone.", context_settings=PASS_ON)
offer(judging.scoreboard, "Judge each system and write one table of all.", context_settings=PASS_ON)
offer(judging.compare, "Say which verdicts changed between two runs.")
app.add_typer(systems_app, name="systems", short_help="List the systems that can be judged; install more.")
offer(catalogue.requirements, "List what is required, or tell of one why it is.")
offer(catalogue.mutants, "Prove that the scenarios bite: one fault each.")
offer(playing.routes, "Print the routing file that a proxy is given.")
offer(playing.demo, "Show what becomes of each sampled token, by agent.")
offer(playing.simulate, "Compute what share of groups survives broken sessions.")
offer(playing.shapes, "Play shapes of conversations: what of each is trained?")
offer(exporting.export, "Write rollouts as files for a trainer.")
offer(exporting.check_mask, "Check the loss mask of training rows.", "check-mask")
offer(catalogue.schema, "Print the JSON Schema of a file form.")
for started_by_cli, name, about in (
    (elsewhere.proxy, "proxy", "Start the reference capture proxy."),
    (elsewhere.fake_vllm, "fake-vllm", "Start a vLLM look-alike: known tokens, and a ledger."),
    (elsewhere.engine_recorder, "engine-recorder", "Stand before a real vLLM and keep its ledger."),
    (elsewhere.rebuild, "rebuild", "Rebuild rollouts from records, JSON lines in and out."),
    (elsewhere.rollout, "rollout", "Run a harness behind a proxy and collect the rollout."),
):
    offer(started_by_cli, about, name, context_settings=PASS_ON, add_help_option=False)
