"""Locks in a folder that other users can write to."""

import errno
import os
import pwd
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.waiting import PATIENCE_S, until
from volbench.execute.agent import locks
from volbench.execute.agent.agent_error import AgentError
from volbench.execute.agent.supervisor import ticks_of

USER = pwd.getpwuid(os.geteuid()).pw_name
DEVICE = "4094:7"
"""No device has this number."""


@pytest.fixture(name="folder", autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    tmp_path.chmod(0o1777)
    monkeypatch.setattr(locks, "_FOLDERS", ("/nowhere", str(tmp_path)))
    return tmp_path


def test_only_one_campaign_holds_a_device(folder: Path) -> None:
    """The holder may take its lock again; another campaign neither takes nor frees it."""
    assert locks.take_lock(DEVICE, "a") == ""
    assert locks.take_lock(DEVICE, "a") == ""
    assert locks.take_lock(DEVICE, "b") == "a"
    locks.release("b")
    assert locks.lock_holder(DEVICE) == "a"
    locks.release("a")
    assert locks.lock_holder(DEVICE) == ""
    assert list(folder.iterdir()) == []


def test_lock_from_before_a_restart_is_void(folder: Path) -> None:
    """Nothing of that campaign can still run."""
    (folder / f"volbench-{DEVICE}").write_text("0000-another-boot: a\n")
    assert locks.lock_holder(DEVICE) == ""
    assert locks.take_lock(DEVICE, "b") == ""
    assert locks.lock_holder(DEVICE) == "b"


def test_a_record_that_cannot_be_removed_is_named(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would block the device until the next restart; the others are removed."""
    unlink = os.unlink

    def fail(name: str, *, dir_fd: int) -> None:
        if name == f"volbench-{DEVICE}":
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        unlink(name, dir_fd=dir_fd)

    _ = locks.take_lock(DEVICE, "a"), locks.join_disk("disk-8:1", "a")
    monkeypatch.setattr("os.unlink", fail)
    with pytest.raises(AgentError, match=f"volbench-{DEVICE}: Input/output error"):
        locks.release("a")
    assert [path.name for path in folder.iterdir()] == [f"volbench-{DEVICE}"]


def test_lock_that_another_campaign_took_meanwhile_stays(folder: Path) -> None:
    """Between the look at a void lock and its removal it may have been replaced."""
    (folder / "volbench-1:1").write_text("new\n")
    with locks._Folder(str(folder)) as opened:  # noqa: SLF001 - the race cannot be provoked
        opened.remove_void("volbench-1:1", "old")
    assert [path.read_text() for path in folder.iterdir()] == ["new\n"]


@pytest.mark.parametrize("name", ["volbench-4094:7", "volbench-disk-8:1", "volbench-disk-8:1.key"])
@pytest.mark.parametrize("kind", ["symlink", "pipe", "folder of symlinks"])
def test_planted_links_are_not_followed(folder: Path, name: str, kind: str) -> None:
    """A file outside is neither shown nor overwritten, and nothing waits for a pipe."""
    secret = folder / "outside" / "secret"
    secret.parent.mkdir()
    secret.write_text("precious\n")
    planted = folder / name
    if kind == "symlink":
        planted.symlink_to(secret)
    elif kind == "pipe":
        os.mkfifo(planted)
    else:
        planted.mkdir()
        for entry in ("holder", "new", "key", "b"):
            (planted / entry).symlink_to(secret)
    asked: list[Callable[[], object]] = [
        lambda: locks.lock_holder(DEVICE),
        lambda: locks.take_lock(DEVICE, "key"),
        lambda: locks.join_disk("disk-8:1", "key"),
        lambda: locks.release("key"),
    ]
    answers: list[object] = []
    for ask in asked:
        try:
            answers.append(ask())
        except AgentError as error:
            answers.append(error.message)
    assert secret.read_text() == "precious\n"
    assert "precious" not in str(answers)


@pytest.mark.parametrize("name", ["../etc:1", "8:0/../x", "", "8:0\n", "8"])
def test_names_that_leave_the_folder_are_refused(name: str) -> None:
    """A lock is named after a device number, a record after a campaign's key."""
    with pytest.raises(AgentError, match="not a valid name"):
        locks.take_lock(name, "a")
    with pytest.raises(AgentError, match="not a valid name"):
        locks.take_lock(DEVICE, "../" + name)


def test_folder_that_others_can_reorder_is_not_used(folder: Path) -> None:
    """Without the sticky bit another user could remove the lock of a running campaign."""
    folder.chmod(0o777)
    with pytest.raises(AgentError, match="no folder for locks"):
        locks.take_lock(DEVICE, "a")


def test_campaigns_on_a_disk_see_each_other(folder: Path) -> None:
    """Each hears of those that are there, and of none that has left or is from before a restart."""
    assert locks.join_disk("disk-8:1", "a") == []
    process = f"~{os.getpid()}.{ticks_of(os.getpid())}"
    assert locks.join_disk("disk-8:1", "b", process) == [f"a of {USER}"]
    (folder / "volbench-disk-8:1.old").write_text("0000-another-boot:\n")
    assert locks.join_disk("disk-8:1", "a") == [f"b of {USER}, PID {os.getpid()}"]
    assert locks.join_disk("disk-8:11", "c") == []
    locks.release("c")
    locks.release("b")
    assert locks.join_disk("disk-8:1", "a") == []


@pytest.mark.root
def test_lock_of_another_user_is_named_with_path_and_owner(folder: Path) -> None:
    """A device that a stranger has locked is not used; who did it and where can be read."""
    planted = folder / f"volbench-{DEVICE}"
    locks.take_lock(DEVICE, "theirs")
    os.chown(planted, 65534, 65534)
    assert locks.take_lock(DEVICE, "ours") == f"theirs; {planted} belongs to user nobody"
    assert locks.take_lock(DEVICE, "theirs") == ""
    assert planted.stat().st_uid == 0


@pytest.mark.root
@pytest.mark.parametrize("uid", [0, 65534])
@pytest.mark.parametrize("kind", ["empty", "link", "pipe"])
def test_files_that_are_not_locks_do_not_block_a_device(folder: Path, kind: str, uid: int) -> None:
    """Whoever planted it: a crash may leave an empty file, a neighbour a link."""
    planted = folder / f"volbench-{DEVICE}"
    if kind == "empty":
        planted.touch()
    elif kind == "link":
        planted.symlink_to(folder / "outside")
    else:
        os.mkfifo(planted)
    os.chown(planted, uid, uid, follow_symlinks=False)
    assert locks.lock_holder(DEVICE) == ""
    assert locks.take_lock(DEVICE, "ours") == ""
    assert locks.lock_holder(DEVICE) == "ours"
    assert not (folder / "outside").exists()


@pytest.mark.root
def test_planted_folders_are_refused_by_name(folder: Path) -> None:
    """Nothing is written into them."""
    for name in (f"volbench-{DEVICE}", "volbench-disk-8:1.ours"):
        (folder / name).mkdir()
        os.chown(folder / name, 65534, 65534)
    with pytest.raises(AgentError, match=f"{folder}/volbench-{DEVICE} belongs to user nobody"):
        locks.take_lock(DEVICE, "ours")
    with pytest.raises(AgentError, match=f"{folder}/volbench-disk-8:1.ours belongs to user nobody"):
        locks.join_disk("disk-8:1", "ours")
    assert [path for path in folder.rglob("*") if path.is_file()] == []


def test_the_end_of_the_agent_waits_for_a_reservation_under_way(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a thread reserves while the agent ends is taken back as well."""
    monkeypatch.setattr(locks, "_reserved", {})
    monkeypatch.setattr(locks, "_reserving", threading.Lock())
    begun, take_lock = threading.Event(), locks.take_lock

    def take_slowly(device: str, key: str, owner: str) -> str:
        begun.set()
        time.sleep(0.2)
        return take_lock(device, key, owner)

    monkeypatch.setattr(locks, "take_lock", take_slowly)
    work = str(folder / "work")
    thread = threading.Thread(target=locks.reserve, args=("k", [DEVICE], [], work))
    thread.start()
    begun.wait(PATIENCE_S)
    locks.release_unused()
    thread.join(PATIENCE_S)
    assert list(folder.iterdir()) == []


@pytest.mark.root
def test_a_lock_of_another_pid_namespace_holds_while_its_process_may_live(folder: Path) -> None:
    """A container cannot see the processes of its machine; the machine sees those of containers."""
    command = ("unshare", "--pid", "--fork", "--kill-child", "sleep", "60")
    with subprocess.Popen(command) as process:
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
        until(lambda: bool(children.read_text()))
        namespace = Path(f"/proc/{children.read_text().split()[0]}/ns/pid").stat().st_ino
        assert locks.take_lock(DEVICE, "theirs", f"~1.1.{namespace}") == ""
        assert locks.take_lock(DEVICE, "ours") == "theirs"
        process.kill()
    is_seen = Path("/proc/self/ns/pid").stat().st_ino == 4026531836  # Namespace of the machine
    until(lambda: locks.take_lock(DEVICE, "ours") == ("" if is_seen else "theirs"))
    assert (folder / f"volbench-{DEVICE}").exists()
