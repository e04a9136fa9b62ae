"""Devices for tests of verbs."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.engine.conftest import Disks


@pytest.fixture
def disks(tmp_path: Path) -> Iterator[Disks]:
    """Make devices that vanish after the test, which needs the mark ``root``."""
    made = Disks(tmp_path.resolve())
    try:
        yield made
    finally:
        made.close()
