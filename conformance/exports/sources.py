"""Where rollouts come from: answers of a rebuild in a file, or captured sessions that are rebuilt here and now."""

import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from conformance.contract.rebuilds import RebuildAnswer
from conformance.contract.vocabulary import SystemKind
from conformance.exports.errors import ExportError
from conformance.systems.profile import Profile
from conformance.systems.rebuild import RebuildFailed, RebuildUnderTest
from conformance.systems.servers import SystemNotStarted

JSON = Any

REBUILD_SECONDS = 600.0


def answers(source: str, rebuild: Profile) -> Iterator[RebuildAnswer]:
    """From a proxy's URL, a log directory, or a file of answers or envelopes, one a line or one in all.

    A log directory or a proxy is one session tree, hence one rollout. Raises ExportError.
    """
    if rebuild.kind is not SystemKind.REBUILD:
        raise ExportError(f"--rebuild {rebuild.name}: expected the profile of a rebuild, seen that of a {rebuild.kind}")
    if source.startswith(("http://", "https://")):
        yield _rebuilt({"url": source.rstrip("/")}, "rollout", rebuild)
    elif Path(source).is_dir():
        yield _rebuilt({"log_dir": str(Path(source).absolute())}, Path(source).absolute().name, rebuild)
    else:
        for number, value in enumerate(_documents(Path(source))):
            yield _answer_in(value, f"{source}: document {number + 1}", number, rebuild)


def _answer_in(value: JSON, where: str, number: int, rebuild: Profile) -> RebuildAnswer:
    if not isinstance(value, dict):
        raise ExportError(f"{where}: expected an object, seen {type(value).__name__}")
    if "trajectories" in value:
        return _read(value, where)
    if "completions" in value:
        return _rebuilt({"envelope": value}, str(value.get("session_id")), rebuild)
    if "sessions" in value:
        return _rebuilt({"sessions": value["sessions"]}, f"rollout-{number + 1}", rebuild)
    raise ExportError(f"{where}: neither an answer (trajectories) nor an envelope (completions) nor a tree (sessions)")


def _read(value: dict[str, JSON], where: str) -> RebuildAnswer:
    try:
        return RebuildAnswer.model_validate(value)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        raise ExportError(f"{where}: {'.'.join(map(str, first['loc']))}: {first['msg']}") from None


def _documents(file: Path) -> Iterator[JSON]:
    """A file that is one JSON document, or one a line; blank lines do not count."""
    if not file.exists():
        raise ExportError(f"{file}: there is no such file, nor a log directory")
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ExportError(f"{file}: {error}") from None
    try:
        yield json.loads(text)
        return
    except (ValueError, RecursionError):
        pass
    for number, line in enumerate(text.splitlines(), start=1):
        if line.strip():
            try:
                yield json.loads(line)
            except (ValueError, RecursionError) as error:
                raise ExportError(f"{file}:{number}: no JSON: {error}") from None


def _rebuilt(source: dict[str, JSON], name: str, rebuild: Profile) -> RebuildAnswer:
    with tempfile.TemporaryDirectory(prefix="export-") as folder:
        try:
            system = RebuildUnderTest(rebuild, Path(folder))
            try:
                found = system.ask_now(source, seconds=REBUILD_SECONDS)
            finally:
                system.close()
        except (RebuildFailed, SystemNotStarted) as error:
            raise ExportError(str(error).splitlines()[0]) from None
    return _read({**found, "id": name}, name)
