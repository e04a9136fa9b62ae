"""Processes that nobody wrote down: what was started right before its controller was killed."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.command_line import COMMAND, call
from tests.waiting import Started, until, until_written

ASLEEP = ("sleep", "60")
KILLED = """\
import os, signal, sys
import volbench.engine.campaign.client_worker
import volbench.engine.guard.scratch_files
import volbench.execute.agent.supervisor
from volbench.cli.main import main

def die(*arguments, **options):
    os.kill(os.getpid(), signal.SIGKILL)

def make_and_die(*arguments):
    make(*arguments)
    die()

supervisor = volbench.execute.agent.supervisor
scratch_files = volbench.engine.guard.scratch_files
make = scratch_files.make_private_folder
where = sys.argv.pop(1)
if where == "record":
    volbench.engine.campaign.client_worker.start_record = die
elif where == "supervisor":
    supervisor._start_supervisor = die
else:
    scratch_files.make_private_folder = make_and_die
sys.argv[0] = "volbench"
main()
"""
"""volbench whose life ends between the start of fio and the line in the journal, before it starts
the supervisor, or once it has made the private folder on the volume."""


@pytest.mark.slow
@pytest.mark.parametrize("verb", ["resume", "clean"])
def test_a_controller_killed_before_it_wrote_down_a_start(tmp_path: Path, verb: str) -> None:
    """What was started stands in no journal; fio ends, and what it made is known by its time."""
    into = killed_campaign(tmp_path, where="record")
    assert '"state": "running"' not in (into / "journal.jsonl").read_text()
    until(lambda: not working_in(into / "runs" / "001-a-r1"))
    assert list(tmp_path.glob("volume/volbench-*/a.0.0"))
    if verb == "clean":
        done = call("status", "--clean", into)
        assert done.returncode == 0, done.stderr
    else:
        resume_and_stop(into)
    assert not list((tmp_path / "volume").iterdir())


@pytest.mark.parametrize("where", ["supervisor", "folder"])
def test_a_folder_made_right_before_a_kill_is_known_by_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    """The name stands in the journal before the folder is made, so that a cleanup removes it."""
    (tmp_path / "temporary").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "temporary"))
    into = killed_campaign(tmp_path, where=where)
    made = [tmp_path / "temporary", tmp_path / "volume"]
    left = [path for folder in made for path in folder.iterdir()]
    assert left
    done = call("status", "--clean", into)
    assert done.returncode == 0, done.stderr
    assert not any(path.exists() for path in left), done.stderr
    if where == "supervisor":
        assert str(next(path for path in left if path.parent == made[0])) in done.stderr


def killed_campaign(tmp_path: Path, *, where: str) -> Path:
    """Return the folder of a campaign of this machine whose controller was killed."""
    profile, into = tmp_path / "p.yaml", tmp_path / "out"
    profile.write_text(
        "name: p\nsample: 0\ndevice_sample: 0\n"
        "defaults: {ioengine: psync, size: 1m, time_based: 1, runtime: 90s, rate_iops: 50}\n"
        "jobs:\n  a: {rw: write}\n"
    )
    target = tmp_path / "volume"
    target.mkdir()
    killed = subprocess.run(
        [sys.executable, "-c", KILLED, where, "run", profile, "--on", target, "--output", into],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    return into


def resume_and_stop(into: Path) -> None:
    """Resume until fio was started anew, and stop."""
    with Started(
        [*COMMAND, "resume", str(into)], stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    ) as resumed:
        until_written(into / "journal.jsonl", '"state": "running"')
        resumed.send_signal(signal.SIGINT)
        resumed.communicate(timeout=300)
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
