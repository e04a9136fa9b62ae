"""Real hosts for every test that asks for some, taken down whatever happens."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.engine.conftest import attach_loop
from tests.fleet.desk import Desk
from tests.fleet.hosts import Fleet, call, fleet


@pytest.fixture(scope="module")
def hosts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    """Hand out two hosts that the tests of a module share: each test leaves them as they were."""
    with fleet(2, tmp_path_factory.mktemp("fleet") / "f") as found:
        yield found


@pytest.fixture
def desk(tmp_path: Path, hosts: Fleet) -> Desk:
    """Hand out a desk for the hosts."""
    return Desk(tmp_path, hosts)


@pytest.fixture
def loop(tmp_path: Path) -> Iterator[str]:
    """Hand out a block device on a file, and detach it in the end."""
    image = tmp_path / "image"
    with image.open("wb") as file:
        file.truncate(32 * 1024**2)
    device = attach_loop(image)
    yield device
    call("losetup", "-d", device)
