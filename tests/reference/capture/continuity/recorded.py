"""Answers that a real vLLM 0.32 gave, by the name of the case."""

import json
from functools import cache
from pathlib import Path
from typing import Any

JSON = Any
FILE = Path(__file__).parents[3] / "data" / "vllm" / "recorded-0.32.0.json"


@cache
def _cases() -> dict[str, str]:
    return {case["case"]: case["body"] for case in json.loads(FILE.read_text(encoding="utf-8"))["cases"]}


def body(case: str) -> bytes:
    return _cases()[case].encode()


def answer(case: str) -> JSON:
    return json.loads(_cases()[case])


def generated_text(case: str) -> str:
    """What was generated, told by the log prob entries, without the token that ended it."""
    entries = answer(case)["choices"][0]["logprobs"]["content"]
    return "".join(entry["token"] for entry in entries[:-1])
