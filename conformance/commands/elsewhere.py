"""Commands that ``cli`` starts by itself; they stand here for the list that ``trackgauge --help`` prints."""


def proxy() -> None:
    """Start the reference capture proxy (trackgauge proxy --help)."""


def fake_vllm() -> None:
    """Start a vLLM look-alike with deterministic tokens and a ledger (trackgauge fake-vllm --help)."""


def engine_recorder() -> None:
    """Stand before a real vLLM and keep the same ledger of it (trackgauge engine-recorder --help)."""


def rebuild() -> None:
    """Rebuild rollouts from captured sessions, JSON lines in and out (trackgauge rebuild --help)."""


def rollout() -> None:
    """Run a harness behind a capture proxy and collect what was captured (trackgauge rollout --help)."""
