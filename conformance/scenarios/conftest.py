"""Every module here is part of the suite: marked e2e, or ray for a tier of its own; its coroutines run on asyncio."""

import inspect

import pytest


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    return "asyncio"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if "conformance/scenarios/" in item.path.as_posix():
            item.add_marker(pytest.mark.ray if item.path.parent.name == "ray" else pytest.mark.e2e)


def pytest_pycollect_makeitem(obj: object, name: str) -> None:
    if name.startswith("test_") and inspect.iscoroutinefunction(obj):
        pytest.mark.usefixtures("anyio_backend")(pytest.mark.anyio(obj))
