"""Real hosts for every test that asks for some, taken down whatever happens."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fleet.hosts import Fleet, fleet


@pytest.fixture(scope="module")
def hosts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    """Hand out two hosts that the tests of a module share: each test leaves them as they were."""
    with fleet(2, tmp_path_factory.mktemp("fleet") / "f") as found:
        yield found


@pytest.fixture
def own_folder(tmp_path: Path) -> Path:
    """Return a folder for the hosts of one test."""
    return tmp_path / "own"
