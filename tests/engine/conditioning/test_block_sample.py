"""Before a run: blocks never written are noticed, and what is left in memory is written."""

import os
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.analyse.findings.conftest import a_run
from tests.engine.conftest import Disks
from tests.execute.fake import FakeExecutor
from volbench.engine.conditioning.run_preparation import reads_blocks, sample_blocks
from volbench.engine.hosts.described_volumes import look_at
from volbench.execute.agent import block_reads
from volbench.execute.agent.block_reads import thin_share
from volbench.execute.agent.volumes import VolumeQuestion
from volbench.execute.local import LocalExecutor
from volbench.execute.protocol import Completed, Executor
from volbench.model.campaign.planned_run import Run, Volume, VolumeKind
from volbench.model.profile.profile_model import Phase
from volbench.model.results.provenance import VolumeFacts

SIZE = 4 << 20


def reading(path: Path, options: Mapping[str, str] | None = None) -> tuple[Run, VolumeFacts]:
    """Return a run that reads a file, and the facts of its volume."""
    volume = Volume(role="data", kind=VolumeKind.FILE, target=str(path))
    run = a_run({"rw": "randread", **(options or {})}, volume=volume)
    return run, VolumeFacts(role="data", target=str(path), kind=VolumeKind.FILE, path=str(path))


@pytest.mark.parametrize("written", [0.0, 0.5, 1.0])
def test_holes_and_zeros_of_a_file_are_detected(
    tmp_path: Path, written: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A sparse file is empty, a written one is not, and reading leaves it as it is."""
    monkeypatch.setattr(block_reads, "_LIMIT_S", 60)
    path = tmp_path / "file"
    data = os.urandom(int(SIZE * written))
    path.write_bytes(data)
    os.truncate(path, SIZE)
    blocks = path.stat().st_blocks
    found = sample_blocks(LocalExecutor(), *reading(path))
    assert found is not None
    assert found.sampled == 64
    assert found.zeros / found.sampled == pytest.approx(1 - written, abs=0.05)
    assert found.unmapped_share == pytest.approx(1 - written, abs=0.05)
    assert path.stat().st_blocks == blocks


def test_a_file_that_cannot_be_read_is_a_problem_but_not_an_error(tmp_path: Path) -> None:
    """The run goes on, and what was wrong is kept."""
    path = tmp_path / "file"
    path.write_bytes(b"")
    run, facts = reading(path)
    path.unlink()
    path.mkdir()
    assert sample_blocks(LocalExecutor(), run, facts) is None


def test_only_measured_reads_are_sampled() -> None:
    """Writes and preparations fill blocks themselves."""
    assert reads_blocks(a_run({"rw": "randread"}))
    assert not reads_blocks(a_run())
    assert not reads_blocks(a_run({"rw": "read"}, phase=Phase.WARMUP))


def test_a_thin_volume_knows_what_is_mapped() -> None:
    """The status line of device mapper has the length and the mapped sectors."""
    assert thin_share("0 1000 thin 250 999") == 0.75
    assert thin_share("0 1000 linear 8:16 0") is None


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
