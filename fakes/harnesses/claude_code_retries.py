"""What Claude Code does when a call brings no answer: again, again without streaming, again written otherwise, or fail.

All of it is recorded except: how a time-out or a break after the stop reason is taken, what becomes of failures of the
buffered request, and that downgrades last for the session.
"""

import re
from dataclasses import dataclass

from fakes.harnesses.claude_code_models import MID_CONVERSATION, Environment, Form
from fakes.harnesses.claude_code_stream import Answer
from fakes.harnesses.exchanges import Exchange

WAITS = (0.6, 1.1, 2.4, 4.3, 9.5, 18.5, 34.0, 33.0, 37.0, 37.0)
"""The waits seen, in seconds: half a second doubled each time up to 32, and up to a quarter more by chance."""

_RETRIED = frozenset({401, 408, 409, 429})
_OVERLOADED = 529
_OVERLOADS_BEFORE_FALLBACK = 3
_NO_SYSTEM = (
    "role 'system' is not supported on this model",
    f"Unexpected value(s) `{MID_CONVERSATION}` for the `anthropic-beta` header.",
)
_NO_ADAPTIVE = "adaptive thinking is not supported on this model"
_NO_ROOM = re.compile(r"input length and `max_tokens` exceed context limit: (\d+) \+ (\d+) > (\d+)")
_MARGIN, _LEAST_OUTPUT = 1000, 3000
_TOO_LONG = "prompt is too long"


class CallFailed(Exception):
    """Raised when a call brought no answer and Claude Code does not, or no longer, try it again."""


class PromptTooLong(CallFailed):
    """Raised when the server says so in the one sentence that Claude Code knows."""


@dataclass
class Attempts:
    """The attempts of one call. ``streaming`` and ``wait`` (seconds, None for at once) are those of the next one."""

    env: Environment
    form: Form
    streaming: bool = True
    wait: float | None = None
    max_tokens: int | None = None
    _failures: int = 0
    _overloads: int = 0

    def is_over(self, exchange: Exchange, answer: Answer) -> bool:
        """Whether the answer stands; if not, the next attempt is noted here. Raises ``CallFailed``."""
        self.wait = None
        if exchange.response is None:
            self._later(exchange, exchange.error or exchange.ended)
        elif exchange.ok or 200 <= exchange.response.status < 300:
            return self._stands(exchange, answer)
        else:
            self._refused(exchange, exchange.response.status, answer.error or "")
        return False

    def _stands(self, exchange: Exchange, answer: Answer) -> bool:
        broken = exchange.ended != "complete"
        why = f"API Error: {answer.error}" if answer.error else "Connection closed mid-response"
        if answer.calls or (answer.stop_reason and not answer.error and not broken):
            return True
        if not self.streaming:
            if broken:
                self._later(exchange, why)
            elif answer.error:
                raise CallFailed(why)
            return not broken
        if (broken and not answer.events) or (answer.error and not answer.opened):
            self._later(exchange, why)
        elif not answer.blocks:
            self._buffered(why)
        elif answer.error or (broken and not answer.stop_reason):
            raise CallFailed(why)
        else:
            # A clean end is a success to it, stop reason or not.
            return True
        return False

    def _refused(self, exchange: Exchange, status: int, said: str) -> None:
        why = f"API Error: {status} {said}"
        self._overloads += status == _OVERLOADED
        if status == _OVERLOADED and self._falls_back():
            return
        if status in _RETRIED or status >= 500:
            self._later(exchange, why)
        elif status == 404 and self.streaming:
            self._buffered(why)
        elif status != 400 or not self._downgraded(said):
            raise (PromptTooLong if status == 400 and _TOO_LONG in said else CallFailed)(why)

    def _falls_back(self) -> bool:
        """After three overloads the fallback model takes over, at once and with attempts of its own."""
        fallback = self.env.fallback_model
        if fallback in (None, self.form.model) or self._overloads < _OVERLOADS_BEFORE_FALLBACK:
            return False
        self.form.model = str(fallback)
        self._failures = self._overloads = 0
        return True

    def _downgraded(self, said: str) -> bool:
        if self.form.mid_conversation and any(sign in said for sign in _NO_SYSTEM):
            self.form.without_mid_conversation()
        elif self.form.thinking == {"type": "adaptive"} and _NO_ADAPTIVE in said:
            self.form.without_adaptive_thinking()
        elif self.max_tokens is None and (found := _NO_ROOM.search(said)):
            self.max_tokens = max(int(found[3]) - int(found[1]) - _MARGIN, _LEAST_OUTPUT)
        else:
            return False
        return True

    def _buffered(self, why: str) -> None:
        if not self.env.nonstreaming_fallback:
            raise CallFailed(why)
        self.streaming = False

    def _later(self, exchange: Exchange, why: str) -> None:
        response = exchange.response
        forbidden = response is not None and response.header("x-should-retry") == "false"
        if forbidden or self._failures >= self.env.max_retries:
            raise CallFailed(why)
        self.wait = max(WAITS[min(self._failures, len(WAITS) - 1)], _retry_after(exchange))
        self._failures += 1


def _retry_after(exchange: Exchange) -> float:
    """The seconds that the server asks for; they can only lengthen the wait."""
    said = "" if exchange.response is None else exchange.response.header("retry-after") or ""
    return float(said) if re.fullmatch(r"\d+(\.\d+)?", said) else 0.0
