"""What of playbooks and tenants a real engine can play, and how it is made to say what is due.

A random model speaks noise. It is given each text as the only choice of vLLM's structured outputs: which tokens it
takes for that text, and with which log probs, is its own affair.
"""

import json
from collections.abc import Mapping

from fakes.recorder.engine import RealEngine
from fakes.vllm.calls import Call
from fakes.vllm.chat import sample_request
from fakes.vllm.checks import chat_request
from fakes.vllm.draws import Draw
from fakes.vllm.engine import PlaybookEngine
from fakes.vllm.errors import Refusal
from fakes.vllm.playbook import Content, Playbook, contents_of
from fakes.vllm.sample import PromptTooLong, SampleRequest
from fakes.vllm.tenants import TenantConfig

CHOSEN = "structured_outputs"
NEVER, ALWAYS = -100, 100
"""vLLM's own bounds of a logit's bias. What the grammar forbids stays forbidden."""
OWN_CHOICES = (CHOSEN, "response_format")


def cannot_be(config: TenantConfig, engine: RealEngine) -> str | None:
    """Why the real engine is no such tenant, or None when it is."""
    plain = TenantConfig(
        models=list(engine.models),
        max_model_len=engine.max_model_len,
        tool_parser="hermes",
        reasoning_parser="qwen3",
    )
    for key in type(config).model_fields:
        wanted, seen = getattr(config, key), getattr(plain, key)
        if wanted != seen:
            return f"a real engine has {key} {seen!r}, and not {wanted!r}"
    return None


def cannot_play(playbook: Playbook) -> dict[str, str]:
    """By place, why a real engine cannot play it: scopes by their name, or ``side_calls``. Empty where it can.

    Of splits and chunks of text nothing is promised.
    """
    found: dict[str, str] = {}
    for place, answer, content in contents_of(playbook):
        fault = None if answer.fault is None else f"has no fault {answer.fault.name}"
        why = fault or _unspeakable(content)
        if why is not None:
            scope = place.removeprefix("scopes.").partition("[")[0].removesuffix(".turns")
            found.setdefault(scope, f"a real engine {why} ({place})")
    return found


def _unspeakable(content: Content) -> str | None:
    if content.ids is not None:
        return "chooses its tokens itself"
    if content.message is not None:
        return "parses its answers itself"
    if content.finish not in (None, "stop"):
        return f"does not end by {content.finish} when told to"
    if not (content.text or content.reasoning or content.calls):
        return "cannot be made to say nothing"
    return None


class Script:
    """Finds what is due to a request by the tags in it, as the fake does."""

    def __init__(self, engine: PlaybookEngine, real: RealEngine) -> None:
        self._engine = engine
        never, always = dict.fromkeys(real.other_ends, NEVER), dict.fromkeys(real.markup, ALWAYS)
        self._bias = {str(token): value for token, value in {**never, **always}.items()}

    def due(self, call: Call, endpoint: str, raw: object, prompt: str | None) -> Draw | None:
        """The turn that a request asks for, entered into its row. None where the engine has to judge it unforced.

        ``prompt`` is the text of a prompt that was given as text or ids.
        """
        if not isinstance(raw, dict) or any(raw.get(key) is not None for key in OWN_CHOICES):
            return None
        try:
            draw = self._engine.due(self._request(call, endpoint, raw, prompt))
        except (Refusal, PromptTooLong):
            return None
        tag = draw.tag
        call.note(
            run=tag.run if tag else None,
            scope=tag.scope if tag else None,
            turn=tag.turn if tag and draw.rule is None else None,
            rule=draw.rule,
            attempt=draw.attempt,
            off_script=draw.is_off_script,
        )
        return draw

    def _request(self, call: Call, endpoint: str, raw: dict[str, object], prompt: str | None) -> SampleRequest:
        if prompt is not None:
            return SampleRequest(tenant=call.tenant.name, endpoint=endpoint, prompt_text=prompt)
        return sample_request(call, chat_request(raw, call.profile))

    def forced(self, body: bytes, raw: Mapping[str, object], draw: Draw) -> bytes:
        """The body with the text that is due as its only choice; what stands before stays as it is, byte by byte.

        A call that names no seed gets one, so that an answer is a function of the same things as the fake's; and it
        writes markup as tags and ends by the end of a turn, as playbooks mean it.
        """
        added: dict[str, object] = {CHOSEN: {"choice": [self._engine.words_of(draw)]}}
        if raw.get("seed") is None:
            added["seed"] = draw.seed()
        if raw.get("logit_bias") is None:
            added["logit_bias"] = self._bias
        return body.rstrip()[:-1] + b"," + json.dumps(added)[1:].encode()
