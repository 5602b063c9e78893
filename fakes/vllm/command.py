"""The command ``fake-vllm``: a fake vLLM on a loopback port."""

import argparse
import sys
from pathlib import Path

from fakes.arguments import Arguments
from fakes.vllm.playbook import PlaybookError
from fakes.vllm.profiles import DEFAULT, PROFILES
from fakes.vllm.reading import load_playbook
from fakes.vllm.tenants import DEFAULT_TENANT

ABOUT = """\
A fake vLLM: the OpenAI-compatible server without a model. What it answers comes from playbooks, and the
answer to a prompt is found by the tag in it, so the same conversation always gets the same tokens.

  fake-vllm --playbook hello.yaml --run 1
      prints "listening on http://127.0.0.1:PORT" and the task prompt's tag is ⟦000001:00:0000⟧
  curl http://127.0.0.1:PORT/v1/chat/completions -H 'content-type: application/json' \\
      -d '{"messages": [{"role": "user", "content": "⟦000001:00:0000⟧ go"}], "return_token_ids": true}'

hello.yaml, a turn for each answer (all keys: trackgauge schema playbook):
  about: Says hello, then goodbye.
  scopes:
    main:
      turns:
        - text: "Hello. {tag}"                 # the tag of the next turn: the history that holds it gets turn 1
        - {text: "Goodbye.", fault: {name: cut_stream, at_token: 3}}

A prompt whose tag no playbook knows is answered "off script". Every route is also served under /t/<tenant>/.
  GET  /_fake/ledger?tenant=&run=              what was asked, sampled and answered
  GET  /_fake/wait?state=finished&count=N      until N calls are in that state
  PUT  /_fake/tenants/<tenant>                 how one behaves: profile, models, max_model_len, api_key, ...
  PUT  /_fake/tenants/<tenant>/runs/<run>      a playbook, as JSON
  POST /_fake/gates/<tenant>/<name>/open       let turns that wait at a gate go on
"""


def _parser() -> argparse.ArgumentParser:
    parser = Arguments(prog="fake-vllm", description=ABOUT, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (default: %(default)s)")
    parser.add_argument("--port", type=int, default=0, help="port to listen on; 0 takes a free one (default)")
    parser.add_argument(
        "--profile",
        default=DEFAULT,
        choices=list(PROFILES),
        metavar="VERSION",
        help=f"vLLM version to behave as: {', '.join(PROFILES)} (default: %(default)s)",
    )
    parser.add_argument(
        "--playbook",
        action="append",
        default=[],
        type=Path,
        metavar="FILE",
        help="YAML playbook for the default tenant; repeat it for consecutive run numbers",
    )
    parser.add_argument("--run", type=int, default=1, help="run number of the first playbook (default: %(default)s)")
    return parser


def main(argv: list[str]) -> int:
    """Serve until told to end: 0 then, 2 for wrong arguments or a wrong playbook, 4 if the address is taken."""
    try:
        args = _parser().parse_args(argv)
    except SystemExit as end:
        return int(end.code or 0)
    try:
        playbooks = [load_playbook(path) for path in args.playbook]
    except PlaybookError as error:
        sys.stderr.write(f"fake-vllm: {error}\n")
        return 2
    from fakes.vllm import tokenizer
    from fakes.vllm.app import FakeVllm, build_world
    from fakes.vllm.server import Server, announce_on_stdout, bound_socket

    world = build_world(tokenizer.load(), args.profile)
    tenant = world.tenants.get(DEFAULT_TENANT)
    for number, playbook in enumerate(playbooks):
        if tenant is not None:
            tenant.register(args.run + number, playbook)
    try:
        sock = bound_socket(args.host, args.port)
    except OSError as error:
        sys.stderr.write(f"fake-vllm: cannot listen on {args.host}:{args.port}: {error.strerror}; try --port 0\n")
        return 4
    return Server(FakeVllm(world), sock, announce_on_stdout).run_here()
