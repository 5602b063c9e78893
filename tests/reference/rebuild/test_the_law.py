"""Generated sessions against the law: a captured token is right, or loudly marked, or absent.

The world below plays a harness against a model and knows, as no rebuild can, which answers the harness went on
with and what damage it did. It shares nothing with the rebuild: each generation has ids of its own, so that a
token tells which call sampled it.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import count
from random import Random

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from conformance.contract.rebuilds import RebuildAnswer
from tests.reference.rebuild.making import JSON, answer, call, envelope, record, result, said, system, trained, user

HARMLESS = ["turn", "lost_retry", "twin", "title", "invalid", "nudge", "cosmetics", "late_retry"]
DAMAGE = ["fork", "compaction", "record_lost", "drift", "edit", "model", "open_retry", "invalid_turn"]


@dataclass
class World:
    """A harness at work. ``true`` are the uuids it went on with, ``damage`` what makes the session untrainable."""

    messages: list[JSON] = field(default_factory=lambda: [system(), user("Go.")])
    prompt: list[int] = field(default_factory=lambda: [1, 2])
    records: list[JSON] = field(default_factory=list)
    true: list[str] = field(default_factory=list)
    damage: list[str] = field(default_factory=list)
    beside: dict[str, str] = field(default_factory=dict)
    model: str = "policy"
    ids: "count[int]" = field(default_factory=lambda: count(1000))

    def sample(self, messages: list[JSON], prompt: list[int], **changes: object) -> JSON:
        n = len(self.records)
        generation = [next(self.ids) for _ in range(1 + n % 3)]
        turn = said(f"answer {n}", call('{"n": 1.0}', call_id=f"c{n}"))
        made = record(n, [*messages, turn], list(prompt), generation, model=self.model, **changes)
        self.records.append(made)
        return made

    def go_on(self, made: JSON, echo: JSON | None = None, extra: list[int] | None = None) -> None:
        """The harness takes the answer, runs its tool and holds the result in its history."""
        turn = made["messages"][-1]
        self.messages = [*made["messages"][:-1], echo or turn, result("ok", turn["tool_calls"][0]["id"])]
        self.prompt = [*made["prompt_token_ids"], *made["generation_token_ids"], *(extra or [3])]

    def turn(self) -> None:
        made = self.sample(self.messages, self.prompt)
        self.true.append(made["uuid"])
        self.go_on(made)

    def lost_retry(self) -> None:
        self.beside[self.sample(self.messages, self.prompt)["uuid"]] = "orphan"
        self.turn()

    def late_retry(self) -> None:
        """The retry that lost is recorded last, though it was asked beside the one that won."""
        messages, prompt = self.messages, self.prompt
        self.turn()
        self.turn()
        self.beside[self.sample(messages, prompt)["uuid"]] = "orphan"

    def twin(self) -> None:
        made = self.sample(self.messages, self.prompt)
        twin = made | {"uuid": f"t{made['uuid']}", "captured_at": made["captured_at"].replace("+", "9+")}
        self.records.append(twin)
        self.beside[made["uuid"]] = "orphan"
        self.true.append(twin["uuid"])
        self.go_on(made)

    def title(self) -> None:
        asked = [system("You name things."), user(f"Name {len(self.records)}.")]
        self.beside[self.sample(asked, [8, next(self.ids)], tools=[])["uuid"]] = "side_call"

    def invalid(self) -> None:
        made = self.sample(self.messages, self.prompt, is_valid=False)
        self.beside[made["uuid"]] = "invalid"
        self.turn()

    def nudge(self) -> None:
        self.beside[self.sample(self.messages, self.prompt)["uuid"]] = "orphan"
        self.messages = [*self.messages, user("Use a tool.")]
        self.prompt = [*self.prompt, 4]
        self.turn()

    def cosmetics(self) -> None:
        made = self.sample(self.messages, self.prompt)
        self.true.append(made["uuid"])
        turn = made["messages"][-1]
        small = turn["tool_calls"][0]["function"] | {"arguments": '{"n":1}'}
        echo = {
            "role": "assistant",
            "content": [{"type": "text", "text": turn["content"]}],
            "tool_calls": [turn["tool_calls"][0] | {"function": small, "index": 0}],
        }
        self.go_on(made, echo=echo)
        self.turn()

    def fork(self) -> None:
        messages, prompt = self.messages, self.prompt
        self.turn()
        self.turn()
        kept = self.messages, self.prompt
        self.messages, self.prompt = messages, prompt
        self.turn()
        self.turn()
        self.messages, self.prompt = kept
        self.damage.append("fork")

    def compaction(self) -> None:
        self.turn()
        self.messages = [system(), user(f"What so far ({len(self.records)})?"), said("Much."), user("Go on.")]
        self.prompt = [1, 2, next(self.ids)]
        self.turn()
        self.damage.append("compaction")

    def record_lost(self) -> None:
        self.turn()
        del self.records[-1], self.true[-1]
        self.turn()
        self.damage.append("record_lost")

    def invalid_turn(self) -> None:
        self.turn()
        self.records[-1] |= {"generation_log_probs": None}
        self.beside[self.true.pop()] = "invalid"
        self.turn()
        self.damage.append("invalid_turn")

    def drift(self) -> None:
        self.turn()
        self.prompt[-2] += 500_000
        self.turn()
        self.damage.append("drift")

    def edit(self) -> None:
        self.turn()
        self.messages[-2] = said("edited", *self.messages[-2]["tool_calls"])
        self.turn()
        self.damage.append("edit")

    def change_model(self) -> None:
        self.turn()
        self.model = f"{self.model}+"
        self.turn()
        self.damage.append("model")

    def open_retry(self) -> None:
        """Only the end of a session leaves this open; in its middle the next call decides."""
        self.beside[self.sample(self.messages, self.prompt)["uuid"]] = "orphan"
        self.turn()

    def play(self, acts: list[str]) -> None:
        self.turn()
        for act in acts:
            getattr(self, "change_model" if act == "model" else act)()
        in_the_chain = [act for act in acts if act != "title"]
        if in_the_chain and in_the_chain[-1] in ("lost_retry", "open_retry", "nudge"):
            self.damage.append("nobody knows which of the last calls was taken")


def sampled_by(records: list[JSON]) -> dict[str, list[int]]:
    return {one["uuid"]: one["generation_token_ids"] for one in records}


def check_conservation(world: World, found: RebuildAnswer) -> None:
    """Each record is in exactly one trajectory or excluded once, and each sampled token counted once."""
    delivered = [uuid for one in found.trajectories for uuid in one.record_uuids]
    excluded = [one.record_uuid for one in found.excluded]
    assert Counter(delivered + excluded) == Counter(one["uuid"] for one in world.records)
    own = sampled_by(world.records)
    masked = [t for one in found.trajectories for t, m in zip(one.tokens, one.mask, strict=True) if m]
    assert Counter(masked) == Counter(token for uuid in delivered for token in own[uuid])


def check_sequences(world: World, found: RebuildAnswer) -> None:
    """A trajectory is what the engine saw on its last call, with each log prob where it was sampled."""
    by_uuid = {one["uuid"]: one for one in world.records}
    for one in found.trajectories:
        last = by_uuid[one.record_uuids[-1]]
        assert one.tokens == last["prompt_token_ids"] + last["generation_token_ids"]
        expected = [p for uuid in one.record_uuids for p in by_uuid[uuid]["generation_log_probs"]]
        assert [log_prob for log_prob in one.log_probs if log_prob is not None] == expected
        carried = [item["generation_token_ids"] for item in one.items if "generation_token_ids" in item]
        assert carried == [by_uuid[uuid]["generation_token_ids"] for uuid in one.record_uuids]


def check_exclusions(world: World, found: RebuildAnswer) -> None:
    assert {one.record_uuid: one.why for one in found.excluded} == world.beside


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.sampled_from(HARMLESS), max_size=6), st.randoms(use_true_random=False))
def test_what_no_harness_spoiled_is_trained_to_the_last_token(acts: list[str], order: Random) -> None:
    world = World()
    world.play(acts)
    found = played(world, order)
    own = sampled_by(world.records)
    if not world.damage:
        assert (found.outcome, found.withheld, found.reason) == ("clean", False, None)
        assert trained(found) == [token for uuid in world.true for token in own[uuid]]
        check_exclusions(world, found)


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.lists(st.sampled_from(HARMLESS), max_size=3),
    st.lists(st.sampled_from(DAMAGE), min_size=1, max_size=2),
    st.lists(st.sampled_from(HARMLESS), max_size=3),
    st.randoms(use_true_random=False),
)
def test_what_was_damaged_is_never_trained(
    before: list[str], damage: list[str], after: list[str], order: Random
) -> None:
    world = World()
    world.play([*before, *damage, *after])
    found = played(world, order)
    if world.damage:
        assert (found.outcome, found.withheld, trained(found)) == ("partial", True, [])
        assert found.reason_code is not None


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.lists(st.sampled_from([*HARMLESS, "fork"]), max_size=5),
    st.lists(st.sampled_from([one for one in DAMAGE if one != "fork"]), max_size=1),
    st.randoms(use_true_random=False),
)
def test_asking_for_parts_frees_forks_and_nothing_else(acts: list[str], damage: list[str], order: Random) -> None:
    world = World()
    world.play([*acts, *damage])
    found = played(world, order, split=("segments", "branches"))
    wrong = [one for one in world.damage if one != "fork"]
    if wrong:
        # This world's compactions keep no turn and quote no summary, so that they are no segments.
        assert (found.withheld, trained(found)) == (True, [])
    else:
        own = sampled_by(world.records)
        assert (found.outcome, found.withheld) == ("clean", False)
        assert Counter(trained(found)) == Counter(token for uuid in world.true for token in own[uuid])


def played(world: World, order: Random, split: Sequence[str] = ()) -> RebuildAnswer:
    """The rebuild of the world's records in some order of the envelope, with the law checked."""
    records = list(world.records)
    order.shuffle(records)
    found = answer({"envelope": envelope(*records)}, split=split)
    check_conservation(world, found)
    check_sequences(world, found)
    return found
