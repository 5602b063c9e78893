"""The plugin is loaded into every pytest of the environment: it has to be light."""

import subprocess
import sys

HEAVY = ("starlette", "uvicorn", "aiohttp", "tiktoken", "ray", "openai", "jinja2", "conformance.reference")


def test_importing_the_plugin_imports_no_server_library_tokenizer_or_ray() -> None:
    code = "import sys, conformance.plugin, conformance.gauge.session; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    assert [name for name in HEAVY if name in loaded] == []
