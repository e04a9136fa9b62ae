"""The guard before files and folders: what volbench did not make stays as it is."""

import os
import tempfile
from pathlib import Path

import pytest

from tests.engine.conftest import HERE, Disks, attach_loop, call, refusal
from tests.execute.fake import FakeExecutor
from tests.planned import planned_run
from volbench.engine.guard.run_guard import RESERVE_BYTES, check_room, check_space
from volbench.engine.guard.volume_targets import find_volume
from volbench.errors import RefusedError
from volbench.model.campaign.planned_run import Section, Volume, VolumeKind


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Make a folder to be measured."""
    path = tmp_path.resolve() / "data"
    path.mkdir()
    return path


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"unlink": "1"}, "unlink may remove it"),
        ({"ioengine": "filedelete"}, "filedelete may remove it"),
        ({"ioengine": "ftruncate"}, "ftruncate may remove it"),
        ({"ioengine": "libpmem"}, "libpmem may remove it"),
        ({"file_append": "1"}, "file_append"),
        ({"zonemode": "strided", "zonesize": "512"}, "zonemode may remove it"),
        ({"brand_new": "1"}, "brand_new may remove it"),
        ({"fill_device": "1", "size": "0"}, "fill_device"),
        ({"offset": "10%", "size": "900", "bs": "512"}, "is shorter than"),
        ({"offset_increment": "50%", "size": "501", "numjobs": "2"}, "is shorter than"),
        ({"offset": "90%", "size": "50%", "bs": "100"}, ""),
        ({"size": "4096"}, "is shorter than"),
        ({"offset": "4000", "size": "1000"}, "is shorter than"),
        ({"filesize": "8192"}, "is shorter than"),
        ({"size": "1000"}, ""),
        ({"size": "100%"}, ""),
        ({"unlink": "0"}, ""),
    ],
)
@pytest.mark.parametrize("is_folder", [False, True])
def test_a_users_file_is_only_overwritten_in_place(
    folder: Path, options: dict[str, str], problem: str, *, is_folder: bool
) -> None:
    """With unlink fio removes a file, and a short one anyway: consent is to its content only."""
    path = folder / "precious"
    path.write_bytes(bytes(1000))
    found = refusal(
        HERE,
        str(folder if is_folder else path),
        files=[str(path)],
        allow=[str(path)],
        options={"filename": path.name, **options},
    )
    assert problem in found
    assert bool(problem) is bool(found)
    made = refusal(HERE, str(path), files=[str(path)], made=[str(path)], options=options)
    assert ("has no limit" in made) is bool(made)
    name = next(iter(options))
    allow = [str(path), f"fio:{name}", f"fio:{options[name]}"]
    found = refusal(HERE, str(path), files=[str(path)], allow=allow, options=options)
    assert found == "" or problem == "is shorter than"


def test_the_first_of_several_files_are_longer_by_the_rest_of_the_size(folder: Path) -> None:
    """Of 6 bytes in blocks of one, fio gives 2 to each of 2 of 4 files, and makes them anew."""
    for name in "abcd":
        (folder / name).write_text("x")
    volume = find_volume(HERE, role="data", target=":".join(f"{folder}/{name}" for name in "abcd"))
    run = planned_run(volume, Section(name="j", options={"size": "6", "bs": "1"}))
    for number, part in enumerate(run.parts):
        path, (section,) = part.volume.target, part.sections
        found = refusal(HERE, path, files=[path], options=section.options)
        assert ("is shorter than" in found) == (number < 2)


def test_a_foreign_file_needs_permission(folder: Path) -> None:
    """A file that stood there before is refused until it is named itself."""
    path, link = folder / "precious", folder.parent / "alias"
    path.write_text("x", encoding="utf-8")
    link.symlink_to(path)
    expected = f"{path} exists and was not created by volbench: it would be overwritten"
    for allow in ([], [str(folder)], ["/"], [path.name]):
        assert refusal(HERE, str(folder), files=[str(path)], allow=allow) == expected
    for allow in ([str(path)], [str(link)]):
        assert refusal(HERE, str(folder), files=[str(path)], allow=allow) == ""
    assert refusal(HERE, str(path), files=[str(path)], allow=[]) == expected
    assert refusal(HERE, str(folder), files=[f"{folder}/new", str(path)]).startswith(
        f"{path} exists"
    )
    assert refusal(HERE, str(path), files=[str(path)]) == ""
    for size, problem in (("1", ""), ("2", "is shorter than")):
        options = {"filename": path.name, "rw": "randread", "size": size}
        found = refusal(HERE, str(folder), files=[str(path)], allow=[], options=options)
        assert problem in found
        assert bool(problem) is bool(found)  # a file that is only read needs no permission
    options = {"filename": "none", "rw": "read"}
    found = refusal(HERE, str(folder), files=[f"{folder}/none"], options=options)
    assert found.endswith("none does not exist")


def test_a_symlink_is_not_written_through(folder: Path) -> None:
    """A symlink as a file is refused, though volbench or its user know it."""
    path, link, dangling = folder / "precious", folder / "link", folder / "dangling"
    path.write_text("x", encoding="utf-8")
    link.symlink_to(path)
    dangling.symlink_to(folder / "new")
    for name, real in ((link, path), (dangling, folder / "new")):
        expected = f"{name} is a symlink to {real}"
        for target in (folder, name):
            assert (
                refusal(
                    HERE,
                    str(target),
                    files=[str(name)],
                    allow=[str(name), str(path)],
                    made=[str(name)],
                )
                == expected
            )


def test_a_file_outside_its_folder_is_refused(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither a symlink nor dots nor a whole path lead out of the volume, for reading either."""
    outside = folder.parent / "outside"
    outside.mkdir()
    (folder / "door").symlink_to(outside)
    (folder.parent / "data-too").mkdir()
    for name in ("door/file", "../outside/file", "../data-too/file"):
        path = str(folder / name)
        for writes in (True, False):
            message = refusal(HERE, str(folder), files=[path], writes=writes)
            assert message.startswith(f"{path} leads outside its volume, to {folder.parent}")
    monkeypatch.chdir(folder)  # fio has another folder
    (folder / "here").symlink_to("/proc/self/cwd")
    message = refusal(HERE, str(folder), files=[f"{folder}/here/file"])
    assert "here/file leads outside its volume, to /proc/self" in message


