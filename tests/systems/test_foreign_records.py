"""Records of another make, read into the contract's fields."""

from typing import Any

import pytest

from conformance.systems import profiles, routing
from conformance.systems.retrieval import Form, in_contract_form

EVENT = {
    "rollout_id": "r1",
    "data": {
        "response": {
            "id": "chatcmpl-1",
            "prompt_token_ids": [1, 2],
            "choices": [{"token_ids": [3, 4], "logprobs": {"content": [{"logprob": -0.5}, {"logprob": -0.25}]}}],
        }
    },
}
FIELDS = {
    "session_id": "rollout_id",
    "request_id": "data.response.id",
    "prompt_token_ids": "data.response.prompt_token_ids",
    "generation_token_ids": "data.response.choices.0.token_ids",
    "generation_log_probs": "data.response.choices.0.logprobs.content.*.logprob",
    "model": "data.response.model",
}


def test_a_path_leads_through_objects_and_lists() -> None:
    assert in_contract_form(EVENT, Form(FIELDS)) == {
        "session_id": "r1",
        "request_id": "chatcmpl-1",
        "prompt_token_ids": [1, 2],
        "generation_token_ids": [3, 4],
        "generation_log_probs": [-0.5, -0.25],
    }


@pytest.mark.parametrize(
    ("changed", "valid"),
    [
        ({}, True),
        ({"token_ids": []}, False),
        ({"token_ids": None}, False),
        ({"token_ids": [3]}, False),
        ({"logprobs": None}, False),
        ({"logprobs": {"content": [{"logprob": -0.5}, {"logprob": None}]}}, False),
        ({"logprobs": {"content": [{"logprob": -0.5}, {"token": "b"}]}}, False),
    ],
)
def test_where_nothing_marks_a_record_it_is_valid_if_it_is_whole(changed: dict[str, Any], valid: bool) -> None:
    response = EVENT["data"]["response"]  # type: ignore[index]  # an object, as above
    choice = {**response["choices"][0], **changed}
    event = {**EVENT, "data": {"response": {**response, "choices": [choice]}}}
    assert in_contract_form(event, Form(FIELDS, flagged=False))["is_valid"] is valid


@pytest.mark.parametrize("name", ["agentlightning", "litellm", "rllm-model-gateway", "switchyard"])
def test_the_configuration_of_each_system_names_its_routes_and_where_they_lead(name: str) -> None:
    profile = profiles.find(name)
    text = routing.configuration_for(profile, routing.SHARED_ROUTES, "http://127.0.0.1:8000")
    assert profile.routing is not None
    if profile.routing.form != "none":
        assert "http://127.0.0.1:8000/t/main/v1" in text
    fitting = [route.name for route in routing.supported(routing.SHARED_ROUTES, profile)]
    assert "policy-model" in fitting
    assert (len(fitting) > 1) == ("routes" in profile.capabilities)


def test_where_a_proxy_hands_on_the_clients_model_name_the_engine_serves_it_too() -> None:
    profile = profiles.find("rllm-model-gateway")
    assert {"policy-model", routing.SERVED} <= set(routing.tenants(profile)["main"]["models"])
    assert routing.tenants(profiles.find("litellm")) == routing.tenants()
