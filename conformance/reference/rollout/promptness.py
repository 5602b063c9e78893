"""Asks the kernel to let a thread that needs little go soon."""

import ctypes
import os
import platform
import struct

SET_ATTRIBUTES = {"x86_64": 314, "aarch64": 274}
"""The system call sched_setattr by machine; the C library has no function of that name before 2.41."""
ATTRIBUTES = "IIQiIQQQII"
"""struct sched_attr: size, policy, flags, nice, priority, runtime, deadline, period, two clamps of use."""
SLICE_NS = 100_000
"""The shortest that Linux takes."""


def go_soon() -> None:
    """Asks for short turns of the calling thread, which come the sooner: else it waits a turn of each before it.

    What it forks then inherits them. Linux grants it to anybody from 6.12 on, and takes no notice before.
    """
    number = SET_ATTRIBUTES.get(platform.machine())
    if number is None or os.sched_getscheduler(0) != os.SCHED_OTHER:
        return
    size = struct.calcsize(ATTRIBUTES)
    nice = os.getpriority(os.PRIO_PROCESS, 0)
    wanted = struct.pack(ATTRIBUTES, size, os.SCHED_OTHER, 0, nice, 0, SLICE_NS, 0, 0, 0, 0)
    ctypes.CDLL(None).syscall(number, 0, wanted, 0)
