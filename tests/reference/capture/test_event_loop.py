"""The event loop is kept free: files and large bodies are somebody else's work."""

import json
import sys
import threading
from pathlib import Path

import pytest

from tests.reference.capture.running import Proxy, route
from tests.reference.capture.scripted_engine import Answer, ScriptedEngine, completion, with_message

pytestmark = pytest.mark.unit

WATCHED = """
import sys, threading
from conformance.reference.capture import jsontext
from conformance.reference.capture.command import main

loop_thread = threading.get_ident()

def watch(event, args):
    if threading.get_ident() == loop_thread and args and isinstance(args[0], (str, bytes)):
        if "sessions" in str(args[0]) and not str(args[0]).startswith("import"):
            sys.stderr.write(f"FILE ON THE LOOP {event}\\n")

parse = jsontext._parse

def watched_parse(data, *, strict):
    if threading.get_ident() == loop_thread and len(data) > 64 * 1024:
        sys.stderr.write("PARSING ON THE LOOP\\n")
    return parse(data, strict=strict)

jsontext._parse = watched_parse
arguments = sys.argv[1:]
from conformance.reference.capture import serving
serve = serving.serve

def watched_serve(*given):
    sys.addaudithook(watch)
    serve(*given)

serving.serve = watched_serve
sys.exit(main(arguments))
"""


def test_files_and_large_bodies_are_kept_off_the_event_loop(engine: ScriptedEngine, tmp_path: Path) -> None:
    start = (sys.executable, "-c", WATCHED)
    with Proxy(tmp_path, {"routes": {"policy": route(engine.base_url)}}, start=start) as proxy:
        engine.plan(with_message(content="x" * 200_000), completion(), completion(id=None))
        proxy.chat("s", filler="x" * 200_000)
        proxy.chat("s", stream=True)
        proxy.chat("s")
        proxy.chat(None, filler="x" * 200_000)
        assert len(proxy.records("s")) == 3
        assert len(proxy.sessions()) == 1
    assert "ON THE LOOP" not in proxy.log.read_text()


def test_a_call_that_waits_holds_up_no_other(proxy: Proxy, engine: ScriptedEngine, session: str) -> None:
    gate = threading.Event()
    engine.plan(Answer(body=json.dumps(completion()).encode(), gate=gate))
    waiting = threading.Thread(target=proxy.chat, args=(session,))
    waiting.start()
    assert engine.arrived.wait(5)
    assert proxy.chat(session).status == 200
    gate.set()
    waiting.join(10)
    assert len(proxy.records(session)) == 2
