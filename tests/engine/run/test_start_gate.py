"""Start gates: announcements of a controller to the processes that wait at them."""

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import ParamSpec, TypeVar

import pytest

from tests.planned import a_folder, planned_run
from tests.waiting import until
from volbench.engine.hosts.connected_host import Clock
from volbench.engine.run import barrier as barriers
from volbench.engine.run.barrier import Barrier, WaitPolicy
from volbench.engine.run.start_gate import Gate
from volbench.errors import ConnectError
from volbench.execute.agent.files import write_files
from volbench.execute.agent.gate import FOLDER, GO, NEVER, READY, WOKE
from volbench.execute.local import LocalExecutor
from volbench.execute.protocol import Process, Supervision

P = ParamSpec("P")
T = TypeVar("T")


def a_gate(folder: Path, barrier: Barrier, run_id: str, executor: LocalExecutor) -> Gate:
    """Return an open gate whose files are in a folder."""
    (folder / FOLDER).mkdir(parents=True)
    gate = Gate(barrier, run_id, Clock(), patience_s=120)
    gate.open_for(executor, str(folder))
    return gate


def a_barrier(*hosts: str, ready_timeout_s: float = 60.0) -> Barrier:
    """Return the barrier of one run on each host, which start only all together."""
    runs = [planned_run(a_folder(), id=host, host=host) for host in hosts]
    return Barrier(runs, quorum=len(runs), wait=WaitPolicy(ready_timeout_s=ready_timeout_s))


def a_process(folder: Path) -> Process:
    """Start a process that is ready at its gate."""
    process = LocalExecutor().start(
        ["true"],
        cwd=str(folder),
        stderr=str(folder / "stderr"),
        supervision=Supervision(gate_s=300.0),
    )
    until((folder / READY).exists)
    return process


class _CutOff(LocalExecutor):
    """Machine whose link is lost right before its start is written."""

    def ask(self, operation: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """Carry out all but a start."""
        if operation is write_files and any(GO in str(files) for files in args):
            raise ConnectError("the connection to vm1 was lost")
        return super().ask(operation, *args, **kwargs)


def test_lost_link_after_one_announcement_starts_no_client_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The start that one machine has received is revoked when the other cannot get its own."""
    monkeypatch.setattr(barriers, "MARGIN_S", 200.0)  # it is revoked long before
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
        assert ends["vm0"].exception(300) is None
    assert isinstance(ends["vm1"].exception(), ConnectError)
    (tmp_path / "vm1" / GO).write_text(NEVER)
    assert [processes[name].wait(300) for name in gates] == [1, 1]
    assert not (tmp_path / "vm0" / WOKE).exists()
    assert "only 1 of 2 clients are ready: vm1" in gates["vm0"].held_back


class _Suspended(LocalExecutor):
    """Machine that answers a first announcement after its time."""

    def ask(self, operation: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """Write a start, and wait until it is over."""
        answer = super().ask(operation, *args, **kwargs)
        for files in args if operation is write_files else ():
            assert isinstance(files, dict)
            starts = (float(text) for path, text in files.items() if path.endswith(GO))
            time.sleep(max(0.0, next(starts, 0.0) - time.time()))
        return answer


def test_client_that_may_be_waking_up_has_not_received_a_later_start(tmp_path: Path) -> None:
    """Its process has read a start that is over, and has not recorded yet that it follows it."""
    barrier = a_barrier("vm0", "vm1")
    gate = a_gate(tmp_path, barrier, "vm1", _Suspended())
    (tmp_path / READY).write_text(f"{time.time():.6f}\n")
    barrier.arrive("vm0")
    barrier.confirm("vm0")
    while not (tmp_path / GO).exists():
        gate.poll()
        time.sleep(0.02)
    first = (tmp_path / GO).read_text().strip()
    signal = barrier.signal("vm0")
    assert signal is not None
    barrier.acknowledge("vm0", signal)
    assert not barrier.is_final("vm0", signal)
    (tmp_path / WOKE).write_text(f"{first} {first}\n")
    while not gate.is_void:
        gate.poll()
        time.sleep(0.02)
    assert "before the others" in gate.held_back
