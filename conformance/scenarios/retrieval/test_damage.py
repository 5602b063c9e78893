"""Files in a session's folder that are no records of it, and what they may cost: nothing."""

import json
import shutil
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from conformance.gauge.check import Check, Inconclusive
from conformance.gauge.covers import covers
from conformance.gauge.scene import Record, Scene
from conformance.scenarios.records.layout import first_file

JSON = Any


class Planted:
    """Files that a scenario puts among the records, and takes away in the end: others use the same proxy."""

    def __init__(self) -> None:
        self._paths: list[Path] = []

    def file(self, path: Path, content: bytes) -> Path:
        self._paths.append(path)
        path.write_bytes(content)
        return path

    def folder(self, path: Path) -> None:
        self._paths.append(path)
        path.mkdir()

    def take_away(self) -> None:
        for path in self._paths:
            if path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink(missing_ok=True)
        self._paths.clear()


@pytest.fixture
def planted() -> Iterator[Planted]:
    planted = Planted()
    yield planted
    planted.take_away()


@covers("RET-010", "RET-011", "RET-012", "RET-013")
async def test_what_is_no_record_of_a_session_costs_nothing(scene: Scene, planted: Planted, check: Check) -> None:
    hurt, bystander, wrecked = scene.session("hurt"), scene.session("bystander"), scene.session("wrecked")
    await _fill(scene, {hurt: 3, bystander: 3, wrecked: 1})
    own, others = await _request_ids(scene, hurt), await _request_ids(scene, bystander)
    listed = await _listed(scene)
    first = first_file(scene.proxy, hurt)
    if not (own and others):
        raise Inconclusive(f"of 3 calls {len(own)} records are handed out")
    folder, whole = first.parent, first.read_bytes()

    for content in _no_records(json.loads(whole), whole):
        planted.file(folder / f"{uuid.uuid4()}.json", content)
        seen = await _request_ids(scene, hurt)
        check("RET-010", set(own) <= set(seen), expected=own, seen=seen, where=repr(content[-40:]))
    planted.folder(folder / f"{uuid.uuid4()}.json")
    seen = await _request_ids(scene, hurt)
    check("RET-010", set(own) <= set(seen), expected=own, seen=seen, where="a folder named like a record")

    planted.take_away()  # each kind of damage by itself: one that is not borne would hide what the others do
    wreck = first_file(scene.proxy, wrecked)
    planted.file(wreck, whole[: len(whole) // 2])
    seen = await _listed(scene)
    missing = [session for session in listed if session not in seen and session != wrecked]
    check("RET-011", not missing, expected="the sessions listed before", seen=f"without {missing[:3]}")
    planted.take_away()

    name = first.name
    for leftover in (f"{name}.tmp", f".{name}.tmp", f"{name}~", f".{name}.5wq8k1", "tmp5wq8k1", f"{name}.part"):
        planted.file(folder / leftover, whole)
        planted.file(folder / f"torn-{leftover}", whole[: len(whole) // 2])
        seen = await _request_ids(scene, hurt)
        check.equal("RET-012", expected=own, seen=[one for one in seen if one in own], where=leftover)
    planted.take_away()

    stray = first_file(scene.proxy, bystander)
    planted.file(folder / stray.name, stray.read_bytes())
    for session, expected in ((hurt, own), (bystander, others)):
        seen = await _request_ids(scene, session)
        foreign = [one for one in seen if one in {*own, *others} and one not in expected]
        check("RET-013", not foreign, expected="none of another session", seen=foreign, where=session)


@covers("RET-015")
async def test_a_damaged_file_may_have_been_a_record(scene: Scene, planted: Planted, check: Check) -> None:
    torn, bystander = scene.session("torn"), scene.session("whole")
    await _fill(scene, {torn: 2, bystander: 2})
    first = first_file(scene.proxy, torn)
    whole = first.read_bytes()
    for content in (b"", whole[: len(whole) // 2], b"\xff\xfe" + whole, b"\x00" * 512):
        file = planted.file(first.with_name(f"{uuid.uuid4()}.json"), content)
        for session, due in ((torn, True), (bystander, False)):
            rows = [row for row in await scene.proxy.sessions() if row["session_id"] == session]
            told = [json.loads((await scene.proxy.completions_answer(session)).body), *rows]
            seen = [one.get("incomplete") is True for one in told]
            check.equal("RET-015", expected=[due, due], seen=seen, where=f"{session}, beside {content[:8]!r}")
        file.unlink()


@covers("RET-004")
async def test_records_are_sorted_by_time_and_then_by_uuid(scene: Scene, planted: Planted, check: Check) -> None:
    session = scene.session("sorted")
    await _fill(scene, {session: 3})
    if len(await scene.records(session)) < 3:
        raise Inconclusive("3 calls left fewer records to sort")
    if "records-disk" in scene.proxy.capabilities:
        _plant_records_of_other_times(first_file(scene.proxy, session), planted)
    captured = await scene.records(session)
    places = [(record["captured_at"], record["uuid"]) for record in captured]
    check.equal("RET-004", expected=sorted(places), seen=places)


def _plant_records_of_other_times(file: Path, planted: Planted) -> None:
    """Copies of a record, as another process on the directory may have written them: old, and two of a time."""
    for first, time in (("f", "00:00:01"), ("0", "00:00:02"), ("c", "00:00:03"), ("a", "00:00:03"), ("b", "00:00:03")):
        name = first + str(uuid.uuid4())[1:]
        copy = json.loads(file.read_bytes()) | {"uuid": name, "captured_at": f"2020-01-01T{time}.000000+00:00"}
        planted.file(file.with_name(f"{name}.json"), json.dumps(copy).encode())


def _no_records(record: Record, whole: bytes) -> list[bytes]:
    """Torn, not UTF-8, no JSON, no object, no record, of a version to come."""
    return [
        b"",
        whole[: len(whole) // 2],
        whole[:-1],
        b"\xff\xfe" + whole,
        whole.replace(b'"role"', b'"r\xe9le"', 1),
        b"\x00" * 512,
        b"null",
        b"[]",
        b'"a record"',
        b"[" * 100_000,
        b"{}",
        json.dumps({"schema_version": 1, "session_id": record["session_id"]}).encode(),
        json.dumps(record | {"schema_version": 99, "captured_at": 5}).encode(),
        json.dumps(record | {"uuid": None, "captured_at": None}).encode(),
    ]


async def _fill(scene: Scene, calls: dict[str, int]) -> None:
    await scene.script("retrieval_agents")
    for scope, (session, count) in enumerate(calls.items()):
        for turn in range(count):
            await scene.ask(scene.tag(turn, scope=scope), session=session)


async def _request_ids(scene: Scene, session: str) -> list[JSON]:
    """In the order handed out; none if the session is not handed out at all."""
    answer = await scene.proxy.completions_answer(session)
    return [record.get("request_id") for record in await scene.records(session)] if answer.status == 200 else []


async def _listed(scene: Scene) -> list[str]:
    answer = await scene.proxy.sessions_answer()
    return [row["session_id"] for row in await scene.proxy.sessions()] if answer.status == 200 else []
