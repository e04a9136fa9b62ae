"""The agent over a stream: how it is sent and started, and what many askers get."""

from __future__ import annotations

import math
import os
import shutil
import stat
import subprocess
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from tests.waiting import PATIENCE_S, until
from volbench.errors import ConnectError, DeadlineError, RefusedError, TransportError
from volbench.execute.agent import files
from volbench.execute.agent.agent_error import AgentError
from volbench.execute.agent.facts import clock
from volbench.execute.agent.files import (
    FolderPart,
    make_private_folder,
    read_files,
    real_path,
    remove_work_folder,
    write_files,
)
from volbench.execute.agent.run_command import Output, run, run_on_files
from volbench.execute.agent.supervisor import launch
from volbench.execute.agent_executor import AgentExecutor
from volbench.execute.channels import (
    OnEnd,
    OnOutput,
    Patience,
    ProgramEnd,
    SubprocessChannel,
    SubprocessStream,
)
from volbench.execute.client import AgentClient, Request
from volbench.execute.incoming_folder import IncomingFolder
from volbench.execute.program_bundle import agent_program
from volbench.execute.protocol import OperationError
from volbench.execute.typed_operations import checked_answer
from volbench.store.archive import forget_attempt
from volbench.store.layout import RunFolder

ONCE = Patience(tries=1)


DATA = FolderPart("data", "eJxLBAAAYgBi")  # two bytes


class WatchedChannel(SubprocessChannel):
    """Channel to this machine that keeps its streams, and counts the bytes that it sends."""

    def __init__(self, prefix: Sequence[str] = ()) -> None:
        super().__init__("here", prefix=prefix)
        self.streams: list[SubprocessStream] = []
        self.sent_bytes = 0

    def open(
        self, argv: Sequence[str], on_output: OnOutput, on_end: OnEnd, *, within_s: float
    ) -> SubprocessStream:
        """Start a program."""
        stream = super().open(argv, on_output, on_end, within_s=within_s)
        send = stream.send

        def count(data: bytes) -> None:
            self.sent_bytes += len(data)
            send(data)

        stream.send = count  # type: ignore[method-assign]  # only to count
        self.streams.append(stream)
        return stream


class ScriptedChannel:
    """Channel to a host that prints scripted lines and then ends, or stays silent."""

    host = "liar"

    def __init__(self, *lines: str, answer: str = "", end: ProgramEnd | None = None) -> None:
        self._lines, self._answer = lines, answer
        self._end = end

    def open(
        self, argv: Sequence[str], on_output: OnOutput, on_end: OnEnd, *, within_s: float
    ) -> ScriptedChannel:
        """Remember the receivers."""
        del argv, within_s
        self._on_output, self._on_end = on_output, on_end
        return self

    def send(self, data: bytes) -> None:
        """Answer the bootstrap."""
        if data.startswith(b"MARK"):
            mark = data.partition(b"'")[2].partition(b"'")[0].decode()
            for line in self._lines:
                self._on_output(f"{line.replace('MARK', mark)}\n".encode())
            if self._end is not None:
                self._on_end(self._end)
        elif self._answer:
            threading.Thread(target=self._on_output, args=[f"{self._answer}\n".encode()]).start()

    def close(self, *, in_doubt: bool = False) -> None:
        """Do nothing."""


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Let the agent keep its program below a folder of the test."""
    folder = tmp_path / "home"
    folder.mkdir()
    monkeypatch.setenv("HOME", str(folder))
    return folder


@pytest.fixture
def channel() -> Iterator[WatchedChannel]:
    """Hand out a channel to this machine."""
    channel = WatchedChannel()
    yield channel
    for stream in channel.streams:
        stream.close()


def stored(home: Path) -> Path:
    """Return where the agent keeps its program."""
    return home / ".cache" / "volbench" / f"agent-{agent_program().digest}"


def test_the_program_is_sent_once(home: Path, channel: WatchedChannel) -> None:
    """The first connection takes it along; the second sends some hundred bytes."""
    AgentClient(channel).ask(Request(real_path, {"path": "/"}))
    until(lambda: stored(home).exists())
    assert stored(home).read_bytes() == agent_program().data
    assert stat.S_IMODE(stored(home).parent.stat().st_mode) == 0o700
    first = channel.sent_bytes
    AgentClient(channel).ask(Request(real_path, {"path": "/"}))
    assert channel.sent_bytes - first < 1500
    assert first > len(agent_program().data)


def test_a_replaced_agent_is_not_run(home: Path, channel: WatchedChannel) -> None:
    """What has another hash, or is a symlink, is neither run nor trusted."""
    stored(home).parent.mkdir(parents=True, mode=0o700)
    stored(home).write_bytes(b"x" * len(agent_program().data))
    assert AgentClient(channel).ask(Request(real_path, {"path": "/"})) == "/"
    assert channel.sent_bytes > len(agent_program().data)


@pytest.mark.parametrize("mode", [0o777, 0o770])
def test_a_cache_that_others_can_write_to_is_not_used(
    home: Path, channel: WatchedChannel, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, mode: int
) -> None:
    """The program runs from memory, and what a start needs lies in one temporary folder."""
    stored(home).parent.mkdir(parents=True)
    stored(home).parent.chmod(mode)
    assert AgentClient(channel).ask(Request(real_path, {"path": "/"})) == "/"
    assert list(stored(home).parent.iterdir()) == []
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    order = {"argv": ["true"], "cwd": str(tmp_path), "stderr": f"{tmp_path}/e", "longest_s": 300.0}
    for number in range(2):
        AgentClient(channel).ask(Request(launch, {**order, "control": f"{tmp_path}/{number}"}))
    assert len(list(tmp_path.glob("volbench-agent-*/agent-*"))) == 1


def test_a_read_only_home_is_tolerated(
    home: Path, channel: WatchedChannel, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a cache the program is sent each time."""
    monkeypatch.setenv("HOME", str(home / "missing" / "deeper"))
    for _ in range(2):
        assert AgentClient(channel).ask(Request(real_path, {"path": "/"})) == "/"
    assert channel.sent_bytes > 2 * len(agent_program().data)


