"""The engine: finds the turn a prompt asks for, and samples what the playbook says."""

from collections.abc import Mapping

import tiktoken

from fakes.vllm import log_probs, tokenizer
from fakes.vllm.draws import OFF_SCRIPT, Draw
from fakes.vllm.playbook import Answer, Content, Playbook
from fakes.vllm.prompts import Prompt, build_prompt, prompt_text, view
from fakes.vllm.sample import Drawn, Fault, PromptTooLong, Sample, SampleRequest
from fakes.vllm.splits import Splitter
from fakes.vllm.stops import Stopper
from fakes.vllm.tags import Tag, asked_for
from fakes.vllm.template import EMPTY_THINK, Segmenter, dump_arguments, generated_body
from fakes.vllm.tenants import Tenant, Tenants
from fakes.vllm.tokenizer import END_OF_TEXT, TURN_END

NEUTRAL_TEXT = "All right."

_NEUTRAL = Answer(text=NEUTRAL_TEXT)


class UnknownTenant(KeyError):
    """Raised for a request of a tenant that was never put; the wire layer answers 404."""


class PlaybookEngine:
    """Implements ``fakes.vllm.sample.Engine`` over playbooks, for all tenants of one fake.

    A sample depends on playbook, tenant, run, scope, turn and attempt, and on what the request cuts or forces; on
    nothing else. The count of attempts, kept by the tenant, is the only state.
    """

    def __init__(self, encoding: tiktoken.Encoding, tenants: Tenants) -> None:
        self.encoding = encoding
        self._tenants = tenants
        self._segmenter = Segmenter(encoding)
        self._splitter = Splitter(encoding)
        self._stopper = Stopper(encoding)

    def render(self, request: SampleRequest) -> list[int]:
        """Prompt ids of the request, without drawing."""
        return self._prompt(request).ids

    def prompt_text(self, request: SampleRequest) -> str:
        """The prompt as text: rendered, given, or decoded."""
        if request.prompt_token_ids is not None:
            return tokenizer.decode(self.encoding, request.prompt_token_ids)
        if request.prompt_text is not None:
            return request.prompt_text
        return prompt_text(request, self._tenant(request).switches)

    def draw(self, request: SampleRequest) -> Drawn:
        """Render, find the turn, count the attempt, sample. Raises as :meth:`due`."""
        return self._drawn(self.due(request))

    def due(self, request: SampleRequest) -> Draw:
        """Render, find the turn, count the attempt.

        Raises ``PromptTooLong`` before the attempt is counted, and ``UnknownTenant``.
        """
        tenant = self._tenant(request)
        prompt = self._prompt(request)
        room = tenant.config.max_model_len - len(prompt.ids)
        if room < 1:
            raise PromptTooLong(len(prompt.ids), tenant.config.max_model_len)
        if request.max_tokens is not None:
            room = min(room, request.max_tokens)
        tag = asked_for(prompt.tags)
        playbook = tenant.playbooks.get(tag.run) if tag is not None else None
        if tag is None:
            return Draw(request, tenant, prompt, room, None, None, _NEUTRAL, None, 0)
        rule, answer = self._answer(request, prompt, playbook, tag)
        attempt = tenant.count_attempt(tag.run, tag.scope, tag.turn if rule is None else rule)
        return Draw(request, tenant, prompt, room, tag, playbook, answer, rule, attempt)

    def words_of(self, draw: Draw) -> str:
        """What is due as a model writes it, thoughts and markup of calls included, without its end token."""
        content, _ = draw.content()
        return self._text(content, draw)[0]

    def _tenant(self, request: SampleRequest) -> Tenant:
        tenant = self._tenants.get(request.tenant)
        if tenant is None:
            raise UnknownTenant(request.tenant)
        return tenant

    def _prompt(self, request: SampleRequest) -> Prompt:
        return build_prompt(request, self._segmenter, self._tenant(request).switches)

    def _answer(
        self, request: SampleRequest, prompt: Prompt, playbook: Playbook | None, tag: Tag
    ) -> tuple[str | None, Answer]:
        if playbook is None:
            return None, OFF_SCRIPT
        if playbook.side_calls:
            seen = view(request, prompt)
            for side_call in playbook.side_calls:
                if seen.fits(side_call.when):
                    return side_call.name, side_call
        turns = playbook.turns_of(tag.scope)
        if turns is None or tag.turn >= len(turns):
            return None, OFF_SCRIPT
        return None, turns[tag.turn]

    def _drawn(self, draw: Draw) -> Drawn:
        samples = []
        faithful = not draw.prompt.no_thinking and draw.prompt.rendered_ids in (None, draw.prompt.ids)
        for choice in range(draw.request.n):
            sample, kept = self._sample(draw, choice)
            samples.append(sample)
            faithful = faithful and kept
        tag, fault = draw.tag, draw.answer.fault
        strikes = fault is not None and (fault.on_attempts == "all" or draw.attempt in fault.on_attempts)
        return Drawn(
            prompt_token_ids=draw.prompt.ids,
            samples=samples,
            run=tag.run if tag else None,
            scope=tag.scope if tag else None,
            turn=tag.turn if tag and draw.rule is None else None,
            rule=draw.rule,
            attempt=draw.attempt,
            off_script=draw.is_off_script,
            faithful=faithful,
            rendered_ids=draw.prompt.rendered_ids,
            fault=Fault(fault.name, fault.at_token, fault.status, dict(fault.headers), fault.raw, dict(fault.options))
            if fault is not None and strikes
            else None,
            gate=draw.fill_gate(),
        )

    def _sample(self, draw: Draw, choice: int) -> tuple[Sample, bool]:
        """One generation, and whether it keeps the promise of faithful sampling."""
        content, effective = draw.content()
        place = draw.place(effective, choice)
        ids, canonical = self._ids(draw, content, effective, choice)
        stopped = self._stopper.stop(
            ids, room=draw.room, stop=draw.request.stop, stop_token_ids=draw.request.stop_token_ids
        )
        bits = draw.tenant.config.logprob_bits
        if content.log_probs is not None:
            probs = list(content.log_probs[: len(stopped.ids)])
        else:
            probs = log_probs.draw(place, stopped.ids, bits)
        wanted = draw.request.alternatives
        sample = Sample(
            token_ids=stopped.ids,
            log_probs=probs,
            finish_reason=content.finish if content.finish == "stop" and not stopped.cut else stopped.finish_reason,
            stop_reason=stopped.stop_reason,
            message=draw.fill(content.message) if content.message is not None else None,
            chunking=tuple(content.chunking),
            alternatives=log_probs.draw_alternatives(place, stopped.ids, probs, wanted, self.encoding.n_vocab, bits)
            if wanted > 0
            else None,
        )
        return sample, canonical and not stopped.cut and sample.finish_reason == "stop"

    def _ids(self, draw: Draw, content: Content, effective: int, choice: int) -> tuple[list[int], bool]:
        """What the model would generate if nothing stopped it, and whether its history renders to the same ids."""
        if content.ids is not None:
            return self._explicit(content, draw), False
        text, unechoed = self._text(content, draw)
        ids = list(self._segmenter.body(text))
        faithful = draw.sampling(content) == "faithful"
        # A fresh attempt, and each further choice, is the same text in another split.
        is_fresh = choice > 0 or (draw.answer.attempts == "fresh" and effective > 0)
        canonical = faithful and not is_fresh
        if not canonical:
            variant = effective + choice
            ids = self._splitter.drifted(ids, draw.place(effective, choice), variant - 1 if faithful else variant)
        if content.finish != "length":
            ids.append(self.encoding.encode_single_token(_END[content.finish or "stop"]))
        return ids, canonical and not unechoed

    def _text(self, content: Content, draw: Draw) -> tuple[str, bool]:
        """The text to generate, without its end token, and whether its echo will differ."""
        text: str = draw.fill(content.text or "")
        reasoning = None if draw.prompt.no_thinking else content.reasoning
        calls = [
            (
                call.name,
                draw.fill(call.arguments)
                if isinstance(call.arguments, str)
                else dump_arguments(draw.fill(call.arguments)),
            )
            for call in content.calls
        ]
        forced = _forced_tool(draw.request)
        if forced is not None and draw.rule is None:
            return _forced_text(forced, text, calls), True
        if reasoning is not None and content.finish == "length" and not text and not calls:
            return f"<think>\n{reasoning}", False
        body = generated_body(text, reasoning, calls)
        thinks = draw.tenant.config.reasoning_parser is not None and not draw.prompt.no_thinking
        if thinks and reasoning is None and body:
            # Qwen3's parser takes everything before </think> for reasoning, so a model that does not think says so.
            body = EMPTY_THINK + body
        # A stream gives the blank lines after </think> as content, and beside a call the template keeps those.
        blank_content = draw.request.streamed and thinks and bool(calls)
        loses_thought = body.startswith("<think>") and draw.tenant.switches.strip_history_reasoning
        return body, blank_content or (loses_thought and draw.user_speaks_later())

    def _explicit(self, content: Content, draw: Draw) -> list[int]:
        ids: list[int] = []
        for item in content.ids or ():
            if isinstance(item, str):
                ids.extend(self._segmenter.body(draw.fill(item)))
            else:
                ids.append(item)
        return ids


_END = {"stop": TURN_END, "endoftext": END_OF_TEXT}


def _forced_tool(request: SampleRequest) -> str | None:
    """The tool a request forces by name, ``""`` for any tool, None when it forces nothing."""
    choice = request.tool_choice
    if not request.tools:
        return None
    if choice == "required":
        return ""
    if isinstance(choice, Mapping):
        function = choice.get("function")
        name = function.get("name") if isinstance(function, Mapping) else None
        return name if isinstance(name, str) else None
    return None


def _forced_text(forced: str, text: str, calls: list[tuple[str, str]]) -> str:
    """A forced call as vLLM 0.32 makes the model write it: without newlines between markup and JSON.

    Without a fitting call the text goes into the arguments, so that its tag comes back.
    """
    fitting = [call for call in calls if forced in ("", call[0])]
    if not fitting:
        fitting = [(forced or "answer", dump_arguments({"text": text}))]
    if forced:
        fitting = fitting[:1]
    return "".join(
        f'<tool_call>{{"name": "{name}", "arguments": {arguments}}}</tool_call>' for name, arguments in fitting
    )
