"""The list of models as a harness reads it before it starts."""

import asyncio
from typing import Any

from conformance.systems.proxy import ProxyUnderTest

NOT_LISTED = "not listed"
ASKED_AT_MOST = 100
PAUSE_SECONDS = 0.1


async def lengths(proxy: ProxyUnderTest) -> dict[str, Any]:
    """Each listed id with its ``max_model_len``, None without one; nothing where the answer is no list of models."""
    answer = await proxy.get("/v1/models")
    try:
        found = answer.json() if answer.status == 200 else None
    except ValueError:
        found = None
    rows = found.get("data") if isinstance(found, dict) else None
    known = [row for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []
    return {str(row.get("id")): row.get("max_model_len") for row in known}


async def lengths_in_the_end(proxy: ProxyUnderTest, name: str) -> dict[str, Any]:
    """The list as soon as ``name`` has a length in it, or the last one: nothing tells when a proxy asks its engine."""
    listed = await lengths(proxy)
    for _ in range(ASKED_AT_MOST):
        if listed.get(name) is not None:
            break
        await asyncio.sleep(PAUSE_SECONDS)
        listed = await lengths(proxy)
    return listed
