"""Real loop devices, mounts and swap for the tests, taken down whatever happens."""

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.planned import planned_run
from tests.waiting import until
from volbench.engine.guard.device_guard import OpenDevice
from volbench.engine.guard.run_guard import RunConsent, check_run, question_about
from volbench.engine.guard.volume_targets import find_volume
from volbench.engine.hosts.described_volumes import look_at
from volbench.errors import RefusedError
from volbench.execute.local import LocalExecutor
from volbench.execute.protocol import Executor
from volbench.model.campaign.planned_run import Extent, Run, Section, Volume, VolumeKind

HERE = LocalExecutor()
IMAGE_BYTES = 32 * 1024**2
"""Large enough for every filesystem and swap area the tests make."""

_FIRST_LOOP, _LOOPS, _PROCESSES = 200, 4, 250
"""Numbers of loop devices: so many for each process that runs tests."""

_NEEDED = (
    *("addpart", "delpart", "losetup", "mount", "umount", "mkfs.ext4", "mkswap", "swapon"),
    *("swapoff", "blkid"),
)


def call(*argv: str) -> str:
    """Run a program that must succeed and return what it printed, stripped."""
    done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, f"{' '.join(argv)}: {done.stderr}"
    return done.stdout.strip()


def attach_loop(file: Path, *options: str) -> str:
    """Return a new loop device on a file."""
    return call("losetup", "-f", "--show", *options, str(file))


def is_attached(device: str) -> bool:
    """Return whether a loop device has a file."""
    return Path("/sys/block", Path(device).name, "loop").exists()


