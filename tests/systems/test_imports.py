"""The pytest plugin imports this package in every run: it must stay light."""

import subprocess
import sys

HEAVY = (
    "aiohttp",
    "anyio",
    "jinja2",
    "orjson",
    "pydantic",
    "ray",
    "starlette",
    "tiktoken",
    "uvicorn",
    "yaml",
)


def test_the_package_imports_nothing_heavy() -> None:
    modules = [
        "calls",
        "engine",
        "guard",
        "inventory",
        "needs",
        "profiles",
        "proxy",
        "rebuild",
        "routing",
        "servers",
        "tables",
    ]
    lines = ["import sys", *(f"import conformance.systems.{name}" for name in modules)]
    lines.append(f"print(*sorted(set({HEAVY!r}) & set(sys.modules)))")
    done = subprocess.run([sys.executable, "-c", "\n".join(lines)], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []
