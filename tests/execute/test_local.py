"""What only a real machine can show."""

import os
from pathlib import Path

import pytest

from tests.execute.host_files import stat_of
from tests.waiting import has_ended, until
from volbench.errors import TransportError
from volbench.execute.local import LocalExecutor
from volbench.execute.protocol import OperationError, Process

EXECUTOR = LocalExecutor()


def _ended(process: Process) -> int:
    status = process.wait(300.0)
    assert status is not None
    return status


def test_a_program_that_hangs_is_killed(tmp_path: Path) -> None:
    """A program that does not end in time is killed with all it started."""
    pids, script = tmp_path / "pids", 'sleep 1000 & echo $! $$ > "$0"; wait'

    def run() -> bool:
        with pytest.raises(TransportError, match=r"sh did not end in 2 s and was killed"):
            EXECUTOR.run(["sh", "-c", script, str(pids)], timeout_s=2)
        return pids.exists()  # else a busy machine did not start it in 2 s

    until(run)
    started = [int(pid) for pid in pids.read_text(encoding="utf-8").split()]
    until(lambda: all(map(has_ended, started)))


def test_a_process_leads_its_session_and_has_its_own_temporary_folder(tmp_path: Path) -> None:
    """Ctrl-C at the terminal does not reach it, and nobody else can write to its TMPDIR."""
    process = EXECUTOR.start(
        ["sh", "-c", 'echo "$TMPDIR $LC_ALL $(pwd)"; cat; cat /proc/$$/stat >&2'],
        cwd=str(tmp_path),
        stderr=str(tmp_path / "stderr"),
    )
    assert _ended(process) == 0
    assert process.read_output() == f"/proc/self/cwd C {tmp_path}\n"
    fields = (tmp_path / "stderr").read_text(encoding="utf-8").rpartition(")")[2].split()
    group, session = int(fields[2]), int(fields[3])
    assert group == session == process.pid


def test_a_character_may_arrive_in_two_parts(tmp_path: Path) -> None:
    """Output is cut anywhere, and still read as whole characters; broken bytes are replaced."""
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    process = EXECUTOR.start(
        ["sh", "-c", r'printf "\303"; read -r go < "$0"; printf "\251\377\n"', str(gate)],
        cwd=str(tmp_path),
        stderr=str(tmp_path / "stderr"),
    )
    first = ""
    for _ in range(20):
        assert process.wait(0.01) is None
        first += process.read_output()
    with gate.open("w", encoding="utf-8") as file:
        file.write("go\n")
    assert _ended(process) == 0
    assert first + process.read_output() == "\N{LATIN SMALL LETTER E WITH ACUTE}\ufffd\n"


def test_a_path_that_cannot_be_examined_is_an_error(tmp_path: Path) -> None:
    """A loop of symlinks is not taken for a place where nothing stands."""
    loop = tmp_path / "loop"
    loop.symlink_to(loop)
    with pytest.raises(OperationError, match="cannot be examined: Too many levels"):
        stat_of(EXECUTOR, str(loop))
