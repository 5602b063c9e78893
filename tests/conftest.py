"""Fixtures of Trackgauge's own tests."""

import signal

import pytest

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # As under nohup or in a script's background: what the tests start has to hear of Ctrl-C wherever they are run.
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    return "asyncio"
