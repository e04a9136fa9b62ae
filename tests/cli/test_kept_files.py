"""What a user named stays in its place and keeps its length, and its filesystem is never filled."""

import fcntl
import os
from pathlib import Path

import pytest

from tests.command_line import Volbench, start
from tests.engine.conftest import Disks, call
from tests.held_fio import HeldFio
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


@pytest.mark.parametrize(
    ("kind", "options", "code"),
    [
        ("file", "size: 150m", 3),
        ("file", "size: 1m, offset: 290m", 0),
        ("file", "bs: 96m, size: 100667392", 3),  # the second block is written whole
        ("tail", "size: 120m", 3),  # blocks elsewhere in the file
        ("behind", "size: 120m", 3),  # blocks behind its end
        ("device", "size: 150m", 3),
        ("device", "size: 100%", 3),
        ("device", "size: 1m, offset: 290m", 0),
        ("nameless", "size: 150m", 3),
        ("folder", "size: 150m", 3),
        ("nested", "size: 150m", 3),
        ("overlay", "size: 150m", 3),
        ("full", "size: 120m", 0),
        ("both", "size: 140m", 3),  # each of two devices would fit
        ("overlays", "size: 140m", 3),  # each of two overlays would fit
        ("bound", "size: 150m", 3),
        ("hidden", "size: 150m", 3),
    ],
)
def test_holes_need_space(  # noqa: PLR0913, PLR0917 - fixtures and parameters
    volbench: Volbench,
    tmp_path: Path,
    disks: Disks,
    small: Path,
    kind: str,
    options: str,
    code: int,
) -> None:
    """What is written into holes of a sparse file counts, wherever it lies below the volume."""
    target = sparse = small / "sparse"
    with sparse.open("wb") as file:
        file.truncate((120 if kind in {"behind", "full"} else 300) * MIB)
    offset = {"tail": 200, "behind": 120}.get(kind, 0)
    if kind in {"tail", "behind", "full"}:
        call("fallocate", "-n", "-o", f"{offset}m", "-l", f"{50 if offset else 120}m", str(sparse))
    sparse = disks.mount(str(sparse), "--bind") if kind == "bound" else sparse
    if kind in {"bound", "hidden", "device", "nameless", "folder", "nested", "overlay"}:
        target = Path(disks.attach(sparse))
    if kind == "nameless":
        sparse.unlink()
    if kind in {"folder", "nested", "overlay"}:
        disks.format(str(target))
        target = disks.mount(str(target))
    if kind == "overlay":
        target = disks.overlay(target)
    if kind == "nested":
        call("fallocate", "-l", "200m", str(target / "image"))
        target = Path(disks.attach(target / "image"))
    if kind == "hidden":  # its filesystem is still mounted elsewhere
        disks.mount(str(small), "--bind")
        disks.mount_on(small, "none", "-t", "tmpfs")
    if kind == "overlays":
        (small / "other").mkdir()
        target = Path(f"{disks.overlay(small)}/new:{disks.overlay(small / 'other')}/new")
    if kind == "both":
        call("truncate", "-s", "300m", str(small / "other"))
        target = Path(f"{disks.attach(sparse)}:{disks.attach(small / 'other')}")
    named = () if kind in {"folder", "overlay"} else ("--allow-destroy", str(target))
    writes = profile(tmp_path, f"rw: write, {options}")
    done = volbench("run", writes, "--on", str(target), *named, "-o", tmp_path / "out")
    assert done.returncode == code, done.stderr


@pytest.mark.parametrize("is_killed", [False, True])
def test_campaigns_at_once_do_not_fill_a_filesystem(
    volbench: Volbench, tmp_path: Path, small: Path, *, is_killed: bool
) -> None:
    """What one is about to write is not free for the next one, until it has ended or was killed."""
    writes, held = profile(tmp_path, "rw: write, size: 60m, fallocate: none"), HeldFio(tmp_path)
    for name in "ab":
        (small / name).mkdir()
    named = ("-o", tmp_path / "first")
    first = start("run", writes, "--on", small / "a", *named, env=held.environment)
    until(lambda: list(tmp_path.glob("first/runs/*/facts.json")))
    on = small.stat().st_dev
    (announced,) = Path("/run/lock").glob(f"volbench-room-{os.major(on)}:{os.minor(on)}-*")
    refused = volbench("run", writes, "--on", small / "b", "-o", tmp_path / "refused")
    assert refused.returncode == 3
    assert announced.name.partition(".")[2] in refused.stderr
    if is_killed:
        first.kill()
    held.release()
    first.communicate(timeout=300)
    if is_killed:
        with announced.open() as file:
            fcntl.flock(file, fcntl.LOCK_EX)  # until its supervisor has ended it
        assert volbench("status", tmp_path / "first", "--clean").returncode == 0
    done = volbench("run", writes, "--on", small / "b", "-o", tmp_path / "second")
    assert done.returncode == 0, done.stderr
    assert not announced.exists()


@pytest.mark.parametrize("is_cut", [False, True])
def test_a_file_that_becomes_longer_ends_the_run(
    tmp_path: Path, small: Path, *, is_cut: bool
) -> None:
    """Its place, length and blocks are compared while fio runs, whatever changes them."""
    file, out = small / "precious", tmp_path / "out"
    file.write_bytes(bytes(MIB))
    options = "rw: randrw, bs: 4k, size: 1m, rate_iops: 20, runtime: 1h, time_based: 1"
    named = ("--on", file, "--allow-destroy", file, "-o", out)
    process = start("run", profile(tmp_path, options), *named)
    until(lambda: list(out.glob("runs/*/facts.json")))
    for length in (0, MIB) if is_cut else (2 * MIB,):  # fio makes it as long again
        os.truncate(file, length)
    _, stderr = process.communicate(timeout=300)
    change = f"the length of {file} changed from {MIB} to {2 * MIB} bytes"
    assert (f"{file} was cut, and made as long again" if is_cut else change) in stderr
    assert process.returncode


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
    short = profile(tmp_path, "rw: randread, bs: 4k, size: 1m")
    outs, procs = [tmp_path / name for name in ("out1", "out2")], []
    held = [HeldFio(tmp_path / name) for name in "12"]
    for out, fio in zip(outs, held, strict=True):
        volume = out.with_suffix(".volume")
        volume.mkdir()
        procs.append(start("run", short, "--on", volume, "-o", out, env=fio.environment))
        until(lambda: len(list(tmp_path.glob("out?/runs/*/facts.json"))) == len(procs))
    refused = volbench("run", short, "--on", tmp_path / "out1.volume", "-o", tmp_path / "refused")
    assert (refused.returncode, refused.stdout) == (3, ""), "no table of runs that never began"
    assert "never started" in volbench("status", tmp_path / "refused").stderr
    texts = []
    for fio, process in zip(held, procs, strict=True):  # the first ends while the second is there
        fio.release()
        texts.append(process.communicate(timeout=300)[1])
    assert "is also used by " in texts[1]  # and by campaigns of other tests
    for out in outs:
        assert "used the same disk: 2" in volbench("check", out, "--json").stdout
