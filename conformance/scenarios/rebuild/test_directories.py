"""Records read from a log directory: the same rollout, whatever else lies there."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from conformance.gauge.check import Check
from conformance.gauge.covers import covers
from conformance.oracle import placing, rollouts, triples
from conformance.scenarios.rebuild.asking import answered
from conformance.scenarios.rebuild.sessions import Record, Session, says, system, user
from conformance.systems.rebuild import RebuildUnderTest

ODD_NAMES = ("run 7/agent", "..", "Sitzung-ß-日本", ".hidden", "a" * 300)


def noisy(session: Session) -> Session:
    """A session with a retry, a side call and an answer that was lost on the way."""
    start = session.begin(system("You are an agent."), user("Find out why the build fails."))
    session.call(start, says("Never read."))
    session.turns(3, start)
    session.call(session.begin(system("Titles."), user("Fix it."), tools=()), says("A title"))
    return session


def compacted(session: Session) -> Session:
    session.turns(2)
    session.turns(2)
    return session


def shown(answer: dict[str, Any]) -> dict[str, Any]:
    """What of an answer may not depend on where the records came from."""
    answer = rollouts.without_item_ids(answer)
    whole = ("outcome", "withheld", "reason_code", "trajectories")
    order_is_free = {key: sorted(map(json.dumps, answer[key])) for key in ("excluded", "notes")}
    return {key: answer[key] for key in whole} | order_is_free


@covers("REB-075")
async def test_a_directory_gives_the_rollout_of_its_envelope(
    rebuild: RebuildUnderTest, check: Check, tmp_path: Path
) -> None:
    for number, name in enumerate(ODD_NAMES):
        for fill in (noisy, compacted):
            session = fill(Session(name))
            known = shown(await rebuild.ask({"envelope": session.envelope()}))
            for folder in (session.folder(Path()).name, "0", "session of today"):
                log_dir = tmp_path / f"{number}-{fill.__name__}-{folder[:4]}"
                session.write(log_dir, folder=log_dir / "sessions" / folder)
                answer = await rebuild.ask({"log_dir": str(log_dir)})
                check.equal("REB-075", expected=known, seen=shown(answer), where=f"{name[:20]!r} in folder {folder!r}")


def torn_and_foreign(record: Record) -> dict[str, bytes]:
    """What can lie beside records, by file name."""
    text = json.dumps(record, ensure_ascii=False)
    whole = text.encode()
    return {
        "half.json": whole[: len(whole) // 2],
        "empty.json": b"",
        "nul.json": b"\0" * 512,
        "torn in a letter.json": whole[: whole.index("é".encode()) + 1],
        "latin.json": text.encode("latin-1"),
        "half.json.tmp": whole[:40],
        ".half.json.swp": whole[:40],
        "list.json": b"[1, 2]",
        "word.json": b'"record"',
        "null.json": b"null",
        "nested.json": b"[" * 100_000,
        "other.json": b'{"level": "info", "message": "started"}',
        "delivered.txt": b"\xff\xfe",
        "../index.json": b"{}",
    }


def directories(session: Session, tmp_path: Path) -> Iterator[tuple[str, Path]]:
    """The session's log directory with one stranger each, and with all that is no file."""
    lost = {**session.records[-1], "uuid": "torn", "messages": [user("Un café, s'il te plaît."), says("Voilà.")]}
    for number, (name, content) in enumerate(torn_and_foreign(lost).items()):
        log_dir = session.write(tmp_path / str(number))
        (session.folder(log_dir) / name).write_bytes(content)
        yield name, log_dir
    log_dir = session.write(tmp_path / "no-files")
    folder = session.folder(log_dir)
    (folder / "folder.json").mkdir()
    (folder / "link.json").symlink_to(folder / "nowhere.json")
    (folder.parent / "empty").mkdir()
    yield "folders and a dead link", log_dir


@covers("REB-076")
async def test_a_torn_or_foreign_file_costs_no_other_record(
    rebuild: RebuildUnderTest, check: Check, tmp_path: Path
) -> None:
    session = Session()
    turns = [turn.truth for turn in session.turns(3)]
    for what, log_dir in directories(session, tmp_path):
        answer = await answered(rebuild, check, {"log_dir": str(log_dir)}, what, requirement="REB-076")
        check.that("REB-076", placing.all_delivered(answer, turns), what)


@covers("REB-101")
async def test_a_record_that_does_not_say_whose_it_is_may_have_been_the_last_turn(
    rebuild: RebuildUnderTest, check: Check, tmp_path: Path
) -> None:
    session = Session()
    turns = session.turns(3)
    for number, named in enumerate((None, "", "  ", 7, ...)):
        lost = {**turns[-1].record, "uuid": "nobody's", "session_id": named}
        if named is ...:
            del lost["session_id"]
        log_dir = session.write(tmp_path / str(number))
        (session.folder(log_dir) / "nobody's.json").write_text(json.dumps(lost), encoding="utf-8")
        check.that("REB-101", triples.withheld(await rebuild.ask({"log_dir": str(log_dir)})), f"session_id {named!r}")


DAMAGED = ("half.json", "empty.json", "nul.json", "torn in a letter.json", "latin.json")


@covers("REB-094")
async def test_a_torn_file_may_have_been_the_last_turn(rebuild: RebuildUnderTest, check: Check, tmp_path: Path) -> None:
    session = Session()
    session.turns(3)
    lost = {**session.records[-1], "uuid": "torn", "messages": [user("Un café, s'il te plaît."), says("Voilà.")]}
    for number, name in enumerate(DAMAGED):
        log_dir = session.write(tmp_path / str(number))
        (session.folder(log_dir) / name).write_bytes(torn_and_foreign(lost)[name])
        check.that("REB-094", triples.withheld(await rebuild.ask({"log_dir": str(log_dir)})), name)
