"""A command with a child in its own group, and a grandchild that left group and session; prints the three pids.

With ``stubborn`` all of them ignore TERM. With ``crash`` the command itself ends at once with exit code 3.
"""

import os
import signal
import sys


def sleep_for_ever() -> None:
    while True:
        signal.pause()


def main() -> None:
    if "stubborn" in sys.argv:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    told, tell = os.pipe()
    child = os.fork()
    if child == 0:
        if os.fork() == 0:
            os.setsid()
            if os.fork() == 0:  # its parent ends: an orphan in a session of its own
                os.write(tell, str(os.getpid()).encode())
                sleep_for_ever()
            os._exit(0)
        sleep_for_ever()
    grandchild = os.read(told, 20).decode()
    sys.stdout.write(f"pids {os.getpid()} {child} {grandchild}\n")
    sys.stdout.flush()
    if "crash" in sys.argv:
        os._exit(3)
    sleep_for_ever()


main()
