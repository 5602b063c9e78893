"""What Claude Code 2.1.197 sends depends on the model's name and on the environment; both stand here."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

VERSION = "2.1.197"
DEFAULT_MODEL = "claude-opus-4-8"
HAIKU = "claude-haiku-4-5-20251001"

MID_CONVERSATION = "mid-conversation-system-2026-04-07"
EFFORT = "effort-2025-11-24"
CONTEXT_1M = "context-1m-2025-08-07"
STRUCTURED = "structured-outputs-2025-12-15"
_CLAUDE_CODE = "claude-code-20250219"
_EXPERIMENTAL = (
    "thinking-token-count-2026-05-13",
    "context-management-2025-06-27",
    "prompt-caching-scope-2026-01-05",
)
_INTERLEAVED = "interleaved-thinking-2025-05-14"
_REDACT = "redact-thinking-2026-02-12"

CLEAR_THINKING = {"edits": [{"type": "clear_thinking_20251015", "keep": "all"}]}
BUDGET = {"budget_tokens": 31999, "type": "enabled"}


@dataclass(frozen=True)
class Environment:
    """The environment and the flags of the process; each field names the variable or flag it stands for.

    Several at once were never recorded, only one by one.
    """

    api_key: str | None = "dummy"  # ANTHROPIC_API_KEY
    auth_token: str | None = None  # ANTHROPIC_AUTH_TOKEN
    custom_headers: Mapping[str, str] = field(default_factory=dict)  # ANTHROPIC_CUSTOM_HEADERS
    haiku_model: str | None = None  # ANTHROPIC_DEFAULT_HAIKU_MODEL
    subagent_model: str | None = None  # CLAUDE_CODE_SUBAGENT_MODEL
    fallback_model: str | None = None  # --fallback-model
    max_output_tokens: int | None = None  # CLAUDE_CODE_MAX_OUTPUT_TOKENS
    auto_compact_window: int | None = None  # CLAUDE_CODE_AUTO_COMPACT_WINDOW
    max_retries: int = 10  # CLAUDE_CODE_MAX_RETRIES
    api_timeout: float = 600.0  # API_TIMEOUT_MS, here in seconds
    nonstreaming_fallback: bool = True  # CLAUDE_CODE_DISABLE_NONSTREAMING_FALLBACK
    attribution: bool = True  # CLAUDE_CODE_ATTRIBUTION_HEADER
    prompt_caching: bool = True  # DISABLE_PROMPT_CACHING
    experimental_betas: bool = True  # CLAUDE_CODE_DISABLE_EXPERIMENTAL_BETAS
    thinking: bool = True  # CLAUDE_CODE_DISABLE_THINKING
    bare: bool = False  # --bare
    interactive: bool = False  # the terminal interface instead of -p


@dataclass
class Form:
    """How calls to one model are written; the downgrades of this session are noted in it.

    ``mid_conversation`` says that what Claude Code adds goes into messages of the role ``system``; without it, it is
    folded into the user's messages.
    """

    model: str
    max_tokens: int
    betas: list[str]
    thinking: dict[str, Any] | None
    context_management: bool
    effort: bool
    mid_conversation: bool
    temperature: int | None = None

    def without_mid_conversation(self) -> None:
        self.mid_conversation = False
        self.betas = [beta for beta in self.betas if beta != MID_CONVERSATION]

    def without_adaptive_thinking(self) -> None:
        self.thinking = BUDGET


def form_for(model: str, env: Environment, *, subagent: bool) -> Form:
    """The form of calls to ``model``: recorded for a name it does not know, and for opus, sonnet-4-5 and haiku-4-5.

    Sub-agents on sonnet-4-5, and haiku-4-5 at the root, were not recorded: the former is taken to be as haiku's, the
    latter as sonnet's.
    """
    old = model.startswith(("claude-sonnet-4-5", "claude-haiku-4-5"))
    thinking = (BUDGET if old else {"type": "adaptive"}) if not subagent else {"type": "disabled"} if old else None
    if not env.thinking and thinking != {"type": "disabled"}:
        thinking = None
    return Form(
        model=model,
        max_tokens=env.max_output_tokens or (64000 if model == DEFAULT_MODEL else 32000),
        betas=_betas(model, env, old=old),
        thinking=thinking,
        context_management=not subagent and env.thinking and env.experimental_betas,
        effort=not old,
        mid_conversation=not old,
        temperature=1 if subagent and old else None,
    )


def _betas(model: str, env: Environment, *, old: bool) -> list[str]:
    experimental = _EXPERIMENTAL if env.experimental_betas else ()
    redact = (_REDACT,) if env.interactive else ()
    if model.startswith("claude-haiku-4-5"):
        return [_INTERLEAVED, *redact, *experimental, _CLAUDE_CODE]
    long_context = (CONTEXT_1M,) if model == DEFAULT_MODEL else ()
    newest = () if old else (MID_CONVERSATION, EFFORT)
    return [_CLAUDE_CODE, *long_context, _INTERLEAVED, *redact, *experimental, *newest]


def subagent_model(given: Mapping[str, Any], parent: str, env: Environment) -> str:
    """The model of a sub-agent: the parent's, but Explore and ``haiku`` ask for haiku by its own name."""
    if env.subagent_model is not None:
        return env.subagent_model
    asks_haiku = given.get("model") == "haiku" or given.get("subagent_type") == "Explore"
    return (env.haiku_model or HAIKU) if asks_haiku else parent
