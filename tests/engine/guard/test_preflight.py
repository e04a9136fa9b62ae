"""Checks of a run against what its host has."""

import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from unittest.mock import Mock

import pytest

from tests.command_line import call
from tests.engine.conftest import Disks, check_now
from tests.engine.conftest import call as call_tool
from tests.fio.runs import run_on, section
from volbench.engine.guard.preflight import check_job_files, check_memory, check_rooms
from volbench.engine.guard.run_guard import RunConsent
from volbench.engine.guard.volume_targets import find_volume
from volbench.engine.hosts.described_volumes import look_at_volume
from volbench.errors import FioError, InputError, RefusedError
from volbench.execute.agent.locks import Room
from volbench.execute.agent.volumes import VolumeQuestion
from volbench.execute.local import LocalExecutor
from volbench.execute.protocol import Completed
from volbench.model.campaign.planned_files import planned_files
from volbench.model.campaign.planned_run import VolumeKind
from volbench.model.profile.profile_model import Phase


@pytest.mark.parametrize(
    "options",
    [
        {"bs": "1073741824", "iodepth": 64},
        {"bs": "4096,1048576", "iodepth": 4096, "numjobs": 8},
        {"bssplit": "4096/50:1073741824/50", "iodepth": 64},
        {"bsrange": "4096-1073741824", "numjobs": 64},
        {"lockmem": "1073741824", "numjobs": 17},
    ],
)
def test_buffers_must_fit_the_memory(options: dict[str, str | int]) -> None:
    """One buffer of the largest block for each I/O in flight; more than all memory is refused."""
    run = run_on("/data", options={}).model_copy(update={"sections": (section("j", **options),)})
    with pytest.raises(InputError, match="of memory") as caught:
        check_memory(run, memory_bytes=16 << 30)
    assert caught.value.hint
    check_memory(run, memory_bytes=1 << 40)
    check_memory(run, memory_bytes=None)


def test_a_rejected_job_is_found_among_many() -> None:
    """Many job files are parsed by one process of fio, and the one that it rejects is named."""
    runs = [
        run_on("/data", options={}).model_copy(
            update={
                "job": f"job{depth}",
                "sections": (section("j", rw="read", size=4096, iodepth=depth),),
            }
        )
        for depth in range(1, 1001)
    ]
    sizes: list[int] = []

    def parse(argv: Sequence[str], *, texts: Sequence[str]) -> Completed:
        sizes.append(len(texts))
        is_rejected = any("iodepth=777\n" in text for text in texts)
        return Completed((*argv, "0"), int(is_rejected), "", "bad option")

    host = Mock(fio="fio", executor=Mock(run=parse))
    with pytest.raises(FioError, match="fio rejects job job777: bad option"):
        check_job_files(host, runs)
    assert len(sizes) < 25
    assert max(sizes) > 100


MIB = 1 << 20


def alone(_room: Room) -> tuple[int, Sequence[str]]:
    """Return what no other campaign takes."""
    return 2**40, ()


def test_the_space_for_all_files_of_clients_is_checked_before_anything_is_written() -> None:
    """A shared file and the overlays of two clients count once, in all folders of a filesystem."""
    base = section("base", rw="write", size=100 * MIB, filename="base")
    runs = [
        run_on("/data", VolumeKind.DIRECTORY, base).model_copy(
            update={"shared": "base", "phase": Phase.PRECONDITION}
        )
    ]
    for client, folder in (("c1", "/data"), ("c2", "/more")):
        parts = (
            section("read", rw="read", size=100 * MIB, filename="base"),
            section("write", rw="write", size=100 * MIB, filename=f"{client}-overlay"),
        )
        runs.append(
            run_on(folder, VolumeKind.DIRECTORY, *parts).model_copy(update={"shared": "base"})
        )
    files = {path: Mock(stat=None, copied_bytes=0) for run in runs for path in planned_files(run)}
    seen = Mock(space=(379 * MIB, 3), device=None, holes=())
    state = Mock(files=files, volumes=dict.fromkeys(("/data", "/more"), seen))
    check_rooms(runs, state, alone)
    seen.space = (378 * MIB, 3)
    with pytest.raises(RefusedError, match="3 files in /data needs 300 MiB") as caught:
        check_rooms(runs, state, alone)
    assert "size=99m" in caught.value.hint
    files["/data/base"].stat = Mock(size_bytes=100 * MIB, allocated_bytes=100 * MIB)
    seen.space = (170 * MIB, 3)
    with pytest.raises(RefusedError, match="2 files in /data needs 200 MiB"):
        check_rooms(runs, state, alone)
    files["/data/base"].copied_bytes = 5 * MIB  # by an overlay
    with pytest.raises(RefusedError, match="3 files in /data needs 205 MiB"):
        check_rooms(runs, state, alone)
    seen.space = (170 * MIB, 1)
    with pytest.raises(RefusedError, match="room for 1 more files, not 2"):
        check_rooms(runs, state, alone)
    seen.space, seen.storage.filesystem = (170 * MIB, 3), "btrfs"  # keeps what is overwritten
    with pytest.raises(RefusedError, match="3 files in /data needs 505 MiB"):
        check_rooms(runs, state, alone)


