"""Keeps one command of a rollout: nothing of it outlives the task, however the task ends.

Run as a script with the standard library alone, so that it is up in a few milliseconds and needs nothing of the
environment. Its stdin is the lifeline that only the task holds: when it ends, also because the task was killed, the
command and all that descends from it get TERM, some grace, and KILL. What comes of the command is told in one line on
the descriptor it is given: ``refused ERRNO``, ``left CODE`` where it ended by itself, or ``ended CODE`` after it was
told to; the code is negative for a signal.

It is two processes, since one can be killed too, as Ray kills what a worker has started: a keeper, and a warden that
has forked it. Without its warden the keeper ends the command; what a keeper leaves behind its warden kills.
"""

import ctypes
import errno
import os
import select
import signal
import sys
import time
from contextlib import suppress

SET_PDEATHSIG = 1
SET_CHILD_SUBREAPER = 36
AGAIN_SECONDS = 0.02
"""How often KILL is repeated for what was forked in the meantime."""
LONGEST_SECONDS = 3600.0
"""Of one wait, since a select takes no number that is as large as a grace may be."""


def ward(command: list[str], told: int, grace: float) -> int:
    """The exit code of both: 0 unless the keeper did not come to its end."""
    libc = ctypes.CDLL(None)
    libc.prctl(SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    warden = os.getpid()
    keeper = os.fork()
    if keeper == 0:
        libc.prctl(SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
        if os.getppid() == warden:
            keep(command, told, grace, libc)
        return 0
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda *_: os.kill(keeper, signal.SIGTERM))
    _, status = os.waitpid(keeper, 0)
    while status and reaped(keeper)[1]:
        to_all(signal.SIGKILL)
        time.sleep(AGAIN_SECONDS)
    return 1 if status else 0


def keep(command: list[str], told: int, grace: float, libc: ctypes.CDLL) -> None:
    """Returns when the last descendant is gone."""
    libc.prctl(SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    awake = wakeups()
    child = begin(command, told, libc)
    deadline: float | None = None
    killing = False
    while True:
        code, left = reaped(child)
        if code is not None:
            # A KILL that is not from here came from somebody else, whatever has been told in the meantime.
            alone = deadline is None or (code == -signal.SIGKILL and not killing)
            tell(told, f"{'left' if alone else 'ended'} {code}")
        if not left:
            return
        if code is not None and deadline is None:
            deadline = ending(grace)
        wait = None if deadline is None else min(LONGEST_SECONDS, max(0.0, deadline - time.monotonic()))
        ready = select.select([awake, 0] if deadline is None else [awake], [], [], wait)[0]
        told_to = signal.SIGTERM in os.read(awake, 512) if awake in ready else False
        if deadline is None and (told_to or 0 in ready):
            code, left = reaped(child)  # once more: what is dead already was not ended by this
            if code is not None:
                tell(told, f"left {code}")
            if not left:
                return
            deadline = ending(grace)
        if deadline is not None and time.monotonic() >= deadline:
            killing = True
            to_all(signal.SIGKILL)
            deadline = time.monotonic() + AGAIN_SECONDS


def begin(command: list[str], told: int, libc: ctypes.CDLL) -> int:
    """Forks the command in a session of its own. Does not return where it cannot be run."""
    failed, fail = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.setsid()
            libc.prctl(SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
            # The interpreter ignores the one, what a shell starts in the background the other; both are inherited.
            for inherited in (signal.SIGPIPE, signal.SIGINT):
                signal.signal(inherited, signal.SIG_DFL)
            os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
            os.execvp(command[0], command)
        except OSError as error:
            os.write(fail, str(error.errno).encode())
        except ValueError:  # a program without a name
            os.write(fail, str(errno.ENOENT).encode())
        finally:
            os._exit(127)
    os.close(fail)
    number = os.read(failed, 16).decode()
    os.close(failed)
    if number:
        tell(told, f"refused {number}")
        sys.exit(0)
    return pid


def reaped(child: int) -> tuple[int | None, bool]:
    """The command's code if it has just ended, and whether any process is left: orphans come to the subreaper."""
    code = None
    try:
        while (found := os.waitpid(-1, os.WNOHANG))[0]:
            if found[0] == child:
                code = os.waitstatus_to_exitcode(found[1])
    except ChildProcessError:
        return code, False
    return code, True


def ending(grace: float) -> float:
    """TERM for all; returns when KILL is due. A stopped process has to go on to take it."""
    to_all(signal.SIGTERM)
    to_all(signal.SIGCONT)
    return time.monotonic() + grace


def to_all(number: signal.Signals) -> None:
    for pid in below(os.getpid()):
        with suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)


def below(root: int) -> list[int]:
    """All descendants of a process, those that left its session too: orphans come back to the subreaper."""
    children: dict[int, list[int]] = {}
    for name in filter(str.isdigit, os.listdir("/proc")):
        with suppress(OSError, ValueError, IndexError), open(f"/proc/{name}/stat", "rb") as stat:
            # The command's name stands in parentheses and may hold any byte.
            children.setdefault(int(stat.read().rpartition(b")")[2].split()[1]), []).append(int(name))
    found: list[int] = []
    level = [root]
    while level:
        level = [child for pid in level for child in children.get(pid, ())]
        found += level
    return found


def wakeups() -> int:
    """A descriptor on which the numbers of the signals that came can be read."""
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    awake, wake = os.pipe()
    os.set_blocking(wake, False)
    signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
    for number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda *_: None)
    return awake


def tell(told: int, line: str) -> None:
    with suppress(BrokenPipeError):  # the task is gone; what is left to do is the same
        os.write(told, f"{line}\n".encode())


if __name__ == "__main__":
    os.set_inheritable(int(sys.argv[1]), False)
    sys.exit(ward(sys.argv[3:], int(sys.argv[1]), float(sys.argv[2])))
