"""Tests that take minutes and a great deal to install: nobody gets them who does not ask for them by their marker."""

import pytest


def keep_what_was_asked_for(config: pytest.Config, items: list[pytest.Item], marker: str, seconds: float) -> None:
    """Deselects what bears ``marker`` unless ``-m`` names it; each such test may take ``seconds``."""
    marked = [item for item in items if item.get_closest_marker(marker) is not None]
    if marker not in (config.option.markexpr or ""):
        config.hook.pytest_deselected(items=marked)
        items[:] = [item for item in items if item not in set(marked)]
    for item in marked:
        item.add_marker(pytest.mark.timeout(seconds))
