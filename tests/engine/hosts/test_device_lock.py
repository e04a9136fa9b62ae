"""Two campaigns never share a block device."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.engine.conftest import Disks, call
from tests.planned import planned_campaign, planned_run
from volbench.engine.hosts.device_lock import (
    other_campaigns,
    release_locks,
    reserve_host,
    shared_note,
)
from volbench.errors import RefusedError
from volbench.execute.local import LocalExecutor
from volbench.model.campaign.planned_run import Campaign, DevicePin, Volume, VolumeKind

EXECUTOR = LocalExecutor()
MAJOR = 4094
"""No device has this number."""


def a_campaign(seed: int, *minors: int) -> Campaign:
    """Return a plan on some devices."""
    runs = []
    for minor in minors:
        path = f"/dev/x{minor}"
        pin = DevicePin(path=path, major=MAJOR, minor=minor, size_bytes=1)
        volume = Volume(role="data", kind=VolumeKind.DEVICE, target=path, pin=pin)
        runs.append(planned_run(volume, id=f"r{minor}"))
    return planned_campaign(*runs, seed=seed)


def lock_of(minor: int) -> Path:
    """Return where the lock of a device is, whoever holds it."""
    places = (Path(folder) / f"volbench-{MAJOR}:{minor}" for folder in ("/run/lock", "/tmp"))
    return next((place for place in places if place.exists()), Path("/nowhere"))


@pytest.fixture(autouse=True)
def _no_locks() -> Iterator[None]:
    yield
    for campaign in (a_campaign(1, 1, 2), a_campaign(2, 1, 2)):
        release_locks(EXECUTOR, campaign)
    assert not lock_of(1).exists()


def test_the_second_campaign_is_refused() -> None:
    """It is told which device, and holds none of the others either."""
    reserve_host(EXECUTOR, a_campaign(1, 1))
    with pytest.raises(RefusedError, match="/dev/x1 on local is used by another") as caught:
        reserve_host(EXECUTOR, a_campaign(2, 2, 1))
    assert " DIR " not in caught.value.hint  # of the campaign that was refused
    assert f"{a_campaign(1, 1).created_utc[:10]} " in caught.value.hint
    assert not lock_of(2).exists()
    release_locks(EXECUTOR, a_campaign(2, 1))
    assert lock_of(1).exists()
    release_locks(EXECUTOR, a_campaign(1, 1))
    reserve_host(EXECUTOR, a_campaign(2, 1))


@pytest.mark.root
def test_a_lock_of_another_user_says_how_to_remove_it() -> None:
    """What the hint says helps."""
    reserve_host(EXECUTOR, a_campaign(2, 1))
    os.chown(lock := lock_of(1), 65534, 65534)
    with pytest.raises(RefusedError, match=f"{lock} belongs to user nobody") as caught:
        reserve_host(EXECUTOR, a_campaign(1, 1))
    assert caught.value.hint.endswith(f"root may remove {lock}")
    lock.unlink()
    reserve_host(EXECUTOR, a_campaign(1, 1))


def test_a_shared_file_system_is_reported_once() -> None:
    """In one sentence, however many hosts and campaigns share it."""
    words, host = shared_note({f"vm{n}": {"/data": ["b", "a"]} for n in range(4)})
    assert words.startswith("the disk of /data on vm0 and 3 more is also used by 2 other")
    assert "(a, b): " in words
    assert "--clean" not in words  # a run of others is not to be ended
    assert host == ""
    words, host = shared_note({"vm0": {"/data": ["b"]}, "vm1": {}})
    assert "of /data on vm0 is also used by 1 other campaign (b): " in words
    assert host == "vm0"
    assert shared_note({"vm0": {}}) == ("", "")


@pytest.mark.root
def test_a_lock_of_a_detached_disk_does_not_hold_the_next_one(disks: Disks) -> None:
    """A killed campaign leaves its lock, and the kernel gives out numbers of loop devices again."""
    device = disks.attach()
    first, second = (_campaign_on(device, seed) for seed in (1, 2))
    reserve_host(EXECUTOR, first)
    with pytest.raises(RefusedError, match="another campaign"):
        reserve_host(EXECUTOR, second)
    call("losetup", "-d", device)
    disks.attach_at(device, disks.image())
    reserve_host(EXECUTOR, second)
    release_locks(EXECUTOR, first)
    with pytest.raises(RefusedError, match="another campaign"):
        reserve_host(EXECUTOR, first)
    release_locks(EXECUTOR, second)


def _campaign_on(device: str, seed: int) -> Campaign:
    number = Path(device).stat().st_rdev
    campaign = a_campaign(seed, os.minor(number))
    (run,) = campaign.runs
    pin = DevicePin(path=device, major=os.major(number), minor=os.minor(number), size_bytes=1)
    volume = run.volume.model_copy(update={"target": device, "pin": pin})
    return campaign.model_copy(update={"runs": (run.model_copy(update={"volume": volume}),)})


def on_target(seed: int, target: Path, kind: VolumeKind = VolumeKind.DIRECTORY) -> Campaign:
    """Return a plan on a folder or file."""
    target.parent.mkdir(exist_ok=True)
    volume = Volume(role="data", kind=kind, target=str(target))
    return planned_campaign(planned_run(volume), seed=seed)


@pytest.mark.root
def test_a_partition_and_a_file_below_it_are_on_one_disk(disks: Disks) -> None:
    """A disk, its partition, and the folder that holds the file of both."""
    disk = disks.attach()
    first, second = _campaign_on(disk, 1), _campaign_on(disks.partition(disk), 2)
    folder = on_target(3, disks.folder / "x")
    reserve_host(EXECUTOR, first)
    assert first.key in str(reserve_host(EXECUTOR, second)[f"{disk}p1"])
    assert second.key in str(reserve_host(EXECUTOR, folder)[str(disks.folder / "x")])
    assert folder.key in other_campaigns(EXECUTOR, first)
    for campaign in (first, second, folder):
        release_locks(EXECUTOR, campaign)


class PodExecutor(LocalExecutor):
    """Executor whose locks are kept by the cluster."""

    def __init__(self, held: dict[str, str]) -> None:
        super().__init__()
        self._held, self.shared_locks = held, self

    def answer(self, verb: str, name: str, key: str) -> str:
        """Take or free a lock, or ignore disks."""
        if verb == "take":
            return "" if self._held.setdefault(name, key) == key else self._held[name]
        if verb == "free" and self._held.get(name) == key:
            del self._held[name]
        return ""


def test_a_folder_of_a_pod_is_used_by_one_campaign(tmp_path: Path) -> None:
    """Pods of one node may mount the same volume."""
    held: dict[str, str] = {}
    first, second = on_target(1, tmp_path), on_target(2, tmp_path)
    reserve_host(PodExecutor(held), first)
    with pytest.raises(RefusedError, match=f"{tmp_path} on local is used by another campaign"):
        reserve_host(PodExecutor(held), second)
    release_locks(PodExecutor(held), first)
    assert not held
    reserve_host(PodExecutor(held), second)


def test_a_folder_or_new_file_is_used_by_one_campaign(tmp_path: Path) -> None:
    """Another is refused on this machine too, until the first ends or its process is gone."""
    on, new = on_target, tmp_path / "new"
    for target, kind in ((tmp_path, VolumeKind.DIRECTORY), (new, VolumeKind.FILE)):
        first, second = on(1, target, kind), on(2, target, kind)
        reserve_host(EXECUTOR, first)
        reserve_host(EXECUTOR, on(3, tmp_path / "other", VolumeKind.FILE))
        with pytest.raises(RefusedError, match=f"{target} on local is used by another campaign"):
            reserve_host(EXECUTOR, second)
        release_locks(EXECUTOR, first)
        assert on(3, target, kind).key in str(reserve_host(EXECUTOR, second)[str(target)])
        release_locks(EXECUTOR, on(3, tmp_path, kind))
        release_locks(EXECUTOR, second)
        child = os.fork()
        if not child:
            reserve_host(EXECUTOR, first)
            os._exit(0)
        os.waitpid(child, 0)
        assert first.key not in str(reserve_host(EXECUTOR, second).get(str(target)))
        release_locks(EXECUTOR, second)
        release_locks(EXECUTOR, first)