def test_a_host_without_python_says_what_to_install() -> None:
    """The message names the host, the hint the packages and the key of the inventory."""
    channel = WatchedChannel(["sh", "-c", "echo 'sh: python3: not found' >&2; exit 127"])
    with pytest.raises(TransportError, match="here has no usable Python") as caught:
        AgentClient(channel).ask(Request(real_path, {"path": "/"}))
    assert "apt-get install python3" in caught.value.hint
    assert "`python`" in caught.value.hint
    assert len(channel.streams) == 2  # the system's own was tried too


def test_an_old_python_is_refused() -> None:
    """Python 3.5 starts, and says its version."""
    with pytest.raises(TransportError, match=r"cannot run the agent: it is 3\.5"):
        AgentClient(ScriptedChannel("MARK old 3.5"), python="/opt/python").ask(Request(clock))


def test_an_agent_that_was_killed_is_called_so() -> None:
    """As by the kernel, where the memory limit of a container is too small for Python."""
    killed = ScriptedChannel("MARK ready 3.11", end=ProgramEnd(137, ""))
    with pytest.raises(TransportError, match=r"its agent was killed, as when memory runs out$"):
        AgentClient(killed).ask(Request(clock))


def test_a_banner_does_not_hide_what_a_login_shell_said() -> None:
    """The reason follows it, and a table has room for 200 characters."""
    end = ProgramEnd(1, "Welcome to this machine.\n" * 50 + "Permission to run it is denied.\n")
    with pytest.raises(TransportError, match=r"did not start Python: \.\.\. ") as caught:
        AgentClient(ScriptedChannel(end=end)).ask(Request(clock))
    assert caught.value.message.endswith("Permission to run it is denied.")
    assert len(caught.value.message) < 300


@pytest.mark.slow
@pytest.mark.parametrize(
    "line",
    [
        "nonsense",
        '{"id": 1, "result": 1, "error": []}',
        '{"id": true, "result": 1}',
        '{"id": 1, "error": "text"}',
        '{"id": 1, "z": "AAAA"}',
        "[" * 100_000,
        "[1]",
    ],
)
def test_invalid_answers_of_a_host_are_refused(line: str) -> None:
    """A reply of another shape ends the connection."""
    client = AgentClient(ScriptedChannel("MARK ready 3.11", answer=line), python="python3")
    with pytest.raises(TransportError, match="invalid line"):
        client.ask(Request(real_path, {"path": "/"}))


@pytest.mark.parametrize(
    ("operation", "answer"),
    [
        *((read_files, answer) for answer in (None, "text", [1], {"a": 1})),
        *((make_private_folder, answer) for answer in (["/x"], ["/x", [1, 2, 3]], ["/x", None])),
        (make_private_folder, ["/x", [1, 2, 3, -4]]),
        (clock, [math.inf, 1.0]),
    ],
)
def test_malformed_answers_are_refused(operation: Callable[..., object], answer: object) -> None:
    """Each is validated where it enters, by the type that its operation returns."""
    with pytest.raises(TransportError, match=f"here answers {operation.__name__} with"):
        checked_answer(operation, answer, host="here")


