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

from tests.waiting import until
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
        path.write_text("job,iops")
    with pytest.raises(InputError, match="No space left"):
        write_output(path, b"job,iops\na,1", ".csv")
    with pytest.raises(ArchiveError, match="No space left"):
        write_atomic(path, "new")
    assert [file.read_text() for file in tmp_path.iterdir()] == ([] if is_new else ["job,iops"])


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
    real.touch()
    real.chmod(0o600)
    link.symlink_to(real)
    write_output(link, b"new")
    assert link.is_symlink()
    assert real.read_bytes() == b"new"
    assert real.stat().st_mode & 0o777 == 0o600


_OF_OTHERS = [
    b'{\n  "fio version" : "fio-3.33",\n "jobs": []}\n',
    gzip.compress(b"3;fio-3.33;a;0", mtime=0),
    b"; reads\n[4k/randread]\nrw=read\n",
    b"\0" * 1080 + b"\x53\xef",
    b"-----BEGIN PRIVATE KEY-----\n",
    b"\x30\x82\x04\xa4\x02\x01",
    b"age-encryption.org/v1\n",
    b"name,size\nown,1\n",
    b"<!DOCTYPE html>\n<p>Thesis.\n</html>\n",
    b"text\n# volbench 12345678\n",
]


@pytest.mark.parametrize("content", _OF_OTHERS)
@pytest.mark.parametrize("kind", [".txt", ".csv", ".html", ".json"])
def test_a_file_that_volbench_did_not_write_is_not_replaced(
    tmp_path: Path, content: bytes, kind: str
) -> None:
    """Also behind a link; nor is a text that was changed since volbench wrote it."""
    new = {".txt": b"1 run", ".csv": b"job,iops\n", ".html": b"<!DOCTYPE html>\n", ".json": b"[]"}
    file, link, mine = tmp_path / "file", tmp_path / "link", tmp_path / "mine"
    file.write_bytes(content)
    link.symlink_to(file)
    for output in (file, link):
        with pytest.raises(RefusedError, match="it is not known as a file of volbench"):
            write_output(output, new[kind], kind)
    assert file.read_bytes() == content
    write_output(mine, new[kind], kind)
    mine.write_bytes(mine.read_bytes() + content)
    if kind != ".csv":
        with pytest.raises(RefusedError):
            write_output(mine, b"new", kind)


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
    """Nor is what else is in its folder, nor made there, also where a link leads to it."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    (tmp_path / "volbench/running").mkdir(parents=True)
    (tmp_path / "volbench/running/x").touch()
    (tmp_path / "state").symlink_to(tmp_path / "volbench")
    for name in ("volbench/key", "volbench/running/x", "state/new"):
        with pytest.raises(RefusedError, match="volbench keeps keys and locks there"):
            write_output(tmp_path / name, b"new")


@pytest.mark.root
@pytest.mark.parametrize("name", ["c/runs/001", "volbench"])
def test_mounts_of_a_run_and_of_the_key_are_known(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """An empty file of a run, and the folder of the key, stay under another path too."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    for path in (tmp_path / name, tmp_path / "mount"):
        path.mkdir(parents=True)
    for file in ("job.fio", "stderr"):
        (tmp_path / name / file).touch()
    subprocess.run(["mount", "--bind", tmp_path / name, tmp_path / "mount"], check=True)
    try:
        with pytest.raises(RefusedError, match=r"needs it|keeps keys"):
            write_output(tmp_path / "mount/stderr", b"new")
    finally:
        subprocess.run(["umount", tmp_path / "mount"], check=True)


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


def test_a_pipe_of_the_user_is_waited_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is never replaced by a file, and a reader that is missing is said in a line."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with ThreadPoolExecutor() as threads:
        writing = threads.submit(write_output, pipe, b"text")
        until(lambda: f"for a program that reads {pipe}; Ctrl-C ends" in capsys.readouterr().err)
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
