"""Devices that show the same storage under several names: what one is used for holds for all."""

import ctypes
import os
import stat
import struct
import subprocess
from pathlib import Path

import pytest

from tests.engine.conftest import HERE, IMAGE_BYTES, Disks, call, refusal
from tests.engine.machines import Server
from volbench.engine.guard.volume_targets import find_volume
from volbench.engine.hosts.described_volumes import describe_files
from volbench.execute.agent import mounts
from volbench.execute.agent.locks import places


@pytest.mark.root
def test_an_image_attached_twice(disks: Disks) -> None:
    """What one loop device is used for, or not named for, holds for the other, at any offset."""
    image = disks.image(2 * IMAGE_BYTES)
    first, second = disks.attach(image, "--offset", str(IMAGE_BYTES)), disks.attach(image)
    assert refusal(HERE, second) == f"{second} is in use by the loop device {Path(first).name}"
    assert refusal(HERE, second, allow=[first, second]) == ""
    disks.format(first)
    point = disks.mount(first)
    for device in (first, second):
        assert refusal(HERE, device).endswith(f"is mounted, or one of its partitions is: {point}")


@pytest.mark.root
def test_an_image_attached_twice_and_held_by_a_program(disks: Disks) -> None:
    """A use that no table shows, such as a mount in a container, is known to the kernel."""
    image = disks.image()
    first, second = disks.attach(image), disks.attach(image)
    descriptor = os.open(first, os.O_RDONLY | os.O_EXCL)
    try:
        assert "cannot be opened exclusively" in refusal(HERE, second, allow=[first, second])
    finally:
        os.close(descriptor)
    upper = disks.attach(Path(second))
    with image.open("r+b"):
        message = f"is in other use: {image} is in use by "
        assert message in refusal(HERE, upper, allow=[first, upper])


@pytest.mark.root
def test_a_loop_device_on_a_mounted_device(disks: Disks) -> None:
    """Writing to a loop device writes to the device that it is on."""
    lower = disks.attach()
    disks.format(lower)
    upper = disks.attach(Path(lower))
    point = disks.mount(lower)
    assert refusal(HERE, upper).endswith(f"is mounted, or one of its partitions is: {point}")


@pytest.mark.root
def test_a_partition_in_use_by_another_name_of_its_disk(disks: Disks) -> None:
    """Partitions at the same place of the same image are the same."""
    image = disks.image()
    first, second = disks.attach(image), disks.attach(image)
    used, other = disks.partition(first), disks.partition(second)
    disks.swap(used)
    for device in (other, second):
        assert "is in use as swap" in refusal(HERE, device)


@pytest.mark.root
def test_an_extended_partition(disks: Disks) -> None:
    """The kernel shows two sectors of an extended partition: the table of the logical ones."""
    disk = disks.attach()
    call("addpart", disk, "1", "2048", "2")
    try:
        assert "is an extended partition" in refusal(HERE, f"{disk}p1")
        assert refusal(HERE, disk) == ""
    finally:
        call("delpart", disk, "1")


@pytest.mark.root
def test_a_part_of_a_disk_that_a_program_holds_under_another_name(disks: Disks) -> None:
    """A loop device on a partition is a part of a loop device on the disk."""
    disk = disks.attach()
    whole = disks.attach(Path(disk))
    part = disks.attach(Path(disks.partition(disk)))
    descriptor = os.open(whole, os.O_RDONLY | os.O_EXCL)
    try:
        error = refusal(HERE, part, allow=[whole, part])
        assert f"cannot be opened exclusively as {whole}" in error
    finally:
        os.close(descriptor)


def test_two_paths_to_a_disk_are_one_disk() -> None:
    """Without multipathd the paths to a disk are two disks with the same World Wide Name."""
    server = Server()
    for name, minor in (("sdb", 16), ("sdc", 32)):
        server.disk(name, (8, minor), device__wwid="naa.5000c500a1b2c3d4")
        server.part(name, f"{name}1", (8, minor + 1))
        server.machine.files[f"/sys/devices/{name}/{name}1/start"] = "2048\n"
        server.machine.links[f"/sys/block/{name}"] = f"/sys/devices/{name}"
    server.disk("sdd", (8, 48), device__wwid="naa.5000c500ffffffff")
    server.machine.links["/sys/block/sdd"] = "/sys/devices/sdd"
    server.build("dm-0", (253, 0), "sdb1")
    for device in ("sdd", "dm-0"):
        assert refusal(server.machine, f"/dev/{device}") == ""
    server.mount("28 27 8:33 / /data rw - ext4 /dev/sdc1 rw")
    for device in ("sdb", "sdb1", "sdc", "sdc1", "dm-0"):
        assert refusal(server.machine, f"/dev/{device}").endswith(
            "is mounted, or one of its partitions is: /data"
        )
    assert refusal(server.machine, "/dev/sdd") == ""


