"""Snapshot of a machine: one instant, and no volume that hangs stops them."""

import errno
import json
import mmap
import os
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.engine.conftest import Disks
from tests.waiting import PATIENCE_S, Started, until
from volbench.execute.agent import block_reads, files, processes, snapshot
from volbench.execute.agent.block_reads import flush, sample_blocks, sample_nbd
from volbench.execute.agent.facts import survey
from volbench.execute.agent.files import stat_in
from volbench.execute.agent.held_device import allocated_bytes
from volbench.execute.agent.snapshot import Snapshot, within
from volbench.execute.agent.used_blocks import used_blocks
from volbench.execute.agent.volumes import (
    VolumeQuestion,
    describe_volumes,
)


@pytest.fixture(name="disks")
def _disks(tmp_path: Path) -> Iterator[Disks]:
    made = Disks(tmp_path.resolve())
    try:
        yield made
    finally:
        made.close()


def question(target: str | Path) -> VolumeQuestion:
    """Return a question for all that is known of a volume."""
    return VolumeQuestion(str(target), details=("content", "edges", "use"))


def test_a_file_is_examined_once(tmp_path: Path) -> None:
    """A file that changes between two checks of one operation is the same to both."""
    path, snapshot = tmp_path / "file", Snapshot()
    path.write_text("first")

    def seen() -> tuple[object, ...]:
        folder = str(tmp_path)
        return snapshot.stat(str(path)), snapshot.text(str(path)), snapshot.names(folder)

    before = seen()
    path.unlink()
    assert seen() == before
    snapshot.forget()
    assert snapshot.stat(str(path)) is None
    assert snapshot.text(str(path)) == ""


def test_a_hung_volume_is_skipped() -> None:
    """A read in uninterruptible sleep cannot be killed; the agent answers all the same."""
    release = threading.Event()
    started_s = time.monotonic()
    with pytest.raises(OSError, match="no answer") as caught:
        within(0.05, release.wait)
    release.set()
    assert caught.value.errno == errno.ETIMEDOUT
    assert time.monotonic() - started_s < 300
    assert within(300, len, "four") == 4
    with pytest.raises(IsADirectoryError):
        within(300, Path.read_text, Path("/"))


@pytest.mark.root
def test_the_time_to_find_a_program_grows_with_processes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A host with thousands of them is not refused; a file stays in use while it is mapped."""
    examined: list[int] = []

    def count(_limit_s: float, work: Callable[..., str], pids: list[str], *rest: object) -> str:
        examined.append(len(pids))
        return work(pids, *rest)

    own = str(os.getpid())
    many = [own] * 250
    monkeypatch.setattr(snapshot, "within", count)
    monkeypatch.setattr(os, "listdir", lambda path: many if path == "/proc" else [])  # nothing open
    (tmp_path / "file").write_bytes(b"content")
    seen = stat_in(str(tmp_path / "file"))
    assert Snapshot().opener_of(seen) == ""
    assert examined == [100, 100, 50]
    with (tmp_path / "file").open("rb") as file:
        mapped = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)
    with mapped:
        assert Snapshot().opener_of(seen).endswith(f" (PID {own})")


def test_the_memory_limit_of_a_cgroup_is_a_fact() -> None:
    """What a container may use, beside the memory of its machine; a higher limit is none."""
    root = Path("/sys/fs/cgroup/memory")
    file = "memory.limit_in_bytes" if root.is_dir() else "memory.max"
    if not root.is_dir():
        (root.parent / "cgroup.subtree_control").write_text("+memory")
    group = (root if root.is_dir() else root.parent) / f"volbench-{os.getpid()}"
    group.mkdir()
    program = "import json; from volbench.execute.agent.facts import survey; "
    program += "print(json.dumps(survey()._asdict()))"
    enter = 'echo $$ >"$0/cgroup.procs" && exec "$@"'
    try:
        for limit_bytes, found in ((512 << 20, 512 << 20), (1 << 50, None)):
            (group / file).write_text(str(limit_bytes))
            argv = ["sh", "-c", enter, str(group), sys.executable, "-c", program]
            done = subprocess.run(argv, check=True, capture_output=True, text=True)
            facts = json.loads(done.stdout)
            assert facts["memory_limit_bytes"] == found
            assert facts["memory_bytes"] == survey().memory_bytes
    finally:
        until(lambda: not (group / "cgroup.procs").read_text())
        group.rmdir()


def test_the_login_user_is_known_under_sudo(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What sudo started tells the folders of its user from those of others."""
    monkeypatch.setenv("SUDO_UID", "4242")
    by_sudo = describe_volumes([question(tmp_path)], by_sudo=True).user
    assert by_sudo == (4242 if os.getuid() == 0 else os.getuid())
    assert describe_volumes([question(tmp_path)]).user == os.getuid()


