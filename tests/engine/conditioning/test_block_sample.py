"""Blocks that were never written are noticed before they are read."""

import os
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.analyse.findings.conftest import a_run
from volbench.engine.conditioning.run_preparation import reads_blocks, sample_blocks
from volbench.execute.agent import block_reads
from volbench.execute.agent.block_reads import thin_share
from volbench.execute.local import LocalExecutor
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
