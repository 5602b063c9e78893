"""Faults: what goes wrong on the wire, by name. Each is named after the bug it reproduces.

A fault acts at one of four places: on the sample before the answer is assembled, on the profile, on the assembled
answer (``answer_faults``, and of its tokens ``token_faults``), or on the way it is written (``writing_faults``).
One table per place.
"""

from collections.abc import Callable
from dataclasses import replace

from fakes.vllm.answer_faults import ON_ANSWER
from fakes.vllm.profiles import Profile
from fakes.vllm.sample import Fault, Sample
from fakes.vllm.writing_faults import ON_WRITING

ON_PROFILE: dict[str, Callable[[Profile], Profile]] = {
    "dropped_hidden_chunks": lambda profile: replace(profile, drops_hidden_ids=True),
    "history_logprobs": lambda profile: replace(profile, repeats_logprobs_at_empty_end=True),
}


def _abort(sample: Sample, fault: Fault) -> Sample:
    """The engine gives up half way, or at the token given: what there is so far, consistent, and ``abort``."""
    keep = fault.at_token if fault.at_token is not None else len(sample.token_ids) // 2
    return replace(
        sample,
        token_ids=sample.token_ids[:keep],
        log_probs=sample.log_probs[:keep],
        alternatives=sample.alternatives[:keep] if sample.alternatives is not None else None,
        finish_reason="abort",
        stop_reason=None,
        message=None,
    )


ON_SAMPLE: dict[str, Callable[[Sample, Fault], Sample]] = {"abort": _abort}

EMPTY_END = frozenset({"abort", "history_logprobs"})

NAMES = frozenset({*ON_ANSWER, *ON_PROFILE, *ON_SAMPLE, *ON_WRITING})
