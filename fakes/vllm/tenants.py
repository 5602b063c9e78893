"""Tenants: each has its own models, limits, template switches and playbooks; nothing is shared between two."""

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from fakes.vllm.complaints import complaint
from fakes.vllm.playbook import Playbook
from fakes.vllm.template import Switches

DEFAULT_TENANT = "default"


class TemplateConfig(BaseModel):
    """Switches of the chat template; see ``fakes.vllm.template.Switches``."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    strip_history_reasoning: bool = True
    redump_tool_calls: bool = True
    prefill_empty_think: bool = False

    def switches(self) -> Switches:
        return Switches(self.strip_history_reasoning, self.redump_tool_calls, self.prefill_empty_think)


class TrainerSampling(BaseModel):
    """What the ``nemo-rl`` profile asserts of every request; a ``top_k`` of None accepts absent or -1."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    temperature: float = 1.0
    top_p: float = 1.0
    top_k: int | None = None


class TenantConfig(BaseModel):
    """A tenant as ``PUT /_fake/tenants/<tenant>`` describes it; everything is optional.

    ``profile`` None means the profile the server was started with. ``max_model_len`` counts tokens.
    ``lengths`` gives models of another length than that, or of none, as a router in front of several engines shows
    them. Without ``lists_models`` there is no list of models, as on engines that have no such route.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    profile: str | None = None
    models: list[str] = Field(default=["tiny"], min_length=1)
    max_model_len: int = Field(default=32_768, ge=2)
    lengths: dict[str, int | None] = {}
    lists_models: bool = True
    tool_parser: Literal["hermes"] | None = "hermes"
    reasoning_parser: Literal["qwen3"] | None = None
    template: TemplateConfig = TemplateConfig()
    logprob_bits: Literal[32, 64] = 32
    max_logprobs: int = 20
    api_key: str | None = None
    trainer_sampling: TrainerSampling = TrainerSampling()
    scale_out: bool = True

    def length_of(self, model: str) -> int | None:
        """What the engine tells of that model's length, in tokens."""
        return self.lengths.get(model, self.max_model_len)


class Tenant:
    """One tenant: its configuration, the playbook of each run, and how often each turn was asked for."""

    def __init__(self, name: str, config: TenantConfig) -> None:
        self.name = name
        self.config = config
        self.switches = config.template.switches()
        self.playbooks: dict[int, Playbook] = {}
        self._attempts: dict[tuple[int, int, int | str], int] = {}

    def register(self, run: int, playbook: Playbook) -> None:
        """Let the model play ``playbook`` for this run; its attempts begin anew."""
        self.playbooks[run] = playbook
        self._attempts = {key: count for key, count in self._attempts.items() if key[0] != run}

    def count_attempt(self, run: int, scope: int, turn: int | str) -> int:
        """The number of earlier generations of this turn (or side call, by name); counts this one."""
        key = (run, scope, turn)
        earlier = self._attempts.get(key, 0)
        self._attempts[key] = earlier + 1
        return earlier

    def take_back_attempt(self, run: int, scope: int, turn: int | str) -> None:
        """For a generation that was counted, and then refused."""
        self._attempts[run, scope, turn] -= 1


class Tenants:
    """The tenants of one fake; the default one exists from the start."""

    def __init__(self) -> None:
        self._by_name = {DEFAULT_TENANT: Tenant(DEFAULT_TENANT, TenantConfig())}

    def get(self, name: str) -> Tenant | None:
        return self._by_name.get(name)

    def put(self, name: str, config: TenantConfig) -> Tenant:
        """Create the tenant, or replace it and everything it knew."""
        tenant = Tenant(name, config)
        self._by_name[name] = tenant
        return tenant

    def names(self) -> list[str]:
        return list(self._by_name)


def read_tenant(body: dict[str, Any]) -> TenantConfig:
    """The configuration in a request body; raises ``ValueError`` with one line: key, what is allowed, what was seen."""
    try:
        return TenantConfig.model_validate(body)
    except ValidationError as error:
        raise ValueError(f"tenant: {complaint(error, TenantConfig)}") from None
