"""A block device whose load is known to the request."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.engine.conftest import Disks

SIZE_BYTES = 16 << 20


@pytest.fixture
def loop(tmp_path: Path) -> Iterator[str]:
    """Hand out a loop device on a file, and detach it in the end."""
    disks = Disks(tmp_path)
    image = tmp_path / "disk.img"
    image.write_bytes(b"\1" * SIZE_BYTES)
    try:
        yield disks.attach(image)
    finally:
        disks.close()
