"""The command ``engine-recorder``: a pass-through before a real vLLM that keeps a ledger of it."""

import argparse
import sys

from fakes.arguments import Arguments
from fakes.recorder.engine import NoRealEngine, look_at

ABOUT = """\
Passes every call on to a real vLLM, byte for byte, and keeps what was asked and answered as rows of a ledger, in the
form and at the addresses of trackgauge fake-vllm. So whatever is judged by the fake's ledger can be judged by a real
engine's: trackgauge run --real-engine URL starts one by itself.

  engine-recorder --engine http://127.0.0.1:8000
      prints "listening on http://127.0.0.1:PORT"
  GET  /_fake/ledger?tenant=&run=              what was asked, sampled and answered
  PUT  /_fake/tenants/<tenant>/runs/<run>      a playbook: its texts are what the model is made to say, by
                                               structured outputs; 501 and the reason for one with faults, ids, ...

The engine: vllm serve MODEL --enable-auto-tool-choice --tool-call-parser hermes --reasoning-parser qwen3
  --structured-outputs-config '{"enable_in_reasoning": true}' --enable-scale-out
"""


def _parser() -> argparse.ArgumentParser:
    parser = Arguments(prog="engine-recorder", description=ABOUT, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--engine", required=True, metavar="URL", help="where a real vLLM listens")
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (default: %(default)s)")
    parser.add_argument("--port", type=int, default=0, help="port to listen on; 0 takes a free one (default)")
    return parser


def main(argv: list[str]) -> int:
    """Serve until told to end: 0 then, 2 for wrong arguments, 4 if the address is taken or there is no engine."""
    try:
        args = _parser().parse_args(argv)
    except SystemExit as end:
        return int(end.code or 0)
    try:
        engine = look_at(args.engine)
    except NoRealEngine as error:
        sys.stderr.write(f"engine-recorder: {error}\n")
        return 4
    from fakes.recorder.app import Recorder
    from fakes.recorder.script import Script
    from fakes.vllm import tokenizer
    from fakes.vllm.app import build_world
    from fakes.vllm.engine import PlaybookEngine
    from fakes.vllm.server import Server, announce_on_stdout, bound_socket

    world = build_world(tokenizer.load())
    script = Script(PlaybookEngine(world.encoding, world.tenants), engine)
    try:
        sock = bound_socket(args.host, args.port)
    except OSError as error:
        sys.stderr.write(f"engine-recorder: cannot listen on {args.host}:{args.port}: {error.strerror}; try --port 0\n")
        return 4
    return Server(Recorder(world, engine, script), sock, announce_on_stdout).run_here()
