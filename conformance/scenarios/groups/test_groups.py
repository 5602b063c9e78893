"""What a group loses when members break: those members, and nothing else."""

from conformance.gauge.check import Check
from conformance.gauge.covers import covers
from conformance.scenarios.groups.groups import Answer, Group, Response, beside, of_response, response, trained
from conformance.scenarios.masking.collected import pairs, trajectory
from conformance.systems.runner import RunnerUnderTest

NO_ENGINES = {
    "prompt_token_ids": (-1, True, "7", None),
    "generation_token_ids": (-1, True, 2.0, "7", None),
    "generation_log_probs": (float("nan"), float("-inf"), -9999.0, 0.5, False, "-0.5", None),
}


@covers("GRP-001", "GRP-002", "GRP-003", "GRP-005", "GRP-013", "GRP-017")
async def test_a_group_of_16_with_a_masked_member_goes_on_with_15(runner: RunnerUnderTest, check: Check) -> None:
    for broken in (0, 7, 15):
        rewards = [float(number % 3 == 0) for number in range(16)]
        members = [response(rewards[number], masked=number == broken, turns=1 + number % 4) for number in range(16)]
        where = f"member {broken} is masked"
        answer = await Group(members).judged(runner, check, "GRP-003", where)
        if answer is None:
            for requirement in ("GRP-001", "GRP-002", "GRP-005", "GRP-013", "GRP-017"):
                check.nothing(requirement, "answer")
            continue
        others = [number for number in range(16) if number != broken]
        mean = sum(rewards[number] for number in others) / 15
        check("GRP-001", _near(answer["baseline"], mean), expected=mean, seen=answer["baseline"], where=where)
        verdict = answer["members"][broken]
        check("GRP-001", not verdict["votes"], expected="no vote", seen=verdict, where=where)
        nothing = not trained(verdict) and verdict["advantage"] is None
        check("GRP-002", nothing, expected="nothing trained", seen=verdict, where=where)
        whole = [number for number in others if trained(answer["members"][number]) == of_response(members[number])]
        check("GRP-003", whole == others, expected=f"all but {broken}", seen=whole, where=where)
        check("GRP-005", not answer["retries"], expected=[], seen=answer["retries"], where=where)
        tokens = sum(len(of_response(members[number])) for number in others)
        check.equal("GRP-013", expected=tokens, seen=answer["trained_tokens"], where=where)
        _check_advantages(check, answer, rewards, mean, where)


def _check_advantages(check: Check, answer: Answer, rewards: list[float], mean: float, where: str) -> None:
    for verdict in answer["members"]:
        if verdict["votes"]:
            expected, seen = rewards[verdict["rollout"]] - mean, verdict["advantage"]
            check("GRP-017", _near(seen, expected), expected=expected, seen=seen, where=where)


def _near(seen: float | None, expected: float) -> bool:
    return seen is not None and abs(seen - expected) < 1e-9


async def _counts_for_nothing(
    runner: RunnerUnderTest, check: Check, requirement: str, odd: dict[str, Response]
) -> None:
    """Three good members and an odd one: the odd one neither votes nor is trained nor run again, and costs nobody."""
    for where, member in odd.items():
        good = [response(1.0), response(0.0), response(1.0)]
        answer = await Group([*good, member]).judged(runner, check, requirement, where)
        if answer is None:
            check.nothing("GRP-005", "answer")
            continue
        verdict = answer["members"][3]
        seen = [verdict["votes"], verdict["advantage"], trained(verdict)]
        check(requirement, seen == [False, None, []], expected="no vote, not trained", seen=seen, where=where)
        whole = [trained(answer["members"][number]) == of_response(good[number]) for number in range(3)]
        check(requirement, all(whole), expected="the others trained", seen=whole, where=where)
        check(requirement, _near(answer["baseline"], 2 / 3), expected=2 / 3, seen=answer["baseline"], where=where)
        check("GRP-005", not answer["retries"], expected=[], seen=answer["retries"], where=where)


@covers("GRP-004", "GRP-005")
async def test_a_mask_flag_is_believed_wherever_it_stands(runner: RunnerUnderTest, check: Check) -> None:
    unmarked = response()
    del unmarked["mask_sample"], unmarked["instance_config"]
    odd = {
        "only the configuration says so": response(config=True),
        "only the top level says so": response(masked=True, config=False),
        "both say so": response(masked=True),
        "nobody says anything": unmarked,
        "a flag that is null": response(masked=None),
    }
    await _counts_for_nothing(runner, check, "GRP-004", odd)


@covers("GRP-005", "GRP-008")
async def test_a_member_without_proper_tokens_counts_for_nothing(runner: RunnerUnderTest, check: Check) -> None:
    torn = trajectory(turns=3)["items"][1:]
    later = [item for item in torn if "prompt_token_ids" in item][1]
    later["prompt_token_ids"] = [7, *later["prompt_token_ids"][1:]]
    short = trajectory(turns=1)["items"][1:]
    next(item for item in short if "generation_log_probs" in item)["generation_log_probs"].pop()
    odd = {
        "no item": response(response={"output": [], "metadata": None}),
        "no generated item": response(response={"output": [{"type": "message", "role": "assistant", "content": ""}]}),
        "a prompt that does not continue": response(response={"output": torn}),
        "a log prob too few": response(response={"output": short}),
    }
    await _counts_for_nothing(runner, check, "GRP-008", odd)


