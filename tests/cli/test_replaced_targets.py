"""Devices and files that were replaced while a campaign paused, or between a crash and its resume.

The targets are real: loop devices, ext4, and a controller that is killed.
"""

import os
import stat
import subprocess
from collections.abc import Callable, Iterator
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest

import volbench as volbench_package
from tests import command_line
from tests.command_line import Volbench, start
from tests.engine.conftest import Disks, call, is_attached
from tests.held_fio import HeldFio
from tests.waiting import kill_all, until
from volbench.engine.campaign import client_worker
from volbench.engine.guard.device_guard import NOT_OPENED, Opened
from volbench.engine.guard.preflight import RunGuard
from volbench.engine.hosts.described_volumes import HostState
from volbench.model.campaign.planned_run import Run
from volbench.store.archive import fresh_run_folder
from volbench.store.layout import Layout, RunFolder

pytestmark = pytest.mark.slow

MIB = 1024**2
DEVICE_PROFILE = """\
name: p
sample: 0
defaults: {ioengine: psync, rw: write, bs: 64k, size: 4m}
jobs:
  first: {}
  second: {}
"""

ONE_JOB = DEVICE_PROFILE.partition("  second")[0].replace("{}", "{rate: 8m}")
WRITING = "name: p\nsample: 0\njobs:\n  a: {rw: write, bs: 4k, size: 1m}\n"


def written(folder: Path, text: str) -> Path:
    """Write a profile and return its path."""
    path = folder / "p.yaml"
    path.write_text(text)
    return path


def overwrite(folder: Path, text: str, target: str | Path) -> CompletedProcess[str]:
    """Run a profile on a device, in this process, with consent."""
    profile, consent = written(folder, text), ("--allow-destroy", target)
    return command_line.call("run", profile, "--on", target, *consent, "-o", folder / "out")


def digest(path: Path | str) -> str:
    """Return the SHA-256 of a device or file."""
    return sha256(Path(path).read_bytes()).hexdigest()


def wait_for(out: Path, *, state: str) -> None:
    """Wait until a run of a campaign is in a state."""
    until((out / "campaign.json").exists)
    opened = volbench_package.open_campaign
    until(lambda: any(str(note.state) == state for note in opened(out).runs.values()))


def begun(tmp_path: Path, target: str | Path) -> tuple[Path, subprocess.Popen[str]]:
    """Start a campaign that overwrites a device or makes a file, in a run without end."""
    out, allowed = tmp_path / "out", ("--allow-destroy", target)
    words = ("run", written(tmp_path, ONE_JOB), "--on", target, "--output", out)
    is_device = str(target).startswith("/dev/")
    environment = HeldFio(tmp_path, "first").environment
    process = start(*words, *(allowed if is_device else ()), env=environment)
    wait_for(out, state="running")
    return out, process


def replace_image(device: str, other: Path) -> None:
    """Detach the image of a loop device, and attach another one under the same name.

    A program that has it open for a moment, such as sync, delays the detaching.
    """
    call("losetup", "-d", device)
    until(lambda: not is_attached(device))
    call("losetup", device, str(other))


def formatted(disks: Disks) -> Path:
    """Return an image with an ext4 on it."""
    image = disks.image()
    call("mkfs.ext4", "-q", "-F", str(image))
    return image


def act_before(run: str, monkeypatch: pytest.MonkeyPatch, act: Callable[[], object]) -> None:
    """Do something before the run of a number, such as ``002``."""
    fresh = fresh_run_folder

    def folder_after(layout: Layout, run_id: str) -> RunFolder:
        if run_id.startswith(run):
            act()
        return fresh(layout, run_id)

    monkeypatch.setattr(f"{client_worker.__name__}.fresh_run_folder", folder_after)


