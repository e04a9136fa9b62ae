"""Start gate of a real fio and of another program, started together by hand."""

import json
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.waiting import until
from volbench.execute.agent import gate, supervisor, watch

_JOB = f"""[a]
ioengine=null
size=1g
time_based
runtime=1s
numjobs=5
thread=1
exec_prerun={gate.PRERUN}
"""


@pytest.fixture(name="folder")
def _folder(tmp_path: Path) -> Iterator[Path]:
    yield tmp_path
    supervisor.send_signal(str(tmp_path / ".c"), signal.SIGKILL)


def launch(folder: Path, *argv: str, patience_s: float = 300.0) -> None:
    """Start a program at its gate, and wait until it is ready."""
    supervisor.launch(
        argv=list(argv),
        cwd=str(folder),
        stderr=str(folder / "err"),
        control=str(folder / ".c"),
        longest_s=300.0,
        files={str(folder / "job.fio"): _JOB, str(folder / "gate") + "/": ""},
        gate_s=patience_s,
    )
    until((folder / gate.READY).exists)


def launch_fio(folder: Path, *, patience_s: float = 300.0) -> None:
    """Start fio at its gate."""
    launch(folder, "fio", "--output-format=json", "--output=o", "job.fio", patience_s=patience_s)


def go(folder: Path, text: str) -> None:
    """Announce a start."""
    (folder / "gate/new").write_text(text + "\n")
    (folder / "gate/new").replace(folder / gate.GO)


def start_soon(folder: Path) -> None:
    """Announce starts until one of them arrived before its time."""

    def is_followed() -> bool:
        go(folder, f"{time.time() + 0.5:.6f}")
        time.sleep(1.0)
        return (folder / gate.WOKE).exists()

    until(is_followed)


@pytest.fixture(name="clock")
def _clock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Callable[[], object]]:
    """Let the gate of this process sleep in virtual time; return what it does as it first sleeps.

    The time of day is decades back, as if somebody had set it.
    """
    now_s, acts = time.monotonic(), list[Callable[[], object]]()

    def sleep(seconds: float) -> None:
        nonlocal now_s
        now_s += seconds
        if acts:
            acts.pop()()

    times = {"monotonic": lambda: now_s, "time": lambda: now_s, "sleep": sleep}
    monkeypatch.setattr(gate, "time", SimpleNamespace(**times))
    monkeypatch.chdir(tmp_path)
    (tmp_path / gate.FOLDER).mkdir()
    return acts


def status(folder: Path) -> object:
    """Wait for the end of the program, and return its exit status."""
    *_, end = (event for event in watch.watch(str(folder / ".c")) if event)
    assert end.kind == "status"
    return end.number


def ios(folder: Path) -> list[int]:
    """Return the I/Os of each job."""
    text = (folder / "o").read_text()
    jobs = json.loads(text[text.index("\n{") :] if text[0] != "{" else text)["jobs"]
    return [job["read"]["total_ios"] for job in jobs]


def test_all_jobs_wait_for_the_start(folder: Path) -> None:
    """None does I/O before it, and each does some after it."""
    launch_fio(folder)
    start_soon(folder)
    assert status(folder) == 0
    woke, followed, _now = (folder / gate.WOKE).read_text().split()
    assert float(woke) >= float(followed)
    assert min(ios(folder)) > 0


def test_only_the_first_job_waits_in_python(folder: Path) -> None:
    """Each interpreter takes 10 MB; a hundred jobs would take a gigabyte."""
    launch_fio(folder)
    waiting = subprocess.run(
        ["ps", "-ww", "-eo", "args"], capture_output=True, text=True, check=True
    )
    lines = [line for line in waiting.stdout.splitlines() if f"{folder}/.c/door" in line]
    assert sum(line.split()[0].endswith(("python", "python3")) for line in lines) == 1
    go(folder, gate.NEVER)
    status(folder)


def test_revoked_start_lets_no_job_run(folder: Path) -> None:
    """All jobs are skipped, which fio itself does not count as a failure."""
    launch_fio(folder)
    go(folder, gate.NEVER)
    status(folder)
    assert max(ios(folder)) == 0
    assert not (folder / gate.WOKE).exists()


def test_postponed_start_is_followed(tmp_path: Path, clock: list[Callable[[], object]]) -> None:
    """It was announced while the program slept until the first one; the clock moves no start."""
    first_s = gate.own_time() + 1.0
    go(tmp_path, f"{first_s:.6f}")
    clock.append(lambda: go(tmp_path, f"{first_s + 0.8:.6f}"))
    assert gate.wait_for_start(60.0) == f"{first_s + 0.8:.6f}"
    assert gate.own_time() == pytest.approx(first_s + 0.8)


@pytest.mark.parametrize("after_s", [-1, 3600])
def test_start_out_of_reach_is_missed_and_may_be_postponed(folder: Path, after_s: float) -> None:
    """The controller sees one that is over, or that a clock set back by an hour put far ahead."""
    launch(folder, "true")
    go(folder, f"{time.time() + after_s:.6f}")
    until((folder / gate.MISSED).exists)
    assert supervisor.is_running(str(folder / ".c"))
    start_soon(folder)
    assert status(folder) == 0


def test_a_run_whose_folder_is_removed_does_not_wait(folder: Path) -> None:
    """Nobody could announce its start."""
    launch(folder, "true")
    shutil.rmtree(folder / "gate")
    assert status(folder) == 1


def test_missed_start_without_another_one_ends_the_run(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody would end the wait: the controller has measured without this client."""
    monkeypatch.chdir(folder)
    (folder / "gate").mkdir()
    monkeypatch.setattr(gate, "MISSED_S", 0.5)
    go(folder, f"{time.time() - 1:.6f}")
    assert not gate.wait_for_start(60.0)


def test_gate_gives_up_without_a_controller(folder: Path) -> None:
    """A start that is never announced ends the program after its patience."""
    launch(folder, "true", patience_s=0.0)
    assert status(folder) == 1


def test_program_behind_a_gate_can_be_interrupted(folder: Path) -> None:
    """The process that waits becomes the program, and keeps its number."""
    launch(folder, "sleep", "60")
    go(folder, f"{time.time() - 1:.6f} {gate.LATE}")
    until((folder / gate.WOKE).exists)
    supervisor.send_signal(str(folder / ".c"), signal.SIGINT)
    assert status(folder) == -signal.SIGINT


def test_disk_that_is_full_for_a_moment_loses_no_readiness(
    tmp_path: Path, clock: list[Callable[[], object]]
) -> None:
    """A process that could not report that it is ready would be waited for without end."""
    full = tmp_path / f"{gate.READY}.new"
    full.mkdir()  # cannot be written, as on a full disk
    clock.append(full.rmdir)
    assert gate._write_pipe("ready", "1.0 1.0", tries_s=gate.DISK_FULL_S)  # noqa: SLF001 - no supervisor
    assert (tmp_path / gate.READY).read_text() == "1.0 1.0\n"
