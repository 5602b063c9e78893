"""Codex CLI 0.171.0 (``codex exec``, Responses API): its requests and its loop, as recorded from the real one.

The provider comes from the configuration (``wire_api = "responses"``); Codex does not know the model. Not played:
``fork_context``, ``resume_agent``, structured input, images, MCP servers, skills, the hosted search, approval and
sandboxes, the terminal interface, and compaction by default (an unknown model is given a window of its own).

``codex_agent`` is the loop of one agent, ``codex_agents`` its sub-agents, ``codex_client`` one call and how it is
repeated, ``codex_stream`` how an answer is read, ``codex_history`` what is sent again and what a compaction leaves.
"""

import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from fakes.harnesses.codex_agent import Agent, End, Settings
from fakes.harnesses.codex_agents import SubAgents
from fakes.harnesses.codex_client import IDLE, Client, Patience
from fakes.harnesses.codex_ids import new_thread_id
from fakes.harnesses.codex_requests import VERSION, Thread
from fakes.harnesses.codex_tools import OwnTools
from fakes.harnesses.conversation import Account, Conversation
from fakes.harnesses.tools import ToolResult
from fakes.harnesses.wire import Wire

__all__ = ["VERSION", "Codex"]


@dataclass
class Codex:
    """One thread of Codex against ``base_url`` (``http://host:port``, with or without a path in front).

    ``thread`` is the id in ``session-id`` and ``thread-id`` (random when not given); ``session`` goes as the header
    ``proxy_x_session_id``, beside the provider's other ``http_headers``. ``request_retries`` and ``stream_retries`` are
    the provider's settings, ``compact_at`` is ``model_auto_compact_token_limit`` in tokens; None never compacts.
    ``agent_threads`` are the ids of the sub-agents in order of spawning, for playbooks that wait for one by its id;
    those it does not name are random, and ``child_ended`` is called when one is done. ``tool_results`` replaces what a
    named tool answers. ``time_scale`` multiplies waits, ``timeout_scale`` the 300 s of silence after which a stream
    counts as dead.
    """

    base_url: str
    session: str | None = None
    model: str = "policy_model"
    thread: str = field(default_factory=new_thread_id)
    http_headers: Mapping[str, str] = field(default_factory=dict)
    request_retries: int = 4
    stream_retries: int = 5
    compact_at: int | None = None
    agent_threads: Sequence[str] = ()
    tool_results: Mapping[str, str | ToolResult] = field(default_factory=dict)
    child_ended: Callable[[], None] = lambda: None
    api_key: str = "EMPTY"
    time_scale: float = 0.01
    timeout_scale: float = 0.1

    async def run(self, task: str, *, follow_ups: Sequence[str] = (), max_turns: int = 50) -> Conversation:
        """Work on the task; a ``codex exec resume`` says each of ``follow_ups``, once what was before is answered."""
        carried = {} if self.session is None else {"proxy_x_session_id": self.session}
        settings = Settings(
            {**self.http_headers, **carried}, self.api_key, OwnTools(self.tool_results), self.compact_at, max_turns
        )
        patience = Patience(self.request_retries, self.stream_retries, self.time_scale, IDLE * self.timeout_scale)
        # Before the head of an answer the real client waits for ever: only the wire's own deadline ends that.
        async with Wire(self.base_url, read_timeout=120.0) as wire:
            account = Account()
            thread = Thread(self.thread, self.thread, str(uuid.uuid4()), self.model)
            root = Agent(settings, Client(wire, account, patience), thread)

            ids = iter(self.agent_threads)

            def new_child() -> Agent:
                id_ = next(ids, None) or new_thread_id()
                child = Thread(thread.session, id_, thread.installation, thread.model, thread, thread.turn)
                child.root_turn = thread.root_turn
                return Agent(settings, Client(wire, account, patience), child)

            ended: End = ("answered", None)
            for n, text in enumerate((task, *follow_ups)):
                thread.resumed = n > 0
                # The sub-agents die with the process; the thread is resumed without them.
                root.agent_tools = sub_agents = SubAgents(root, new_child, self.child_ended)
                try:
                    ended = await root.work_on(text)
                finally:
                    left = await sub_agents.close()
                root.children += [agent.told(*end, self.session) for agent, end in left]
                root.inbox.clear()
                if ended[0] != "answered":
                    break
        return root.told(*ended, self.session)
