"""Processes are watched to their end, with their passwords, and ended when asked or late."""

import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.fio.runs import run_on
from tests.waiting import PATIENCE_S, until
from volbench.engine.hosts.orphans import end_orphan, identify
from volbench.engine.run.process_watch import Ending, Watched, end_process, watch
from volbench.engine.run.run_directory import RunDirectory, secrets_of
from volbench.engine.run.stop_request import StopRequest, stop_on_signals
from volbench.errors import ConnectError, InputError, TransportError
from volbench.execute.agent_executor import AgentExecutor
from volbench.execute.channels import SubprocessChannel
from volbench.execute.local import LocalExecutor
from volbench.execute.protocol import Process, Supervision
from volbench.model.campaign.planned_run import Volume, VolumeKind
from volbench.store.layout import RunFolder

ASLEEP = "import time; time.sleep(60)"
DEAF = (
    "import signal, time\n"
    "for number in (signal.SIGINT, signal.SIGTERM): signal.signal(number, signal.SIG_IGN)\n"
    "print('deaf', flush=True)\ntime.sleep(60)"
)


def start(folder: Path, program: str) -> Process:
    """Start a Python program as a run's process."""
    return LocalExecutor().start(
        [sys.executable, "-c", program], cwd=str(folder), stderr=str(folder / "stderr")
    )


def watched_to_its_end(
    process: Process,
    *,
    deadline_s: float = 60.0,
    stop: StopRequest | None = None,
    on_output: Callable[[str, float], None] = lambda _text, _elapsed_s: None,
) -> Watched:
    """Watch a process until it ends."""
    stop = stop or StopRequest()
    return watch(process, deadline_s=deadline_s, stop=stop, on_output=on_output)


def exists(pid: int) -> bool:
    """Return whether a process still runs."""
    return (Path("/proc") / str(pid)).exists()


def test_deadline_ends_a_process(tmp_path: Path) -> None:
    """A process that is late is ended and gone."""
    process = start(tmp_path, ASLEEP)
    watched = watched_to_its_end(process, deadline_s=0.3)
    assert watched.ending is Ending.DEADLINE
    assert watched.exit_status is not None
    assert not exists(process.pid)


def test_a_second_request_kills_a_process_that_ignores_the_first(tmp_path: Path) -> None:
    """A process that ignores SIGINT and SIGTERM is killed when the user asks twice."""
    process = start(tmp_path, DEAF)
    stop = StopRequest()

    def ask_twice(text: str, _elapsed_s: float) -> None:
        if "deaf" in text:
            stop.request()
            stop.request()

    watched = watched_to_its_end(process, stop=stop, on_output=ask_twice)
    assert watched.ending is Ending.STOPPED
    assert watched.exit_status == -9
    assert not exists(process.pid)


def test_an_error_while_watching_ends_the_process(tmp_path: Path) -> None:
    """Whatever goes wrong in the controller, the process does not stay."""
    process = start(tmp_path, ASLEEP)

    def fail(_text: str, _elapsed_s: float) -> None:
        raise ArithmeticError

    with pytest.raises(ArithmeticError):
        watched_to_its_end(process, on_output=fail)
    assert not exists(process.pid)


@pytest.mark.usefixtures("hangup_is_default")
def test_signals_become_requests_and_handlers_come_back() -> None:
    """Inside the block SIGTERM is a request; afterwards the handlers are as before."""
    before = signal.getsignal(signal.SIGTERM)
    with stop_on_signals() as stop:
        os.kill(os.getpid(), signal.SIGTERM)
        assert stop.requested
        assert not stop.urgent
        os.kill(os.getpid(), signal.SIGHUP)
        assert stop.urgent
    assert signal.getsignal(signal.SIGTERM) is before


