"""The guard before real block devices: what is in use is refused, though the user allowed it."""

import mmap
import os
from pathlib import Path

import pytest

from tests.engine.conftest import HERE, IMAGE_BYTES, Disks, refusal
from volbench.engine.guard.volume_targets import find_volume
from volbench.execute.agent.block_devices import Devices
from volbench.execute.agent.mounts import number_under
from volbench.execute.agent.snapshot import Snapshot
from volbench.model.campaign.planned_run import DevicePin, VolumeKind

pytestmark = pytest.mark.root


def is_mounted_at(point: Path, reason: str) -> bool:
    """Return whether a refusal names a mount and its mount point."""
    return " is mounted" in reason and reason.endswith(f": {point}")


def test_a_device_with_a_filesystem_needs_a_second_consent(disks: Disks) -> None:
    """What is on a device may be overwritten only if its user also said so."""
    device = disks.attach()
    disks.format(device)
    assert refusal(HERE, device) == f"{device} holds ext4"
    assert refusal(HERE, device, wipe=True) == ""
    assert refusal(HERE, device, wipe=True, allow=[]) == f"job j would overwrite {device}"


def test_a_device_needs_permission(disks: Disks) -> None:
    """A free device that the user did not name is refused, also when another one is named."""
    device, other = disks.attach(), disks.attach()
    for allow in ([], [other], ["/"], [""], [device + "x"], [str(Path(device).name)]):
        assert refusal(HERE, device, allow=allow) == f"job j would overwrite {device}"


def test_permission_is_given_by_any_name_of_the_device(disks: Disks, tmp_path: Path) -> None:
    """A symlink such as those in /dev/disk/by-id names the device on both sides."""
    device, link = disks.attach(), tmp_path / "by-id"
    link.symlink_to(device)
    assert refusal(HERE, device, allow=[str(link)]) == ""
    assert refusal(HERE, str(link), allow=[device]) == ""
    assert refusal(HERE, str(link), allow=[]) == f"job j would overwrite {link}"
    node = tmp_path / "node"
    os.mknod(node, 0o600 | 0o060000, Path(device).stat().st_rdev)
    assert refusal(HERE, device, allow=[str(node)]) == f"job j would overwrite {device}"


def test_permission_for_a_disk_does_not_include_its_partitions(disks: Disks) -> None:
    """Each device is named by itself."""
    disk = disks.attach()
    part = disks.partition(disk)
    assert refusal(HERE, part, allow=[disk]) == f"job j would overwrite {part}"
    assert refusal(HERE, disk, allow=[part]) == f"job j would overwrite {disk}"
    assert refusal(HERE, part) == ""
    assert refusal(HERE, disk) == ""


def test_a_mounted_device_is_refused_by_every_name(disks: Disks, tmp_path: Path) -> None:
    """A mounted device is known by its number: no symlink, node or spelling hides it."""
    device = disks.attach()
    disks.format(device)
    point = disks.mount(device)
    link, node = tmp_path / "link", tmp_path / "node"
    link.symlink_to(device)
    os.mknod(node, 0o600 | 0o060000, Path(device).stat().st_rdev)
    for name in (device, str(link), str(node), f"/dev/../dev/{Path(device).name}"):
        assert is_mounted_at(point, refusal(HERE, name))


def test_swap_is_refused(disks: Disks, tmp_path: Path) -> None:
    """A device that holds swapped memory is in use, by whatever name."""
    device, link = disks.attach(), tmp_path / "link"
    link.symlink_to(device)
    disks.swap(device)
    for name in (device, str(link)):
        assert refusal(HERE, name) == f"{name} is in use as swap, or one of its partitions is"


def test_a_device_under_a_loop_device_is_refused(disks: Disks) -> None:
    """A loop device on a device does not show among its holders, and still uses it."""
    device = disks.attach()
    upper = disks.attach(Path(device))
    name = Path(upper).name
    assert refusal(HERE, device) == f"{device} is in use by the loop device {name}"


