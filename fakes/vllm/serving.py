"""Answering a generation: draw, enter it into the ledger, wait at a gate, assemble, spoil, write."""

from collections.abc import Sequence
from dataclasses import replace

from fakes.vllm import faults
from fakes.vllm.answers import AnswerOptions, Identity, read, usage_of
from fakes.vllm.calls import Call, ClientLeft
from fakes.vllm.chat_answer import spoken
from fakes.vllm.errors import prompt_too_long, requested_too_much
from fakes.vllm.forms import Form, Material
from fakes.vllm.sample import Drawn, PromptTooLong, SampleRequest
from fakes.vllm.writer import Writer
from fakes.vllm.writing_faults import writing_of


def draw(call: Call, request: SampleRequest, wanted: int | None, *, as_ids: bool) -> Drawn:
    """Draw from the engine; raises a ``Refusal`` in the version's words when the prompt does not fit.

    ``wanted`` is the number of output tokens the client asked for.
    """
    limit = call.tenant.config.max_model_len
    profile = call.profile
    try:
        if not profile.clamps_max_tokens:
            _refuse_what_does_not_fit(call, request, limit, wanted, as_ids=as_ids)
        return call.world.engine.draw(request)
    except PromptTooLong as error:
        raise prompt_too_long(profile, error.prompt_tokens, limit, as_ids=as_ids, wanted=wanted) from None


def _refuse_what_does_not_fit(
    call: Call, request: SampleRequest, limit: int, wanted: int | None, *, as_ids: bool
) -> None:
    prompt_tokens = len(call.world.engine.render(request))
    if prompt_tokens >= limit:
        raise prompt_too_long(call.profile, prompt_tokens, limit, as_ids=as_ids, wanted=wanted)
    if wanted is not None and prompt_tokens + wanted > limit:
        raise requested_too_much(call.profile, prompt_tokens, limit, wanted)


async def serve(
    call: Call, drawn: Sequence[Drawn], form: Form, identity: Identity, options: AnswerOptions, text: str | None = None
) -> None:
    """Answer with what was drawn, one ``Drawn`` a prompt; the first one's fault and gate count."""
    first = drawn[0]
    fault = first.fault
    writing = writing_of(fault, options.stream)
    profile = call.profile
    if fault is not None and fault.name in faults.ON_PROFILE:
        profile = faults.ON_PROFILE[fault.name](profile)
    samples = [d.samples for d in drawn]
    if fault is not None and fault.name in faults.ON_SAMPLE:
        change = faults.ON_SAMPLE[fault.name]
        samples = [[change(sample, fault) for sample in row] for row in samples]
    options = replace(options, empty_end=fault is not None and fault.name in faults.EMPTY_END)
    material = Material(
        identity, [d.prompt_token_ids for d in drawn], samples, options, call.world.words, profile, text
    )
    _note_drawn(call, first, material)
    try:
        await Writer(call, writing, fault, form, material).write(first.gate)
    except ClientLeft:
        call.note(state="aborted")
    finally:
        call.unwatch()


def _note_drawn(call: Call, drawn: Drawn, material: Material) -> None:
    sample = material.samples[0][0]
    reading = read(sample, material.options, material.words)
    call.note(
        request_id=material.identity.id,
        model=material.identity.model,
        run=drawn.run,
        scope=drawn.scope,
        turn=drawn.turn,
        rule=drawn.rule,
        attempt=drawn.attempt,
        off_script=drawn.off_script,
        faithful=drawn.faithful,
        streamed=material.options.stream,
        prompt_token_ids=drawn.prompt_token_ids,
        generation_token_ids=sample.token_ids,
        generation_log_probs=sample.log_probs,
        finish_reason=sample.finish_reason,
        stop_reason=sample.stop_reason,
        text=reading.text,
        message=spoken(0, reading, material.options, material.identity, material.profile)[0],
        rendered_ids=drawn.rendered_ids,
        usage=usage_of(
            sum(map(len, material.prompts)),
            sum(len(s.token_ids) for row in material.samples for s in row),
        ),
        fault=drawn.fault.name if drawn.fault is not None else None,
    )
