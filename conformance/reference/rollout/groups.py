"""How many groups are left when sessions break: in closed form, and played through the reference's own trainer.

A group is lost under *raise and discard* as soon as one of its sessions breaks, since the trainer takes a result
without tokens for a failure of the whole group; under *withhold* it goes on as long as enough members vote.
"""

import math
import random
from dataclasses import dataclass

from conformance.contract.verifies import GroupRequest, Member
from conformance.reference.rollout.trainer import FEWEST_VOTES, judge

REPORTED_BREAK_RATE = 0.04
REPORTED_LOST = 0.97
REPORTED_SIZE = 16
"""Told in the public history of NeMo Gym (#2080): 4 % of sessions broke, 97 % of groups of 16 were lost."""


@dataclass(frozen=True)
class Setting:
    """``break_rate`` is that of a session; all ``sessions`` of a rollout have to hold for it to be whole.

    ``correlation`` (0 to below 1) is that between the rollouts of one group: hard tasks break more of theirs.
    """

    break_rate: float
    sessions: float = 1.0
    size: int = REPORTED_SIZE
    correlation: float = 0.0

    @property
    def rollout_break_rate(self) -> float:
        return 1 - math.pow(1 - self.break_rate, self.sessions)


def all_hold(setting: Setting) -> float:
    """The share of groups of which no session breaks: those that raise and discard leaves."""
    return _exactly(setting, 0)


def enough_hold(setting: Setting) -> float:
    """The share of groups in which at least two members are left to vote: those that withholding leaves."""
    most_broken = setting.size - FEWEST_VOTES
    return math.fsum(_exactly(setting, broken) for broken in range(most_broken + 1))


def sessions_for(break_rate: float, size: int, lost: float) -> float:
    """How many independent sessions a rollout has to have for that share of groups to be lost. Infinite for none."""
    held = size * math.log1p(-break_rate)
    return math.inf if held == 0 else math.log1p(-lost) / held


def most_lost(setting: Setting) -> float:
    """The largest share of groups that can be lost with that break rate, however breaks are spread over groups."""
    return min(1.0, setting.size * setting.rollout_break_rate)


def _exactly(setting: Setting, broken: int) -> float:
    """The probability that so many rollouts of a group break: binomial, beta-binomial where they are correlated."""
    size, rate = setting.size, setting.rollout_break_rate
    if rate in (0.0, 1.0) or setting.correlation == 0:
        return math.comb(size, broken) * math.pow(rate, broken) * math.pow(1 - rate, size - broken)
    weight = 1 / setting.correlation - 1
    ours, theirs = rate * weight, (1 - rate) * weight
    log = _log_beta(broken + ours, size - broken + theirs) - _log_beta(ours, theirs)
    return math.comb(size, broken) * math.exp(log)


def _log_beta(one: float, other: float) -> float:
    return math.lgamma(one) + math.lgamma(other) - math.lgamma(one + other)


@dataclass(frozen=True)
class Played:
    """Shares of all groups, and of all members, that were left; retries are a group's, on average."""

    discard: float
    withhold: float
    members: float
    retries: float


def play(setting: Setting, groups: int, seed: int = 0) -> Played:
    """Groups of made-up rollouts through the reference's trainer; the same for the same seed."""
    dice = random.Random(seed)
    whole = left = voting = again = 0
    for number in range(groups):
        broken = [dice.random() < rate for rate in [_task_rate(setting, dice)] * setting.size]
        answer = judge(_group(f"g{number}", broken, dice))
        whole += not any(broken)
        left += answer.baseline is not None
        voting += sum(member.votes for member in answer.members)
        again += len(answer.retries)
    return Played(whole / groups, left / groups, voting / (groups * setting.size), again / groups)


def _task_rate(setting: Setting, dice: random.Random) -> float:
    rate = setting.rollout_break_rate
    if setting.correlation == 0 or rate in (0.0, 1.0):
        return rate
    weight = 1 / setting.correlation - 1
    return dice.betavariate(rate * weight, (1 - rate) * weight)


def _group(name: str, broken: list[bool], dice: random.Random) -> GroupRequest:
    item = {"prompt_token_ids": [1], "generation_token_ids": [2], "generation_log_probs": [-0.5]}
    members = [
        Member(
            rollout=rollout,
            response={
                "mask_sample": masked,
                "instance_config": {"mask_sample": masked},
                "reward": float(dice.random() < 0.5),
                "response": {"output": [item]},
            },
        )
        for rollout, masked in enumerate(broken)
    ]
    return GroupRequest(id=name, op="group", task=name, size=len(broken), members=members)


def report(setting: Setting, groups: int) -> str:
    """For people: what is left under both, and two readings of the public report."""
    played = play(setting, groups)
    alone = Setting(setting.break_rate, 1, setting.size)
    implied = sessions_for(REPORTED_BREAK_RATE, REPORTED_SIZE, REPORTED_LOST)
    at_report = Setting(REPORTED_BREAK_RATE, 1, REPORTED_SIZE)
    return f"""\
{setting.break_rate:.1%} of sessions break, {setting.sessions:g} a rollout, groups of {setting.size}, \
correlation {setting.correlation:g}: {setting.rollout_break_rate:.1%} of rollouts break

{"groups left":34} {"computed":>9} {"played":>9}
{"  raise and discard":34} {all_hold(setting):9.1%} {played.discard:9.1%}
{"    the same, one session a rollout":34} {all_hold(alone):8.1%}
{"  withhold":34} {enough_hold(setting):9.1%} {played.withhold:9.1%}
{"members that vote, withhold":34} {1 - setting.rollout_break_rate:9.1%} {played.members:9.1%}
{"retries a group, withhold":34} {0:9.1f} {played.retries:9.1f}

Reported once: {REPORTED_BREAK_RATE:.0%} of sessions broken, {REPORTED_LOST:.0%} of groups of {REPORTED_SIZE} lost, \
under raise and discard. Two readings:
  one session a rollout, all independent: {1 - all_hold(at_report):.0%} would be lost
  several sessions a rollout, all independent: it takes {implied:.1f} of them \
({1 - (1 - REPORTED_BREAK_RATE) ** implied:.0%} of rollouts break)
Correlation cannot be the reason: with one session a rollout at most {most_lost(at_report):.0%} can be lost, however \
breaks are spread,
and breaks that come together lose fewer groups."""
