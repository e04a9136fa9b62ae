"""Names of volumes in a line."""

import pytest

from volbench.present.formatting import short_target


@pytest.mark.parametrize(
    ("target", "name"),
    [
        ("/dev/nvme0n1", "/dev/nvme0n1"),
        (":".join(f"/dev/nvme{n}n1" for n in (9, 10, 1, 2)), "4 devices, nvme1n1 to nvme10n1"),
        (":".join(f"/mnt/data/volume/file{n}" for n in range(3)), "3 files, file0 to file2"),
        (f"/mnt/{'x' * 60}/file", f"...{'x' * 32}/file"),
    ],
)
def test_many_disks_are_counted(target: str, name: str) -> None:
    """The end of a list of paths says nothing about the others."""
    assert short_target(target) == name
