"""What every executor must do, here and in a script."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.fleet.hosts import Fleet, fleet
from volbench.errors import TransportError
from volbench.execute.fake import FakeExecutor, FakeProcess
from volbench.execute.local import LocalExecutor
from volbench.execute.protocol import Completed, Executor
from volbench.execute.ssh.executor import SshExecutor
from volbench.execute.ssh.pool import open_pool
from volbench.model.campaign.host import Host

PATIENCE = 200
REAL = ["local", "fake"]
BY_SSH = [pytest.param(name, marks=pytest.mark.root) for name in ("ssh", "ssh-busybox")]


@dataclass(frozen=True)
class Machine:
    """A machine with the same things on it, whatever it is made of.

    Below `root`: ``text`` (4 bytes: "one" and a line end), ``folder`` with ``b`` and ``a`` in it,
    ``link`` to ``folder``, ``dangling`` to ``missing``. The program ``sh`` does what the tests ask.
    """

    executor: Executor | SshExecutor
    root: str


@dataclass(frozen=True)
class Starter:
    """A machine that starts programs which are watched."""

    executor: Executor
    root: str


def _furnish(root: Path, seen_as: str) -> None:
    (root / "text").write_text("one\n", encoding="utf-8")
    (root / "folder").mkdir()
    for name in ("b", "a"):
        (root / "folder" / name).write_text("", encoding="utf-8")
    (root / "link").symlink_to(f"{seen_as}/folder")
    (root / "dangling").symlink_to(f"{seen_as}/missing")


def _local(root: Path) -> Starter:
    _furnish(root, str(root))
    return Starter(LocalExecutor(), str(root))


def _fake() -> Starter:
    def answer(argv: tuple[str, ...]) -> Completed:
        return Completed(argv, 3, "out\n", "err\n")

    def begin(argv: tuple[str, ...]) -> FakeProcess:
        if "exec sleep" in argv[-1]:
            return FakeProcess(["started\n"] * PATIENCE, exit_status=None)
        return FakeProcess(["", "one\n", "two\n"], exit_status=5)

    executor = FakeExecutor(
        files={"/r/text": "one\n", "/r/folder/a": "", "/r/folder/b": ""},
        links={"/r/link": "/r/folder", "/r/dangling": "/r/missing"},
        answers={"sh": answer},
        processes={"sh": begin},
    )
    return Starter(executor, "/r")


@pytest.fixture(scope="module")
def ssh_host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    """Hand out a host with the tools of coreutils."""
    with fleet(1, tmp_path_factory.mktemp("coreutils")) as hosts:
        yield hosts


@pytest.fixture(scope="module")
def busybox_host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    """Hand out a host with the tools of busybox, and nothing else."""
    with fleet(1, tmp_path_factory.mktemp("busybox"), busybox=True) as hosts:
        yield hosts


@contextmanager
def _by_ssh(hosts: Fleet, name: str, folder: Path) -> Iterator[Machine]:
    root = hosts[0].tmp / name
    root.mkdir()
    _furnish(root, f"/tmp/{name}")
    host = Host(name="h0", address=hosts[0].address, user="root", key=str(hosts.key))
    pool = open_pool([host], config=folder / "config", known_hosts=hosts.known_hosts)
    try:
        yield Machine(SshExecutor(host, pool), f"/tmp/{name}")
    finally:
        pool.close()


@pytest.fixture(params=REAL)
def starter(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Starter]:
    """Hand out each kind of machine that starts programs by itself."""
    found = _local(tmp_path.resolve()) if request.param == "local" else _fake()
    yield found
    found.executor.close()


@pytest.fixture(params=[*REAL, *BY_SSH])
def machine(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Machine]:
    """Hand out each kind of machine in turn."""
    if request.param in REAL:
        found = _local(tmp_path.resolve()) if request.param == "local" else _fake()
        yield Machine(found.executor, found.root)
        found.executor.close()
        return
    fixture = "ssh_host" if request.param == "ssh" else "busybox_host"
    with _by_ssh(request.getfixturevalue(fixture), tmp_path.name, tmp_path) as by_ssh:
        yield by_ssh


def test_a_program_runs_to_its_end(machine: Machine) -> None:
    """Status, output and errors of a program come back apart."""
    argv = ["sh", "-c", "echo out; echo err >&2; exit 3"]
    assert machine.executor.run(argv) == Completed(tuple(argv), 3, "out\n", "err\n")


def test_a_missing_program_is_a_transport_error(machine: Machine) -> None:
    """A program that is not there is named, with the way to look for it."""
    with pytest.raises(TransportError, match="no-such-program can't be started") as caught:
        machine.executor.run(["no-such-program"])
    assert "command -v no-such-program" in caught.value.hint


def test_a_missing_program_is_not_started(starter: Starter) -> None:
    """A program that is not there is an error at once, not a process that failed."""
    with pytest.raises(TransportError):
        starter.executor.start(
            ["no-such-program"], cwd=starter.root, stderr=f"{starter.root}/stderr"
        )


def test_programs_are_found(machine: Machine) -> None:
    """A program has an absolute path or is not there."""
    path = machine.executor.which("sh")
    assert path is not None
    assert path.startswith("/")
    assert machine.executor.which("no-such-program") is None


def test_text_is_read(machine: Machine) -> None:
    """A file's text comes whole; what is no readable file is None, not an error."""
    assert machine.executor.read_text(f"{machine.root}/text") == "one\n"
    assert machine.executor.read_text(f"{machine.root}/link/a") == ""
    for name in ("missing", "dangling", "folder", "text/below"):
        assert machine.executor.read_text(f"{machine.root}/{name}") is None


