"""A small trainer's side of a group: who votes in the baseline, who is trained, and who is asked for again.

A member that is masked counts for nothing: no vote, no gradient, and no second try, since what broke it would break
again. Only a member of which nothing came back is run again, by itself.
"""

import math
from collections.abc import Sequence as Many
from dataclasses import dataclass
from typing import Any, TypeGuard

from conformance.contract.verifies import GroupAnswer, GroupRequest, Member, MemberVerdict, Sequence

JSON = Any

FEWEST_VOTES = 2
"""The mean of one reward tells nothing of it."""
MOST_REWARD = 1e30
"""Above it sums and differences of rewards leave the range of a trainer's float32."""
MOST_LOG_PROB = 1e-3
"""A log prob is at most 0, but for what rounding does."""
NO_ENTRY = -9999.0
"""What the engine writes where it has no log prob."""


class NotTrained(Exception):
    """Raised with the reason, one phrase, why a member counts for nothing."""


@dataclass(frozen=True)
class Sample:
    """A member that counts."""

    rollout: int
    reward: float
    sequences: list[Sequence]


def judge(request: GroupRequest) -> GroupAnswer:
    """Never raises, whatever the members hold."""
    samples: dict[int, Sample] = {}
    why: dict[int, str] = {}
    for member in sorted(request.members, key=lambda each: each.attempt):
        if member.rollout in samples or member.rollout >= request.size:
            continue
        try:
            samples[member.rollout] = sample_of(member, request.task)
            why.pop(member.rollout, None)
        except NotTrained as error:
            why[member.rollout] = str(error)
        except Exception as error:  # whatever a member holds, it costs nobody else
            why[member.rollout] = f"it cannot be read: {type(error).__name__}"
    enough = len(samples) >= FEWEST_VOTES
    baseline = math.fsum(each.reward for each in samples.values()) / len(samples) if enough else None
    verdicts = [verdict(number, samples.get(number), why.get(number), baseline) for number in range(request.size)]
    trained = [sequence for each in verdicts for sequence in each.sequences]
    return GroupAnswer(
        id=request.id,
        baseline=baseline,
        members=verdicts,
        retries=retries(request),
        trained_tokens=sum(sum(sequence.mask) for sequence in trained),
    )


def verdict(rollout: int, sample: Sample | None, why: str | None, baseline: float | None) -> MemberVerdict:
    if sample is None:
        return MemberVerdict(rollout=rollout, votes=False, why=why or "nothing came back")
    if baseline is None:
        return MemberVerdict(rollout=rollout, votes=False, why=f"fewer than {FEWEST_VOTES} members have a vote")
    return MemberVerdict(rollout=rollout, votes=True, advantage=sample.reward - baseline, sequences=sample.sequences)


def retries(request: GroupRequest) -> list[int]:
    """Rollouts of which nothing came back, as long as they may be tried again."""
    tried = dict.fromkeys(range(request.size), 0)
    answered = set()
    for member in request.members:
        tried[member.rollout] = max(tried.get(member.rollout, 0), member.attempt + 1)
        if member.response is not None:
            answered.add(member.rollout)
    return [
        rollout for rollout in range(request.size) if rollout not in answered and tried[rollout] < request.most_attempts
    ]


def sample_of(member: Member, task: str) -> Sample:
    """Raises NotTrained. Whatever says that a sample is masked is believed, wherever it stands."""
    response = member.response
    if response is None:
        raise NotTrained(f"nothing came back: {member.error or 'no reason given'}")
    config = response.get("instance_config")
    flags = [response.get("mask_sample"), config.get("mask_sample") if isinstance(config, dict) else None]
    if any(flag is not False for flag in flags):
        raise NotTrained("masked" if True in flags else "it does not say that it is not masked")
    identity = response.get("group")
    if isinstance(identity, dict) and (identity.get("task"), identity.get("rollout")) != (task, member.rollout):
        raise NotTrained("it belongs to another group")
    reward = response.get("reward")
    if isinstance(reward, bool) or not isinstance(reward, int | float) or not abs(reward) <= MOST_REWARD:
        raise NotTrained("no reward")
    return Sample(member.rollout, float(reward), sequences_of(response))


def sequences_of(response: dict[str, JSON]) -> list[Sequence]:
    """The main sequence, and those of subagents that are not masked. Raises NotTrained where the main one has none."""
    told = response.get("response")
    output = told.get("output") if isinstance(told, dict) else None
    main = sequence_of(output if isinstance(output, list) else [], None)
    beside = response.get("subagent_trajectories")
    subagents = [each for each in beside if isinstance(each, dict)] if isinstance(beside, list) else []
    whole = [each for each in subagents if each.get("mask_sample") is False and isinstance(each.get("output"), list)]
    return [main, *(found for each in whole if (found := _sequence_or_none(each)) is not None)]


def _sequence_or_none(subagent: dict[str, JSON]) -> Sequence | None:
    """A subagent that cannot be trained takes nobody with it."""
    session_id = subagent.get("session_id")
    try:
        return sequence_of(subagent["output"], session_id if isinstance(session_id, str) else None)
    except NotTrained:
        return None


def sequence_of(items: Many[JSON], session_id: str | None) -> Sequence:
    """Each prompt has to begin with all that came before it. Raises NotTrained."""
    tokens: list[int] = []
    mask: list[int] = []
    log_probs: list[float | None] = []
    for item in items:
        generation = item.get("generation_token_ids") if isinstance(item, dict) else None
        if not generation:
            continue
        prompt, probabilities = item.get("prompt_token_ids"), item.get("generation_log_probs")
        if not (_are_ids(prompt) and _are_ids(generation) and _are_log_probs(probabilities)):
            raise NotTrained("its tokens are none that an engine gives")
        if len(probabilities) != len(generation) or prompt[: len(tokens)] != tokens:
            raise NotTrained("its tokens do not continue one another")
        context = len(prompt) - len(tokens)
        tokens = [*prompt, *generation]
        mask += [0] * context + [1] * len(generation)
        log_probs += [None] * context + list(probabilities)
    if not tokens:
        raise NotTrained("not one generated item")
    return Sequence(session_id=session_id, tokens=tokens, mask=mask, log_probs=log_probs)


def _are_ids(values: JSON) -> TypeGuard[list[int]]:
    """A bool, and a float that is whole, equal an id and are none."""
    return isinstance(values, list) and set(map(type, values)) == {int} and min(values) >= 0


def _are_log_probs(values: JSON) -> TypeGuard[list[float]]:
    if not isinstance(values, list) or not set(map(type, values)) <= {int, float} or NO_ENTRY in values:
        return False
    return all(-math.inf < value <= MOST_LOG_PROB for value in values)  # which NaN is not