@pytest.mark.smoke
@pytest.mark.root
def test_a_device_replaced_between_runs_is_not_overwritten(
    tmp_path: Path, disks: Disks, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Number, size and name of the loop device stay the same; its sequence number does not."""
    image = disks.image()
    device, other = disks.attach(image), formatted(disks)
    before = digest(other)
    act_before("002", monkeypatch, lambda: replace_image(device, other.rename(image)))
    done = overwrite(tmp_path, DEVICE_PROFILE, device)
    assert done.returncode == 3, done.stderr
    assert f"{device} is not the device that was planned" in done.stderr
    assert digest(image) == before


@pytest.mark.parametrize("how", ["renamed", "at once", "by folder", "formatted"])
def test_a_users_file_replaced_after_the_plan_is_not_overwritten(
    tmp_path: Path, volbench: Volbench, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    """Consent to its name was for the file and content that had the name, also in a resume."""
    by_folder = how == "by folder"
    named, other, old = (tmp_path / name for name in ("named", "other", "old"))
    for folder in (named, other):
        folder.mkdir()
        (folder / "file").write_bytes(os.urandom(4 * MIB))
    file, before = named / "file", digest(other / "file")

    def replace() -> None:
        if how == "formatted":
            call("mkfs.ext4", "-q", "-F", str(file))
            return
        (named if by_folder else file).rename(old)
        named.symlink_to(other) if by_folder else (other / "file").rename(file)

    once = [replace]
    run = "001" if how == "at once" else "002"
    act_before(run, monkeypatch, lambda: once and once.pop()())
    refused = overwrite(tmp_path, DEVICE_PROFILE, file)
    before = digest(file) if how == "formatted" else before
    for done in (refused, volbench("resume", tmp_path / "out", "--retry-failed")):
        problem = "holds ext4" if how == "formatted" else "is another file than before"
        assert f"{file} {problem}" in done.stderr
        assert (done.returncode, digest(file)) == (3, before)
    if how == "formatted":
        return
    if by_folder:
        named.unlink()
    old.rename(named if by_folder else file)
    assert volbench("resume", tmp_path / "out", "--retry-failed").returncode == 0


@pytest.mark.root
def test_a_device_is_held_from_the_guard_to_the_end_of_the_run(
    tmp_path: Path, disks: Disks
) -> None:
    """Until fio has written, it is not mounted, formatted, or attached to another image."""
    image = formatted(disks)
    device, other = disks.attach(image), disks.image()
    profile = written(tmp_path, ONE_JOB.replace("size: 4m", "offset: 16m, size: 4m"))
    out, fio = tmp_path / "out", HeldFio(tmp_path)
    words = ("run", profile, "--on", device, "-o", out, "--allow-destroy", device)
    process = start(*words, "--wipe-signatures", env=fio.environment)
    wait_for(out, state="running")
    point = tmp_path / "point"
    point.mkdir()
    attempts = [
        ["mount", device, str(point)],
        ["mkfs.ext4", "-q", device],
        ["losetup", device, str(other)],
    ]
    refused = [subprocess.run(argv, capture_output=True, check=False) for argv in attempts]
    # The kernel detaches a device that is open only when it is closed.
    call("losetup", "-d", device)
    still = subprocess.run(attempts[-1], capture_output=True, check=False)
    fio.release()
    _, stderr = process.communicate(timeout=300)
    assert [done.returncode != 0 for done in (*refused, still)] == [True] * 4
    assert process.returncode == 0, stderr
    assert not other.read_bytes().strip(b"\0")
    part = image.read_bytes()[16 * MIB : 20 * MIB]
    assert not any(block == bytes(4096) for block in blocks(part))


def blocks(data: bytes) -> Iterator[bytes]:
    """Yield blocks of 4 KiB."""
    return (data[start : start + 4096] for start in range(0, len(data), 4096))


@pytest.mark.root
def test_a_link_changed_after_the_check_is_not_followed_by_fio(
    tmp_path: Path, disks: Disks, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was checked is what fio gets, whoever owns the folder of the link to it."""
    device, precious, link = disks.attach(), tmp_path / "precious", tmp_path / "theirs/disk"
    precious.write_bytes(b"root's" * MIB)
    link.parent.mkdir()
    os.chown(link.parent, 4711, 4711)
    link.symlink_to(device)
    check = RunGuard.check

    def turn(
        guard: RunGuard,
        run: Run,
        state: HostState,
        *,
        opened: Opened = NOT_OPENED,
        **others: Any,  # noqa: ANN401 - of the check
    ) -> None:
        check(guard, run, state, opened=opened, **others)
        if opened:
            link.unlink()
            link.symlink_to(precious)

    monkeypatch.setattr(RunGuard, "check", turn)
    done = overwrite(tmp_path, WRITING, link)
    assert done.returncode == 0, done.stderr
    assert precious.read_bytes() == b"root's" * MIB
    assert Path(device).read_bytes()[:MIB].strip(b"\0")
    assert f"filename={device}" in (tmp_path / "out/runs/001-a-r1/job.fio").read_text()


@pytest.mark.root
def test_a_node_in_a_folder_of_another_user_is_refused(tmp_path: Path, disks: Disks) -> None:
    """Its owner could put a link to any file of root in its place."""
    device, node = disks.attach(), tmp_path / "theirs/disk"
    node.parent.mkdir()
    os.chown(node.parent, 4711, 4711)
    os.mknod(node, stat.S_IFBLK | 0o600, Path(device).stat().st_rdev)
    done = overwrite(tmp_path, WRITING, node)
    assert done.returncode == 3, done.stderr
    assert "theirs belongs to user 4711" in done.stderr
    assert not Path(device).read_bytes().strip(b"\0")


@pytest.mark.root
@pytest.mark.parametrize("same_file", [False, True])
def test_a_device_replaced_before_a_resume_is_not_overwritten(
    tmp_path: Path, disks: Disks, volbench: Volbench, *, same_file: bool
) -> None:
    """Neither another image, nor another file that was renamed to the path of the first."""
    image = disks.image()
    device, other = disks.attach(image), formatted(disks)
    out, process = begun(tmp_path, device)
    kill_both(process, out)
    if same_file:
        other = other.rename(image)
    replace_image(device, other)
    before = digest(other)
    done = volbench("resume", out)
    assert done.returncode == 3, done.stderr
    assert f"{device} is not the device that was planned" in done.stderr
    assert digest(other) == before


@pytest.mark.root
def test_a_filesystem_made_before_a_resume_is_not_overwritten(
    tmp_path: Path, disks: Disks, volbench: Volbench
) -> None:
    """It is the same device, but what is on it now is neither the plan's nor volbench's."""
    device = disks.attach()
    out, process = begun(tmp_path, device)
    kill_both(process, out)
    disks.format(device)
    before = digest(device)
    done = volbench("resume", out)
    assert done.returncode == 3, done.stderr
    assert "ext4" in done.stderr
    assert "--allow-destroy" in done.stderr
    assert digest(device) == before
    named = volbench("resume", out, "--allow-destroy", device)
    assert named.returncode == 3, named.stderr
    assert "--wipe-signatures" in named.stderr
    assert digest(device) == before
    allowed = volbench("resume", out, "--allow-destroy", device, "--wipe-signatures")
    assert allowed.returncode == 0, allowed.stderr
    assert digest(device) != before


def kill_both(controller: subprocess.Popen[str], out: Path) -> None:
    """Kill a controller, and the fio that it leaves: that works in the folder of its run."""
    controller.kill()
    controller.communicate(timeout=300)

    def below() -> list[int]:
        """Return the processes that work in the folder, after a signal to each."""
        found = []
        for process in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                if process.joinpath("cwd").readlink().is_relative_to(out):
                    found.append(int(process.name))
        kill_all(found)
        return found

    until(lambda: not below())


@pytest.mark.parametrize("is_folder", [True, False])
def test_a_users_file_is_neither_overwritten_nor_removed_after_a_crash(
    tmp_path: Path, scratch: Path, volbench: Volbench, *, is_folder: bool
) -> None:
    """Neither what replaced a scratch file, nor what got the name of a new one."""
    target = scratch if is_folder else scratch / "file"
    out, process = begun(tmp_path, target)
    until(lambda: any(path.is_file() for path in scratch.rglob("*")))
    made = next(path for path in scratch.rglob("*") if path.is_file())
    kill_both(process, out)
    users = made if is_folder else target
    made.unlink()
    users.write_text("the user's")
    done = volbench("resume", out)
    assert users.read_text() == "the user's"
    assert str(users) in done.stderr
    assert (done.returncode == 3) is not is_folder, done.stderr


def test_a_file_that_gets_the_name_of_a_new_file_is_kept(tmp_path: Path, scratch: Path) -> None:
    """The run has its file in a folder of its own, also while fio makes it anew in each loop."""
    options = "rw: write, bs: 4k, size: 64k, loops: 5, unlink_each_loop: 1"
    profile = written(tmp_path, f"name: p\nsample: 0\njobs:\n  a: {{{options}}}\n")
    fio = HeldFio(tmp_path)
    words = ("run", profile, "--on", scratch / "file", "--output", tmp_path / "out")
    process = start(*words, env=fio.environment)
    until(lambda: list(tmp_path.glob("out/runs/*/facts.json")))
    (scratch / "file").write_text("the user's")
    fio.release()
    _, stderr = process.communicate(timeout=300)
    assert process.returncode == 0, stderr
    assert [path.name for path in scratch.iterdir()] == ["file"]
    assert (scratch / "file").read_text() == "the user's"
