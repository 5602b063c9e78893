"""Evidence is whole while it is small, and says what it left out when it is not."""

import json
from pathlib import Path

import pytest

from conformance.report import evidence

pytestmark = pytest.mark.unit


def kept(folder: Path, scenario: str, parts: dict[str, object]) -> dict[str, object]:
    relative = evidence.write(folder, scenario, parts)
    assert not Path(relative).is_absolute()
    path = folder / relative
    assert path.stat().st_size <= evidence.LARGEST + 1
    read: dict[str, object] = json.loads(path.read_text("utf-8"))
    return read


def test_small_evidence_is_kept_whole(tmp_path: Path) -> None:
    records = [
        {"prompt_token_ids": list(range(300)), "generation_log_probs": [-0.1, None, -1e-07], "note": "a [1,\n2]"}
    ]
    read = kept(tmp_path, "a.py::test_b", {"records": records, "ledger": [], "hops": [{"body_text": "\ud800"}]})
    assert read == {
        "v": 1,
        "scenario": "a.py::test_b",
        "shortened": None,
        "records": records,
        "ledger": [],
        "hops": [{"body_text": "\ud800"}],
    }


def test_long_token_lists_lose_their_middle_and_tell_their_length(tmp_path: Path) -> None:
    read = kept(tmp_path, "long", {"records": [{"prompt_token_ids": list(range(200_000))}]})
    [record] = read["records"]  # type: ignore[misc]
    ids = record["prompt_token_ids"]  # type: ignore[has-type]
    assert ids[:2] == [0, 1]
    assert ids[-1] == 199_999
    assert ids[128] == "… 199744 of 200000 items left out …"
    assert read["shortened"] == {"items": 256, "characters": 32_768, "whole_bytes": 1_288_926}


@pytest.mark.parametrize(
    "part",
    [
        pytest.param([{"body_text": "x" * 9000, "ids": list(range(900))}] * 900, id="many records"),
        pytest.param({f"key {n}": "y" * 90 for n in range(90_000)}, id="a wide object"),
        pytest.param("z" * 9_000_000, id="one body"),
    ],
)
def test_evidence_of_any_shape_stays_small(tmp_path: Path, part: object) -> None:
    read = kept(tmp_path, "large", {"hops": part})
    assert read["shortened"] is not None
    assert "left out" in json.dumps(read["hops"])


def test_what_nests_too_deep_is_cut_with_a_remark(tmp_path: Path) -> None:
    deep: object = 1
    for _ in range(5000):
        deep = [deep]
    assert "nested deeper than" in json.dumps(kept(tmp_path, "deep", {"hops": deep}))


def test_scenarios_never_share_a_file_and_no_name_leaves_the_folder() -> None:
    scenarios = [
        "a.py::test[x/y]",
        "a.py::test[x:y]",
        "b/a.py::test[x:y]",
        "../../etc",
        "",
        "\ud800",
        "é" * 400,
        "a" * 400,
    ]
    names = [evidence.file_name(scenario) for scenario in scenarios]
    assert len(set(names)) == len(names)
    assert all("/" not in name and not name.startswith(".") and len(name) < 130 for name in names)
    assert names[0].startswith("y-")
