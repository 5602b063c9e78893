"""Chains as the disk remembers them: after a restart, from another process, or when memory was short."""

import logging
import os
import stat
from collections.abc import Collection
from pathlib import Path

from conformance.reference.capture import jsontext
from conformance.reference.capture.continuity.learning import Learned, learned
from conformance.reference.store import UNDELIVERED_SUFFIX, Store

log = logging.getLogger(__name__)


def unread(store: Store, session_id: str, read: Collection[str]) -> tuple[list[str], list[Learned]]:
    """The records of a session beyond those that were ``read``: all their uuids, and what can be continued of them.

    In the order in which they were kept. Blocks; what cannot be read is left out.
    """
    folder = store.folder(session_id)
    try:
        names = sorted(name.removesuffix(".json") for name in os.listdir(folder) if name.endswith(".json"))
    except OSError:
        return [], []
    new = [name for name in names if name not in read]
    found = [entry for entry in (_entry(folder, name, session_id) for name in new) if entry is not None]
    return new, [entry for _, entry in sorted(found, key=lambda pair: (pair[0], pair[1].uuid))]


def _entry(folder: Path, name: str, session_id: str) -> tuple[str, Learned] | None:
    try:
        path = folder / f"{name}.json"
        if not stat.S_ISREG(path.lstat().st_mode):
            # Whoever reads a pipe waits for somebody to write to it.
            return None
        record = jsontext.read(path.read_bytes())
        if not isinstance(record, dict) or record.get("session_id") != session_id or record.get("uuid") != name:
            return None
        delivered = not (folder / f"{name}{UNDELIVERED_SUFFIX}").exists()
    except (OSError, ValueError) as error:
        log.warning("record %s of a session cannot be continued from (%s)", name, str(error)[:200])
        return None
    entry = learned(record, delivered=delivered)
    return None if entry is None else (str(record.get("captured_at")), entry)
