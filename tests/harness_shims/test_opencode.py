"""opencode's configuration: provider id, limits, the instruction on task ids, and nothing at all with capture off."""

import json
from pathlib import PurePosixPath
from typing import Any

import pytest

from harness_shims import opencode
from harness_shims.launching import ShimError


def written(**settings: Any) -> dict[str, Any]:
    files = opencode.files("http://127.0.0.1:1234", "policy", **settings)
    found: dict[str, Any] = json.loads(files[PurePosixPath("opencode.json")])
    return found


@pytest.mark.parametrize("name", ["opencode", "opencode-local"])
def test_a_provider_id_under_which_no_session_header_is_sent_is_refused(name: str) -> None:
    with pytest.raises(ShimError, match=f"seen '{name}'"):
        opencode.configuration("http://127.0.0.1:1", "m", provider=name)


@pytest.mark.parametrize(
    ("length", "limit"),
    [(32_768, {"context": 32_768, "output": 8_192}), (131_072, {"context": 131_072, "output": 32_000}), (None, None)],
    ids=["short", "long", "unknown"],
)
def test_a_known_length_gives_the_limits_and_an_unknown_one_no_limit(
    length: int | None, limit: dict[str, int] | None
) -> None:
    assert opencode.limit(length) == limit
    model = written(limits=opencode.limit(length))["provider"]["trackgauge"]["models"]["policy"]
    assert model.get("limit") == limit
    assert ("limit" in model) == (length is not None)


def test_calls_go_to_the_proxy_under_the_same_model_name() -> None:
    found = written()
    assert found["model"] == "trackgauge/policy"
    assert found["provider"]["trackgauge"]["options"] == {"baseURL": "http://127.0.0.1:1234/v1", "apiKey": "dummy"}


def test_the_instruction_on_task_ids_is_laid_down_and_named() -> None:
    files = opencode.files("http://127.0.0.1:1", "m")
    (named,) = written()["instructions"]
    assert "leave out task_id" in files[PurePosixPath(named)]


def test_with_capture_off_nothing_is_laid_into_the_workspace() -> None:
    assert opencode.files(None, "m") == {}