def test_folders_are_listed_in_order(machine: Machine) -> None:
    """Names are sorted; what is no folder has none."""
    assert machine.executor.list_directory(f"{machine.root}/folder") == ("a", "b")
    assert machine.executor.list_directory(f"{machine.root}/link") == ("a", "b")
    assert machine.executor.list_directory(f"{machine.root}/text") == ()
    assert machine.executor.list_directory(f"{machine.root}/missing") == ()


def test_symlinks_are_resolved(machine: Machine) -> None:
    """Every symlink on the way is followed, and missing parts are kept."""
    root = machine.root
    real = {
        "link/a": "folder/a",
        "link/../text": "text",
        "dangling": "missing",
        "link/new/file": "folder/new/file",
        "./folder//a": "folder/a",
    }
    assert {name: machine.executor.real_path(f"{root}/{name}") for name in real} == {
        name: f"{root}/{path}" for name, path in real.items()
    }
    assert machine.executor.real_path("/") == "/"


def test_paths_are_told_apart(machine: Machine) -> None:
    """A path is a file, a folder or nothing; a symlink is what it leads to."""
    text = machine.executor.stat(f"{machine.root}/text")
    folder = machine.executor.stat(f"{machine.root}/folder")
    assert text is not None
    assert (text.kind, text.size_bytes, text.rdev) == ("file", 4, (0, 0))
    assert folder is not None
    assert folder.kind == "directory"
    assert folder == machine.executor.stat(f"{machine.root}/link")
    assert (folder.device, folder.inode) != (text.device, text.inode)
    for name in ("missing", "dangling", "text/below"):
        assert machine.executor.stat(f"{machine.root}/{name}") is None


def test_only_block_devices_are_opened_exclusively(machine: Machine) -> None:
    """What is no block device has a reason, not an empty text."""
    assert machine.executor.exclusive_error(f"{machine.root}/text") == "not a block device"
    assert machine.executor.exclusive_error(f"{machine.root}/missing")


def test_free_space_is_told(machine: Machine) -> None:
    """A filesystem that files can be made on has room."""
    assert machine.executor.free_bytes(machine.root) > 0


def test_files_are_removed(machine: Machine) -> None:
    """A removed file is gone, and its removal can be repeated."""
    path = f"{machine.root}/folder/a"
    machine.executor.remove(path)
    machine.executor.remove(path)
    assert machine.executor.stat(path) is None
    assert machine.executor.list_directory(f"{machine.root}/folder") == ("b",)


def test_output_is_read_as_it_comes(starter: Starter) -> None:
    """Each part of standard output is told once, and the status stays."""
    process = starter.executor.start(
        ["sh", "-c", "echo one; sleep 0.1; echo two; exit 5"],
        cwd=starter.root,
        stderr=f"{starter.root}/stderr",
    )
    assert process.pid > 0
    assert process.wait(0) is None
    parts = []
    for _ in range(PATIENCE):
        status = process.wait(0.05)
        parts.append(process.read_output())
        if status is not None:
            break
    assert "".join(parts) == "one\ntwo\n"
    assert process.read_output() == ""
    assert process.poll() == process.wait(1.0) == 5
    process.signal(signal.SIGKILL)
    assert process.poll() == 5


def test_a_process_is_ended_by_a_signal(starter: Starter) -> None:
    """A process runs until it is signalled, and its status names the signal."""
    process = starter.executor.start(
        ["sh", "-c", "echo started; exec sleep 1000"],
        cwd=starter.root,
        stderr=f"{starter.root}/stderr",
    )
    started = ""
    while "started" not in started:
        assert process.wait(0.01) is None
        started += process.read_output()
    assert process.poll() is None
    process.signal(signal.SIGTERM)
    until = time.monotonic() + 30
    while process.wait(0.05) is None:
        assert time.monotonic() < until
    assert process.poll() == -signal.SIGTERM
    process.signal(signal.SIGKILL)
    assert process.poll() == -signal.SIGTERM


def test_standard_error_goes_to_its_file(starter: Starter) -> None:
    """The file for standard error is made when the process starts."""
    path = f"{starter.root}/stderr"
    process = starter.executor.start(["sh", "-c", "exit 5"], cwd=starter.root, stderr=path)
    for _ in range(PATIENCE):
        if process.wait(0.05) is not None:
            break
    assert process.poll() == 5
    assert starter.executor.read_text(path) == ""
