"""Start gates: the script on a machine, and the announcements of a controller."""

from __future__ import annotations

import os
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.waiting import until
from volbench.engine.campaign import barrier as barrier_module
from volbench.engine.campaign.barrier import Barrier
from volbench.engine.campaign.start_gate import FOLDER, SCRIPT, Gate
from volbench.engine.run.run_directory import RunDirectory
from volbench.engine.sampling.clock_offset import Clock
from volbench.errors import ConnectError
from volbench.execute.local import LocalExecutor
from volbench.model.campaign.planned_run import Run, Section, Volume, VolumeKind
from volbench.store.layout import RunFolder

VOLUME = Volume(role="data", kind=VolumeKind.DIRECTORY, target="/data")


def a_gate(folder: Path, barrier: Barrier, run_id: str, executor: LocalExecutor) -> Gate:
    """Return an open gate whose files are in a folder."""
    folder.mkdir()
    gate = Gate(barrier, run_id, Clock(), patience_s=20)
    gate.open_for(RunDirectory(executor, RunFolder(folder)))
    return gate


def a_barrier(*hosts: str) -> Barrier:
    """Return the barrier of one run on each host, which start only all together."""
    runs = [
        Run(id=h, profile="p", job="j", volume=VOLUME, sections=(Section(name="j"),), host=h)
        for h in hosts
    ]
    return Barrier(runs, quorum=len(runs))


def a_process(folder: Path, *, path: str = os.defpath) -> subprocess.Popen[bytes]:
    """Start the script of a gate; when it is ready, the process that will sleep runs already."""
    process = subprocess.Popen(["sh", SCRIPT], cwd=folder, env={"PATH": path})
    until((folder / FOLDER / "ready").exists)
    sleeper = b"python3" if path == os.defpath else b"sh"
    assert Path(f"/proc/{process.pid}/cmdline").read_bytes().startswith(sleeper)
    return process


def put(folder: Path, name: str, text: str) -> None:
    """Write a file of a gate at once."""
    new = folder / FOLDER / f"{name}.put"
    new.write_text(text + "\n")
    new.rename(folder / FOLDER / name)


def sleeps_until_start(process: subprocess.Popen[bytes]) -> bool:
    """Return whether a process has read its start, and sleeps until then, not for 0.2 s only."""
    folder = Path(f"/proc/{process.pid}")
    if not (folder / "cmdline").read_bytes().startswith(b"python3"):
        children = (folder / f"task/{process.pid}/children").read_text().split()
        return any(map(_is_long_sleep, children))

    def waits() -> str:
        return (folder / "status").read_text().partition("\nvoluntary_ctxt_switches:")[2]

    before = waits()
    time.sleep(0.3)
    return waits() == before


def _is_long_sleep(pid: str) -> bool:
    """Return whether a child of the script sleeps for longer than between two looks."""
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except FileNotFoundError:  # it has just ended
        return False
    return words[0] == b"sleep" and words[1] != b"0.2"


def woke_s(folder: Path) -> float:
    """Return when the process started."""
    return float((folder / FOLDER / "woke").read_text())


@pytest.fixture(name="folder")
def _folder(tmp_path: Path) -> Path:
    a_gate(tmp_path / "run", a_barrier("vm0"), "vm0", LocalExecutor())
    return tmp_path / "run"


@pytest.fixture(name="path", params=["with Python", "without Python"])
def _path(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "with Python":
        return os.defpath
    (tmp_path / "python3").write_text("#!/bin/sh\nexit 1\n")
    (tmp_path / "python3").chmod(0o755)
    return f"{tmp_path}:{os.defpath}"


def test_postponed_start_is_followed(folder: Path, path: str) -> None:
    """The process sleeps until the instant that was announced last."""
    process = a_process(folder, path=path)
    now_s = time.time()
    put(folder, "go", f"{now_s + 1.5}")
    until(lambda: sleeps_until_start(process))
    put(folder, "go", f"{now_s + 1.8}")
    assert process.wait(20) == 0
    assert woke_s(folder) >= now_s + 1.8


def test_revoked_start_starts_nothing(folder: Path, path: str) -> None:
    """A process that sleeps already does not start if its start is revoked meanwhile."""
    process = a_process(folder, path=path)
    put(folder, "go", f"{time.time() + 1.5}")
    until(lambda: sleeps_until_start(process))
    put(folder, "go", "never")
    assert process.wait(20) == 1
    assert not (folder / FOLDER / "woke").exists()


def test_missed_start_waits_for_the_next(folder: Path, path: str) -> None:
    """An announcement from the past starts nothing; the controller postpones it for all."""
    process = a_process(folder, path=path)
    put(folder, "go", f"{time.time() - 0.5}")
    until((folder / FOLDER / "missed").exists)
    again_s = time.time() + 0.4
    put(folder, "go", f"{again_s}")
    assert process.wait(20) == 0
    assert woke_s(folder) >= again_s


def test_start_that_may_be_late_is_not_missed(folder: Path, path: str) -> None:
    """Clients that start in turn start whenever their turn is announced."""
    process = a_process(folder, path=path)
    put(folder, "go", f"{time.time() - 5} late")
    assert process.wait(20) == 0


def test_disk_that_is_full_for_a_moment_loses_no_readiness(folder: Path) -> None:
    """A process that could not report that it is ready would be waited for without end."""
    (folder / FOLDER / "ready.new").mkdir()  # cannot be written, as on a full disk
    process = subprocess.Popen(["sh", SCRIPT], cwd=folder, stderr=subprocess.DEVNULL)
    until((folder / FOLDER / "waiting").exists)
    (folder / FOLDER / "ready.new").rmdir()
    until((folder / FOLDER / "ready").exists)
    put(folder, "go", "never")
    assert process.wait(20) == 1


class _CutOff(LocalExecutor):
    """Machine whose link is lost right before its start is written."""

    def write_text(self, path: str, text: str) -> None:
        """Write a file, except a start."""
        if path.endswith("/go"):
            raise ConnectError("the connection to vm1 was lost")
        super().write_text(path, text)


def test_lost_link_after_one_announcement_starts_no_client_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The start that one machine has received is revoked when the other cannot get its own."""
    monkeypatch.setattr(barrier_module, "CONFIRM_S", 1.0)
    barrier = a_barrier("vm0", "vm1")
    gates = {
        "vm0": a_gate(tmp_path / "vm0", barrier, "vm0", LocalExecutor()),
        "vm1": a_gate(tmp_path / "vm1", barrier, "vm1", _CutOff()),
    }
    processes = {name: a_process(tmp_path / name) for name in gates}

    def hold(name: str) -> None:
        try:
            while processes[name].poll() is None:
                gates[name].poll()
                time.sleep(0.02)
        finally:
            barrier.leave(name)

    with ThreadPoolExecutor() as threads:
        ends = {name: threads.submit(hold, name) for name in gates}
        assert ends["vm0"].exception(20) is None
    assert isinstance(ends["vm1"].exception(), ConnectError)
    put(tmp_path / "vm1", "go", "never")
    assert [processes[name].wait(20) for name in gates] == [1, 1]
    assert not (tmp_path / "vm0" / FOLDER / "woke").exists()
    assert "only 1 of 2 clients are ready: vm1" in gates["vm0"].held_back
