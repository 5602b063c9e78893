"""What Codex 0.171.0 puts on the wire for one request: headers, turn metadata and body, in its order."""

import json
import random
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from fakes.harnesses.codex_ids import new_thread_id
from fakes.harnesses.codex_stream import Item
from fakes.harnesses.wire import HOST, LENGTH

VERSION = "0.171.0"
ROOT = "/".join(("", "root"))
"""The name of every agent, sub-agents included: no path of this or any machine."""

COMPACTION = {"trigger": "auto", "reason": "context_limit", "implementation": "responses"}


@dataclass
class Thread:
    """One agent's thread and where it stands: ids, window and the user turn at work.

    The children of a thread share ``session``, and with it the cache key; each has a ``thread`` of its own.
    """

    session: str
    thread: str
    installation: str
    model: str
    parent: "Thread | None" = None
    spawned_in: str = ""
    turn: str = ""
    root_turn: str = ""
    started_at: int = 0
    window: int = 0
    context_window: str = field(default_factory=new_thread_id)
    resumed: bool = False

    @property
    def window_id(self) -> str:
        return f"{self.thread}:{self.window}"

    def metadata(self, compaction: str | None) -> str:
        """The turn metadata as compact JSON; ``compaction`` is the phase of one, None on a turn."""
        child = self.parent is not None
        parent: dict[str, Any] = {}
        if self.parent is not None:
            parent = {"parent_thread_id": self.parent.thread, "parent_turn_id": self.spawned_in}
        told: dict[str, Any] = {
            "installation_id": self.installation,
            "session_id": self.session,
            "thread_id": self.thread,
            "agent_name": ROOT,
            "turn_id": self.turn,
            "window_id": self.window_id,
            "window_number": self.window,
            "context_window_id": self.context_window,
            "request_kind": "turn" if compaction is None else "compaction",
            "history_initialization": "cold_resume" if self.resumed else "new",
            **parent,
            "root_turn_id": self.root_turn,
            **({"subagent_kind": "thread_spawn"} if child else {}),
            "thread_source": "subagent" if child else "user",
            "turn_trigger": "exec",
            "sandbox": "none",
            "sandbox_mode": "danger-full-access",
            "auto_review_enabled": False,
            "node_repl_auto_review_required": False,
            "node_repl_disabled": False,
            "turn_started_at_unix_ms": self.started_at,
            "analytics_enabled": False,
        }
        told |= (
            {"model": self.model}
            if compaction is None
            else {"compaction": {**COMPACTION, "phase": compaction, "strategy": "memento"}}
        )
        return json.dumps(told, separators=(",", ":"), ensure_ascii=False)


def headers(
    thread: Thread, configured: Mapping[str, str], api_key: str, compaction: str | None
) -> list[tuple[str, str]]:
    """The request head; ``configured`` are the provider's ``http_headers``, sent verbatim and first."""
    parent = thread.parent
    child = (
        [] if parent is None else [("x-codex-parent-thread-id", parent.thread), ("x-openai-subagent", "collab_spawn")]
    )
    return [
        *configured.items(),
        ("x-codex-beta-features", "remote_compaction_v2"),
        ("x-codex-window-id", thread.window_id),
        ("x-codex-turn-metadata", thread.metadata(compaction)),
        *child,
        ("x-client-request-id", thread.thread),
        ("session-id", thread.session),
        ("thread-id", thread.thread),
        ("accept", "text/event-stream"),
        ("content-type", "application/json"),
        ("authorization", f"Bearer {api_key}"),
        ("originator", "codex_exec"),
        ("user-agent", f"codex_exec/{VERSION} (Debian 12.0.0; x86_64) unknown (codex_exec; {VERSION})"),
        ("accept-encoding", "zstd,gzip"),
        ("host", HOST),
        ("content-length", LENGTH),
    ]


def body(
    thread: Thread, history: list[Item], tools: list[dict[str, Any]], compaction: str | None, mixed: int
) -> dict[str, Any]:
    """The body. Client metadata comes out of a hash map: ``mixed`` gives an order that differs from call to call."""
    return {
        "model": thread.model,
        "stream": True,
        "input": history,
        "tools": tools,
        "tool_choice": "auto",
        "parallel_tool_calls": compaction is None,
        "reasoning": {"summary": "auto"},
        "store": False,
        "include": ["reasoning.encrypted_content"],
        "prompt_cache_key": thread.session,
        "client_metadata": _client_metadata(thread, compaction, mixed),
    }


def _client_metadata(thread: Thread, compaction: str | None, mixed: int) -> dict[str, str]:
    told = {
        "session_id": thread.session,
        "thread_id": thread.thread,
        "turn_id": thread.turn,
        "root_turn_id": thread.root_turn,
        "x-codex-installation-id": thread.installation,
        "x-codex-window-id": thread.window_id,
        "x-codex-turn-metadata": thread.metadata(compaction),
    }
    if thread.parent is not None:
        told |= {"x-codex-parent-thread-id": thread.parent.thread, "x-openai-subagent": "collab_spawn"}
        told["parent_turn_id"] = thread.spawned_in
    names = sorted(told)
    random.Random(f"{thread.thread} {mixed}").shuffle(names)
    return {name: told[name] for name in names}
