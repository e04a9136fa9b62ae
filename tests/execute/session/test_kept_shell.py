"""Kept shell over a child process: one session for everything, and a new one when it breaks."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.execute.loopback import LoopbackChannel
from tests.waiting import PATIENCE_S, until
from volbench.errors import DeadlineError
from volbench.execute.session.kept_shell import KeptShell
from volbench.execute.shell.remote_script import ScriptAnswer, ScriptCall
from volbench.execute.shell.shell_executor import ShellExecutor


@pytest.fixture(name="channel")
def _channel() -> LoopbackChannel:
    return LoopbackChannel()


@pytest.fixture(name="machine")
def _machine(channel: LoopbackChannel) -> Iterator[ShellExecutor]:
    machine = ShellExecutor(channel)
    yield machine
    machine.close()
    for stream in channel.streams:
        stream.child.wait(PATIENCE_S)


def test_one_session_carries_everything(
    channel: LoopbackChannel, machine: ShellExecutor, tmp_path: Path
) -> None:
    """Requests of many threads, a program that is watched, and the clock share a session."""
    process = machine.start(
        ["sh", "-c", "echo one; exit 5"], cwd=str(tmp_path), stderr=f"{tmp_path}/stderr"
    )
    with ThreadPoolExecutor(8) as threads:
        texts = [str(number) * 3000 for number in range(20)]
        argv = [["printf", "%s", text] for text in texts]
        assert [done.stdout for done in threads.map(machine.run, argv)] == texts
    assert process.wait(PATIENCE_S) == 5
    assert process.read_output() == "one\n"
    assert len(machine.read_clock(8)) == 8
    assert channel.sessions == 1


def test_slow_request_holds_up_no_other(machine: ShellExecutor, tmp_path: Path) -> None:
    """A request that hangs runs into its own time limit; the shell answers others meanwhile."""
    with ThreadPoolExecutor(1) as threads:
        script = 'while [ ! -e "$1/go" ]; do sleep 0.05; done'
        slow = threads.submit(machine.run, ["sh", "-c", script, "sh", str(tmp_path)])
        assert machine.run(["echo", "1"]).stdout == "1\n"
        assert not slow.done()
        (tmp_path / "go").touch()
        assert slow.result().exit_status == 0
    with pytest.raises(DeadlineError, match="did not end"):
        machine.run(["sleep", "5"], timeout_s=0.2)
    assert machine.run(["echo", "2"]).stdout == "2\n"


def test_broken_session_is_reopened(
    channel: LoopbackChannel, machine: ShellExecutor, tmp_path: Path
) -> None:
    """Programs outlive their session, and what they print afterwards is complete."""
    script = "echo one; while [ ! -e go ]; do sleep 0.05; done; echo two"
    process = machine.start(["sh", "-c", script], cwd=str(tmp_path), stderr=f"{tmp_path}/stderr")
    output = ""

    def read() -> str:
        nonlocal output
        output += process.read_output()
        return output

    until(lambda: read() == "one\n")
    channel.streams[-1].kill()
    (tmp_path / "go").touch()
    assert process.wait(PATIENCE_S) == 0
    assert read() == "one\ntwo\n"
    assert channel.sessions == 2


def test_files_of_a_check_go_away_without_the_controller(
    machine: ShellExecutor, tmp_path: Path
) -> None:
    """The host removes them when the program ends, though the session has ended before."""
    script = f'cd "${{1%/*}}"; pwd >{tmp_path}/at; until [ -e {tmp_path}/go ]; do sleep 0.05; done'
    folder = tmp_path / "at"
    with ThreadPoolExecutor(1) as threads:
        check = threads.submit(
            machine.run_on_files, ["sh", "-c", f'set -- "$PWD/$1"; {script}', "sh"], ["text"]
        )
        until(lambda: folder.exists() and folder.read_text().endswith("\n"))
        place = Path(folder.read_text().strip())
        assert (place / "0").read_text() == "text"
        machine.close()
        (tmp_path / "go").touch()
        assert check.result(PATIENCE_S).exit_status == 0  # in another session
        until(lambda: not place.exists())


def size_of(machine: ShellExecutor, path: Path) -> int:
    """Return the size of a file that is there."""
    found = machine.stat(str(path))
    assert found is not None
    return found.size_bytes


def test_looks_are_answered_together(
    channel: LoopbackChannel,
    machine: ShellExecutor,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Within a snapshot, looks cost one request; a change drops all answers."""
    sent: list[str] = []
    send = KeptShell.call

    def count(shell: KeptShell, call: ScriptCall) -> ScriptAnswer:
        sent.append(call.name)
        return send(shell, call)

    monkeypatch.setattr(KeptShell, "call", count)
    path = tmp_path / "it's\n$HOME"
    path.write_text("old\n")
    with machine.snapshot([str(path)]):
        assert size_of(machine, path) == 4
        assert machine.real_path(str(tmp_path)) == str(tmp_path.resolve())
        assert machine.stat(str(tmp_path / "missing")) is None
        assert machine.read_text("/proc/self/mountinfo")
        assert len(sent) == 2  # one for all, one for what was not foreseen
        machine.write_text(str(path), "newer\n")
        assert size_of(machine, path) == 6
        assert len(sent) == 4  # the write, and all looks anew
    with machine.snapshot([str(path)]):
        assert machine.stat(str(tmp_path / "missing")) is None
        assert len(sent) == 4  # the last answers are fresh
    machine.write_text(str(path), "newest\n")
    with machine.snapshot([str(path)]):
        assert size_of(machine, path) == 7
        assert len(sent) == 6
        with ThreadPoolExecutor(1) as threads:  # of another client of the host
            threads.submit(machine.write_text, str(path), "x\n").result()
        assert size_of(machine, path) == 7
    with machine.snapshot([str(path)]):
        assert size_of(machine, path) == 2
    assert size_of(machine, path) == 2
    assert channel.sessions == 1
