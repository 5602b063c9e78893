"""The fake agents as a command: one run in the working directory, as whoever drives the real ones starts it."""

import argparse
import asyncio
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from fakes.arguments import Arguments
from fakes.harnesses.conversation import Conversation

ABOUT = """\
A fake agent: the requests and the loop of a real one, with the model's calls answered and never run.

  python -m fakes.harnesses opencode --base-url http://127.0.0.1:4000 --model policy --task "Find out why it fails."

A session given with --session goes where that agent can be configured to carry it: the Gym fork of OpenHands in the
body, the others in the header proxy_x_session_id. Without it each sends what it sends by itself.

Exit status: 0 the run came to an end of its own · 1 it did not · 2 usage
"""
HEADER = "proxy_x_session_id"
ENDS_OF_ITS_OWN = ("answered", "finished")


class Player(Protocol):
    """A fake agent that is ready to run."""

    async def run(self, task: str, *, max_turns: int = 50) -> Conversation: ...


def main(argv: list[str]) -> int:
    given = _parser().parse_args(argv)
    conversation = asyncio.run(PLAYERS[given.name](given).run(given.task, max_turns=given.max_turns))
    if given.exchanges is not None:
        given.exchanges.write_bytes(conversation.told().to_json() + b"\n")
    told = {"ended": conversation.ended, "error": conversation.error, "calls": len(conversation.all_exchanges)}
    sys.stdout.write(json.dumps(told) + "\n")
    return 0 if conversation.ended in ENDS_OF_ITS_OWN else 1


def _openhands_nv(given: argparse.Namespace) -> Player:
    from fakes.harnesses.openhands_nv import OpenHandsNV

    return OpenHandsNV(given.base_url, session=given.session, model=given.model)


def _openhands_sdk(given: argparse.Namespace) -> Player:
    from fakes.harnesses.openhands_sdk import OpenHandsSDK

    return OpenHandsSDK(given.base_url, model=given.model, extra_headers=_headers(given))


def _opencode(given: argparse.Namespace) -> Player:
    from fakes.harnesses.opencode import OpenCode

    limits = {"context": given.context_length, "output": given.output_length}
    return OpenCode(given.base_url, model=given.model, headers=_headers(given), title=given.title, **limits)


def _claude_code(given: argparse.Namespace) -> Player:
    from fakes.harnesses.claude_code import ClaudeCode, Environment

    return ClaudeCode(given.base_url, model=given.model, env=Environment(custom_headers=_headers(given)))


def _codex(given: argparse.Namespace) -> Player:
    from fakes.harnesses.codex import Codex

    return Codex(given.base_url, model=given.model, session=given.session)


PLAYERS: dict[str, Callable[[argparse.Namespace], Player]] = {
    "openhands-nv": _openhands_nv,
    "openhands-sdk": _openhands_sdk,
    "opencode": _opencode,
    "claude-code": _claude_code,
    "codex": _codex,
}


def _headers(given: argparse.Namespace) -> dict[str, str]:
    return {} if given.session is None else {HEADER: given.session}


def _parser() -> argparse.ArgumentParser:
    parser = Arguments(
        prog="python -m fakes.harnesses", description=ABOUT, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("name", choices=list(PLAYERS), help="which agent")
    parser.add_argument("--base-url", required=True, metavar="URL", help="of the proxy or the engine, without /v1")
    parser.add_argument("--model", default="policy_model", help="the model asked for (default: %(default)s)")
    parser.add_argument("--task", required=True, help="what the user says; its tag tells a fake engine what to answer")
    parser.add_argument("--session", type=_text, help="an explicit session id; empty is none")
    parser.add_argument("--max-turns", type=int, default=50, metavar="N", help="answers at most (default: %(default)s)")
    parser.add_argument("--title", action="store_true", help="opencode: ask for a title beside the first turn")
    parser.add_argument("--context-length", type=_number, metavar="N", help="opencode: declared; empty is unknown")
    parser.add_argument("--output-length", type=_number, metavar="N", help="opencode: declared; empty is unknown")
    parser.add_argument("--exchanges", type=Path, metavar="FILE", help="write what was sent and received there")
    return parser


def _text(text: str) -> str | None:
    return text or None


def _number(text: str) -> int | None:
    return int(text) if text else None
