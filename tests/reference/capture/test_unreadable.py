"""Records that are there and cannot be read: nobody takes what is left for the whole session."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.reference.capture.running import Proxy, route
from tests.reference.capture.scripted_engine import ScriptedEngine

pytestmark = pytest.mark.unit

JSON = Any
MAY_NOT = ["setpriv", "--bounding-set=-dac_override,-dac_read_search"] if os.geteuid() == 0 else []
"""Root may read what nobody may."""

REBUILD = (sys.executable, "-m", "conformance.cli", "rebuild", "--jsonl")


def rebuilt(log_dir: Path) -> JSON:
    request = json.dumps({"v": 1, "id": "a", "op": "rebuild", "source": {"log_dir": str(log_dir)}})
    ran = subprocess.run([*MAY_NOT, *REBUILD], input=request.encode(), capture_output=True, check=True)
    return json.loads(ran.stdout)


@pytest.mark.skipif(bool(MAY_NOT) and shutil.which("setpriv") is None, reason="root without setpriv reads everything")
def test_a_folder_that_cannot_be_looked_into_may_hold_records(engine: ScriptedEngine, tmp_path: Path) -> None:
    with Proxy(tmp_path, {"routes": {"policy": route(engine.base_url)}}) as proxy:
        for session in ("closed", "open"):
            proxy.chat(session)
        before = rebuilt(proxy.log_dir)
        assert "lost" not in str(before["reason"]), before
        (folder,) = {
            path.parent for path in proxy.log_dir.glob("sessions/*/*.json") if b'"closed"' in path.read_bytes()
        }
        folder.chmod(0)
        try:
            answer = rebuilt(proxy.log_dir)
        finally:
            folder.chmod(0o700)
    assert answer["withheld"] is True
    assert "lost records" in str(answer), answer


@pytest.mark.skipif(bool(MAY_NOT) and shutil.which("setpriv") is None, reason="root without setpriv reads everything")
def test_a_record_that_cannot_be_opened_is_a_loss_of_its_session(engine: ScriptedEngine, tmp_path: Path) -> None:
    with Proxy(tmp_path, {"routes": {"policy": route(engine.base_url)}}) as proxy:
        proxy.chat("s")
        proxy.chat("s")
    path, _ = sorted(proxy.log_dir.glob("sessions/*/*.json"))
    path.chmod(0)
    read = "import sys, pathlib; from conformance.reference.store import Store\n"
    read += "sys.stdout.buffer.write(Store(pathlib.Path(sys.argv[1])).envelope('s'))"
    ran = subprocess.run(
        [*MAY_NOT, sys.executable, "-c", read, str(proxy.log_dir)], capture_output=True, check=True, timeout=30
    )
    envelope = json.loads(ran.stdout)
    assert (len(envelope["completions"]), envelope["incomplete"]) == (1, True)
