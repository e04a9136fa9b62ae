"""Start gate of a real fio and of another program, started together by hand."""

import json
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.waiting import Started, until
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


def launch(folder: Path, *argv: str, patience_s: float = 60.0) -> None:
    """Start a program at its gate, and wait until it is ready."""
    supervisor.launch(
        argv=list(argv),
        cwd=str(folder),
        stderr=str(folder / "err"),
        control=str(folder / ".c"),
        longest_s=60.0,
        files={str(folder / "job.fio"): _JOB, str(folder / "gate") + "/": ""},
        gate_s=patience_s,
    )
    until((folder / gate.READY).exists)


def launch_fio(folder: Path, *, patience_s: float = 60.0) -> None:
    """Start fio at its gate."""
    launch(folder, "fio", "--output-format=json", "--output=o", "job.fio", patience_s=patience_s)


def go(folder: Path, text: str) -> None:
    """Announce a start."""
    (folder / "gate/new").write_text(text + "\n")
    (folder / "gate/new").replace(folder / gate.GO)


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
    start_s = time.time() + 1.5
    go(folder, f"{start_s:.6f}")
    assert status(folder) == 0
    assert 0 <= float((folder / gate.WOKE).read_text().split()[0]) - start_s < 1.0
    assert min(ios(folder)) > 0
    assert time.time() >= start_s + 1


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


def test_postponed_start_is_followed(folder: Path) -> None:
    """It was announced while the program slept until the first one."""
    launch(folder, "true")
    first_s = time.time() + 1.0
    go(folder, f"{first_s:.6f}")
    time.sleep(0.5)
    go(folder, f"{first_s + 0.8:.6f}")
    assert status(folder) == 0
    woke, followed, _now = (folder / gate.WOKE).read_text().split()
    assert followed == f"{first_s + 0.8:.6f}"
    assert float(woke) >= float(followed)


def test_start_in_the_past_is_missed_and_may_be_postponed(folder: Path) -> None:
    """The controller sees it, and announces another one."""
    launch(folder, "true")
    go(folder, f"{time.time() - 1:.6f}")
    until((folder / gate.MISSED).exists)
    assert supervisor.is_running(str(folder / ".c"))
    go(folder, f"{time.time() + 0.5:.6f}")
    assert status(folder) == 0


def test_start_far_ahead_is_missed(folder: Path) -> None:
    """The clock was set back by an hour after the controller had measured it."""
    launch(folder, "true")
    go(folder, f"{time.time() + 3600:.6f}")
    until((folder / gate.MISSED).exists)
    go(folder, f"{time.time() + 0.5:.6f}")
    assert status(folder) == 0


def test_a_clock_that_is_set_moves_no_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The gate waits by the monotonic clock."""
    (tmp_path / "gate").mkdir()
    monkeypatch.chdir(tmp_path)
    go(tmp_path, f"{gate.own_time() + 0.5:.6f}")
    began_s = time.monotonic()
    monkeypatch.setattr("time.time", lambda: began_s)  # decades back
    assert gate.wait_for_start(60.0)
    assert 0.4 < time.monotonic() - began_s < 60


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


def test_disk_that_is_full_for_a_moment_loses_no_readiness(folder: Path) -> None:
    """A process that could not report that it is ready would be waited for without end."""
    (folder / "gate/ready.new").mkdir(parents=True)  # cannot be written, as on a full disk
    command = supervisor._gate_command(20.0, str(folder / "door"))  # noqa: SLF001 - no supervisor
    with Started(command, cwd=folder) as process:
        time.sleep(0.5)
        (folder / "gate/ready.new").rmdir()
        until((folder / gate.READY).exists)
        go(folder, gate.NEVER)
        assert process.wait(20) == 1
