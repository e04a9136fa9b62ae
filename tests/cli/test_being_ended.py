"""However a campaign is ended, it leaves no process, lock or scratch file behind.

Processes and files are listed before and after every scenario.
"""

import os
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from tests.command_line import start
from tests.engine.conftest import Disks
from tests.held_fio import HeldFio
from tests.waiting import has_ended, kill_all, until

pytestmark = [pytest.mark.slow, pytest.mark.root]

PROFILE = """\
name: p
defaults: {ioengine: psync, rw: write, bs: 64k, size: 4m}
jobs:
  first: {rate: 1m, role: data}
  second: {role: disk}
"""
CAMPAIGN_ERROR, STOPPED = 9, 130


class Stage:
    """A campaign on a folder and a device, and everything that it may leave."""

    def __init__(self, folder: Path, device: str) -> None:
        self.folder, self.device = folder, device
        self.out, self.scratch, self.temporary = (
            folder / name for name in ("out", "scratch", "tmp")
        )
        for path in (self.scratch, self.temporary):
            path.mkdir()
        (folder / "p.yaml").write_text(PROFILE)
        self.process: subprocess.Popen[str] | None = None
        self.fio = HeldFio(folder, "first")

    def volbench(
        self, *arguments: str | Path, environment: Mapping[str, str] = os.environ
    ) -> subprocess.Popen[str]:
        """Start volbench with a terminal of its own."""
        environment = {**environment, "TMPDIR": str(self.temporary)}
        self.process = start(*arguments, env=environment, start_new_session=True)
        return self.process

    def begin(self) -> subprocess.Popen[str]:
        """Start the campaign, and wait until its first run writes."""
        targets = ("--on", f"data={self.scratch}", "--on", f"disk={self.device}")
        allowed = ("--allow-destroy", self.device)
        words = ("run", self.folder / "p.yaml", *targets, *allowed, "-o", self.out)
        process = self.volbench(*words, environment=self.fio.environment)
        until(lambda: self.programs("fio") and any(self.scratch.rglob("first*")))
        return process

    def release(self) -> None:
        """Let fio end, which has written something."""
        paths = [Path(f"/proc/{pid}/io") for pid in self.programs("fio")]
        until(lambda: any(int(path.read_text().split()[3]) > 1 << 17 for path in paths))
        self.fio.release()

    def finish(self, process: subprocess.Popen[str]) -> int:
        """Wait for the end of a controller, and return its exit code."""
        _, stderr = process.communicate(timeout=300)
        assert "Traceback" not in stderr, stderr
        return process.returncode

    def programs(self, name: str = "") -> set[int]:
        """Return the processes whose environment or arguments name the folder."""
        mark, found = str(self.folder).encode(), set()
        for path in Path("/proc").glob("[0-9]*"):
            try:
                texts = path.joinpath("environ").read_bytes(), path.joinpath("cmdline").read_bytes()
            except OSError:
                continue
            is_named = texts[1].split(b"\0")[0].endswith(name.encode())
            if any(mark in text for text in texts) and is_named and not has_ended(int(path.name)):
                found.add(int(path.name))
        return found - {os.getpid()}

    def left(self) -> set[str]:
        """Return what there is beside the campaign folder: processes, locks, files."""
        files = (*self.scratch.rglob("*"), *self.temporary.rglob("*"), *self.out.rglob(".secrets"))
        return {
            *(f"process {Path('/proc', str(pid), 'comm').read_text()}" for pid in self.programs()),
            *(str(path) for path in (*self.locks(), *files)),
        }

    def locks(self) -> list[Path]:
        """Return the locks of the device."""
        number = Path(self.device).stat().st_rdev
        name = f"volbench-{os.major(number)}:{os.minor(number)}"
        places = (Path(folder) / name for folder in ("/run/lock", "/tmp"))
        return [path for path in places if path.exists()]


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    """Prepare a campaign, and end what a failed test leaves."""
    disks = Disks(tmp_path.resolve())
    made = Stage(tmp_path.resolve(), disks.attach())
    for lock in made.locks():
        shutil.rmtree(lock)  # of a disk that had this number, and whose campaign was killed
    try:
        yield made
    finally:
        kill_all(made.programs())
        if made.process is not None:
            made.process.communicate(timeout=300)
        disks.close()


def interrupt(stage: Stage) -> int:
    """Press Ctrl-C once."""
    process = stage.begin()
    process.send_signal(signal.SIGINT)
    return stage.finish(process)


def interrupt_twice(stage: Stage) -> int:
    """Press Ctrl-C again, for fio to be ended at once."""
    process = stage.begin()
    process.send_signal(signal.SIGINT)
    process.send_signal(signal.SIGINT)
    return stage.finish(process)


def terminate(stage: Stage) -> int:
    """End it as a service manager does."""
    process = stage.begin()
    process.terminate()
    return stage.finish(process)


def close_terminal(stage: Stage) -> int:
    """Close the terminal: the campaign goes on to its end."""
    process = stage.begin()
    process.send_signal(signal.SIGHUP)
    stage.release()
    return stage.finish(process)


def stop_reading(stage: Stage) -> int:
    """Read no further than `head` does: the campaign goes on to its end, which status says."""
    process = stage.begin()
    for pipe in (process.stdout, process.stderr):
        assert pipe is not None
        pipe.close()
    stage.release()
    assert process.wait(300) == 128 + signal.SIGPIPE
    assert "campaign ended: 2 finished" in (stage.out / "controller.log").read_text()
    return stage.finish(stage.volbench("status", stage.out))


def kill_fio(stage: Stage) -> int:
    """Let the OOM killer take fio: that run fails, the next is executed."""
    process = stage.begin()
    kill_all(stage.programs("fio"))
    return stage.finish(process)


def kill_then_reap(stage: Stage) -> int:
    """Let the OOM killer take the controller, and clean up."""
    kill_controller(stage)
    return stage.finish(stage.volbench("status", "--clean", stage.out))


def kill_then_resume(stage: Stage) -> int:
    """Let the OOM killer take the controller, and go on."""
    kill_controller(stage)
    return stage.finish(stage.volbench("resume", stage.out))


def kill_controller(stage: Stage) -> None:
    """Kill it: fio ends; its scratch files, their record and the lock of the device stay."""
    process = stage.begin()
    process.kill()
    process.communicate(timeout=300)
    until(lambda: not stage.programs() and any(stage.temporary.glob("*/end")))
    left = [path for path in stage.left() if not path.startswith(str(stage.temporary))]
    counts = [sum(kind in path for path in left) for kind in (str(stage.scratch), "volbench-7:")]
    assert (counts, len(left)) == ([2, 1], 3), left


@pytest.mark.parametrize(
    ("end", "code"),
    [
        (interrupt, STOPPED),
        (interrupt_twice, STOPPED),
        (terminate, STOPPED),
        (close_terminal, 0),
        (stop_reading, 0),
        (kill_fio, CAMPAIGN_ERROR),
        (kill_then_reap, 0),
        (kill_then_resume, 0),
    ],
)
def test_a_signalled_command_leaves_nothing_behind(
    stage: Stage, end: Callable[[Stage], int], code: int
) -> None:
    """No fio, sampler, lock, temporary or scratch file; the campaign folder stays."""
    assert stage.left() == set()
    assert end(stage) == code
    until(lambda: not stage.left())  # a supervisor may end after its controller
    assert (stage.out / "campaign.json").exists()
