"""``--hold``: a scenario is over, and everything that it played with still runs, for somebody to look at."""

import sys
from collections.abc import Sequence
from contextlib import suppress
from urllib.parse import quote

import pytest

from conformance.gauge.case import CASE, Case

ENDS = "press Enter (or Ctrl-C) to end it all"


def is_due(item: pytest.Item, bad: str | None) -> bool:
    """After each scenario in which something did not hold; where everything held, after the last one."""
    if not item.config.getoption("--hold"):
        return False
    played = [one for one in item.session.items if (case := one.stash.get(CASE, None)) and case.all_skipped is None]
    return bad is not None or item is played[-1]


def hold(item: pytest.Item, case: Case, bad: str | None) -> None:
    """Tells where everything is and blocks until somebody presses Enter or Ctrl-C, or there is nobody to do so."""
    capture = item.config.pluginmanager.getplugin("capturemanager")
    terminal = item.config.get_terminal_writer()
    if capture is not None:
        capture.suspend_global_capture(in_=True)
    try:
        terminal.line()
        terminal.line(f"held: {case.scenario}", bold=True)
        for line in (bad or "everything held").splitlines():
            terminal.line(f"  {line}")
        for label, text in [*case.whereabouts(), *_of_scene(item)]:
            terminal.line(f"  {label:<9} {text}")
        with suppress(KeyboardInterrupt):
            # Said in here: whoever reads it may be quicker than the next line.
            terminal.line(ENDS)
            terminal.flush()
            sys.stdin.readline()  # at the end of a file too: then nobody is there to look
    finally:
        if capture is not None:
            capture.resume_global_capture()


def _of_scene(item: pytest.Item) -> Sequence[tuple[str, str]]:
    from conformance.gauge.scene import Scene  # here, since scenes bring the fake agents along

    scene = getattr(item, "funcargs", {}).get("scene")
    if not isinstance(scene, Scene):
        return ()
    retrieval = scene.proxy.profile.retrieval
    told = [("ledger", f"{scene.engine.url}/_fake/ledger?run={scene.run}&answers=true")]
    for session in scene.sessions:
        where = session
        if retrieval is not None and retrieval.completions is not None:
            path = retrieval.completions.replace("{session}", quote(session, safe=""))
            where = f"{session} · {scene.proxy.url}{path}"
        told.append(("session", where))
    return told
