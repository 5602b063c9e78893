"""A scripted engine and a reference proxy in front of it, shared by the tests of a module."""

import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.reference.capture.running import Proxy, route
from tests.reference.capture.scripted_engine import ScriptedEngine

_numbers = itertools.count()


@pytest.fixture(scope="session")
def _engine() -> Iterator[ScriptedEngine]:
    with ScriptedEngine() as engine:
        yield engine


@pytest.fixture
def engine(_engine: ScriptedEngine) -> ScriptedEngine:
    """The engine, with nothing planned and nothing remembered."""
    _engine.forget()
    return _engine


@pytest.fixture(scope="session")
def proxy(_engine: ScriptedEngine, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Proxy]:
    routes = {
        "policy": route(_engine.base_url, api_key="engine-secret"),
        "plain": {"type": "model", "target": "served", "base_url": _engine.base_url},
        "pinned": route(
            _engine.base_url,
            pins={"temperature": 1.0, "top_k": -1, "chat_template_kwargs": {"enable_thinking": False}},
            extra_body={"seed": 7, "top_logprobs": 2},
            extra_headers={"X-Cluster": "blue"},
        ),
        "hasty": route(_engine.base_url, timeout_secs=0.3),
        "pinging": route(_engine.base_url, ping_secs=0.2),
        "dead": route("http://127.0.0.1:1/v1"),
    }
    with Proxy(tmp_path_factory.mktemp("proxy"), {"routes": routes}) as running:
        yield running


@pytest.fixture
def session() -> str:
    """A session id of this test's own."""
    return f"session-{next(_numbers)}"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path
