"""Devices that show the same storage under several names: what one is used for holds for all."""

import os
from pathlib import Path

import pytest

from tests.engine.conftest import HERE, IMAGE_BYTES, Disks, call, refusal
from tests.engine.machines import Server
from volbench.engine.guard.volume_targets import find_volume
from volbench.engine.hosts.described_volumes import describe_files


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
        message = f"is on a file in other use: {image} is in use by "
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
    for device in ("sdb", "sdc1", "sdd"):
        assert refusal(server.machine, f"/dev/{device}") == ""
    server.mount("28 27 8:33 / /data rw - ext4 /dev/sdc1 rw")
    for device in ("sdb", "sdb1", "sdc", "sdc1"):
        assert refusal(server.machine, f"/dev/{device}").endswith(
            "is mounted, or one of its partitions is: /data"
        )
    assert refusal(server.machine, "/dev/sdd") == ""


def test_a_stack_on_one_path_to_a_disk() -> None:
    """A volume is refused while another path to its disk is in use."""
    server = Server()
    for name, minor in (("sdb", 16), ("sdc", 32)):
        server.disk(name, (8, minor), device__wwid="naa.5000c500a1b2c3d4")
        server.machine.links[f"/sys/block/{name}"] = f"/sys/devices/{name}"
    top = server.build("dm-0", (253, 0), "sdb")
    assert refusal(server.machine, top) == ""
    server.mount("28 27 8:32 / /data rw - ext4 /dev/sdc rw")
    assert refusal(server.machine, top).endswith("is mounted, or one of its partitions is: /data")


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

    @pytest.mark.alone  # no loop device can be compared with one on an overlay
    def test_an_overlay_shows_a_file_under_another_number(self, disks: Disks) -> None:
        """Neither the file nor a loop device on it can be compared with what is attached."""
        merged = disks.overlay()
        image = disks.image().rename(disks.folder / "upper" / "disk.img")
        first = disks.attach(image)
        disks.format(first)
        disks.mount(first)
        path = str(merged / image.name)
        assert "cannot be compared" in refusal(HERE, path, files=[path])
        assert "cannot be compared" in refusal(HERE, disks.attach(Path(path)))

    @pytest.mark.alone  # no loop device can be compared with one on an overlay
    def test_a_file_below_a_mounted_image_of_an_overlay(self, disks: Disks) -> None:
        """The file is open below the overlay, which no name tells."""
        merged = disks.overlay()
        image = disks.image().rename(disks.folder / "upper" / "disk.img")
        first = disks.attach(merged / image.name)
        disks.format(first)
        disks.mount(first)
        assert "is open" in refusal(HERE, str(image), files=[str(image)])
        assert "cannot be compared" in refusal(HERE, disks.attach(image))

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