def test_a_path_that_is_not_a_regular_file_is_refused(folder: Path) -> None:
    """Pipes and folders in the place of a file are refused, for reading too."""
    os.mkfifo(folder / "pipe")
    (folder / "folder").mkdir()
    for writes in (True, False):
        for name, what in (("pipe", "not a regular file"), ("folder", "a folder")):
            path = str(folder / name)
            message = refusal(HERE, str(folder), files=[path], writes=writes)
            assert message == f"{path} is {what}"


def test_a_missing_folder_is_refused(folder: Path) -> None:
    """A folder that went away since the plan is not recreated on the disk of its parent."""
    volume = find_volume(HERE, role="data", target=str(folder))
    file = find_volume(HERE, role="data", target=str(folder / "file"))
    folder.rmdir()
    expected = f"there is no folder {folder}: fio would create it and fill the disk of its parent"
    for gone in (volume, file):
        for writes in (True, False):
            path = str(folder / "file")
            assert refusal(HERE, gone, files=[path], writes=writes) == expected


def test_a_missing_mount_is_refused() -> None:
    """A mount point of fstab where nothing is mounted would fill the disk under it."""
    machine = FakeExecutor(
        files={
            "/proc/self/mountinfo": "27 1 8:1 / / rw,relatime - ext4 /dev/sda1 rw\n",
            "/etc/fstab": "# volumes\nUUID=1 / ext4 defaults 0 1\nUUID=2 /data\\0401 xfs noatime\n",
            "/data 1/lost/x": "",
            "/data/x": "",
        }
    )
    for target in ("/data 1", "/data 1/lost"):
        assert refusal(machine, target, files=[f"{target}/new"]) == (
            "/data 1 is a mount point in /etc/fstab, but nothing is mounted there: "
            f"{target} would fill the disk that holds it"
        )
    assert refusal(machine, "/data", files=["/data/new"]) == ""
    machine.files["/proc/self/mountinfo"] += (
        "28 27 8:17 / /data\\0401 rw shared:1 - xfs /dev/sdb1 rw\n"
    )
    assert refusal(machine, "/data 1", files=["/data 1/new"]) == ""


