"""Rollouts as Ray tasks (under way)."""

from collections.abc import Iterable
from typing import BinaryIO


def serve(lines: Iterable[bytes], requests: int | None, answers: BinaryIO, address: str | None) -> None:
    raise NotImplementedError
