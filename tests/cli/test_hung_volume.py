"""A volume that hangs holds up a stop, but neither without a word nor for ever."""

import signal
import subprocess
import time
from pathlib import Path

import pytest

from tests.command_line import COMMAND, Volbench
from tests.engine.conftest import Disks, call
from tests.waiting import PATIENCE_S, until

pytestmark = [pytest.mark.slow, pytest.mark.root]

PROFILE = """\
name: p
defaults: {ioengine: psync, direct: 1}
jobs:
  j: {rw: randwrite, size: 4m, runtime: 60s, time_based: 1}
"""


def test_a_second_request_leaves_a_frozen_volume(
    tmp_path: Path, disks: Disks, volbench: Volbench
) -> None:
    """The first says what it waits for, the second exits; later nothing is left."""
    device = disks.attach(disks.image(200 << 20))
    disks.format(device)
    point, out = disks.mount(device), tmp_path / "out"
    (tmp_path / "p.yaml").write_text(PROFILE)
    errors = tmp_path / "stderr"
    with errors.open("wb") as file:
        process = subprocess.Popen(
            [*COMMAND, "run", tmp_path / "p.yaml", "--on", point, "-o", out],
            stdout=subprocess.DEVNULL,
            stderr=file,
            start_new_session=True,
        )
    try:
        until(lambda: list(point.glob("volbench-*/j.0.0")))
        time.sleep(1)
        call("fsfreeze", "-f", str(point))
        time.sleep(0.5)
        process.send_signal(signal.SIGINT)
        until(lambda: "waiting for 001-j-r1 (fio) to finish its I/O" in errors.read_text())
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=PATIENCE_S) == 130
    finally:
        subprocess.run(["fsfreeze", "-u", point], check=False, timeout=60)
        process.kill()
        process.wait(timeout=PATIENCE_S)
    assert "leaving behind: 001-j-r1 (fio)" in errors.read_text()
    until(lambda: volbench("status", out, "--clean").returncode == 0)
    assert sorted(path.name for path in point.iterdir()) == ["lost+found"]
    done = volbench("status", out)
    assert "interrupted" in done.stdout