@pytest.mark.parametrize("way", ["open", "mapped", "disk", "partition"])
def test_a_device_that_a_program_writes_is_refused(disks: Disks, way: str) -> None:
    """Open or mapped for writing, itself or its disk or partition; readers do not count."""
    disk = disks.attach()
    device = disks.partition(disk) if way in {"disk", "partition"} else disk
    used, target = (disk, device) if way == "disk" else (device, disk)
    for flags, words in (
        (os.O_RDONLY, ""),
        (os.O_RDWR, f"{target} is open for writing in "),
        (os.O_RDONLY | os.O_EXCL, f"{target} cannot be opened exclusively: "),
    ):
        descriptor = os.open(used, flags)
        access = mmap.ACCESS_WRITE if flags & os.O_RDWR else mmap.ACCESS_READ
        with mmap.mmap(descriptor, 4096, access=access):
            if way == "mapped":
                os.close(descriptor)
            seen = refusal(HERE, target)
            assert seen.startswith(words)
            assert bool(seen) == bool(words)
        if way != "mapped":
            os.close(descriptor)
    assert refusal(HERE, target) == ""


def test_a_read_only_device_is_refused(disks: Disks) -> None:
    """A device that can't be written is no target for a run that writes."""
    device = disks.attach(None, "--read-only")
    assert refusal(HERE, device) == f"{device} is read-only"
    assert refusal(HERE, device, writes=False) == ""


def test_the_root_disk_is_refused(tmp_path: Path) -> None:
    """No leave opens the way to the disk under /."""
    snapshot = Snapshot()
    under = Devices(snapshot).of_path("/")
    assert under or number_under(snapshot, "/") is None, "/ is in memory or on a network"
    for device in under:
        link = tmp_path / device.name.replace("!", "-")
        link.symlink_to(device.node)
        for name in (device.node, str(link)):
            expected = f"{name} is the disk of /, or part of it"
            assert refusal(HERE, name) in {expected, f"{name} is read-only"}


def test_the_disk_under_an_image_under_the_campaign_folder_is_refused(disks: Disks) -> None:
    """The campaign folder is followed through a loop device down to the disk with its image."""
    lower = disks.attach()
    disks.format(lower)
    point = disks.mount(lower)
    image = point / "image"
    with image.open("wb") as file:
        file.truncate(IMAGE_BYTES // 2)
    upper = disks.attach(image)
    disks.format(upper)
    campaign = str(disks.mount(upper) / "campaign")
    for device in (lower, upper):
        assert (
            refusal(HERE, device, campaign_dir=campaign)
            == f"{device} is the disk of the campaign folder, or part of it"
        )


def test_a_device_that_went_away_is_refused(disks: Disks, tmp_path: Path) -> None:
    """A device that was unplugged, or whose name is a file now, is refused before fio sees it."""
    device, link = disks.attach(), tmp_path / "link"
    link.symlink_to(device)
    volume = find_volume(HERE, role="data", target=str(link))
    link.unlink()
    assert refusal(HERE, volume, writes=False) == f"{link} no longer exists"
    link.write_text("", encoding="utf-8")
    assert refusal(HERE, volume) == f"{link} is not a block device"


@pytest.mark.parametrize("field", ["serial", "model", "major", "minor", "size_bytes"])
def test_every_part_of_the_pin_counts(disks: Disks, field: str) -> None:
    """A device that differs in one part of its identity is another device."""
    volume = find_volume(HERE, role="data", target=disks.attach())
    assert volume.kind is VolumeKind.DEVICE
    assert isinstance(volume.pin, DevicePin)
    changed = {"serial": "X1", "model": "X2", "major": 1, "minor": 200, "size_bytes": 512}[field]
    pin = volume.pin.model_copy(update={field: changed})
    assert "is not the device that was planned" in refusal(
        HERE, volume.model_copy(update={"pin": pin})
    )
    unpinned = volume.model_copy(update={"pin": None})
    assert "it was not identified when" in refusal(HERE, unpinned)
