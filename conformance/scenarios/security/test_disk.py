"""Records belong to their owner, show no ids by name, and lie nowhere but in the log directory."""

import base64
import hashlib
import os
import shutil
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from conformance.gauge.check import Check, Inconclusive
from conformance.gauge.covers import covers
from conformance.gauge.scene import Scene
from conformance.oracle.judgement import Judgement
from conformance.scenarios.upstream.asking import Ask, ask_all
from conformance.systems.calls import Answer

JSON = Any

OTHERS = stat.S_IRWXG | stat.S_IRWXO
OWNERS = stat.S_IRUSR | stat.S_IWUSR


@covers("SEC-001", "SEC-003")
async def test_records_are_private_and_their_names_say_nothing(scene: Scene, check: Check) -> None:
    await ask_all(
        scene,
        {
            "plain": Ask(),
            "streamed": Ask(stream=True),
            "invalid": Ask(turn={"fault": {"name": "no_logprobs"}}),
            "undone": Ask(turn={"fault": {"name": "cut_stream"}}),
        },
    )
    files = [file for session in scene.sessions for file in scene.proxy.record_files(session)]
    check.need("SEC-001", len(files) >= 3, expected="3 record files", seen=f"{len(files)} record files")
    for file in files:
        mode = stat.S_IMODE(file.stat().st_mode)
        private = mode & OTHERS == 0 and mode & OWNERS == OWNERS
        check("SEC-001", private, expected="0o600", seen=oct(mode), where="a record file")
    names = list(_names_below(_log_dir(scene)))
    for session in scene.sessions:
        check.that("SEC-003", _shows_not(names, session))


@covers("SEC-004")
async def test_a_session_id_of_path_parts_writes_nothing_outside(scene: Scene, check: Check) -> None:
    await scene.script("one_answer")
    log_dir = _log_dir(scene)
    mark = f"escaped-{scene.run}"
    places = (log_dir.parent, log_dir.parent.parent, log_dir.parent.parent.parent)
    ids = [f"{'../' * ups}{mark}-{ups}" for ups in range(1, 5)]
    ids += [f"{places[1] / mark}", f"a/../../../../{mark}-a", f"..\\..\\{mark}", f"%2e%2e%2f%2e%2e%2f{mark}-e", ".."]
    before = set(os.listdir(places[0]))
    statuses = [(await scene.ask(session=session)).status for session in ids]
    if not await scene.ledger():
        raise Inconclusive(f"no call of these sessions reached the engine: {statuses}")
    await scene.ask()
    if not scene.proxy.record_files(scene.session()):
        raise Inconclusive("a session id without path parts left no record file either")
    stray = {path for place in places for path in place.glob(f"*{mark}*")}
    stray |= {places[0] / name for name in set(os.listdir(places[0])) - before}
    check("SEC-004", not stray, expected="nothing outside of the log directory", seen=sorted(map(str, stray)))
    for path in stray:
        _take_away(path)


@pytest.fixture
def beside(scene: Scene) -> Iterator[list[Path]]:
    """Folders that look like a session's, where a path of dots would lead; empty where nobody knows the place."""
    log_dir = scene.proxy.log_dir
    folders = [] if log_dir is None else [place / f"beside-{scene.run}" for place in (log_dir, log_dir.parent)]
    for folder in folders:
        folder.mkdir(parents=True)
    yield folders
    for folder in folders:
        _take_away(folder)


@covers("SEC-005")
async def test_a_path_to_retrieve_leads_to_no_file_of_another_place(
    scene: Scene, beside: list[Path], check: Check
) -> None:
    await scene.script("one_answer")
    victim, other = scene.session("victim"), scene.session("other")
    for session in (victim, other):
        await scene.ask(session=session)
    marks = [str(record.get("uuid") or record.get("request_id")) for record in await scene.records(victim)]
    if not marks:
        raise Inconclusive("the session has no record that could be handed out wrongly")
    for folder in beside:
        for file in scene.proxy.record_files(other):
            planted = file.read_text().replace(other, f"planted-{scene.run}")
            (folder / file.name).write_text(planted)
    marks += [f"planted-{scene.run}", "root:x:0:0"]
    for identity in _ways_to(scene, victim, other):
        for path in _spelled(scene, identity):
            answer = await scene.proxy.get(path)
            check.that("SEC-005", _hands_out_only(answer, identity, marks, path))


def _ways_to(scene: Scene, victim: str, other: str) -> list[str]:
    """Ids that are none, and lead to files if somebody takes them for a path."""
    digest = hashlib.sha256(victim.encode()).hexdigest()
    beside = f"beside-{scene.run}"
    ways = ["..", "../..", "../sessions", digest, f"./{digest}", f"../sessions/{digest}", f"{digest}/../{digest}"]
    ways += [f"{victim}/../{victim}", f"{other}/../{victim}", f"{victim}/.", f"./{victim}", f"../sessions/{victim}"]
    ways += [f"../{beside}", f"../../{beside}", f"{digest}/../../{beside}", "../../../../../../../../etc/passwd"]
    if scene.proxy.log_dir is not None:
        ways.append(str(scene.proxy.log_dir / "sessions" / digest))
    return ways


def _spelled(scene: Scene, identity: str) -> Iterator[str]:
    """As a target on the wire: slashes encoded, dots too, and both of them twice."""
    retrieval = scene.proxy.profile.retrieval
    if retrieval is None or retrieval.completions is None:
        raise Inconclusive("the profile does not say how a session's records are asked for")
    once = quote(identity, safe="")
    for quoted in (once, once.replace(".", "%2E"), quote(once.replace(".", "%2E"), safe="")):
        yield retrieval.completions.replace("{session}", quoted)


def _hands_out_only(answer: Answer, identity: str, marks: Iterable[str], path: str) -> Judgement:
    """Records of that very id, if any; nothing of what the marks stand in."""
    found = [mark for mark in marks if mark in answer.text]
    if found:
        return Judgement(False, "nothing of another place", f"{answer.status}, with {found}", path)
    try:
        told = answer.json() if answer.status == 200 else {}
    except ValueError:
        told = {}
    rows = told.get("completions", []) if isinstance(told, dict) else told
    owners = {row.get("session_id") for row in rows if isinstance(row, dict)} if isinstance(rows, list) else set()
    return Judgement(owners <= {identity}, [identity], sorted(map(str, owners)), path)


def _shows_not(names: Iterable[str], session: str) -> Judgement:
    """No name holds the id, neither as it is nor in a form that anybody reads back."""
    raw = session.encode()
    coded = [raw.hex(), *(code(raw).decode().rstrip("=") for code in (base64.b64encode, base64.b32encode))]
    forms = {form.lower() for form in (session, quote(session, safe=""), session.replace("-", "_"), *coded)}
    seen = [name for name in names if any(form in name.lower() for form in forms)]
    return Judgement(not seen, "no name that shows the id", seen, session)


def _names_below(folder: Path) -> Iterator[str]:
    for _, folders, files in os.walk(folder):
        yield from folders
        yield from files


def _log_dir(scene: Scene) -> Path:
    if scene.proxy.log_dir is None:
        raise Inconclusive(f"the log directory of {scene.proxy.profile.name} is not known")
    return scene.proxy.log_dir


def _take_away(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
