"""Files that appear whole or not at all, also where a write fails half-way."""

import errno
import gzip
import os
import signal
import stat
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from volbench.engine.run.run_once import stopped_by
from volbench.errors import ArchiveError, InputError, RefusedError, TransportError, unwritten
from volbench.store.atomic_files import (
    make_output_folder,
    remove_half_written,
    replaced_file,
    write_atomic,
    write_output,
)
from volbench.store.held_folder import hold_folder
from volbench.store.layout import Layout


@pytest.fixture
def full_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every fsync fail, as on a disk that is full."""

    def fail(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("volbench.store.atomic_files.os.fsync", fail)


@pytest.mark.usefixtures("full_disk")
@pytest.mark.parametrize("is_new", [True, False])
def test_a_failed_write_leaves_the_old_file(tmp_path: Path, *, is_new: bool) -> None:
    """Neither an empty file nor a temporary one stays."""
    path = tmp_path / "out.csv"
    if not is_new:
        path.write_text("old")
    with pytest.raises(InputError, match="No space left"):
        write_output(path, b"new")
    with pytest.raises(ArchiveError, match="No space left"):
        write_atomic(path, "new")
    assert [file.read_text() for file in tmp_path.iterdir()] == ([] if is_new else ["old"])


@pytest.mark.root
@pytest.mark.parametrize("is_device", [False, True])
@pytest.mark.parametrize("is_temporary", [False, True])
def test_a_link_of_another_user_is_replaced(
    tmp_path: Path, *, is_temporary: bool, is_device: bool
) -> None:
    """As the output, or as the temporary file beside it: it leads root to nothing else."""
    precious, output = tmp_path / "precious", tmp_path / "shared" / "page.html"
    precious.write_text("root's")
    output.parent.mkdir()
    planted = output.with_name(f".page.html.{os.getpid()}.volbench.tmp") if is_temporary else output
    planted.symlink_to("/dev/full" if is_device else precious)
    os.chown(planted, 65534, 65534, follow_symlinks=False)
    write_output(output, b"new")
    assert precious.read_text() == "root's"
    assert output.read_bytes() == b"new"
    assert [path.name for path in output.parent.iterdir()] == ["page.html"]


def test_a_link_and_a_mode_are_kept(tmp_path: Path) -> None:
    """The file behind a symbolic link is replaced, and stays as private as it was."""
    real, link = tmp_path / "real", tmp_path / "link"
    real.write_text("old")
    real.chmod(0o600)
    link.symlink_to(real)
    write_output(link, b"new")
    assert link.is_symlink()
    assert real.read_bytes() == b"new"
    assert real.stat().st_mode & 0o777 == 0o600


_OF_FIO = [
    b'note\n{\n  "fio version" : "fio-3.33",\n',
    b"3;fio-3.33;a;0",
    b"a: (g=0): rw=read\nfio-3.33\nStarting",
    b"1, 12, 0, 4096, 0\n",
    b"fio version 3 iolog\n0 /data add\n",
    gzip.compress(b'{"fio version" : "fio-3.33"}'),
    b"; reads\n[reads]\nrw=read\n",
]


@pytest.mark.parametrize("content", _OF_FIO)
def test_a_file_of_fio_is_not_replaced(tmp_path: Path, content: bytes) -> None:
    """Also behind a link; a file that volbench rendered or exported is replaced."""
    raw, link = tmp_path / "raw", tmp_path / "link"
    raw.write_bytes(content)
    link.symlink_to(raw)
    for output in (raw, link):
        with pytest.raises(RefusedError, match="a result, log or job file of fio"):
            write_output(output, b"new")
    assert raw.read_bytes() == content
    for derived in (b"# volbench 0.1.0\n[reads]\n", b'fio_version,x\nfio-3.33,1\n[{"a": [1]}]\n'):
        raw.write_bytes(derived)
        write_output(link, b"new")


@pytest.mark.parametrize("tool", ["mkfs.ext4 -q -F", "mkswap -q"])
def test_an_image_is_not_replaced(tmp_path: Path, tool: str) -> None:
    """It may be mounted, below a loop device, or in use as swap."""
    image = tmp_path / "m.img"
    with image.open("wb") as file:
        file.truncate(4 << 20)
    subprocess.run([*tool.split(), image], check=True)
    with pytest.raises(RefusedError, match="it holds a filesystem or swap"):
        write_output(image, b"new")


def test_what_a_campaign_needs_is_not_replaced(tmp_path: Path) -> None:
    """Nor is a folder made in it; tables, reports and charts of the user are written."""
    layout = Layout(tmp_path)
    layout.campaign.write_text("{}")
    kept = ("campaign", "consent", "journal", "lock", "marks", "cluster_marks", "controller_log")
    folders = [layout.run("001").path, layout.inputs, layout.probe("data").path]
    folders.append(layout.host_log("vm1").parent)
    for path in [*(getattr(layout, name) for name in kept), *(each / "f" for each in folders)]:
        with pytest.raises(RefusedError, match=f"the campaign in {tmp_path} needs it"):
            write_output(path, b"new")
    with pytest.raises(RefusedError, match=f"the campaign in {tmp_path} needs it"):
        make_output_folder(folders[0])
    make_output_folder(layout.report)
    for path in (layout.report / "iops.svg", tmp_path / "iops.svg"):
        write_output(path, b"new")


def test_a_key_is_not_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither volbench's own, nor what else is in its folder, nor a private key elsewhere."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    (tmp_path / "volbench/running").mkdir(parents=True)
    texts = {"key": "0a" * 32, "volbench/running/x": "", "id": "-----BEGIN PRIVATE KEY-----\n"}
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
        with pytest.raises(RefusedError, match="key"):
            write_output(tmp_path / name, b"new")
        assert (tmp_path / name).read_text() == text


def test_a_long_file_name_is_written(tmp_path: Path) -> None:
    """The temporary file has a name of its own, within NAME_MAX."""
    path = tmp_path / ("é" * 127)
    write_output(path, b"content")
    assert path.read_bytes() == b"content"


def test_leftovers_of_killed_processes_are_removed(tmp_path: Path) -> None:
    """Files that a living process writes, and those of users, stay."""
    folder = tmp_path / "runs" / "001"
    folder.mkdir(parents=True)
    code = (
        "import os, sys; from pathlib import Path; from volbench.store.atomic_files import *\n"
        "with replaced_file(Path(sys.argv[1])): os.kill(os.getpid(), 9)"
    )
    command = [sys.executable, "-c", code, str(folder / "device.log.zst")]
    assert subprocess.run(command, check=False).returncode == -signal.SIGKILL
    assert len(list(folder.iterdir())) == 1
    kept = (tmp_path / "report/sub/.a.99999999.volbench.tmp", folder / ".thesis.99999999.tmp")
    for path in kept:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("of the user")
    with replaced_file(tmp_path / "table.parquet"):
        remove_half_written(tmp_path)
    left = {path for path in tmp_path.rglob("*") if path.is_file()}
    assert left == {*kept, tmp_path / "table.parquet"}


@pytest.mark.root
def test_a_pipe_of_another_user_is_not_waited_for(tmp_path: Path) -> None:
    """A planted pipe that nobody reads ends in an error, not in a wait without end."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    os.chown(pipe, 4711, 4711)
    with pytest.raises(InputError, match="cannot be written: No such device or address"):
        write_output(pipe, b"text")