class Disks:
    """Makes devices and puts them to use; `close` undoes all of it, newest first.

    Args:
        folder: for images and mount points.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._undo = ExitStack()
        self._made = 0

    def image(self, size_bytes: int = IMAGE_BYTES) -> Path:
        """Return a new sparse file."""
        self._made += 1
        path = self.folder / f"disk{self._made}.img"
        with path.open("wb") as file:
            file.truncate(size_bytes)
        return path

    def attach(self, file: Path | None = None, *options: str) -> str:
        """Return a loop device on a file, or on a new image.

        Its number is one that ``losetup -f`` of other tests does not take while a test detaches it.
        """
        first = _FIRST_LOOP + _LOOPS * (os.getpid() % _PROCESSES)
        names = (f"/dev/loop{number}" for number in range(first, first + _LOOPS))
        device = next(name for name in names if not is_attached(name))
        call("losetup", *options, device, str(file or self.image()))
        self._undo.callback(self._detach, device)
        return device

    def _detach(self, device: str) -> None:
        if is_attached(device):
            call("losetup", "-d", device)

    def attach_at(self, device: str, file: Path, *options: str) -> None:
        """Attach a file to a certain loop device, as soon as it is free."""
        until(lambda: not is_attached(device))
        call("losetup", *options, device, str(file))
        self._undo.callback(self._detach, device)

    def partition(self, device: str) -> str:
        """Give a device one partition, which the kernel is told of, and return it."""
        if Path(f"{device}p1").exists():  # of an earlier test that could not remove it
            _remove_partition(device)
        call("addpart", device, "1", "2048", str(IMAGE_BYTES // 512 - 4096))
        self._undo.callback(_remove_partition, device)
        return f"{device}p1"

    def format(self, device: str) -> None:
        """Make an ext4 on a device."""
        call("mkfs.ext4", "-q", "-F", device)

    def mount(self, device: str, *options: str) -> Path:
        """Mount a device, or with --bind a folder or file, on a new folder or file."""
        self._made += 1
        point = self.folder / f"mount{self._made}"
        point.touch() if Path(device).is_file() else point.mkdir()
        self.mount_on(point, device, *options)
        return point

    def mount_on(self, point: Path, device: str, *options: str) -> None:
        """Mount something on a folder or file, and hide what was there."""
        call("mount", *options, device, str(point))
        self._undo.callback(self.unmount, point)

    def overlay(self, base: Path | None = None) -> Path:
        """Mount an overlay of new folders, lower and upper, on a new folder."""
        lower, upper, work = ((base or self.folder) / name for name in ("lower", "upper", "work"))
        for folder in (lower, upper, work):
            folder.mkdir()
        each = (str(folder).replace(",", "\\,") for folder in (lower, upper, work))
        options = "lowerdir={},upperdir={},workdir={}".format(*each)
        return self.mount("overlay", "-t", "overlay", "-o", options)

    def unmount(self, point: Path) -> None:
        """Unmount a folder if something is mounted there, once nothing has it open any more."""

        def is_done() -> bool:
            return not subprocess.run(["umount", str(point)], check=False, timeout=300).returncode

        if f" {point} " in Path("/proc/self/mountinfo").read_text():  # also of the same filesystem
            until(is_done)

    def swap(self, place: str) -> None:
        """Use a device or file as swap, of so few pages that no other process can wait for them."""
        call("mkswap", place, "40")
        call("swapon", place)
        self._undo.callback(call, "swapoff", place)

    def close(self) -> None:
        """Take everything down."""
        self._undo.close()


def _remove_partition(device: str) -> None:
    """Remove the partition of a device once nothing holds it any more.

    A mount namespace that another test makes meanwhile, such as that of a host or of the cluster,
    has a copy of a mount until it drops what is not its own.
    """
    remove = ["delpart", device, "1"]
    until(lambda: not subprocess.run(remove, check=False, timeout=300).returncode)


@pytest.fixture
def disks(tmp_path: Path) -> Iterator[Disks]:
    """Make devices; the test needs the mark ``root``."""
    missing = [name for name in _NEEDED if shutil.which(name) is None]
    assert not missing, f"install what these tests need: {', '.join(missing)}"
    made = Disks(tmp_path.resolve())
    try:
        yield made
    finally:
        made.close()


_READ = Extent(offset_bytes=0, size_bytes=1, volume_bytes=1, direction="read")


def refusal(  # noqa: PLR0913 - one argument for each of the guard's
    executor: Executor,
    volume: Volume | str,
    *,
    writes: bool = True,
    files: Sequence[str] = (),
    allow: Sequence[str] | None = None,
    campaign_dir: str = "/",
    made: Sequence[str] = (),
    wipe: bool = False,
    options: Mapping[str, str] | None = None,
) -> str:
    """Pass a run through the guard and return why it is refused, or an empty text.

    Args:
        executor: the machine.
        volume: what it works on; found first when it is only named.
        writes: whether the run writes.
        files: what it writes.
        allow: what the user allowed; the volume's own target when None.
        campaign_dir: where the results go.
        made: files that volbench made.
        options: of its section, beside ``rw``.
        wipe: whether the user allowed signatures to be overwritten.
    """
    try:
        if isinstance(volume, str):
            volume = find_volume(executor, role="data", target=volume)
        section = Section(
            name="j", options={"rw": "write" if writes else "read", **(options or {})}
        )
        # A warm-up that reads lays out nothing.
        run = planned_run(volume, section, extent=None if writes else _READ)
        allowed = [volume.target] if allow is None else allow
        consent = RunConsent(
            campaign_dir=campaign_dir, allow_destroy=tuple(allowed), wipe_signatures=wipe
        )
        check_now(executor, run, consent, files=files, ours=made.__contains__)
    except RefusedError as error:
        return error.message if error.hint else f"without a hint: {error.message}"
    return ""


def check_now(
    executor: Executor,
    run: Run,
    consent: RunConsent,
    *,
    files: Sequence[str],
    ours: Callable[[str], bool] = lambda _path: False,
    opened: OpenDevice | None = None,
) -> None:
    """Look at the volume of a run, and check the run with the guard."""
    questions = [question_about(run, files, consent, opened)]
    if run.volume.kind is VolumeKind.NBD:
        questions = []
    campaign_dir, by_sudo = consent.campaign_dir, consent.by_sudo
    state = look_at(executor, questions, campaign_dir=campaign_dir, by_sudo=by_sudo)
    check_run(run, state, files=files, consent=consent, ours=ours, opened=opened)
