"""The proxy's command line: the form that the contract gives every capture proxy.

``--routing-profiles FILE --enable-rl-logging --rl-log-dir DIR -- serve --host H --port P``
"""

import argparse
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Never

from conformance.reference.capture.config import Route, read_routes
from conformance.reference.capture.config_file import ConfigError
from conformance.reference.store import Store

ABOUT = """\
A proxy between an agent and vLLM that keeps, for each model call, the tokens that the engine sampled.

  trackgauge proxy --routing-profiles routes.yaml --enable-rl-logging --rl-log-dir traces -- serve --port 4000

routes.yaml:
  routes:
    policy:                               # the model that clients ask for
      type: model
      target: Qwen/Qwen3-8B               # the model that the engine serves
      base_url: http://127.0.0.1:8000/v1
      token_capture_engine: vllm          # without it a route is passed through and nothing is recorded
      # token_injection: true             # a call that extends another has its tokens as history
      # injection_transport: completions  # or prefix_chat, for a server that takes required_prefix_token_ids
      # tool_parser: hermes               # how completions are read, as the engine reads its chat answers
      # reasoning_parser: qwen3
      # also: api_key, timeout_secs, extra_body, extra_headers, pins, ping_secs; under `defaults:` for all routes

Agents use http://127.0.0.1:4000/v1 and name their session in the header proxy_x_session_id. Records:
  curl http://127.0.0.1:4000/v1/sessions
  curl http://127.0.0.1:4000/v1/sessions/SESSION/completions
  curl http://127.0.0.1:4000/v1/continuity                    # how many calls were injected, and why others were not
"""
USAGE = 2
CANNOT_START = 1


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> Never:
        raise ConfigError(f"{message}; allowed: --routing-profiles FILE --enable-rl-logging --rl-log-dir DIR -- serve")


@dataclass(frozen=True)
class Settings:
    """All that the proxy was told, judged."""

    routes: dict[str, Route]
    log_dir: Path | None
    host: str
    port: int


def main(argv: list[str]) -> int:
    """Run the proxy; returns the exit status. Whatever is wrong with the configuration is one line on stderr."""
    try:
        settings = read_settings(argv)
    except ConfigError as error:
        return _fail(USAGE, str(error))

    store = None if settings.log_dir is None else Store(settings.log_dir)
    try:
        if store is not None:
            store.prepare()
    except OSError as error:
        what = f"--rl-log-dir: got {str(settings.log_dir)!r} ({error.strerror}); allowed: a folder to write to"
        return _fail(USAGE, what)
    # Only a configuration that can be served is worth loading a server for.
    from conformance.reference.capture.serving import bound, serve

    try:
        listener = bound(settings.host, settings.port)
    except OSError as error:
        where = f"{settings.host}:{settings.port}"
        what = f"--host, --port: got {where} ({error.strerror}); allowed: a free address of this machine"
        return _fail(CANNOT_START, what)
    serve(listener, settings.routes, store)
    return 0


def read_settings(argv: list[str]) -> Settings:
    """Read and judge the command line and the routing profiles; raises ConfigError."""
    arguments = list(argv)
    if "--" in arguments:
        arguments.remove("--")
    given = _parser().parse_args(arguments)
    if not 0 <= given.port <= 65535:
        raise ConfigError(f"--port: got {given.port}; allowed: 0 to 65535")
    try:
        routes = read_routes(Path(given.routing_profiles), capture=given.enable_rl_logging)
    except ConfigError as error:
        raise ConfigError(f"{given.routing_profiles}: {error}") from None
    log_dir = Path(given.rl_log_dir).expanduser() if given.enable_rl_logging else None
    return Settings(routes, log_dir, given.host, given.port)


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="trackgauge proxy",
        description=ABOUT,
        allow_abbrev=False,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--routing-profiles", "-c", required=True, metavar="FILE", help="YAML with defaults and routes")
    parser.add_argument("--enable-rl-logging", action="store_true", help="capture; without it nothing is recorded")
    parser.add_argument(
        "--rl-log-dir", default="rl_data", metavar="DIR", help="where the records go (default: %(default)s)"
    )
    verbs = parser.add_subparsers(dest="verb", required=True, parser_class=_Parser)
    serve = verbs.add_parser("serve", help="serve until told to end", allow_abbrev=False)
    serve.add_argument("--host", default="127.0.0.1", help="address to listen on (default: %(default)s)")
    serve.add_argument(
        "--port", "-p", type=int, default=4000, help="0 takes a free one and prints it (default: %(default)s)"
    )
    return parser


def _fail(status: int, message: str) -> int:
    sys.stderr.write("error: " + " ".join(message.split()) + "\n")
    return status
