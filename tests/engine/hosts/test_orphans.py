"""Processes that nobody wrote down: what was started right before its controller was killed."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.command_line import COMMAND, call
from tests.waiting import Started, until_written
from volbench.engine.hosts.orphans import end_strays, identify, is_alive
from volbench.execute.local import LocalExecutor

ASLEEP = ("sleep", "60")
KILLED = """\
import os, signal, sys
import volbench.engine.campaign.client_worker
from volbench.cli.main import main

client_worker = volbench.engine.campaign.client_worker
client_worker.start_record = lambda *_args, **_kwargs: os.kill(os.getpid(), signal.SIGKILL)
sys.argv[0] = "volbench"
main()
"""
"""volbench whose life ends between the start of fio and the line in the journal."""


def test_only_what_was_started_for_a_run_is_ended(tmp_path: Path) -> None:
    """A user's own program in the same folder goes on, and so does a run in another one."""
    mine, other = tmp_path / "001-a", tmp_path / "002-b"
    mine.mkdir()
    other.mkdir()
    executor = LocalExecutor()
    stray = executor.start(ASLEEP, cwd=str(mine), stderr=str(mine / "stderr"))
    elsewhere = executor.start(ASLEEP, cwd=str(other), stderr=str(other / "stderr"))
    with Started(ASLEEP, cwd=mine) as users:
        try:
            assert end_strays(executor, [mine]) == (mine,)
            assert stray.wait(5) is not None
            assert end_strays(executor, [mine]) == ()
            assert users.poll() is None
            assert elsewhere.poll() is None
        finally:
            users.kill()
            elsewhere.signal(signal.SIGKILL)
    assert elsewhere.wait(5) is not None


@pytest.mark.slow
@pytest.mark.parametrize("verb", ["resume", "clean"])
def test_a_controller_killed_before_it_wrote_down_a_start(tmp_path: Path, verb: str) -> None:
    """What was started goes on and stands in no journal; it is found by its folder, and ended."""
    profile, into = tmp_path / "p.yaml", tmp_path / "out"
    profile.write_text(
        "name: p\nsample: 0\ndevice_sample: 0\n"
        "defaults: {ioengine: psync, size: 1m, time_based: 1, runtime: 90s, rate_iops: 50}\n"
        "jobs:\n  a: {rw: write}\n"
    )
    target = tmp_path / "volume"
    target.mkdir()
    killed = subprocess.run(
        [sys.executable, "-c", KILLED, "run", profile, "--on", target, "--output", into],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    (left,) = working_in(into / "runs" / "001-a-r1")
    identified = identify(LocalExecutor(), left)
    assert is_alive(LocalExecutor(), identified)
    assert '"state": "running"' not in (into / "journal.jsonl").read_text()
    if verb == "clean":
        done = call("status", "--clean", into)
        assert done.returncode == 0, done.stderr
    else:
        resume_and_stop(into)
    assert not is_alive(LocalExecutor(), identified)


def resume_and_stop(into: Path) -> None:
    """Resume until fio was started anew, and stop."""
    with Started(
        [*COMMAND, "resume", str(into)], stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    ) as resumed:
        until_written(into / "journal.jsonl", '"state": "running"')
        resumed.send_signal(signal.SIGINT)
        stderr = resumed.communicate(timeout=60)[1]
    assert "ended a process whose start was not recorded" in stderr
    assert not working_in(into / "runs" / "001-a-r1")


def working_in(folder: Path) -> list[int]:
    """Return the processes whose working folder this is."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                place = (entry / "cwd").readlink()
            except OSError:  # another user's, or it has ended since
                continue
            if place == folder.resolve():
                found.append(int(entry.name))
    return found
