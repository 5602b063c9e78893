"""A rebuild under test, with a stub: questions and answers, junk, silence and death."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from conformance.contract.rebuilds import RebuildAnswer, Trajectory
from conformance.systems import guard, rebuild
from conformance.systems.profile import Profile
from conformance.systems.profile_reading import load
from conformance.systems.rebuild import RebuildUnderTest
from conformance.systems.servers import SystemNotStarted


@pytest.fixture
def system(stub_rebuild: Profile, tmp_path: Path) -> Iterator[RebuildUnderTest]:
    started = RebuildUnderTest(stub_rebuild, tmp_path)
    yield started
    started.close()


def say(word: str, **more: object) -> dict[str, object]:
    return {"envelope": {"say": word, **more}}


@pytest.mark.anyio
async def test_a_question_is_asked_in_the_protocols_form(system: RebuildUnderTest) -> None:
    answer = await system.ask(say("hello"), allow_partial=False)
    assert answer["question"] == {
        "v": 1,
        "id": answer["id"],
        "op": "rebuild",
        "source": {"envelope": {"say": "hello"}},
        "allow_partial": False,
    }


def test_many_questions_are_answered_by_one_process(system: RebuildUnderTest) -> None:
    assert len({system.ask_now(say("hello"))["pid"] for _ in range(20)}) == 1


def test_a_rebuild_is_no_server(stub_rebuild: Profile, tmp_path: Path) -> None:
    before = (guard.counts.server, guard.counts.command)
    RebuildUnderTest(stub_rebuild, tmp_path).close()
    assert (guard.counts.server, guard.counts.command) == (before[0], before[1] + 1)


def test_questions_and_answers_may_be_larger_than_any_pipe(system: RebuildUnderTest) -> None:
    padding = "ü" * (1 << 20)
    assert system.ask_now(say("flood", padding=padding))["question"]["source"]["envelope"]["padding"] == padding
    assert len(system.junk[0]) == 1 << 20


def test_lines_that_are_no_answer_are_kept_as_junk(system: RebuildUnderTest) -> None:
    system.ask_now(say("junk"))
    assert system.junk == ["loading the tokenizer…", '{"id": "another"}', "[]"]


def test_a_rebuild_that_dies_is_named_and_started_anew_for_the_next_question(system: RebuildUnderTest) -> None:
    with pytest.raises(rebuild.RebuildDied) as raised:
        system.ask_now(say("die"))
    assert str(raised.value).splitlines() == [
        "stub-rebuild ended with exit code 1 instead of answering",
        "  | IndexError: list index out of range",
    ]
    assert system.ask_now(say("hello"))["pid"] > 0


def test_a_rebuild_that_says_nothing_is_ended_in_time(system: RebuildUnderTest) -> None:
    assert system.ask_now(say("hello"))["pid"] > 0  # it has started, however long that takes
    with pytest.raises(rebuild.RebuildLate, match=r"^stub-rebuild did not answer within 0\.5 s; it wrote 'hm' instead"):
        system.ask_now(say("nothing"), seconds=0.5)
    assert not system.is_alive()
    assert system.ask_now(say("hello"))["pid"] > 0


def test_a_question_may_be_sent_as_raw_bytes(system: RebuildUnderTest) -> None:
    line = b'{"id": null, "source": {"envelope": {}}}'
    assert system.ask_raw(line, answer_id=None)["question"]["source"] == {"envelope": {}}


def test_a_rebuild_that_is_not_there_is_one_line(tmp_path: Path) -> None:
    path = tmp_path / "away.toml"
    path.write_text('name = "away"\nkind = "rebuild"\ncapabilities = []\n[start]\ncommand = ["no-such-command"]\n')
    with pytest.raises(SystemNotStarted, match=r"^away did not start: cannot run no-such-command: not found"):
        RebuildUnderTest(load(path), tmp_path)


def test_keys_that_an_answer_may_leave_out_are_filled_as_the_contract_has_them() -> None:
    bare = {"session_id": "s", "outcome": "clean", "withheld": False}
    answer = {"id": "a", "outcome": "clean", "withheld": False, "trajectories": [bare]}
    full = RebuildAnswer.model_validate(answer).model_dump(mode="json")
    assert rebuild.filled(answer) == full
    assert rebuild.filled({**answer, "trajectories": None})["trajectories"] is None
    assert set(full["trajectories"][0]) == set(Trajectory.model_fields)


def test_a_rebuild_that_writes_without_end_is_ended(system: RebuildUnderTest) -> None:
    with pytest.raises(rebuild.RebuildFailed, match=r"^stub-rebuild wrote 4 MB, and no answer among them"):
        system.ask_now(say("endless"))
    assert len(system.ask_now(say("answer"))) > 0


def test_a_rebuild_that_was_late_three_times_is_asked_no_more(system: RebuildUnderTest) -> None:
    for _ in range(rebuild.PATIENCE_QUESTIONS):
        with pytest.raises(rebuild.RebuildLate, match=r"did not answer within 0\.05 s"):
            system.ask_now(say("nothing"), seconds=0.05)
    with pytest.raises(rebuild.RebuildLate, match="let 3 questions in a row wait in vain and is asked no more"):
        system.ask_now(say("answer"))


def test_an_answer_of_another_form_is_no_answer(system: RebuildUnderTest) -> None:
    with pytest.raises(rebuild.NotAnAnswer, match=r"is not of the contract's form: outcome: Field required$"):
        system.ask_now(say("formless"))
