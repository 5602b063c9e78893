"""Rebuilds that do nothing right, one per word."""

import json
import os
import sys
from typing import Any

WAY = sys.argv[1]
EMPTY: dict[str, Any] = {"outcome": "clean", "withheld": False, "excluded": [], "notes": [], "trajectories": []}
ANSWERS: dict[str, dict[str, Any]] = {
    "careless": {"outcome": "clean"},
    "empty": EMPTY,
    "nulls": dict.fromkeys(EMPTY),
    "mistyped": {**EMPTY, "outcome": 7, "withheld": "no", "trajectories": [1, None, {}], "notes": "x"},
    "shapeless": {**EMPTY, "trajectories": [{"session_id": 5, "items": "x", "tokens": ["a"], "mask": None}]},
}


def main() -> None:
    for line in sys.stdin.buffer:
        if WAY == "dying":
            os._exit(7)
        if WAY == "silent":
            continue
        while WAY == "endless":
            sys.stdout.write("no answer\n" * 10_000)
        try:
            name = json.loads(line)["id"]
        except (ValueError, LookupError, TypeError, RecursionError):
            name = None
        sys.stdout.write(json.dumps({"id": name, **ANSWERS[WAY]}) + "\n")
        sys.stdout.flush()


main()
