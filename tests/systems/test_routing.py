"""The shared routes: in the contract's form, in a template's, and fitting the tenants behind them."""

from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from conformance.systems import profiles, routing
from conformance.systems.profile import Profile, Routing
from conformance.systems.tables import ProfileError

ENGINE = "http://127.0.0.1:8123"


def test_a_route_is_written_in_the_contracts_form_without_what_is_not_set() -> None:
    route = routing.Route("mine", tenant="t", timeout_secs=0.5, extra_body={"seed": 7}, api_key="${KEY}")
    assert route.entry(ENGINE) == {
        "type": "model",
        "target": "served-policy",
        "base_url": f"{ENGINE}/t/t/v1",
        "api_key": "${KEY}",
        "token_capture_engine": "vllm",
        "extra_body": {"seed": 7},
        "timeout_secs": 0.5,
    }


def test_an_uncaptured_route_has_no_engine_key() -> None:
    assert "token_capture_engine" not in routing.route("uncaptured").entry(ENGINE)


def test_the_configuration_is_yaml_with_defaults_and_every_route_in_order() -> None:
    found = yaml.safe_load(routing.configuration(routing.SHARED_ROUTES, ENGINE))
    assert list(found) == ["defaults", "routes"]
    assert found["defaults"] == {"format": "openai", "api_key": "none-needed", "timeout_secs": 120}
    assert list(found["routes"]) == [each.name for each in routing.SHARED_ROUTES]


def test_numbers_stay_numbers() -> None:
    found = yaml.safe_load(routing.configuration(routing.SHARED_ROUTES, ENGINE))["routes"]
    assert (found["impatient"]["timeout_secs"], found["pinging"]["ping_secs"]) == (0.5, 0.2)
    assert type(found["filled"]["extra_body"]["seed"]) is int
    assert type(found["pinned"]["pins"]["temperature"]) is float


def test_every_route_points_at_a_tenant_that_serves_its_target() -> None:
    tenants = routing.tenants()
    for route in routing.SHARED_ROUTES:
        assert route.target in tenants[route.tenant]["models"]


def test_every_tenant_is_behind_some_route() -> None:
    assert set(routing.tenants()) == {route.tenant for route in routing.SHARED_ROUTES}


def test_a_key_from_the_environment_is_one_that_the_engine_wants() -> None:
    name = (routing.route("keyed").api_key or "").strip("${}")
    assert routing.environment()[name] == routing.tenants()["keyed"]["api_key"]


def test_routes_with_keys_that_a_system_does_not_know_are_left_out() -> None:
    reference = profiles.find("reference")
    assert routing.supported(routing.SHARED_ROUTES, reference) == routing.SHARED_ROUTES
    poorer = replace(
        reference,
        capabilities=reference.capabilities - {"pins", "continuity-completions"},
        routing=Routing(form="contract", optional_keys=(), template=None),
    )
    left = {each.name for each in routing.supported(routing.SHARED_ROUTES, poorer)}
    assert {each.name for each in routing.SHARED_ROUTES} - left == {
        *("pinned", "pinging"),
        *("continued", "continued-pinned", "continued-unread", "continued-misread", "continued-short"),
    }


def templated(place: Path, text: str) -> Profile:
    (place / "routes.j2").write_text(text)
    form = Routing(form="template", optional_keys=("ping_secs",), template=place / "routes.j2")
    return replace(profiles.find("reference"), routing=form)


def test_a_template_sees_the_routes_and_the_engine(tmp_path: Path) -> None:
    profile = templated(
        tmp_path, "{{ engine }}:{% for each in routes %} {{ each.name }}@{{ each.tenant }}{% endfor %}\n"
    )
    routes = (routing.Route("one"), routing.Route("two", tenant="short"))
    assert routing.configuration_for(profile, routes, ENGINE) == f"{ENGINE}: one@main two@short\n"


def test_a_template_that_asks_for_what_is_not_there_is_one_line(tmp_path: Path) -> None:
    profile = templated(tmp_path, "{{ engines }}")
    with pytest.raises(ProfileError, match=r"^routes\.j2: does not render: 'engines' is undefined$"):
        routing.configuration_for(profile, (), ENGINE)
