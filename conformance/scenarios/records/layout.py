"""Record files in the published layout, whatever a profile says of it, and calls that make large ones."""

import hashlib
from pathlib import Path

from conformance.gauge.check import Inconclusive
from conformance.systems.proxy import ProxyUnderTest


def session_folder(proxy: ProxyUnderTest, session: str) -> Path:
    """What is above it is there. Raises Inconclusive where nobody can tell the log directory."""
    if proxy.log_dir is None:
        raise Inconclusive(f"the log directory of {proxy.profile.name} is not known")
    folder = proxy.log_dir / "sessions" / hashlib.sha256(session.encode("utf-8", "surrogatepass")).hexdigest()
    folder.parent.mkdir(parents=True, exist_ok=True)
    return folder


def first_file(proxy: ProxyUnderTest, session: str) -> Path:
    """A file where the profile puts the session's records. Raises Inconclusive where there is none."""
    for path in proxy.record_files(session):
        return path
    raise Inconclusive(f"no record of session {session!r} lies where the profile says")


def cut(path: Path) -> int:
    """The size of a file that does not end as a JSON object does; -1 for one that does, or is gone again.

    It is quick, for use while the file is written, and tells nothing of a bulk that is full of braces.
    """
    try:
        with path.open("rb") as file:
            size = file.seek(0, 2)
            file.seek(max(0, size - 64))
            return -1 if file.read(size).rstrip().endswith(b"}") else size
    except FileNotFoundError:
        return -1


def with_attachment(task: str, size: int) -> list[dict[str, object]]:
    """A message with a key that engines pass over and a record has to keep; images need another kind of model."""
    return [{"role": "user", "content": task, "attachment": "A" * size}]
