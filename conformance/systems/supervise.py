"""Runs one command and sees to it that nothing of it outlives the process that asked for it.

Started by :mod:`conformance.systems.guard` as a script of its own, with the standard library only, since it has to
survive a SIGKILL of the starter and has to be up within a few milliseconds.

Two pipes tie it to the starter. On the *lifeline* each byte is the number of a signal for the command (KILL goes to
all its descendants); end of file, which also comes when the starter dies, means TERM for all, grace, KILL for all. On
the *report* it writes ``started PID``, or ``refused ERRNO`` if the command cannot be run, and at last ``ended CODE``
with the code as ``subprocess`` counts it: negative for a signal.
"""

import ctypes
import os
import select
import signal
import sys
import time
from contextlib import suppress

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36

KILL_AGAIN_SECONDS = 0.02
"""How often KILL is repeated while descendants that were forked meanwhile are still there."""


def prctl(option: int, value: int) -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


def parent_of(pid: int) -> int:
    """0 if the process is gone meanwhile."""
    try:
        with open(f"/proc/{pid}/stat", errors="replace") as file:
            stat = file.read()
    except OSError:
        return 0
    # The command name stands in parentheses and may hold anything, parentheses too.
    return int(stat.rpartition(")")[2].split()[1])


def descendants(root: int) -> list[int]:
    """Of a process; on Linux also those that left its group or session, since orphans come to the subreaper."""
    children: dict[int, list[int]] = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            children.setdefault(parent_of(int(entry)), []).append(int(entry))
    found: list[int] = []
    border = [root]
    while border:
        border = [child for pid in border for child in children.get(pid, [])]
        found += border
    return found


def signal_all(child: int, number: int) -> None:
    if sys.platform != "linux":
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(child, number)
        return
    for pid in descendants(os.getpid()):
        with suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)


def spawn(command: list[str]) -> tuple[int, int]:
    """The child's pid and 0, or 0 and the error number with which the command could not be run."""
    told, tell = os.pipe()  # closes by itself in the child when the command takes over
    pid = os.fork()
    if pid == 0:
        try:
            os.setsid()
            prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
            # The interpreter ignores SIGPIPE and SIGXFSZ. The second stays ignored, so that a limit on the size of
            # files acts on a system of any make as a full disk does: the write fails.
            signal.signal(signal.SIGPIPE, signal.SIG_DFL)
            # A shell lets its background jobs ignore Ctrl-C, and that is inherited too.
            signal.signal(signal.SIGINT, signal.SIG_DFL)
            os.execvp(command[0], command)
        except OSError as error:
            os.write(tell, str(error.errno).encode())
        finally:
            os._exit(127)
    os.close(tell)
    failure = os.read(told, 16)
    os.close(told)
    if failure:
        os.waitpid(pid, 0)
        return 0, int(failure)
    return pid, 0


class Watch:
    """The command from its start until the last of its descendants is reaped."""

    def __init__(self, child: int, lifeline: int, report: int, grace: float) -> None:
        self.child = child
        self.lifeline = lifeline
        self.report = report
        self.grace = grace
        self.kill_at: float | None = None

    def until_nothing_is_left(self, woken: int) -> None:
        while self.reap():
            wait = None if self.kill_at is None else max(0.0, self.kill_at - time.monotonic())
            listen = [woken] if self.lifeline < 0 else [woken, self.lifeline]
            ready = select.select(listen, [], [], wait)[0]
            if woken in ready and signal.SIGTERM in os.read(woken, 4096):
                self.begin_to_end()
            if self.lifeline in ready:
                self.obey(os.read(self.lifeline, 64))
            if self.kill_at is not None and time.monotonic() >= self.kill_at:
                signal_all(self.child, signal.SIGKILL)
                self.kill_at = time.monotonic() + KILL_AGAIN_SECONDS

    def reap(self) -> bool:
        """False when no process is left."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return False
            if pid == 0:
                return True
            if pid == self.child:
                self.tell(f"ended {os.waitstatus_to_exitcode(status)}\n")
                self.begin_to_end()

    def obey(self, orders: bytes) -> None:
        if not orders:
            self.lifeline = -1
            self.begin_to_end()
        for number in orders:
            if number == signal.SIGKILL:
                self.kill_at = time.monotonic()
            else:
                with suppress(ProcessLookupError):
                    os.kill(self.child, number)

    def begin_to_end(self) -> None:
        if self.kill_at is None:
            self.kill_at = time.monotonic() + self.grace
            signal_all(self.child, signal.SIGTERM)
            signal_all(self.child, signal.SIGCONT)  # a stopped process cannot take TERM

    def tell(self, line: str) -> None:
        with suppress(BrokenPipeError):  # the starter is gone; what is left to do is the same
            os.write(self.report, line.encode())


def take_signals() -> int:
    """The end of a pipe that becomes readable, with the signal numbers, when a child ended or TERM came."""
    woken, wake = os.pipe()
    os.set_blocking(wake, False)
    signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
    for number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda *_: None)
    return woken


def main(arguments: list[str]) -> int:
    lifeline, report, grace = int(arguments[0]), int(arguments[1]), float(arguments[2])
    os.set_inheritable(lifeline, False)
    os.set_inheritable(report, False)
    prctl(PR_SET_CHILD_SUBREAPER, 1)
    woken = take_signals()
    child, failure = spawn(arguments[3:])
    if failure:
        os.write(report, f"refused {failure}\n".encode())
        return 1
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 0)  # the child has them now, and has to be alone with them:
    os.dup2(nothing, 1)  # their end of file is its end
    watch = Watch(child, lifeline, report, grace)
    watch.tell(f"started {child}\n")
    watch.until_nothing_is_left(woken)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
