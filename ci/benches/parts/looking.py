"""Looks every few seconds at the memory and descriptors of a runner and its proxies, in a process of its own.

To look at a few thousand processes is work, which would keep a bench from hearing what the runner says. Run with the
runner's pid; ends when its stdin does, and says in one line what it saw.
"""

import json
import re
import select
import sys
from contextlib import suppress
from pathlib import Path

import psutil

FIRST_SECONDS = 1.0
LOOK_SECONDS = 5.0
FEW = 5


def look(runner: int) -> tuple[int, list[float]]:
    """Open descriptors of the runner, and the MB of some of its proxies, which stand for all."""
    files, megabytes = 0, []
    with suppress(psutil.Error):
        process = psutil.Process(runner)
        files = process.num_fds()
        proxies = [each for each in process.children(recursive=True) if _is_proxy(each)]
        for proxy in proxies[:: max(1, len(proxies) // FEW)]:
            with suppress(OSError):
                megabytes.append(_own_mb(proxy.pid))
    return files, megabytes


def _is_proxy(process: psutil.Process) -> bool:
    """And not the keeper that started it, which has the same words behind its own."""
    with suppress(psutil.Error):
        words = process.cmdline()
        return "--rl-log-dir" in words and not any(word.endswith("keeper.py") for word in words)
    return False


def _own_mb(pid: int) -> float:
    """Proportional set size: what is shared with other processes counts in part."""
    text = Path(f"/proc/{pid}/smaps_rollup").read_text()
    found = re.search(r"^Pss: +(\d+) kB", text, re.MULTILINE)
    return int(found[1]) / 1024 if found else 0.0


def main(runner: int) -> None:
    most, proxies, wait = 0, list[float](), FIRST_SECONDS
    while not select.select([sys.stdin], [], [], wait)[0]:
        wait = LOOK_SECONDS
        files, seen = look(runner)
        most = max(most, files)
        proxies += seen
    sys.stdout.write(json.dumps({"most_files": most, "proxies": proxies}) + "\n")


if __name__ == "__main__":
    main(int(sys.argv[1]))
