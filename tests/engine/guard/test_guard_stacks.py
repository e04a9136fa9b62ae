"""The guard before stacks of devices, scripted: LVM, RAID, device mapper, ZFS, btrfs."""

import errno
from unittest import mock

import pytest

from tests.engine.conftest import refusal
from tests.engine.machines import Server
from tests.execute.fake import FakeExecutor
from volbench.engine.guard.volume_targets import find_volume
from volbench.errors import InputError
from volbench.execute.agent.files import FileStat
from volbench.execute.protocol import Completed


@pytest.fixture
def server() -> Server:
    """Hand out a machine with a root disk and a free disk ``sdb`` with a partition."""
    made = Server()
    made.disk("sdb", (8, 16), device__serial="S1", device__model="Fast")
    made.part("sdb", "sdb1", (8, 17))
    return made


@pytest.mark.parametrize("upper", ["dm-0", "md0", "bcache0"])
def test_a_device_under_another_device_is_refused(server: Server, upper: str) -> None:
    """A disk and its partition belong to the LVM, RAID or cache that holds the partition."""
    server.build(upper, (253, 0), "sdb1")
    for device in ("/dev/sdb", "/dev/sdb1"):
        assert refusal(server.machine, device) == (
            f"{device} is held by {upper} (LVM, RAID, device mapper or similar)"
        )


def test_a_logical_volume_on_the_root_disk_is_refused(server: Server) -> None:
    """A volume whose disk carries / too is refused, however many layers lie between."""
    server.part("sda", "sda2", (8, 2))
    server.build("md0", (9, 0), "sda2", "sdb1")
    top = server.build("dm-0", (253, 0), "md0")
    assert refusal(server.machine, top) == f"{top} is the disk of /, or part of it"


def test_every_disk_under_root_is_refused(server: Server) -> None:
    """A root on LVM on RAID protects all its disks, their partitions and each layer."""
    server.disk("sdc", (8, 32))
    server.part("sdc", "sdc1", (8, 33))
    server.build("md0", (9, 0), "sdb1", "sdc1")
    server.build("dm-0", (253, 0), "md0")
    server.machine.files["/proc/self/mountinfo"] = (
        "27 1 253:0 / / rw,relatime - ext4 /dev/mapper/vg-root rw\n"
    )
    for name in ("sdb", "sdb1", "sdc", "sdc1", "md0", "dm-0"):
        device = f"/dev/{name}"
        assert refusal(server.machine, device) == f"{device} is the disk of /, or part of it"
    assert refusal(server.machine, "/dev/sda") == ""


def test_a_btrfs_mount_is_a_mount(server: Server) -> None:
    """It has a number of its own; the source of the mount tells the disk, also that of /."""
    server.mount("28 27 0:26 / /data rw - btrfs /dev/sdb1 rw")
    mounted = "/dev/sdb is mounted, or one of its partitions is: /data"
    assert refusal(server.machine, "/dev/sdb", campaign_dir="/") == mounted
    server.machine.files["/proc/self/mountinfo"] = "27 1 0:25 /@ / rw - btrfs /dev/sdb1 rw\n"
    assert refusal(server.machine, "/dev/sdb") == "/dev/sdb is the disk of /, or part of it"


def test_the_disk_under_the_campaign_folder_is_refused(server: Server) -> None:
    """A sibling of the partition with the results is on the same disk."""
    server.part("sdb", "sdb2", (8, 18))
    server.mount("28 27 8:17 / /data rw - ext4 /dev/sdb1 rw")
    assert refusal(server.machine, "/dev/sdb2", campaign_dir="/data/new/campaign") == (
        "/dev/sdb2 is the disk of the campaign folder, or part of it"
    )


@pytest.mark.parametrize(
    ("kind", "usage"),
    [
        ("LVM2_member", "raid"),
        ("linux_raid_member", "raid"),
        ("zfs_member", "filesystem"),
        ("isw_raid_member", "raid"),
        ("bcache", "other"),
        ("ceph_bluestore", "other"),
    ],
)
def test_a_member_at_rest_is_refused(server: Server, kind: str, usage: str) -> None:
    """A member of a stack that is not started holds its share of the data."""
    server.signatures["/dev/sdb1"] = (0, f"DEVNAME=/dev/sdb1\nTYPE={kind}\nUSAGE={usage}\n")
    for device in ("/dev/sdb", "/dev/sdb1"):
        assert refusal(server.machine, device) == (
            f"{device} is a member of a larger volume: /dev/sdb1 holds {kind}"
        )
    assert refusal(server.machine, "/dev/sdb", writes=False) == ""
    assert refusal(server.machine, "/dev/sdb", wipe=True) == ""


def test_signatures_that_contradict_are_refused(server: Server) -> None:
    """What blkid can't decide may be a member, whatever the user agreed to."""
    server.signatures["/dev/sdb"] = (8, "")
    assert refusal(server.machine, "/dev/sdb", wipe=True) == (
        "/dev/sdb holds several signatures that contradict each other"
    )