@covers("GRP-005", "GRP-018")
async def test_numbers_that_no_engine_gives_cost_their_member_alone(runner: RunnerUnderTest, check: Check) -> None:
    odd = {}
    for key, values in NO_ENGINES.items():
        for value in values:
            items = trajectory(turns=2)["items"][1:]
            last = [item for item in items if "prompt_token_ids" in item][-1]
            last[key] = [*last[key][:-1], value]
            odd[f"{value!r} among {key}"] = response(response={"output": items})
        items = trajectory(turns=1)["items"][1:]
        next(item for item in items if "prompt_token_ids" in item)[key] = 7
        odd[f"a number for {key}"] = response(response={"output": items})
    await _counts_for_nothing(runner, check, "GRP-018", odd)


@covers("GRP-005", "GRP-009")
async def test_a_reward_that_is_no_number_has_no_vote(runner: RunnerUnderTest, check: Check) -> None:
    odd = {f"reward {told!r}": response(told) for told in (None, float("nan"), float("inf"), True, "1.0", 10**400)}
    await _counts_for_nothing(runner, check, "GRP-009", odd)


@covers("GRP-005", "GRP-011")
async def test_a_stranger_does_not_count(runner: RunnerUnderTest, check: Check) -> None:
    odd = {
        "of another task": response(group={"task": "other", "rollout": 3, "attempt": 0}),
        "of another member": response(group={"task": "other", "rollout": 0, "attempt": 0}),
    }
    await _counts_for_nothing(runner, check, "GRP-011", odd)


@covers("GRP-006", "GRP-007")
async def test_who_did_not_come_back_is_run_again_alone_and_not_for_ever(runner: RunnerUnderTest, check: Check) -> None:
    cases = {
        "one is missing": (Group([response(), None, response()]), [1]),
        "all are missing": (Group([None, None]), [0, 1]),
        "it may be tried three times": (Group([response(), None], most_attempts=3).again(1, None), [1]),
        "it was tried twice of twice": (Group([response(), None]).again(1, None), []),
        "it may be tried once": (Group([response(), None], most_attempts=1), []),
        "it came back the second time": (Group([response(), None]).again(1, response(0.0)), []),
    }
    for where, (group, expected) in cases.items():
        requirement = "GRP-006" if expected else "GRP-007"
        answer = await group.judged(runner, check, requirement, where)
        if answer is not None:
            check.equal(requirement, expected=expected, seen=answer["retries"], where=where)


@covers("GRP-010")
async def test_a_rollout_that_answers_twice_counts_once(runner: RunnerUnderTest, check: Check) -> None:
    for late in (response(0.0), response(1.0)):
        group = Group([response(1.0), response(0.0)]).again(0, late)
        answer = await group.judged(runner, check, "GRP-010", "two answers of member 0")
        if answer is not None:
            of_first = trained(answer["members"][0])
            one = of_first in (of_response(late), of_response(group.members[0]["response"]))
            check("GRP-010", one, expected="the tokens of one answer", seen=of_first)
            tokens = len(of_first) + len(trained(answer["members"][1]))
            check.equal("GRP-010", expected=tokens, seen=answer["trained_tokens"])
            check("GRP-010", answer["baseline"] in (0.0, 0.5), expected="the mean of two", seen=answer["baseline"])


@covers("GRP-012")
async def test_what_is_trained_is_what_was_sampled(runner: RunnerUnderTest, check: Check) -> None:
    members = [response(1.0, turns=6), response(0.0, turns=1)]
    answer = await Group(members).judged(runner, check, "GRP-012", "a group of two")
    for verdict in answer["members"] if answer else []:
        output = members[verdict["rollout"]]["response"]["output"]
        last = [item for item in output if "prompt_token_ids" in item][-1]
        whole = last["prompt_token_ids"] + last["generation_token_ids"]
        check.equal("GRP-012", expected=[whole], seen=[each["tokens"] for each in verdict["sequences"]])
        check.equal("GRP-012", expected=pairs(output), seen=trained(verdict))
        for each in verdict["sequences"]:
            context = [
                probability for probability, mask in zip(each["log_probs"], each["mask"], strict=True) if not mask
            ]
            check("GRP-012", not any(context), expected="no log prob on context", seen=context)


@covers("GRP-005", "GRP-014")
async def test_a_lone_vote_trains_nothing_and_starts_nothing(runner: RunnerUnderTest, check: Check) -> None:
    cases = {"one good member": [response(), response(masked=True)], "none": [response(masked=True)] * 3}
    for where, members in cases.items():
        answer = await Group(members).judged(runner, check, "GRP-014", where)
        if answer is None:
            check.nothing("GRP-005", "answer")
            continue
        seen = [answer["baseline"], sum(len(trained(each)) for each in answer["members"]), answer["retries"]]
        check.equal("GRP-014", expected=[None, 0, []], seen=seen, where=where)
        check("GRP-005", not answer["retries"], expected=[], seen=answer["retries"], where=where)


@covers("GRP-015", "GRP-016")
async def test_subagents_are_trained_or_masked_each_by_itself(runner: RunnerUnderTest, check: Check) -> None:
    whole, hidden, gone = beside("a", masked=False), beside("b", masked=True), beside("c", masked=False, items=[])
    members = [response(1.0, subagent_trajectories=[hidden, gone, whole]), response(0.0)]
    answer = await Group(members).judged(runner, check, "GRP-015", "a member with three subagents")
    if answer is None:
        check.nothing("GRP-016", "answer")
        return
    seen = trained(answer["members"][0])
    masked = [pair for pair in pairs(hidden["output"]) if pair in seen]
    check("GRP-015", not masked, expected="nothing of the masked one", seen=masked)
    expected = [*of_response(members[0]), *pairs(whole["output"])]
    kept = [pair for pair in seen if pair not in pairs(hidden["output"])]
    check("GRP-016", sorted(kept) == sorted(expected), expected=expected, seen=kept)
