"""One stage for all random conversations of a worker."""

from collections.abc import Iterator

import pytest

from conformance.shapes.stage import Stage, stage


@pytest.fixture(scope="session")
def played_on(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    with stage(tmp_path_factory.mktemp("law")) as made:
        yield made