def test_an_answer_that_is_nested_deeply_is_refused() -> None:
    """It has no text: Python would write it with as many calls."""
    nested: object = 1
    for _ in range(970):
        nested = [nested]
    with pytest.raises(TransportError, match="here answers clock with"):
        checked_answer(clock, nested, host="here")


def test_a_slow_request_does_not_block_others(channel: WatchedChannel, tmp_path: Path) -> None:
    """Many threads ask at once, and each gets its own reply."""
    client = AgentClient(channel)
    wait = f"until test -e {tmp_path}/end; do sleep 0.1; done"
    slow = client.post(Request(run, {"argv": ["sh", "-c", wait]}))
    results: dict[int, Output] = {}

    def ask(number: int) -> None:
        argv = ["sh", "-c", f"echo {number}"]
        results[number] = client.ask(Request(run, {"argv": argv}))

    threads = [threading.Thread(target=ask, args=[number]) for number in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE_S)
    (tmp_path / "end").touch()
    assert {n: done.stdout for n, done in results.items()} == {n: f"{n}\n" for n in range(16)}
    assert slow() == Output(0, "", "")
    assert len(channel.streams) == 1


def test_a_broken_stream_is_opened_again(channel: WatchedChannel) -> None:
    """A request that changes nothing twice is repeated, another one is an error."""
    client = AgentClient(channel)
    assert client.ask(Request(real_path, {"path": "/"})) == "/"
    answer = client.post(Request(run, {"argv": ["sleep", "1000"]}))
    channel.streams[0].process.kill()
    with pytest.raises(ConnectError):
        answer()
    assert client.ask(Request(real_path, {"path": "/"})) == "/"
    assert len(channel.streams) == 2


def test_a_request_has_a_deadline(channel: WatchedChannel) -> None:
    """A host that does not answer in time is abandoned."""
    client = AgentClient(channel, patience=ONCE)
    with pytest.raises(DeadlineError, match=r"waiting did not end in 0\.5 s on here"):
        client.ask(Request(run, {"argv": ["sleep", "1000"]}, timeout_s=0.5, name="waiting"))


def test_programs_end_with_the_stream(tmp_path: Path, channel: WatchedChannel) -> None:
    """A program that nobody waits for any more is killed."""
    client = AgentClient(channel)
    pid = tmp_path / "pid"
    argv = ["sh", "-c", f"echo $$ >{pid}; exec sleep 1000", "sh"]
    client.post(Request(run_on_files, {"argv": argv, "texts": ["x"]}))
    until(lambda: pid.exists() and pid.read_text().strip())
    client.close()
    until(lambda: not Path(f"/proc/{pid.read_text().strip()}").exists())


def format_all_disks() -> None:
    """Not an operation of the agent."""


def test_failures_are_classified(channel: WatchedChannel, tmp_path: Path) -> None:
    """The controller can tell a missing program from one that hangs."""
    client = AgentClient(channel)
    with pytest.raises(OperationError) as caught:
        client.ask(Request(run, {"argv": ["no-such-program"]}))
    assert caught.value.kind == "missing"
    with pytest.raises(OperationError) as caught:
        client.ask(Request(run, {"argv": ["sleep", "1000"], "timeout_s": 0.1}))
    assert caught.value.kind == "timeout"
    with pytest.raises(OperationError, match="unknown operation"):
        client.ask(Request(format_all_disks))
    with pytest.raises(OperationError) as caught:
        client.ask(Request(remove_work_folder, {"base": str(tmp_path), "path": "/etc"}))
    assert caught.value.kind == "refused"


def test_a_folder_arrives_whole_after_a_break(tmp_path: Path, channel: WatchedChannel) -> None:
    """What arrived before the connection broke is not sent again."""
    source, target = tmp_path / "source", tmp_path / "target"
    target.mkdir()
    (source / "deep").mkdir(parents=True)
    names = ["a", "deep/it's $HOME \udcff", "empty", "z"]
    for name in names:
        (source / name).write_bytes(b"" if name == "empty" else os.urandom(300_000))
    executor = AgentExecutor(channel)
    received: list[FolderPart] = []
    take = IncomingFolder.take

    def break_once(folder: IncomingFolder, part: FolderPart) -> None:
        received.append(part)
        take(folder, part)
        if len(received) == 5:
            channel.streams[0].process.kill()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(IncomingFolder, "take", break_once)
        executor.fetch_work_folder(str(source), str(target))
    for name in names:
        assert (target / name).read_bytes() == (source / name).read_bytes()
    assert any(part.offset for part in received)


