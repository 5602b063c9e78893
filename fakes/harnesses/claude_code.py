"""Claude Code 2.1.197: its requests and its loop, as recorded from the real one run without a terminal.

The terminal interface, and whatever ``Environment`` and the follow-ups ask for beyond the recordings, follow the facts.
Not played: MCP servers, hooks, skills, structured output (``--json-schema``), resuming agents by SendMessage, memory
files, images, and results that are too long to stand inline.

``claude_code_agent`` is the loop of one agent, ``claude_code_client`` one call with its attempts,
``claude_code_history`` what is sent again and how.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from fakes.harnesses import claude_code_tools as tools
from fakes.harnesses.claude_code_agent import INTERRUPTED, KILLED, Agent, End, Habits, Leave
from fakes.harnesses.claude_code_client import Client
from fakes.harnesses.claude_code_delegation import Kind
from fakes.harnesses.claude_code_models import DEFAULT_MODEL, VERSION, Environment, form_for
from fakes.harnesses.claude_code_workspace import Workspace
from fakes.harnesses.conversation import Account, Conversation, new_id
from fakes.harnesses.tools import ToolResult
from fakes.harnesses.wire import Wire

__all__ = ["DEFAULT_MODEL", "VERSION", "ClaudeCode", "Environment", "Leave"]

COMPACT = "/compact"


@dataclass
class ClaudeCode:
    """One session of Claude Code against ``base_url`` (``http://host:port``, with or without a path in front).

    ``session`` is the id in ``X-Claude-Code-Session-Id`` and in the metadata (random when not given); root, sub-agents
    and side calls share it. ``leave`` says at which answers of the root, counted from 0, the user leaves a stream
    early; ``queued`` what the user says while the tools of such an answer run. ``tool_results`` replaces what a named
    tool answers. With ``one_process`` the follow-ups are typed into the running process; otherwise each is a process
    of its own that continues the session. ``time_scale`` multiplies waits, ``timeout_scale`` the time-out of 600 s.
    """

    base_url: str
    session: str = field(default_factory=new_id)
    model: str = "policy_model"
    env: Environment = field(default_factory=Environment)
    leave: Mapping[int, Leave] = field(default_factory=dict)
    queued: Mapping[int, str] = field(default_factory=dict)
    tool_results: Mapping[str, str | ToolResult] = field(default_factory=dict)
    one_process: bool = False
    cwd: str = "/project"
    time_scale: float = 0.01
    timeout_scale: float = 0.1

    async def run(self, task: str, *, follow_ups: Sequence[str] = (), max_turns: int = 50) -> Conversation:
        """Work on the task; each time the model has answered in plain text, or the user interrupted it, say the next of
        ``follow_ups``, else end. The follow-up ``/compact`` compacts by hand.
        """
        read_timeout = self.env.api_timeout * self.timeout_scale
        device = hashlib.sha256(self.session.encode()).hexdigest()
        async with Wire(self.base_url, read_timeout=read_timeout) as wire:
            client = Client(self.base_url, wire, Account(), self.env, self.session, device, self.time_scale)
            names = tools.BARE if self.env.bare else tools.ROOT
            kind = Kind(names, form_for(self.model, self.env, subagent=False), client.speaker())
            habits = Habits(Workspace(self.tool_results), self.cwd, self.leave, self.queued)
            root = Agent(client, kind, habits)
            try:
                ended, error = await self._work(client, root, [task, *follow_ups], max_turns)
                if error != KILLED:
                    await root.close()
            finally:
                await root.stop()
        return root.told(ended, error)

    async def _work(self, client: Client, root: Agent, said: Sequence[str], max_turns: int) -> End:
        ended: End = ("answered", None)
        for number, text in enumerate(said):
            if number == 0 or not self.one_process:
                await client.wire.close()
                await client.probe(root.exchanges)
            if text == COMPACT:
                ended = await root.compact_by_hand()
            else:
                title, new_process = self.env.interactive and number == 0, not self.one_process
                ended = await root.work_on(text, max_turns, title=title, new_process=new_process)
            if ended[0] != "answered" and ended[1] != INTERRUPTED:
                break
        return ended
