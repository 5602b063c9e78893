"""A tenant is configured strictly, and has sensible defaults."""

from typing import Any

import pytest

from fakes.vllm.tenants import DEFAULT_TENANT, TenantConfig, Tenants, read_tenant


def test_an_empty_body_gives_the_defaults() -> None:
    assert read_tenant({}) == TenantConfig()


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"colour": "red"}, "tenant: colour: unknown key; allowed: profile, models, "),
        ({"max_model_len": "long"}, "tenant: max_model_len: expected an integer, .* seen 'long'"),
        ({"template": {"strip": True}}, r"tenant: template\.strip: unknown key; allowed: strip_history_reasoning, "),
        ({"models": []}, "tenant: models: .*at least 1"),
        ({"tool_parser": "pythonic"}, "tenant: tool_parser: expected 'hermes', seen 'pythonic'"),
        ({"logprob_bits": 16}, "tenant: logprob_bits: expected 32 or 64, seen 16"),
    ],
)
def test_a_wrong_body_is_refused_in_one_line(body: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        read_tenant(body)


def test_the_default_tenant_is_there_from_the_start_and_others_once_put() -> None:
    tenants = Tenants()
    assert tenants.get("other") is None
    tenants.put("other", TenantConfig())
    assert tenants.names() == [DEFAULT_TENANT, "other"]
