"""The requests of Claude Code 2.1.197: heads and bodies, names, case and order as recorded."""

import hashlib
from dataclasses import dataclass
from typing import Any

from fakes.harnesses import claude_code_texts as texts
from fakes.harnesses.chat_answers import Message
from fakes.harnesses.claude_code_history import CACHED, Block, text_block
from fakes.harnesses.claude_code_json import js_dump
from fakes.harnesses.claude_code_models import CLEAR_THINKING, STRUCTURED, VERSION, Environment, Form
from fakes.harnesses.claude_code_tools import WEB_SEARCH
from fakes.harnesses.wire import HOST, LENGTH

PATH = "/v1/messages?beta=true"
NONSTREAMING_TIMEOUT = 300.0
_CODINGS = "gzip, deflate, br, zstd"
_TITLE_FORMAT = {
    "type": "json_schema",
    "schema": {
        "type": "object",
        "properties": {"title": {"type": "string"}},
        "required": ["title"],
        "additionalProperties": False,
    },
}

Body = dict[str, Any]
Headers = list[tuple[str, str]]

PROBE: Headers = [
    ("Connection", "keep-alive"),
    ("User-Agent", "Bun/1.4.0"),
    ("Accept", "*/*"),
    ("Host", HOST),
    ("Accept-Encoding", _CODINGS),
]
"""The head of the HEAD request on the base path: no key, no session."""


@dataclass(frozen=True)
class Speaker:
    """In whose name calls go out: one session, and inside it the root, a sub-agent, or a side call.

    Root and side calls look the same: neither has an ``agent_id``. ``parent_id`` is only sent by nested sub-agents.
    """

    env: Environment
    session: str
    device: str
    agent_id: str | None = None
    parent_id: str | None = None

    def headers(self, betas: list[str], timeout: float) -> Headers:
        env = self.env
        own = {
            "Accept": "application/json",
            "Content-Type": "application/json",
            "User-Agent": f"claude-cli/{VERSION} (external, {'cli' if env.interactive else 'sdk-cli'})",
            "X-Claude-Code-Session-Id": self.session,
            "X-Stainless-Arch": "x64",
            "X-Stainless-Lang": "js",
            "X-Stainless-OS": "Linux",
            "X-Stainless-Package-Version": "0.94.0",
            "X-Stainless-Retry-Count": "0",
            "X-Stainless-Runtime": "node",
            "X-Stainless-Runtime-Version": "v26.3.0",
            "X-Stainless-Timeout": f"{timeout:.0f}",
            "anthropic-beta": ",".join(betas),
            "anthropic-dangerous-direct-browser-access": "true",
            "anthropic-version": "2023-06-01",
            "x-app": "cli",
        }
        known = {
            "x-api-key": env.api_key,
            "Authorization": None if env.auth_token is None else f"Bearer {env.auth_token}",
            "x-claude-code-agent-id": self.agent_id,
            "x-claude-code-parent-agent-id": self.parent_id,
        }
        own |= {name: value for name, value in known.items() if value is not None}
        overridden = {name.lower() for name in env.custom_headers}
        kept = {name: value for name, value in own.items() if name.lower() not in overridden}
        named = sorted({**kept, **env.custom_headers}.items())
        return [
            *named,
            ("Connection", "keep-alive"),
            ("Host", HOST),
            ("Accept-Encoding", _CODINGS),
            ("Content-Length", LENGTH),
        ]

    def system(self, opening: str, text: str, *, cached: bool) -> list[Block]:
        """The three blocks of the system prompt. The first is a mark that changes with the first message's text."""
        cache = CACHED if cached and self.env.prompt_caching else {}
        blocks = [text_block(texts.IDENTITY) | cache, text_block(text) | cache]
        if not self.env.attribution:
            return blocks
        salt = hashlib.sha256(opening.encode(errors="replace")).hexdigest()[:3]
        entry = "cli" if self.env.interactive else "sdk-cli"
        mark = f"x-anthropic-billing-header: cc_version={VERSION}.{salt}; cc_entrypoint={entry};"
        return [text_block(mark + (" cc_is_subagent=true;" if self.agent_id else "")), *blocks]

    @property
    def metadata(self) -> dict[str, str]:
        """The session stands here once more, in a string that holds JSON."""
        return {"user_id": js_dump({"device_id": self.device, "account_uuid": "", "session_id": self.session})}


def turn_body(form: Form, speaker: Speaker, messages: list[Message], system: list[Block], tools: list[Block]) -> Body:
    """The body of a turn of the root or of a sub-agent, and of a compaction, which nothing tells from a turn."""
    body: Body = {
        "model": form.model,
        "messages": messages,
        "system": system,
        "tools": tools,
        "metadata": speaker.metadata,
        "max_tokens": form.max_tokens,
    }
    if form.thinking is not None:
        body["thinking"] = form.thinking
    if form.temperature is not None:
        body["temperature"] = form.temperature
    if form.context_management:
        body["context_management"] = CLEAR_THINKING
    if form.effort:
        body["output_config"] = {"effort": "high"}
    return body | {"stream": True}


def web_search_body(form: Form, speaker: Speaker, query: str) -> Body:
    """The side call that WebSearch makes: a server tool, no thinking, nothing cached."""
    text = texts.WEB_SEARCH.format(query=query)
    body: Body = {
        "model": form.model,
        "messages": [{"role": "user", "content": [text_block(text)]}],
        "system": speaker.system(text, texts.WEB_SEARCH_SYSTEM, cached=False),
        "tools": [WEB_SEARCH],
        "tool_choice": {"type": "auto"},
        "metadata": speaker.metadata,
        "max_tokens": form.max_tokens,
    }
    if form.effort:
        body["output_config"] = {"effort": "high"}
    return body | {"stream": True}


def title_body(form: Form, speaker: Speaker, prompt: str) -> Body:
    """The title call of the terminal interface. Told by the facts only: its keys are as little as they say."""
    return {
        "model": form.model,
        "messages": [{"role": "user", "content": [text_block(prompt)]}],
        "system": speaker.system(prompt, texts.TITLE_SYSTEM, cached=False),
        "tools": [],
        "metadata": speaker.metadata,
        "max_tokens": form.max_tokens,
        "output_config": {"effort": "high", "format": _TITLE_FORMAT},
        "stream": True,
    }


def title_betas(form: Form) -> list[str]:
    return [*form.betas, STRUCTURED]