def test_a_folder_among_devices_is_refused() -> None:
    """A folder of /dev is memory; a filesystem that is mounted further down is a folder."""
    volume = Volume(role="data", kind=VolumeKind.DIRECTORY, target="/dev/pts/..")
    message = refusal(HERE, volume, files=["/dev/new"])
    assert message == "/dev/pts/.. is not a block device but a file in memory below /dev"
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        assert refusal(HERE, folder, files=[f"{folder}/new"]) == ""


@pytest.mark.parametrize("writes", [True, False])
def test_an_export_is_overwritten_only_by_name(*, writes: bool) -> None:
    """What an NBD server exports may be somebody's disk."""
    uri = "nbd://host/export"
    expected = f"job j would overwrite {uri}" if writes else ""
    for allow in ([], ["nbd://host/other"]):
        assert refusal(HERE, uri, writes=writes, allow=allow) == expected
    assert refusal(HERE, uri, writes=writes) == ""


def test_space_is_checked_with_a_reserve() -> None:
    """A Run needs its bytes, 5 % more and 64 MiB; a run that makes nothing needs none."""
    machine = FakeExecutor(files={"/data/x": ""})
    needed = 100 * 1024**2
    machine.free = needed + needed // 20 + RESERVE_BYTES
    check_room(machine, "/data/new", needed_bytes=needed)
    machine.free -= 1
    with pytest.raises(
        RefusedError, match="/data/new needs 100 MiB and a reserve of 69 MiB"
    ) as caught:
        check_room(machine, "/data/new", needed_bytes=needed)
    assert "or write less: --set size=99m" in caught.value.hint
    with pytest.raises(RefusedError, match="needs 100 MiB") as caught:
        check_space("/new", free_bytes=needed, needed_bytes=needed, options="--size {} --fit wrap")
    assert caught.value.hint == "free some space, or write less: --size 34m --fit wrap"
    with pytest.raises(RefusedError) as caught:
        check_space("/new", free_bytes=needed // 2, needed_bytes=needed)
    assert caught.value.hint == "free some space, or name a larger folder: 64 MiB must stay free"
    machine.free = 0
    check_room(machine, "/data/new", needed_bytes=0)


class TestInUse:
    """Files that the kernel uses."""

    pytestmark = pytest.mark.root

    def test_a_file_under_a_loop_device_is_refused(self, disks: Disks) -> None:
        """The image of a disk in use is refused, by a hard link to it too, until it is detached."""
        image = disks.image()
        other = image.with_name("other")
        other.hardlink_to(image)
        device = attach_loop(image)
        try:
            for path in (str(image), str(other)):
                message = refusal(HERE, path, files=[path], made=[path])
                assert message == f"{path} is in use by the loop device {Path(device).name}"
        finally:
            call("losetup", "-d", device)
        assert refusal(HERE, str(image), files=[str(image)]) == ""

    def test_a_file_that_a_program_has_open_is_refused(self, folder: Path) -> None:
        """It may be the disk of a virtual machine, or be exported, under whatever name."""
        path, link = folder / "disk.img", folder / "link"
        path.write_bytes(bytes(4096))
        link.hardlink_to(path)
        with path.open("rb"):
            message = refusal(HERE, str(link), files=[str(link)])
            assert message == f"{link} is open in another campaign, a program or the kernel"
        assert refusal(HERE, str(link), files=[str(link)]) == ""

    def test_a_swap_file_is_refused(self, disks: Disks) -> None:
        """A file that holds swapped memory is refused though it is allowed."""
        device = disks.attach()
        disks.format(device)
        path = disks.mount(device) / "swap"
        path.write_bytes(bytes(4 * 1024**2))
        path.chmod(0o600)
        disks.swap(str(path))
        message = refusal(HERE, str(path), files=[str(path)])
        assert message == f"{path} is in use as swap"
        assert f"{path} is in use as swap" in refusal(HERE, disks.attach(path), wipe=True)

    def test_a_device_inside_a_folder_is_refused(self, disks: Disks, folder: Path) -> None:
        """A device node in the place of a file is refused, and so is a symlink to a device."""
        device = disks.attach()
        os.mknod(folder / "node", 0o600 | 0o060000, Path(device).stat().st_rdev)
        (folder / "link").symlink_to(device)
        node, link = str(folder / "node"), str(folder / "link")
        assert refusal(HERE, str(folder), files=[node]) == f"{node} is a block device"
        for writes in (True, False):
            message = refusal(HERE, str(folder), files=[link], writes=writes)
            assert message == f"{link} leads outside its volume, to {device}"
