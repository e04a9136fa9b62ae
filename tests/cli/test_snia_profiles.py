"""The bundled tests of SNIA and their kin run to their end on small files and devices."""

from collections import Counter
from pathlib import Path

import pytest

import volbench as api
from tests.command_line import Volbench, settings
from tests.engine.conftest import Disks
from volbench.model.campaign.planned_run import RunState

pytestmark = pytest.mark.slow

BUFFERED = ("ioengine=psync", "direct=0", "iodepth=1", "sample=0", "device_sample=0")
SMALL_IOPS = (
    *("runtime=200ms", "rounds.max=5", "r95-*=", "r5-*=", "r35-*=", "r50-*=", "*-512=", "*-8k="),
    *("*-16k=", "*-32k=", "*-128k=", "r100-4k=", "r65-4k=", "r100-64k=", "r0-64k=", "r65-1m="),
)
"""Three tracked jobs and one more, each a fifth of a second."""


@pytest.mark.parametrize(
    ("name", "more", "jobs"),
    [
        ("snia-throughput", ("runtime=200ms", "rounds.max=5"), 2),
        ("snia-latency", ("runtime=200ms", "rounds.max=5", "r[16]*="), 3),
        ("snia-iops", SMALL_IOPS, 4),
        ("snia-latency-histogram", ("runtime=2s", "sample=1s"), 1),
        ("snia-write-saturation", (), 1),
        ("burst-drain", ("runtime=200ms", "startdelay=200ms"), 4),
    ],
)
def test_profiles_run_at_a_small_size(
    tmp_path: Path, scratch: Path, volbench: Volbench, name: str, more: tuple[str, ...], jobs: int
) -> None:
    """Every job has a result in every round, and nothing failed."""
    chosen = settings(*BUFFERED, "size=1m", "numjobs=1", *more)
    done = volbench("run", name, "--on", scratch, "--output", tmp_path / "out", *chosen)
    assert done.returncode == 0, done.stderr
    opened = api.open_campaign(tmp_path / "out")
    states = Counter(note.state for note in opened.runs.values())
    assert set(states) <= {RunState.FINISHED, RunState.NOT_NEEDED}
    summary = opened.summary()
    measured = summary[summary["phase"] == "measured"]
    assert measured["job"].nunique() == jobs
    rounds = 5 if opened.campaign.rounds else 1
    assert measured.groupby("job")["repeat"].nunique().eq(rounds).all()


@pytest.mark.smoke
@pytest.mark.root
def test_small_blocks_on_a_device_that_has_none_are_reported(
    tmp_path: Path, disks: Disks, volbench: Volbench
) -> None:
    """512 bytes on blocks of 4 KiB are refused at once; a pattern leaves these jobs out."""
    device = disks.attach(None, "--sector-size", "4096")
    arguments = ["run", "snia-latency", "--on", device, "--allow-destroy", device]
    refused = volbench(*arguments, "--output", tmp_path / "out")
    assert refused.returncode == 2
    assert "direct I/O of 512 bytes" in refused.stderr
    assert "'*-512='" in refused.stderr
    assert not (tmp_path / "out").exists()
    small = settings(
        "runtime=200ms", "rounds.max=5", "sample=0", "device_sample=0", "*-512=", "r[16]*="
    )
    done = volbench(*arguments, *small, "--output", tmp_path / "out")
    assert done.returncode == 0, done.stderr
    assert "2.0 times the capacity" in done.stderr
