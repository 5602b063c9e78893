"""Settings with a proxy in the model's place: two scalars change, and not a byte besides."""

import pytest
import yaml

from conformance.contract.rollouts import Settings
from conformance.reference.rollout.failures import RolloutFailed
from conformance.reference.rollout.settings import routed

TEXT = """\
# kept
policy:   {host: engine.invalid,   port: 0x1F90, ratio: 1e3}   # kept too
judge: {host: engine.invalid, port: 8000}
"""


def test_only_host_and_port_change() -> None:
    text = routed(Settings(yaml=TEXT, server="policy"), "127.0.0.1", 4000)
    assert text == TEXT.replace("engine.invalid,   port: 0x1F90", '"127.0.0.1",   port: 4000')


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("policy: [1", "no YAML"),
        ("other: {host: a, port: 1}", "no key 'policy'"),
        ("policy: {host: a}", "no key 'port'"),
        ("policy: {host: [a], port: 1}", "no plain value"),
        ("policy: &x {host: a, port: 1}\njudge: *x", "shares its host or port"),
        ("judge: {host: &h a, port: 1}\npolicy: {host: *h, port: 1}", "shares its host or port"),
    ],
)
def test_settings_that_cannot_be_routed_are_refused_with_the_reason(text: str, why: str) -> None:
    with pytest.raises(RolloutFailed, match=why):
        routed(Settings(yaml=text, server="policy"), "127.0.0.1", 4000)


def test_a_host_that_yaml_would_read_as_something_else_stays_a_text() -> None:
    text = routed(Settings(yaml=TEXT, server="policy"), "::1", 4000)
    assert yaml.safe_load(text)["policy"]["host"] == "::1"
