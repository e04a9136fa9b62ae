"""What an earlier run left in memory is written before the next one."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.engine.conftest import Disks
from tests.execute.fake import FakeExecutor
from volbench.engine.conditioning.run_preparation import flush_volume
from volbench.engine.guard.volume_targets import find_volume
from volbench.execute.local import LocalExecutor
from volbench.execute.protocol import Completed
from volbench.model.campaign.planned_run import Volume, VolumeKind

EXECUTOR = LocalExecutor()
MIB = 1024**2


def written_bytes(device: str) -> int:
    """Return what was written to a block device so far."""
    fields = Path("/sys/block", Path(device).name, "stat").read_text(encoding="ascii").split()
    return int(fields[6]) * 512


@pytest.mark.root
def test_buffered_writes_reach_the_device(tmp_path: Path) -> None:
    """Pages of a raw device that wait in memory are on it when this returns."""
    disks = Disks(tmp_path.resolve())
    try:
        device = disks.attach()
        before = written_bytes(device)
        with Path(device).open("r+b") as file:
            file.write(b"x" * 4 * MIB)
        volume = find_volume(EXECUTOR, role="data", target=device)
        assert flush_volume(EXECUTOR, volume) == ""
        assert written_bytes(device) - before >= 4 * MIB
    finally:
        disks.close()


def test_a_directory_and_a_missing_file_are_flushed(tmp_path: Path) -> None:
    """The filesystem is meant, also where the file is still to come."""
    for target in (tmp_path, tmp_path / "later"):
        kind = VolumeKind.DIRECTORY if target.is_dir() else VolumeKind.FILE
        volume = Volume(role="data", kind=kind, target=str(target))
        assert flush_volume(EXECUTOR, volume) == ""


def test_failures_to_flush_are_reported() -> None:
    """A sync that does not know -f, or is not there, stops nothing."""
    volume = Volume(role="data", kind=VolumeKind.DIRECTORY, target="/")
    machine = FakeExecutor()
    assert "sync" in flush_volume(machine, volume)
    machine.answers["sync"] = lambda argv: Completed(argv, 1, "", "sync: invalid option -- 'f'\n")
    assert flush_volume(machine, volume) == "sync: invalid option -- 'f'"


def test_an_export_has_no_local_pages() -> None:
    """Nothing is run for a volume that the kernel does not cache."""
    machine = FakeExecutor()
    volume = Volume(role="data", kind=VolumeKind.NBD, target="nbd://host")
    assert flush_volume(machine, volume) == ""
    assert machine.ran == []
