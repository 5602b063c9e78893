"""What real harnesses sent, made into records and rebuilt.

The recordings keep the form of each message and drop its text. Tokens are made up: a message is one token of its
own, except where it echoes an answer, which is that answer's ids; so the token chain breaks exactly where the
harness broke it.
"""

import json
from pathlib import Path

import pytest

from conformance.contract.rebuilds import RebuildAnswer
from tests.reference.rebuild.making import JSON, answer, envelope, record, said

DATA = Path(__file__).parents[2] / "data"

CASES: dict[str, tuple[str | None, int, int]] = {
    # recording: (reason code, side calls, orphans)
    "openhands/nv_basic": (None, 0, 0),
    "openhands/nv_parallel": (None, 0, 0),
    "openhands/nv_badjson": ("unresolved_siblings", 0, 3),
    "openhands/nv_drop": ("unresolved_siblings", 0, 2),
    "openhands/sdk_basic": (None, 0, 0),
    "openhands/sdk_parallel": (None, 0, 0),
    "openhands/sdk_reasoning": (None, 0, 0),
    "openhands/sdk_badjson": (None, 0, 0),
    "openhands/sdk_condense": ("history_rewritten", 2, 0),
    "openhands/sdk_subagent": ("several_roots", 0, 0),
    "opencode/cli_parallel": (None, 1, 0),
    "opencode/cli_reasoning_plain": (None, 1, 0),
    "opencode/serve_badargs": (None, 1, 0),
    "opencode/c_task": (None, 0, 0),
    "opencode/serve_compaction": ("history_rewritten", 2, 0),
    "opencode/serve_drop_clean": ("history_disagrees", 1, 0),
    "opencode/serve_drop_err": ("uncaptured_turn", 1, 2),
}


class Recording:
    """The requests of one recording as envelopes, one a session."""

    def __init__(self, name: str) -> None:
        recorded = json.loads((DATA / f"{name}.json").read_text())
        self.tokens: dict[str, int] = {}
        self.calls = [one for one in recorded["requests"] if one.get("body_shape", {}).get("messages")]
        self.first_tools: list[JSON] = []
        self.sessions: dict[str, list[JSON]] = {}
        self.taken: dict[str, list[int]] = {}
        for n, one in enumerate(self.calls):
            self._add(n, one)

    def envelopes(self) -> list[JSON]:
        return [envelope(*records, session=name) for name, records in self.sessions.items()]

    def _add(self, n: int, one: JSON) -> None:
        body, headers = one["body_shape"], {name.lower(): value for name, value in one["headers"]}
        session = headers.get("x-session-id") or headers.get("x-litellm-session-id") or "only"
        messages = [plain(message) for message in body["messages"]]
        made = record(
            n,
            [*messages, emitted(self._echo(n, messages), n)],
            self._render(session, messages, self._tools(body)),
            [10_000 + n, 20_000 + n],
            session_id=session,
            parent_session_id=headers.get("x-parent-session-id"),
            tools=self._tools(body),
        )
        self.sessions.setdefault(session, []).append(made)
        echo = self._echo(n, messages)
        self.taken[self._key(session, [*messages, echo])] = made["generation_token_ids"]

    def _tools(self, body: JSON) -> list[JSON]:
        """A recording writes its first list out, and a repetition as a sentence; other lists are names."""
        tools = body.get("tools", [])
        if isinstance(tools, str):
            return self.first_tools
        named = [{"id": tool if isinstance(tool, str) else tool["function"]["name"]} for tool in tools]
        self.first_tools = self.first_tools or named
        return named

    def _echo(self, n: int, messages: list[JSON]) -> JSON:
        """The answer as a later request shows it, or a made-up one that none shows."""
        for later in self.calls[n + 1 :]:
            shown = [plain(message) for message in later["body_shape"]["messages"]]
            added = shown[len(messages) :] if shown[: len(messages)] == messages else []
            if added and added[0]["role"] == "assistant":
                return added[0]
        return said(f"Answer {n}.")

    def _render(self, session: str, messages: list[JSON], tools: list[JSON]) -> list[int]:
        ids = [self._token(json.dumps(tools))]
        for i, message in enumerate(messages):
            taken = self.taken.get(self._key(session, messages[: i + 1]))
            ids += taken or [self._token(json.dumps(message))]
        return ids

    def _token(self, text: str) -> int:
        return self.tokens.setdefault(text, len(self.tokens))

    @staticmethod
    def _key(session: str, messages: list[JSON]) -> str:
        return json.dumps([session, messages])


def plain(message: JSON) -> JSON:
    """A recorded message without echoed tokens and with its redacted arguments as a string again."""
    message = {key: value for key, value in message.items() if "token_ids" not in key and "log_probs" not in key}
    calls = message.get("tool_calls")
    if not calls:
        return message
    return message | {"tool_calls": [one | {"function": spelled(one["function"])} for one in calls]}


def spelled(function: JSON) -> JSON:
    arguments = function["arguments"]
    keys = arguments["keys"] if isinstance(arguments, dict) else {"redacted": arguments}
    return function | {"arguments": json.dumps(keys, separators=(",", ":"))}


def emitted(echo: JSON, n: int) -> JSON:
    """The answer as an engine gives it, where the harness echoes it in its own form."""
    turn = {"role": "assistant", "content": echo.get("content") or None, "reasoning_content": "Hm."}
    calls = [one | {"function": unspoiled(one["function"])} for one in echo.get("tool_calls", [])]
    return turn | {"tool_calls": calls} if calls else turn


def unspoiled(function: JSON) -> JSON:
    arguments = json.loads(function["arguments"])
    if function["name"] == "invalid":
        return function | {"name": arguments["tool"], "arguments": '{"broken'}
    return function | {"arguments": json.dumps(arguments, indent=2)}


@pytest.mark.parametrize("name", CASES)
def test_a_recorded_session_is_rebuilt_as_the_facts_say(name: str) -> None:
    reason, side_calls, orphans = CASES[name]
    found = answer({"sessions": Recording(name).envelopes()})
    assert (found.reason_code, found.withheld) == (reason, reason is not None), found.reason
    assert [count(found, why) for why in ("side_call", "orphan", "invalid")] == [side_calls, orphans, 0]


def test_two_recorded_subagents_are_clean_children_of_their_root() -> None:
    found = answer({"sessions": Recording("opencode/c_task").envelopes()})
    root, *children = found.trajectories
    assert [one.outcome for one in found.trajectories] == ["clean"] * 3
    assert [one.parent for one in children] == [root.session_id] * 2


def count(found: RebuildAnswer, why: str) -> int:
    return sum(one.why == why for one in found.excluded)
