"""`volbench check` on real block devices: what the kernel counted against what fio says."""

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.command_line import call
from tests.engine.conftest import Disks

pytestmark = [pytest.mark.root, pytest.mark.slow]

MIB = 1024**2
MACHINE = {"cpu-bound", "other-load", "stall", "neighbour", "host-noise"}
"""Rules that fire when others use this machine."""

PROFILE = """\
name: device
defaults: {ioengine: libaio, refill_buffers: 1}
phases:
  precondition:
    fill: {rw: write, bs: 1m, iodepth: 4, direct: 1}
jobs:
  clean: {rw: randwrite, bs: 4k, iodepth: 4, direct: 1, runtime: 6s, time_based: 1, rate_iops: 2000}
  reading: {rw: randread, bs: 4k, direct: 1, runtime: 4s, time_based: 1, rate_iops: 2000}
  buffered: {rw: write, bs: 256k, ioengine: psync}
"""

Records = list[dict[str, object]]


@pytest.fixture(scope="module")
def disks(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Disks]:
    """Make devices for the tests of this file."""
    made = Disks(tmp_path_factory.mktemp("disks").resolve())
    try:
        yield made
    finally:
        made.close()


def volbench(*arguments: str | Path) -> str:
    """Call volbench, which must succeed, and return its output."""
    done = call(*arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout


def measured(root: Path, text: str, target: str | Path, *options: str) -> Records:
    """Run a profile and return its findings."""
    profile = root / "p.yaml"
    profile.write_text(text)
    volbench("run", profile, "--on", target, "--output", root / "out", *options)
    found: Records = json.loads(volbench("check", root / "out", "--json"))
    return found


@pytest.fixture(scope="module")
def found(disks: Disks, tmp_path_factory: pytest.TempPathFactory) -> Records:
    """Return the findings of a campaign on a loop device of its own."""
    device = disks.attach(disks.image(64 * MIB), "--direct-io=on")
    root = tmp_path_factory.mktemp("device")
    return measured(root, PROFILE, device, "--allow-destroy", device)


def heavy(found: Records, job: str) -> Records:
    """Return the findings of a job that are more than a note."""
    return [entry for entry in found if entry["job"] == job and entry["severity"] != "note"]


@pytest.mark.parametrize("job", ["fill", "clean", "reading"])
def test_direct_runs_on_a_written_device_are_clean(found: Records, job: str) -> None:
    """Nothing but what others do on this machine is doubted."""
    assert [entry for entry in heavy(found, job) if entry["rule"] not in MACHINE] == []


def test_device_counters_reveal_the_page_cache(found: Records) -> None:
    """What fio wrote in a moment was not on the device when it ended."""
    (entry,) = [entry for entry in heavy(found, "buffered") if entry["rule"] == "page-cache"]
    evidence = entry["evidence"]
    assert isinstance(evidence, dict)
    assert evidence["tool_bytes"] == 64 * MIB
    assert evidence["device_bytes"] < 0.98 * 64 * MIB
    assert "smaller-than-memory" in {other["rule"] for other in heavy(found, "buffered")}


@pytest.mark.smoke
@pytest.mark.parametrize(("filled", "severity"), [(False, {"invalid"}), (True, set())])
def test_reads_of_a_file_that_was_never_written(
    disks: Disks, tmp_path: Path, *, filled: bool, severity: set[str]
) -> None:
    """The filesystem answers for a file that was only reserved; a written one is read."""
    device = disks.attach(disks.image(64 * MIB), "--direct-io=on")
    disks.format(device)
    point = disks.mount(device)
    with (point / "f").open("wb") as file:
        os.posix_fallocate(file.fileno(), 0, 16 * MIB)
        if filled:
            file.write(os.urandom(16 * MIB))
            os.fsync(file.fileno())
    read = "{rw: randread, bs: 4k, direct: 1, size: 16m, runtime: 3s, time_based: 1, filename: f}"
    text = f"name: holes\njobs:\n  a: {read}\n"
    found = measured(tmp_path, text, point, "--allow-destroy", str(point / "f"))
    assert {entry["severity"] for entry in found if entry["rule"] == "never-written"} == severity
