"""Programs that outlive their controller: started once, asked about, signalled, found again."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tests.execute.loopback import LoopbackChannel
from tests.waiting import PATIENCE_S, kill_all, until
from volbench.errors import TransportError
from volbench.execute.session.program_state import LOST_STATUS
from volbench.execute.shell.detached import DetachedProcess, LaunchOrder, launch
from volbench.execute.shell.shell_executor import ShellExecutor

EXECUTOR = ShellExecutor(LoopbackChannel())


SLEEPER = """
import signal, time
signal.signal(signal.SIGINT, signal.SIG_DFL)
print(1, flush=True)
time.sleep(60)
"""


def order(folder: Path, *argv: str, longest_s: float = 60) -> LaunchOrder:
    """Return what to start in a folder."""
    return LaunchOrder(argv, str(folder), str(folder / "stderr"), str(folder / ".tool"), longest_s)


def again(folder: Path) -> DetachedProcess:
    """Return the program in a folder as another controller finds it."""
    return DetachedProcess(EXECUTOR, str(folder / ".tool"))


def started(folder: Path, *argv: str, longest_s: float = 60) -> DetachedProcess:
    """Start a program and look at it often."""
    launch(EXECUTOR, order(folder, *argv, longest_s=longest_s))
    return again(folder)


def of_folder(folder: Path) -> list[int]:
    """Return every process that was started for a folder."""
    mark = f"VOLBENCH_CONTROL={folder / '.tool'}".encode()
    found = []
    for path in Path("/proc").iterdir():
        try:
            if path.name.isdecimal() and mark in (path / "environ").read_bytes().split(b"\0"):
                found.append(int(path.name))
        except OSError:  # it ended meanwhile, or belongs to somebody else
            continue
    return found


@pytest.fixture(autouse=True)
def _nothing_is_left(tmp_path: Path) -> Iterator[None]:
    yield
    kill_all(of_folder(tmp_path))


def test_output_and_end_are_kept(tmp_path: Path) -> None:
    """What it printed comes bit by bit; its exit status and its problems are there at the end."""
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    script = 'echo one; read -r go <"$0"; echo two; echo oh >&2; exit 3'
    process = started(tmp_path, "sh", "-c", script, str(gate))
    until(lambda: process.read_output() == "one\n")
    assert process.poll() is None
    gate.write_text("go\n")
    assert process.wait(PATIENCE_S) == 3
    assert process.read_output() == "two\n"
    assert (tmp_path / "stderr").read_text() == "oh\n"
    until(lambda: of_folder(tmp_path) == [])  # its keeper ends right after writing the status


def test_it_is_started_once(tmp_path: Path) -> None:
    """A second order, as after a lost answer, starts nothing; not after its end either."""
    argv = ("sh", "-c", "echo x >>count; sleep 0.3")
    launch(EXECUTOR, order(tmp_path, *argv))
    launch(EXECUTOR, order(tmp_path, *argv))
    assert again(tmp_path).wait(PATIENCE_S) == 0
    launch(EXECUTOR, order(tmp_path, *argv))
    assert again(tmp_path).wait(PATIENCE_S) == 0
    assert (tmp_path / "count").read_text() == "x\n"


def test_another_controller_finds_it_again(tmp_path: Path) -> None:
    """Who asks later learns the same, and can pass over what is known already."""
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    first = started(tmp_path, "sh", "-c", 'echo one; read -r go <"$0"; echo two', str(gate))
    until(lambda: first.read_output() == "one\n")
    second = again(tmp_path)
    second.skip_output(4)
    assert second.pid == first.pid
    gate.write_text("go\n")
    assert second.wait(PATIENCE_S) == 0
    assert second.read_output() == "two\n"


def test_arguments_are_never_read_by_a_shell(tmp_path: Path) -> None:
    """Blanks, quotes, dollars and line ends arrive as they are."""
    odd = ["a b", "it's", "$(touch hacked)", "`id`", "x\ny", "*", ""]
    script = 'for word; do printf "%s|" "$word"; done'
    launch(EXECUTOR, order(tmp_path, "sh", "-c", script, "x", *odd))
    process = again(tmp_path)
    assert process.wait(PATIENCE_S) == 0
    assert process.read_output() == "|".join(odd) + "|"
    assert not (tmp_path / "hacked").exists()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_signals_reach_it(tmp_path: Path, number: signal.Signals) -> None:
    """It ends by what it is sent, and leaves no process behind."""
    process = started(tmp_path, "python3", "-c", SLEEPER)
    until(lambda: process.read_output() == "1\n")
    process.signal(number)
    status = process.wait(PATIENCE_S)
    assert status is not None
    assert status != 0
    until(lambda: of_folder(tmp_path) == [])


def test_it_ends_when_nobody_comes_back(tmp_path: Path) -> None:
    """Its longest time holds on its own machine."""
    process = started(tmp_path, "sleep", "60", longest_s=1)
    status = process.wait(PATIENCE_S)
    assert status is not None
    assert status != 0
    until(lambda: of_folder(tmp_path) == [])


def test_a_killed_program_is_reported_as_lost(tmp_path: Path) -> None:
    """When even the shell that waits for it is gone, nobody claims to know how it ended."""
    process = started(tmp_path, "sleep", "60")
    until(lambda: len(of_folder(tmp_path)) >= 2)
    kill_all(of_folder(tmp_path))
    assert process.wait(PATIENCE_S) == LOST_STATUS
    assert "killed" in process.lost


def test_a_restart_of_the_machine_is_reported(tmp_path: Path) -> None:
    """Another boot id means that whatever runs under this number is something else."""
    process = started(tmp_path, "sleep", "60")
    (tmp_path / ".tool" / "boot").write_text("0f0f0f0f-another-boot\n")
    assert process.wait(PATIENCE_S) == LOST_STATUS
    assert process.lost == "its host rebooted"


def test_a_reused_process_id_is_not_taken_for_it(tmp_path: Path) -> None:
    """A number is not enough: the process must carry the mark of its control folder."""
    process = started(tmp_path, "true")
    assert process.wait(PATIENCE_S) == 0
    (tmp_path / ".tool" / "rc").unlink()
    (tmp_path / ".tool" / "pid").write_text(f"{os.getpid()}\n")
    other = again(tmp_path)
    assert other.wait(PATIENCE_S) == LOST_STATUS
    other.signal(signal.SIGTERM)


def test_status_that_is_written_late_is_waited_for(tmp_path: Path) -> None:
    """While the shell that records the end is alive, a program that has ended is not lost."""
    process = started(tmp_path, "true")
    assert process.wait(PATIENCE_S) == 0
    (tmp_path / ".tool" / "rc").unlink()
    marked = {**os.environ, "VOLBENCH_CONTROL": str(tmp_path / ".tool")}
    keeper = subprocess.Popen(
        ["sh", "-c", "read -r line; exit 0"], stdin=subprocess.PIPE, env=marked
    )
    until(lambda: keeper.pid in of_folder(tmp_path))
    (tmp_path / ".tool" / "parent").write_text(f"{keeper.pid}\n")
    followed = str(tmp_path / "followed")
    control = str(tmp_path / ".tool")
    other = DetachedProcess(EXECUTOR, control, is_new=True, followed=[followed])
    assert other.wait(0.8) is None, other.lost
    Path(followed).write_text("one\n")
    (tmp_path / ".tool" / "pid").write_text(f"{keeper.pid}\n")  # as if it had been starting
    until(lambda: other.poll() is None and other.first_line(followed) == "one")
    (tmp_path / ".tool" / "rc").write_text("3\n")
    until(lambda: other.poll() == 3)
    keeper.communicate(b"\n")


def test_what_cannot_start_is_an_error(tmp_path: Path) -> None:
    """A missing folder and a missing program are reported at once; nothing counts as started."""
    with pytest.raises(TransportError, match="cannot be started"):
        launch(EXECUTOR, order(tmp_path / "missing", "true"))
    with pytest.raises(TransportError, match="no such program"):
        launch(EXECUTOR, order(tmp_path, "no-such-program"))
    assert not EXECUTOR.was_started(str(tmp_path / ".tool"))


@pytest.mark.root
def test_nothing_is_started_on_a_full_disk(tmp_path: Path) -> None:
    """What could not be found again is not started: its state has no room."""
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "none", tmp_path], check=True)
    try:
        filler = tmp_path / "filler"
        with suppress(OSError), filler.open("wb", buffering=0) as file:
            while True:
                file.write(bytes(4096))
        with pytest.raises(TransportError, match="No space left"):
            launch(EXECUTOR, order(tmp_path, "sleep", "60"))
        assert of_folder(tmp_path) == []
        filler.unlink()
        process = started(tmp_path, "true")
        until(lambda: process.poll() == 0)
    finally:
        subprocess.run(["umount", "-l", tmp_path], check=True)
