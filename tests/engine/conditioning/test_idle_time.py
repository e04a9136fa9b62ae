"""What an earlier run left in memory is written before the next one."""

from pathlib import Path

import pytest

from tests.engine.conftest import Disks
from tests.execute.fake import FakeExecutor
from volbench.engine.hosts.described_volumes import look_at
from volbench.execute.agent.volumes import VolumeQuestion
from volbench.execute.local import LocalExecutor
from volbench.execute.protocol import Completed, Executor

MIB = 1024**2


def flush(executor: Executor, target: str | Path) -> list[str]:
    """Write back the dirty pages of a volume; return why that failed."""
    return [*look_at(executor, [VolumeQuestion(str(target))], flush_s=60.0).flush_problems]


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
        assert flush(LocalExecutor(), device) == []
        assert written_bytes(device) - before >= 4 * MIB
    finally:
        disks.close()


def test_a_directory_and_a_missing_file_are_flushed(tmp_path: Path) -> None:
    """The filesystem is meant, also where the file is still to come."""
    for target in (tmp_path, tmp_path / "later"):
        assert flush(LocalExecutor(), target) == []


def test_failures_to_flush_are_reported() -> None:
    """A sync that does not know -f, or is not there, stops nothing."""
    machine = FakeExecutor(files={"/proc/self/mountinfo": "1 0 8:1 / / rw - ext4 /dev/sda1 rw\n"})
    (problem,) = flush(machine, "/")
    assert "sync" in problem
    machine.answers["sync"] = lambda argv: Completed(argv, 1, "", "sync: invalid option -- 'f'\n")
    assert flush(machine, "/") == ["sync: invalid option -- 'f'"]