def test_a_pipe_of_the_user_is_waited_for(tmp_path: Path) -> None:
    """It is never replaced by a file, and a reader may open it after the writer."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with ThreadPoolExecutor() as threads:
        writing = threads.submit(write_output, pipe, b"text")
        with pytest.raises(TimeoutError):
            writing.result(timeout=0.3)
        assert pipe.read_bytes() == b"text"
        writing.result(timeout=300)
    assert pipe.is_fifo()


@pytest.mark.parametrize("is_disk", [False, True])
def test_what_replaces_a_pipe_before_it_is_opened_stays_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, is_disk: bool
) -> None:
    """Another user puts a link to a file of root, or to a disk, there after it was looked at."""
    pipe, own = tmp_path / "pipe", tmp_path / "own"
    os.mkfifo(pipe)
    own.write_bytes(b"only root may change this")
    real_open, real_status = os.open, os.fstat

    def open_replaced(path: Path, flags: int) -> int:
        path.unlink()
        path.symlink_to(own)
        return real_open(path, flags)

    def status_of_disk(descriptor: int) -> os.stat_result:
        found = real_status(descriptor)
        return os.stat_result((stat.S_IFBLK | 0o660, *found[1:10]))

    monkeypatch.setattr(os, "open", open_replaced)
    if is_disk:
        monkeypatch.setattr(os, "fstat", status_of_disk)
    with pytest.raises(InputError, match="it is not a file, a pipe or a character device"):
        write_output(pipe, b"text")
    assert own.read_bytes() == b"only root may change this"


FULL = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.mark.parametrize("error", [FULL, f"[errno 28] {os.strerror(errno.ENOSPC)}"])
def test_a_full_disk_is_no_question_of_permissions(error: OSError | str) -> None:
    """Whether the system, a library or another machine reports it; others keep their hint."""
    message, hint = unwritten("/d/file", error, hint="check permissions")
    assert message.startswith("/d/file cannot be written: the disk is full (")
    assert hint.startswith("free some space")
    other = OSError(errno.EACCES, os.strerror(errno.EACCES))
    assert unwritten("/d", other, hint="see")[0] == "/d cannot be written: Permission denied"


def test_files_of_a_held_folder_have_their_own_paths_in_messages(tmp_path: Path) -> None:
    """The kernel is given paths below a descriptor, and so are programs that report errors."""
    root = tmp_path / "my campaign"
    root.mkdir(mode=0o700)
    with pytest.raises(ArchiveError) as caught:
        _fail_in(root)
    reason, hint = caught.value.message, caught.value.hint
    assert reason == f"{root}/journal.jsonl cannot be written: the disk is full"
    assert hint == f"look at {root}/journal.jsonl"


def _fail_in(root: Path) -> None:
    with hold_folder(root):
        inside = os.fspath(Layout(root).journal)
        assert inside.startswith("/proc/")
        outcome = stopped_by(TransportError(f"{inside} cannot be written: the disk is full"))
        assert str(root) in outcome.reason
        raise ArchiveError(
            f"{inside} cannot be written: the disk is full", hint=f"look at {inside}"
        )