@pytest.mark.slow
@pytest.mark.parametrize(
    "parts",
    [
        [FolderPart("file", "../x", 1)],
        [FolderPart("file", "/x", 1)],
        [FolderPart("file", "a/./x", 1)],
        [FolderPart("file", "x", 1, 1)],
        [FolderPart("file", "x"), DATA],
        [FolderPart("file", "x", 1), DATA, FolderPart("sha256", "0" * 64)],
        [FolderPart("file", "x", 1), FolderPart("data", "AAAA")],
        [DATA],
        [FolderPart("text", "")],
    ],
)
def test_a_damaged_transfer_leaves_nothing(tmp_path: Path, parts: list[FolderPart]) -> None:
    """A host cannot write outside the folder, nor leave a file that it did not finish."""
    incoming = IncomingFolder("here", "/work", tmp_path / "home")
    with pytest.raises(TransportError), incoming:  # noqa: PT012 - any of the parts
        for part in parts:
            incoming.take(part)
    assert list((tmp_path / "home").iterdir()) == []
    assert [path.name for path in tmp_path.iterdir()] == ["home"]


@pytest.mark.root
@pytest.mark.parametrize("place", ["work", "work/key/001"])
def test_root_refuses_a_work_folder_of_another_user(
    tmp_path: Path, channel: WatchedChannel, place: str
) -> None:
    """Who owns it, or one that it is in, could put a link in the place of what root writes."""
    folder = tmp_path / "work/key/001"
    folder.mkdir(parents=True)
    os.chown(tmp_path / place, 4711, 4711)
    check_refused(channel, folder, f"{tmp_path / place} belongs to user 4711")


@pytest.mark.slow
@pytest.mark.root
@pytest.mark.parametrize(
    ("group", "mode"), [(0, 0o777), (4711, 0o770), (4711, 0o1770), (0, 0o1777), (0, 0o770)]
)
@pytest.mark.parametrize("place", ["work", "work/key/001"])
def test_root_refuses_a_work_folder_that_others_can_write_to(
    tmp_path: Path, channel: WatchedChannel, place: str, group: int, mode: int
) -> None:
    """Whoever can rename files in it could do as its owner; a sticky folder prevents that."""
    folder = tmp_path / "work/key/001"
    folder.mkdir(parents=True)
    os.chown(tmp_path / place, 0, group)
    (tmp_path / place).chmod(mode)
    if mode & stat.S_ISVTX or (group, mode) == (0, 0o770):
        AgentClient(channel).ask(Request(write_files, {"files": {f"{folder}/job.fio": ""}}))
        assert (folder / "job.fio").exists()
    else:
        check_refused(channel, folder, f"{tmp_path / place} can be written by other users")


def check_refused(channel: WatchedChannel, folder: Path, refused: str) -> None:
    """Check that root's agent neither writes to a folder nor starts a program in it."""
    client = AgentClient(channel)
    with pytest.raises(OperationError, match=refused):
        client.ask(Request(write_files, {"files": {f"{folder}/job.fio": ""}}))
    order = {"argv": ["true"], "cwd": str(folder), "stderr": f"{folder}/stderr", "longest_s": 300.0}
    with pytest.raises(OperationError, match=refused):
        client.ask(Request(launch, {**order, "control": f"{folder}/.stderr"}))
    paths = {"base": str(folder.parent.parent), "path": f"{folder}/run"}
    with pytest.raises(OperationError, match=refused):
        client.ask(Request(remove_work_folder, paths))
    assert list(folder.iterdir()) == []


def test_removals_of_the_same_folder_do_not_hinder_each_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file that another removal took first does not end this one early."""
    (tmp_path / "key/run").mkdir(parents=True)
    remove = shutil.rmtree

    def overtaken(path: str) -> None:
        monkeypatch.setattr(shutil, "rmtree", remove)
        raise FileNotFoundError(path)

    monkeypatch.setattr(shutil, "rmtree", overtaken)
    files.remove_work_folder(str(tmp_path), str(tmp_path / "key"))
    assert not (tmp_path / "key").exists()


@pytest.mark.root
def test_nothing_is_removed_from_a_mount(tmp_path: Path) -> None:
    """Neither below a work folder nor below that of a run, whose name has a blank."""
    below = tmp_path / "a key/mine"
    below.mkdir(parents=True)
    subprocess.run(["mount", "-t", "tmpfs", "none", below], check=True)
    try:
        (below / "file").touch()
        with pytest.raises(AgentError, match="something is mounted below it"):
            files.remove_work_folder(str(tmp_path), str(below.parent))
        with pytest.raises(RefusedError, match="something is mounted below"):
            forget_attempt(RunFolder(below.parent))
        assert (below / "file").exists()
    finally:
        subprocess.run(["umount", below], check=True)
    forget_attempt(RunFolder(below.parent))
    files.remove_work_folder(str(tmp_path), str(below.parent))
    assert not below.parent.exists()