@pytest.mark.parametrize("count", [1, 2, 0])
def test_a_btrfs_of_several_devices_is_refused(server: Server, count: int) -> None:
    """A btrfs alone on its device is any filesystem; one of several, or unknown, is a member."""
    server.signatures["/dev/sdb"] = (0, "TYPE=btrfs\nUSAGE=filesystem\n")
    server.contents["/dev/sdb"] = {0x10088: count.to_bytes(8, "little")}
    spans = "/dev/sdb is part of a btrfs that spans several devices: /dev/sdb"
    assert refusal(server.machine, "/dev/sdb") == ("/dev/sdb holds btrfs" if count == 1 else spans)
    assert refusal(server.machine, "/dev/sdb", wipe=True) == ""


def test_a_device_that_cannot_be_read_is_refused(server: Server) -> None:
    """When blkid fails, or the device cannot be read, membership of the device is unknown."""
    expected = "/dev/sdb cannot be searched for signatures of LVM, RAID and similar: /dev/sdb"
    with mock.patch.object(server.machine, "content", side_effect=OSError(errno.EIO, "I/O error")):
        assert refusal(server.machine, "/dev/sdb", wipe=True) == expected
    server.machine.answers["blkid"] = lambda argv: Completed(argv, 2, "", "error: I/O error")
    assert refusal(server.machine, "/dev/sdb", wipe=True) == expected


def test_without_blkid_the_bytes_of_the_device_decide(server: Server) -> None:
    """A bare host has no blkid: known signatures are read, other data counts as one."""
    del server.machine.answers["blkid"]
    assert refusal(server.machine, "/dev/sdb") == ""
    server.contents["/dev/sdb"] = {512: b"LABELONE"}
    assert refusal(server.machine, "/dev/sdb") == (
        "/dev/sdb is a member of a larger volume: /dev/sdb holds LVM2_member"
    )
    server.contents["/dev/sdb"] = {4096: b"somebody's"}
    assert refusal(server.machine, "/dev/sdb") == (
        "/dev/sdb holds data that cannot be identified without blkid"
    )
    assert refusal(server.machine, "/dev/sdb", wipe=True) == ""


def test_names_with_a_slash_are_devices(server: Server) -> None:
    """The kernel writes ``cciss/c0d0`` with an exclamation mark."""
    node = server.disk("cciss!c0d0", (104, 0))
    assert node == "/dev/cciss/c0d0"
    assert refusal(server.machine, node) == ""
    server.signatures[node] = (0, "TYPE=LVM2_member\nUSAGE=raid\n")
    assert refusal(server.machine, node).startswith(f"{node} is a member of a larger volume")


def test_a_disk_with_another_name_by_id_is_refused(server: Server) -> None:
    """The name that udev makes from the disk's own identifiers is pinned too."""
    server.name("scsi-0ACME_1", "/dev/sdb")
    volume = find_volume(server.machine, role="data", target="/dev/sdb")
    assert refusal(server.machine, volume) == ""
    server.name("scsi-0ACME_2", "/dev/sdb")
    assert "by-id was scsi-0ACME_1, is scsi-0ACME_2" in refusal(server.machine, volume)


def test_only_programs_that_read_are_started(server: Server) -> None:
    """The guard runs blkid, and a script that reads, and nothing else."""
    server.signatures["/dev/sdb"] = (0, "TYPE=btrfs\n")
    refusal(server.machine, "/dev/sdb")
    assert {argv[0] for argv in server.machine.ran} == {"/usr/bin/blkid"}
    assert all("of=" not in " ".join(argv) for argv in server.machine.ran)


def test_files_hidden_from_an_ordinary_user_do_not_prevent_the_check(server: Server) -> None:
    """A loop file or mount source in a folder of root's does not stop what has nothing to do."""

    class Hiding(FakeExecutor):
        def stat(self, path: str, *, follow: bool = True) -> FileStat | None:
            if path.startswith("/root/"):
                raise InputError(f"{path} can't be examined: Permission denied")
            return super().stat(path, follow=follow)

    server.mount("28 27 0:30 / /archive rw - fuse.archive /root/archive rw")
    server.disk("loop0", (7, 0), loop__backing_file="/root/image")
    server.machine.files["/proc/swaps"] += "/root/swap file 1024 0 -2\n"
    hiding = Hiding()
    vars(hiding).update(vars(server.machine))
    assert refusal(hiding, "/dev/sdb") == ""
    assert refusal(hiding, "/data", files=["/data/new", "/data/x"], made=["/data/x"]) == ""


@pytest.mark.parametrize(
    "text", ["", "27 1 8:1\n", "27 1 x:1 / / rw - ext4 /dev/sda1 rw\n", "rm\n"]
)
def test_a_mount_table_that_cannot_be_read_is_refused(server: Server, text: str) -> None:
    """A host that answers with anything else is not taken for one without mounts."""
    server.machine.files["/proc/self/mountinfo"] = text
    assert "so mounted devices are unknown" in refusal(server.machine, "/dev/sdb")