def test_blocks_are_sampled_until_the_time_is_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At most 64 blocks, fewer of a slow volume; a file that is missing has none."""
    monkeypatch.setattr(block_reads, "_LIMIT_S", 60)
    path = tmp_path / "file"
    path.write_bytes(os.urandom(1 << 20))
    sample = sample_blocks([str(tmp_path), str(path)], 0, 0)
    assert sample is not None
    assert (sample.sampled, sample.zeros, sample.problem) == (64, 0, "")
    assert sample_blocks([str(tmp_path / "missing")], 0, 0) is None
    monkeypatch.setattr(block_reads, "_LIMIT_S", -1)
    slow = sample_blocks([str(path)], 0, 0)
    assert slow is not None
    assert slow.sampled == 0


def test_a_flush_that_fails_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The reason is a message; the run goes on."""
    assert flush(str(tmp_path / "missing" / "yet"), 60) == ""
    sync = tmp_path / "sync"
    sync.write_text("#!/bin/sh\necho >&2 no room; exit 3\n")
    sync.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    assert flush(str(tmp_path), 60) == "no room"
    sync.write_text("#!/bin/sh\nsleep 1000\n")
    assert "no end in 0.1 s" in flush(str(tmp_path), 0.1)


def _accepts(path: str) -> bool:
    with socket.socket(socket.AF_UNIX) as client:
        return client.connect_ex(path) == 0


def test_holes_of_an_export_are_those_that_its_server_reports(tmp_path: Path) -> None:
    """Without block status a server calls everything data, which tells nothing."""
    name = f"{tmp_path}/s"
    server = subprocess.Popen(["nbdkit", "-f", "-U", name, "data", "0x55*4194304", "size=8388608"])
    try:
        until(lambda: _accepts(name))
        sample = sample_nbd(f"nbd+unix:///?socket={name}")
    finally:
        server.terminate()
        server.wait(PATIENCE_S)
    assert sample.unmapped_share == pytest.approx(0.5, abs=0.05)
    assert sample.problem == ""
    for uri in ("nbd+unix:///?socket=/nonexistent", "nbds://host/export"):
        unknown = sample_nbd(uri)
        assert (unknown.sampled, unknown.unmapped_share) == (0, None)
        assert "whether the blocks were ever written is unknown" in unknown.problem
        used = used_blocks(uri, 9, 1)
        assert (used.ranges, "no block status by nbdinfo" in used.note) == ([(0, 9)], True)


def test_processes_are_known_by_their_start() -> None:
    """A process is ended once, by its identity; a reused number is another process."""
    with Started(["sleep", "60"]) as child:
        identity = processes.identify_process(child.pid)
        other = identity._replace(start_ticks=1)
        assert processes.end_process(other) is False
        reaped = threading.Thread(target=child.wait)
        reaped.start()
        assert processes.end_process(identity) is True
        reaped.join(PATIENCE_S)
        assert child.returncode == -signal.SIGINT
    assert processes.end_process(identity) is False


def test_blocks_that_files_share_do_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    """A reflink or snapshot has them too, so that they are copied when they are written."""

    def two_extents(_file: object, _request: int, answer: bytearray) -> None:
        struct.pack_into("=I", answer, 20, 2)
        for number, flags in enumerate((0x2001, 0)):
            struct.pack_into("=QQQ16xI12x", answer, 32 + 56 * number, number << 13, 0, 8192, flags)

    monkeypatch.setattr("fcntl.ioctl", two_extents)
    assert allocated_bytes(__file__, 16384) == 8192


def test_a_tmpfs_is_no_larger_than_free_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """A campaign that would fill the memory of its host is refused for lack of space."""
    read = files.read_text
    scripted = {"/proc/meminfo": "MemTotal: 9 kB\nMemAvailable:    1000 kB\n"}
    monkeypatch.setattr(files, "read_text", lambda path: scripted.get(path) or read(path))
    assert Snapshot().free_space("/dev/shm")[0] == 921_600
    assert files.free_memory("/proc") == sys.maxsize