NOBODY = 65534


@contextmanager
def unprivileged() -> Iterator[None]:
    """Work as an ordinary user, as whom the tests may run anyway."""
    user = os.geteuid()
    if not user:
        os.seteuid(NOBODY)
    try:
        yield
    finally:
        if not user:
            os.seteuid(0)


@pytest.fixture
def shared_folder() -> Iterator[Path]:
    """Make a folder that every user can enter, but only its owner can write to."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        yield folder


def problem_of(
    target: Path | str, user: Callable[[], AbstractContextManager[None]] = unprivileged
) -> str:
    """Return what a run on a target as a user is refused for before it starts."""
    executor = LocalExecutor()
    volume = find_volume(executor, role="data", target=str(target))
    run = run_on("/data", options={"size": "4096"}).model_copy(update={"volume": volume})
    with user(), pytest.raises(RefusedError) as caught:
        check_now(executor, run, RunConsent(campaign_dir="/"), files=planned_files(run))
    assert caught.value.hint
    return caught.value.message


@pytest.mark.parametrize("mode", [0o000, 0o444])
def test_a_file_that_may_not_be_opened_is_refused(shared_folder: Path, mode: int) -> None:
    """Before three runs of fio fail with EACCES."""
    file = shared_folder / "private.img"
    file.touch(mode)
    assert problem_of(file) == f"{file} cannot be opened: Permission denied"


def test_a_folder_that_may_not_be_written_to_is_refused(shared_folder: Path) -> None:
    """Neither a new file nor those of a directory can be created there."""
    shared_folder.chmod(0o555)
    message = f"files cannot be created in {shared_folder}: Permission denied"
    assert problem_of(shared_folder) == message
    assert problem_of(shared_folder / "new.img") == message


@pytest.mark.root
def test_a_device_that_may_not_be_opened_is_refused(disks: Disks, shared_folder: Path) -> None:
    """The node of a disk belongs to root, and ordinary users cannot even read it."""
    image = shared_folder / "disk.img"
    image.write_bytes(bytes(1 << 20))
    device = disks.attach(image)
    Path(device).chmod(0o600)
    assert problem_of(device) == f"{device} cannot be opened: Permission denied"


@pytest.mark.root
def test_a_read_only_file_system_is_named(disks: Disks) -> None:
    """Root may write everywhere, except where nobody can."""
    device = disks.attach()
    disks.format(device)
    point = disks.mount(device)
    (point / "file").touch()
    call_tool("mount", "-o", "remount,ro", str(point))
    for target in (point, point / "file"):
        assert "Read-only file system" in problem_of(target, user=nullcontext)


def test_a_new_file_needs_a_size(tmp_path: Path) -> None:
    """A job without a size on a missing file fails before any run; a later job may use the file."""
    profile = tmp_path / "p.yaml"
    image = tmp_path / "new.img"
    text = "name: p\ndefaults: {runtime: 1s, time_based: 1}\njobs:\n  first: {rw: write%s}\n"
    text += "  then: {rw: read}\n"
    arguments = ("run", profile, "--on", image, "--output", tmp_path / "out", "--dry-run")
    profile.write_text(text % "", encoding="utf-8")
    done = call(*arguments, cwd=tmp_path)
    assert done.returncode == 2
    assert f"job first has no size, and {image} does not exist" in done.stderr
    profile.write_text(text % ", size: 4m", encoding="utf-8")
    done = call(*arguments, cwd=tmp_path)
    assert done.returncode == 0, done.stderr


@pytest.mark.root
def test_a_link_of_another_users_process_is_refused_in_a_sentence() -> None:
    """Where it leads may be hidden from a user."""
    with unprivileged(), pytest.raises(InputError, match="/proc/1/root/x cannot be examined: "):
        look_at_volume(LocalExecutor(), VolumeQuestion("/proc/1/root/x"))
