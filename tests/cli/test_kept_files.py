"""What a user named stays in its place and keeps its length, and its filesystem is never filled."""

import os
import threading
import time
from pathlib import Path

import pytest

from tests.command_line import Volbench, settings, start
from tests.engine.conftest import Disks
from tests.waiting import until
from volbench.engine.guard.run_guard import RESERVE_BYTES

MIB = 1024**2

pytestmark = pytest.mark.root


@pytest.fixture
def small(disks: Disks) -> Path:
    """Return a filesystem of 200 MiB."""
    device = disks.attach(disks.image(200 * MIB))
    disks.format(device)
    return disks.mount(device)


def profile(folder: Path, options: str) -> str:
    """Write a profile of one job and return its path."""
    path = folder / "p.yaml"
    path.write_text(
        f"name: p\nsample: 0\ndefaults: {{ioengine: psync}}\njobs:\n  j: {{{options}}}\n"
    )
    return str(path)


@pytest.mark.parametrize(
    "options",
    [
        "rw: write, offset: 170m, size: 1m",
        "rw: write, size: 1m, filesize: 180m",
        "rw: write, size: 1m, numjobs: 2, offset_increment: 180m",
        "rw: write, size: 8m, offset: 170m, fallocate: posix",
        "rw: write, ioengine: falloc, offset: 170m, size: 1m",
        "rw: write, fill_device: 1, size: 1m",
        "rw: write, file_append: 1, size: 1m",
        "rw: write, bs: 512, filesize: 512, nrfiles: 32000, openfiles: 9",
    ],
)
def test_a_filesystem_is_never_filled(
    volbench: Volbench, tmp_path: Path, small: Path, options: str
) -> None:
    """All that fio lays out counts, not its size alone; what has no bound is refused."""
    done = volbench("run", profile(tmp_path, options), "--on", str(small), "-o", tmp_path / "out")
    assert done.returncode == 3, done.stdout + done.stderr
    status = os.statvfs(small)
    assert status.f_bavail * status.f_frsize >= 2 * RESERVE_BYTES


def test_holes_of_a_sparse_file_need_space(volbench: Volbench, tmp_path: Path, small: Path) -> None:
    """A file of the user, and one below a loop device, allocate what is written."""
    sparse = small / "sparse"
    with sparse.open("wb") as file:
        file.truncate(300 * MIB)
    writes = profile(tmp_path, "rw: write, bs: 1m, size: 250m")
    named = ("--on", str(sparse), "--allow-destroy", str(sparse), "-o", tmp_path / "out")
    done = volbench("run", writes, *named)
    assert done.returncode == 3
    assert f"{sparse} needs 250 MiB" in done.stderr
    assert not sparse.stat().st_blocks
    few = profile(tmp_path, "rw: write, bs: 1m, size: 1m, offset: 290m")
    assert volbench("run", few, *named).returncode == 0


def test_holes_below_a_loop_device_need_space(
    volbench: Volbench, tmp_path: Path, disks: Disks, small: Path
) -> None:
    """A device of 300 MiB on a filesystem of 200 MiB cannot be written."""
    sparse = small / "sparse"
    with sparse.open("wb") as file:
        file.truncate(300 * MIB)
    device = disks.attach(sparse)
    for options, code in (("size: 250m", 3), ("size: 100%", 3), ("offset: 290m, size: 1m", 0)):
        writes = profile(tmp_path, f"rw: write, bs: 1m, {options}")
        done = volbench(
            "run", writes, "--on", device, "--allow-destroy", device, "-o", tmp_path / "out"
        )
        assert done.returncode == code, done.stderr


def test_a_file_that_becomes_longer_ends_the_run(volbench: Volbench, tmp_path: Path) -> None:
    """Its place and length are compared while fio runs, whatever changes them."""
    file = tmp_path / "precious"
    file.write_bytes(bytes(MIB))
    options = "rw: randrw, bs: 4k, size: 1m, rate_iops: 20, runtime: 60s, time_based: 1"
    appending = threading.Timer(3, lambda: os.truncate(file, 2 * MIB))
    appending.start()
    began_s = time.monotonic()
    named = ("--on", str(file), "--allow-destroy", str(file), "-o", tmp_path / "out")
    done = volbench("run", profile(tmp_path, options), *named)
    appending.join()
    assert f"the length of {file} changed from {MIB} to {2 * MIB} bytes" in done.stderr
    assert done.returncode
    assert time.monotonic() - began_s < 40


def test_an_option_that_displaces_a_file_is_allowed_by_name(
    volbench: Volbench, tmp_path: Path
) -> None:
    """The file may then become longer, which is not a failure."""
    file = tmp_path / "precious"
    file.write_bytes(bytes(MIB))
    appends = profile(tmp_path, "rw: write, size: 1m, file_append: 1")
    named = ("run", appends, "--on", str(file), "--allow-destroy", str(file), "-o")
    done = volbench(*named, tmp_path / "one")
    assert done.returncode == 3
    assert file.stat().st_size == MIB
    done = volbench(*named, tmp_path / "two", "--allow-destroy", "fio:file_append")
    assert done.returncode == 0, done.stderr
    assert file.stat().st_size == 2 * MIB


def test_campaigns_on_one_disk_at_once_have_a_finding_each(
    volbench: Volbench, tmp_path: Path
) -> None:
    """In the results of both, whichever began first; the second says so as it begins."""
    slow = profile(
        tmp_path, "rw: randread, bs: 4k, size: 1m, rate_iops: 20, runtime: 1s, time_based: 1"
    )
    outs, procs = [tmp_path / name for name in ("out1", "out2")], []
    for out, runtime in zip(outs, ("4s", "8s"), strict=True):
        volume = out.with_suffix(".volume")
        volume.mkdir()
        procs.append(start("run", slow, "--on", volume, "-o", out, *settings(f"runtime={runtime}")))
        until(lambda: len(list(tmp_path.glob("out?/runs/*/facts.json"))) == len(procs))
    texts = [process.communicate(timeout=60)[1] for process in procs]
    assert "is also used by 1 other campaign" in texts[1]
    for out in outs:
        checked = volbench("check", out)
        assert "Other campaigns used the same disk: 2" in checked.stdout