@pytest.mark.usefixtures("hangup_is_default")
def test_a_hangup_is_not_a_stop_where_it_is_handled_or_was_ignored() -> None:
    """A closed terminal ends no campaign, and nohup is respected."""
    hangups: list[str] = []
    with stop_on_signals(on_hangup=lambda: hangups.append("hangup")) as stop:
        os.kill(os.getpid(), signal.SIGHUP)
        assert hangups == ["hangup"]
        assert not stop.requested
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with stop_on_signals() as stop:
            os.kill(os.getpid(), signal.SIGHUP)
            assert not stop.requested
    finally:
        signal.signal(signal.SIGHUP, before)


def test_another_process_with_the_same_pid_is_left_alone(tmp_path: Path) -> None:
    """A pid that was given to another process, or another boot, is never touched."""
    process = start(tmp_path, ASLEEP)
    executor = LocalExecutor()
    identity = identify(executor, process.pid)
    for change in ({"start_ticks": 1}, {"boot_id": "another"}):
        assert not end_orphan(executor, identity | change)
    assert not end_orphan(executor, {})
    assert process.poll() is None
    watched_to_its_end(process, deadline_s=0.0)


@pytest.mark.parametrize(("error", "runs_on"), [(TransportError, False), (ConnectError, True)])
def test_only_a_lost_machine_keeps_its_process(
    tmp_path: Path, error: type[TransportError], *, runs_on: bool
) -> None:
    """What fails for good ends the process; a broken line does not."""
    process = start(tmp_path, ASLEEP)

    def tell(_text: str, _elapsed_s: float) -> None:
        raise error("no way", hint="none")

    try:
        with pytest.raises(error):
            watched_to_its_end(process, on_output=tell)
        assert (process.poll() is None) is runs_on
    finally:
        end_process(process, StopRequest())


SECRET = "correct horse; $(echo no)"  # noqa: S105 - of no server
RUN = run_on("/data").model_copy(
    update={
        "volume": Volume(role="data", kind=VolumeKind.NBD, target="nbd://user:***@h/x"),
        "host": "local",
    }
)
LOOK = 'echo "$VOLBENCH_DATA_PASSWORD" >seen; tr "\\0" "\\n" <"/proc/$$/cmdline" >arguments; ls -A'


@pytest.mark.parametrize("is_here", [True, False])
def test_secret_is_in_the_environment_only(tmp_path: Path, *, is_here: bool) -> None:
    """Neither the arguments of the program nor its folder have it."""
    remote = AgentExecutor(SubprocessChannel("vm1"), work_folder=str(tmp_path / "work"))
    try:
        folder = tmp_path / "run"
        folder.mkdir()
        executor = LocalExecutor() if is_here else remote
        directory = RunDirectory(executor, RunFolder(folder), name="key/run-0")
        secrets = secrets_of(RUN, {"VOLBENCH_DATA_PASSWORD": SECRET, "OTHER": "x"})
        assert list(secrets) == ["VOLBENCH_DATA_PASSWORD"]
        supervision = Supervision(environment=secrets)
        assert SECRET not in repr(supervision)
        process = directory.start(["sh", "-c", LOOK], stderr="stderr", supervision=supervision)
        assert process.wait(PATIENCE_S) == 0, Path(directory.path_of("stderr")).read_text()
        until(lambda: not process.is_sampled and not (folder / ".control").exists())
        files = {path.name for path in tmp_path.rglob("*") if path.is_file()}
        assert Path(directory.path_of("seen")).read_text() == f"{SECRET}\n"
        assert {"seen", "arguments", "stderr"} <= files
        for path in tmp_path.rglob("*"):
            if path.is_file() and path.name != "seen":
                assert SECRET not in path.read_text()
    finally:
        remote.close()


def test_run_without_its_password_is_not_started() -> None:
    """The message names the variable to set."""
    with pytest.raises(InputError) as caught:
        secrets_of(RUN, {})
    assert "VOLBENCH_DATA_PASSWORD" in caught.value.hint
    assert secrets_of(run_on("/data"), {"OTHER": "x"}) == {}
