"""A fake engine to draw from."""

from collections.abc import Callable
from typing import Any

import pytest
import tiktoken

from fakes.vllm import tokenizer
from fakes.vllm.engine import PlaybookEngine
from fakes.vllm.tenants import TenantConfig, Tenants
from tests.fakes.vllm.engine.making import RUN, Conversation, playbook_from

Converse = Callable[..., Conversation]


@pytest.fixture(scope="session")
def encoding() -> tiktoken.Encoding:
    return tokenizer.load()


@pytest.fixture
def tenants() -> Tenants:
    return Tenants()


@pytest.fixture
def engine(encoding: tiktoken.Encoding, tenants: Tenants) -> PlaybookEngine:
    return PlaybookEngine(encoding, tenants)


@pytest.fixture
def converse(engine: PlaybookEngine, tenants: Tenants) -> Converse:
    """Register a playbook for a run and begin a conversation of it."""

    def begin(
        script: str, *, run: int = RUN, tenant: str = "default", config: TenantConfig | None = None, **options: Any
    ) -> Conversation:
        if config is not None:
            tenants.put(tenant, config)
        known = tenants.get(tenant)
        assert known is not None
        known.register(run, playbook_from(script))
        return Conversation(engine, tenant, run, **options)

    return begin
