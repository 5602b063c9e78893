"""A fake with the shipped vocabulary, on a socket."""

from collections.abc import Callable, Iterator
from itertools import count
from typing import Any

import pytest

from fakes.vllm import tokenizer
from fakes.vllm.app import build_world
from fakes.vllm.tags import format_tag
from tests.fakes.vllm.wire.serving_here import Served, serving

TENANT: dict[str, Any] = {"models": ["tiny"], "max_model_len": 4096}
Play = Callable[..., "Script"]

_runs = count(1)


class Script:
    """One run on a tenant: sends its requests, reads its rows."""

    def __init__(self, served: Served, tenant: str, run: int) -> None:
        self.served = served
        self.tenant = tenant
        self.run = run

    def request(self, **extra: Any) -> dict[str, Any]:
        prompt = f"{format_tag(self.run, 0, 0)} Go."
        asked = {"model": "tiny", "messages": [{"role": "user", "content": prompt}]}
        return asked | {"logprobs": True, "top_logprobs": 0, "return_token_ids": True} | extra

    @property
    def path(self) -> str:
        return f"/t/{self.tenant}/v1/chat/completions"

    def ask(self, **extra: Any) -> Any:
        return self.served.call("POST", self.path, self.request(**extra))

    def row(self) -> dict[str, Any]:
        """The latest row of the run."""
        return self.served.rows(f"tenant={self.tenant}&run={self.run}")[-1]

    def wait(self, state: str, rows: int = 1) -> dict[str, Any]:
        reply = self.served.wait(f"tenant={self.tenant}&run={self.run}&state={state}&count={rows}&timeout=30")
        assert reply.status == 200, reply.text
        found: dict[str, Any] = reply.json()["rows"][-1]
        return found


@pytest.fixture(scope="session")
def fake() -> Iterator[Served]:
    with serving(build_world(tokenizer.load())) as served:
        yield served


@pytest.fixture
def play(fake: Served) -> Play:
    """Put a tenant, and a playbook of one turn or several, under a fresh run."""

    def begin(*turns: dict[str, Any], tenant: dict[str, Any] | None = None, **playbook: Any) -> Script:
        run = next(_runs)
        name = f"t{run}"
        fake.put(f"/_fake/tenants/{name}", TENANT | (tenant or {}))
        document = {"about": "A test.", "scopes": {"main": {"turns": list(turns)}}} | playbook
        fake.put(f"/_fake/tenants/{name}/runs/{run}", document)
        return Script(fake, name, run)

    return begin
