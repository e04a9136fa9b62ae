"""A volume that hangs holds up a stop, but neither without a word nor for ever."""

import os
import signal
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.command_line import COMMAND, Volbench
from tests.engine.conftest import Disks, call
from tests.held_fio import HeldFio
from tests.waiting import PATIENCE_S, until

pytestmark = [pytest.mark.slow, pytest.mark.root]

PROFILE = """\
name: p
defaults: {ioengine: psync, direct: 1}
jobs:
  j: {rw: randwrite, size: 4m, runtime: 2s, time_based: 1}
"""


@pytest.fixture
def point(tmp_path: Path, disks: Disks) -> Iterator[Path]:
    """Return a mounted filesystem that is thawed at the end, beside a profile."""
    (tmp_path / "p.yaml").write_text(PROFILE)
    device = disks.attach(disks.image(200 << 20))
    disks.format(device)
    mounted = disks.mount(device)
    yield mounted
    subprocess.run(["fsfreeze", "-u", mounted], check=False, timeout=300, capture_output=True)


@contextmanager
def running(
    target: Path,
    out: Path,
    errors: Path,
    environment: Mapping[str, str] = os.environ,
    *more: str | Path,
) -> Iterator[subprocess.Popen[bytes]]:
    """Run a campaign whose messages go to a file, and end it."""
    profile = errors.with_name("p.yaml")
    argv = [*COMMAND, "run", *map(str, (profile, "--on", target, "-o", out, *more))]
    with (
        errors.open("wb") as file,
        subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=file, env=environment) as process,
    ):
        try:
            yield process
        finally:
            subprocess.run(["fsfreeze", "-u", target], check=False, capture_output=True)
            process.kill()


def read_if_there(path: Path) -> str:
    """Return the text of a file; empty before it is made."""
    return path.read_text() if path.exists() else ""


def test_a_volume_that_is_frozen_before_the_start_is_refused(point: Path, tmp_path: Path) -> None:
    """Nothing hangs in the making of a folder, which no signal would end."""
    call("fsfreeze", "-f", str(point))
    with running(point, tmp_path / "out", tmp_path / "stderr") as process:
        assert process.wait(timeout=PATIENCE_S) == 3
    assert f"{point} cannot be changed: no end in 5 s" in (tmp_path / "stderr").read_text()


def test_a_folder_of_a_dead_server_is_left(tmp_path: Path, scratch: Path) -> None:
    """A server of FUSE that stands still holds up neither a word nor the end."""
    (tmp_path / "p.yaml").write_text(PROFILE)
    errors = tmp_path / "stderr"
    argv = ["nbdfuse", f"{scratch}/image", "--command", "nbdkit", "-s", "memory", "8M"]
    with subprocess.Popen(argv) as server:
        try:
            until((scratch / "image").exists)
            server.send_signal(signal.SIGSTOP)
            with running(scratch, tmp_path / "out", errors) as process:
                until(lambda: f"waiting for {scratch}" in errors.read_text())
                process.send_signal(signal.SIGINT)
                assert process.wait(timeout=PATIENCE_S) == 130
                server.send_signal(signal.SIGCONT)
            assert "stopped; once all volumes answer" in errors.read_text()
        finally:
            server.kill()
            call("umount", "-l", str(scratch))


def test_frozen_results_are_named(point: Path, tmp_path: Path) -> None:
    """Python takes note of no signal meanwhile; the campaign goes on once they are thawed."""
    call("fsfreeze", "-f", str(point))
    (tmp_path / "volume").mkdir()
    errors = tmp_path / "stderr"
    with running(tmp_path / "volume", point / "out", errors) as process:
        until(lambda: f"waiting for {point}/out, which does not answer" in errors.read_text())
        process.send_signal(signal.SIGINT)
        call("fsfreeze", "-u", str(point))
        assert process.wait(timeout=PATIENCE_S) == 130


def test_a_second_request_leaves_a_frozen_volume(
    tmp_path: Path, point: Path, volbench: Volbench
) -> None:
    """The first says what it waits for, the second exits; later nothing is left."""
    out, errors = tmp_path / "out", tmp_path / "stderr"
    with running(point, out, errors, HeldFio(tmp_path, "j").environment) as process:
        until(lambda: list(point.glob("volbench-*/j.0.0")))
        call("fsfreeze", "-f", str(point))
        until(lambda: "001-j-r1 should have ended" in errors.read_text())
        process.send_signal(signal.SIGINT)
        until(lambda: "waiting for 001-j-r1 (fio) to finish its I/O" in errors.read_text())
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=PATIENCE_S) == 130
        assert "leaving behind: 001-j-r1 (fio)" in errors.read_text()
        done = volbench("status", out, "--clean")
        assert f"{point} cannot be changed: no end in 5 s" in done.stderr
    until(lambda: volbench("status", out, "--clean").returncode == 0)
    assert sorted(path.name for path in point.iterdir()) == ["lost+found"]
    done = volbench("status", out)
    assert "interrupted" in done.stdout


def test_a_frozen_file_is_named_though_nothing_says_when_its_run_ends(
    point: Path, tmp_path: Path
) -> None:
    """A run that ends with its size has no time at which it is late."""
    file, out, errors = point / "f", tmp_path / "out", tmp_path / "stderr"
    file.write_bytes(bytes(4 << 20))
    (tmp_path / "p.yaml").write_text("name: p\njobs:\n  j: {rw: write, bs: 4k, size: 4m}\n")
    held = HeldFio(tmp_path)
    with running(file, out, errors, held.environment, "--allow-destroy", file) as process:
        until(lambda: '"state": "running"' in read_if_there(out / "journal.jsonl"))
        call("fsfreeze", "-f", str(point))
        held.release()
        until(lambda: f"001-j-r1 completes no I/O: fio waits for {file}" in errors.read_text())
        call("fsfreeze", "-u", str(point))
        assert process.wait(timeout=PATIENCE_S) == 0