def test_the_name_of_a_mount_that_another_device_has_now() -> None:
    """The disk of / is known by its number, though a lower number has the name of its source."""
    server = Server()
    server.disk("sdb", (8, 16))
    server.part("sdb", "sdb1", (8, 17))
    server.part("sdb", "sdb2", (8, 18))
    server.machine.files["/proc/self/mountinfo"] = "27 1 8:17 / / rw - ext4 /dev/sda1 rw\n"
    assert refusal(server.machine, "/dev/sdb2").endswith("is the disk of /, or part of it")


def test_a_partition_of_a_member_at_rest() -> None:
    """A disk that belongs to a RAID as a whole may show the partitions of that RAID."""
    server = Server()
    server.disk("sdb", (8, 16))
    server.part("sdb", "sdb1", (8, 17))
    assert refusal(server.machine, "/dev/sdb1", wipe=True) == ""
    server.signatures["/dev/sdb"] = (0, "TYPE=isw_raid_member\nUSAGE=raid\n")
    for wipe in (False, True):
        reason = refusal(server.machine, "/dev/sdb1", wipe=wipe)
        assert "is a partition of /dev/sdb, a member of a larger volume" in reason


@pytest.mark.root
class TestOtherNamesOfAnImage:
    """A mounted image is known by its inode, whichever of its names are left."""

    def test_a_hard_link_after_the_attached_name_was_removed(self, disks: Disks) -> None:
        """The kernel still shows the removed name; the file is attached under the link."""
        image, link = disks.image(), disks.folder / "link.img"
        first = disks.attach(image)
        disks.format(first)
        point = disks.mount(first)
        link.hardlink_to(image)
        image.unlink()
        name = Path(first).name
        expected = f"{link} is in use by the loop device {name}"
        assert refusal(HERE, str(link), files=[str(link)]) == expected
        second = disks.attach(link)
        assert refusal(HERE, second).endswith(f"is mounted, or one of its partitions is: {point}")

    @pytest.mark.parametrize("is_shown", [False, True])
    def test_a_file_of_an_overlay_and_of_its_upper_folder_are_one(
        self, disks: Disks, *, is_shown: bool
    ) -> None:
        """A file that is mounted or open as one is so as both, under other mount points too."""
        base = disks.folder / "a b,c"
        base.mkdir()
        merged = disks.overlay(base)
        (base / "lower" / "in").mkdir()
        call("truncate", "-s", str(IMAGE_BYTES), str(base / "lower" / "in" / "disk.img"))
        with (merged / "in" / "disk.img").open("r+b"):  # copies it
            pass
        upper = disks.mount(str(base / "upper" / "in"), "--bind") / "disk.img"
        shown = disks.mount(str(merged / "in"), "--bind") / "disk.img"
        used, named = (shown, upper) if is_shown else (upper, shown)
        with used.open("rb"):
            assert "is open in another" in refusal(HERE, str(named), files=[str(named)])
        device = disks.attach(named)
        with used.open("rb"):
            assert "is in use by " in refusal(HERE, device)
        assert refusal(HERE, device) == ""
        for path in map(str, (named, used)):
            expected = f"{path} is in use by the loop device {Path(device).name}"
            assert refusal(HERE, path, files=[path]) == expected
        disks.format(device)
        point = disks.mount(device)
        assert refusal(HERE, disks.attach(used)).endswith(f"of its partitions is: {point}")

    def test_a_folder_of_an_overlay_is_locked_in_its_upper_folder(self, disks: Disks) -> None:
        """Also one of a lower layer, which gets its upper folder when something is written."""
        merged = disks.overlay()
        (disks.folder / "lower" / "in").mkdir()
        upper = disks.folder / "upper" / "in"
        for target in ("", "/new"):
            locked = places([], [f"{merged}/in{target}"]).locks.keys()
            upper.mkdir(exist_ok=True)
            assert locked & places([], [f"{upper}{target}"]).locks.keys()

    @pytest.mark.alone  # no loop device can be compared with one on an overlay that is not seen
    @pytest.mark.parametrize("is_elsewhere", [False, True])
    def test_a_file_of_an_overlay_that_is_not_mounted_here(
        self, disks: Disks, *, is_elsewhere: bool
    ) -> None:
        """The kernel knows the file of a loop device by the number of the overlay alone."""
        merged, device = disks.overlay(), disks.attach()
        image = disks.image().rename(disks.folder / "upper" / "disk.img")
        call("losetup", "-d", device)
        attach = f"losetup {device} {merged}/disk.img"
        call(*(("unshare", "--mount") if is_elsewhere else ()), "sh", "-c", attach)
        call("umount", "-l", str(merged))
        assert "is open in another" in refusal(HERE, str(image), files=[str(image)])
        expected = f"cannot be compared with the file of the loop device {Path(device).name}"
        assert expected in refusal(HERE, disks.attach(image))

    @pytest.mark.alone  # mount namespaces that other tests make meanwhile would keep the erofs
    @pytest.mark.parametrize("is_elsewhere", [False, True])
    def test_an_image_that_the_kernel_mounts_without_a_loop_device(
        self, disks: Disks, *, is_elsewhere: bool
    ) -> None:
        """An erofs is mounted from its file, also in another mount namespace; maybe a nameless."""
        image, point = disks.image(), disks.folder / "mounted"
        superblock = struct.pack("<3I2BH2Q5I", 0xE0F5E1E2, 0, 0, 12, 0, 36, 1, 0, 0, 2, 0, 0, 0)
        folder = struct.pack("<4H", 0, 0, stat.S_IFDIR | 0o755, 2)  # its root
        with image.open("r+b") as file:
            file.write(bytes(1024) + superblock.ljust(128, b"\0") + folder)
        point.mkdir()
        if ctypes.CDLL(None).mount(bytes(image), bytes(point), b"erofs", os.ST_RDONLY, None):
            pytest.skip("this kernel mounts no file as erofs")
        held = ("unshare", "--mount", "sh", "-c", "echo begun; read line")
        other = subprocess.Popen(held, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert other.stdout is not None
        assert other.stdout.readline() == b"begun\n"
        if is_elsewhere:
            call("umount", str(point))
        try:
            device = disks.attach(image)
            for _ in range(2):
                problem = refusal(HERE, device, wipe=True)
                assert f"in other use: {image} is in use as erofs at {point}" in problem
                image = image.rename(disks.folder / "renamed")
        finally:
            other.communicate()
            if not is_elsewhere:
                call("umount", str(point))

    @pytest.mark.parametrize(
        "name", ["target/core/fileio_0/a/udev_path", "nvmet/subsystems/q/namespaces/1/device_path"]
    )
    def test_what_the_machine_exports(
        self, disks: Disks, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str
    ) -> None:
        """A device, or the file below a loop device, that a kernel without LIO seems to export."""
        monkeypatch.setattr(mounts, "_CONFIG", f"{tmp_path}/")
        image = disks.image()
        device = disks.attach(image)
        (tmp_path / name).parent.mkdir(parents=True)
        for exported in (device, image):
            (tmp_path / name).write_text(f"{exported}\n")
            assert "in use as export " in refusal(HERE, device, wipe=True)

    def test_a_check_copies_no_file_of_a_lower_layer(self, disks: Disks) -> None:
        """An overlay copies a whole file that is opened for writing, which needs space for it."""
        merged = disks.overlay()
        file = str(merged / "file")
        (disks.folder / "lower" / "file").write_bytes(bytes(1 << 20))
        refusal(HERE, str(merged), files=[file])
        assert list((disks.folder / "upper").iterdir()) == []
        for copied_bytes in (1 << 20, 0):
            (seen,) = describe_files(HERE, [file], allow=[file])
            assert seen.copied_bytes == copied_bytes
            Path(file).open("r+b").close()


@pytest.mark.root
def test_a_loop_device_at_another_offset_is_another_device(disks: Disks) -> None:
    """It shows another region of the same file, whatever its number."""
    image = disks.image(2 * IMAGE_BYTES)
    size = ["--sizelimit", str(IMAGE_BYTES)]
    device = disks.attach(image, *size)
    planned = find_volume(HERE, role="data", target=device)
    assert refusal(HERE, planned) == ""
    call("losetup", "-d", device)
    disks.attach_at(device, image, *size, "--offset", str(IMAGE_BYTES))
    assert "file behind it was" in refusal(HERE, planned)
