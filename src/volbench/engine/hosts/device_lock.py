"""Locks on what a campaign measures and notes on its disks, stored on their machine.

Those of pods are stored in the cluster, as the pods of one node share its devices.

A lock outlives its controller while runs continue without one; a resume of the same campaign takes
it over. Where there is no run, the agent of a host takes its locks back once its controller is
gone. Disks may be shared: each campaign there prints a note about the others, and records them.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress

from volbench.errors import RefusedError
from volbench.execute.agent.locks import (
    Places,
    Reservation,
    Room,
    announce,
    campaigns_beside,
    lock_holder,
    places,
    release,
    reserve,
)
from volbench.execute.protocol import Executor, OperationError, SharedLocks
from volbench.model.campaign.planned_run import Campaign, VolumeKind
from volbench.units import counted_noun

_MAX_NAMED = 3  # Other campaigns that a note names before it counts the rest


def devices_of(campaign: Campaign, host: str) -> dict[str, str]:
    """Return the devices that a campaign uses on a host: major:minor to target."""
    return {
        f"{volume.pin.major}:{volume.pin.minor}": volume.target
        for run in campaign.runs
        for volume in run.volume.each
        if run.host == host and volume.kind is VolumeKind.DEVICE and volume.pin is not None
    }


def reserve_host(executor: Executor, campaign: Campaign) -> Mapping[str, list[str]]:
    """Lock a campaign's volumes on a machine; return target to other campaigns on its disk."""
    devices, key = devices_of(campaign, executor.host), campaign.key
    targets, is_remote = _file_targets(executor, campaign), executor.is_remote
    if executor.shared_locks is None:
        with _refusing(executor):
            folder = executor.work_folder("", name=key) if is_remote else ""
            reserved = executor.ask(
                reserve, key, list(devices), targets, folder, is_attached=not is_remote
            )
    else:
        reserved = _reserve_shared(executor, executor.shared_locks, campaign)
    if reserved.holder:
        release_locks(executor, campaign)
        target = devices.get(reserved.device, reserved.device)
        lock = (key := reserved.holder).partition("; ")[2].partition(" belongs to ")[0]
        planned = f"{key[:4]}-{key[4:6]}-{key[6:8]} {key[8:10]}:{key[10:12]} UTC"
        removal = f"if it is yours, planned at {planned}: volbench status FOLDER --clean"
        removal = f"if nobody needs it, root may remove {lock}" if lock else removal
        raise RefusedError(
            f"{target} on {executor.host} is used by another campaign ({reserved.holder})",
            hint=f"wait until it has ended; {removal}",
        )
    return {devices.get(target, target): keys for target, keys in reserved.shared.items()}


def other_campaigns(executor: Executor, campaign: Campaign) -> list[str]:
    """Return the keys of other campaigns that use the disks of a campaign on a machine now."""
    if executor.shared_locks is None:
        with suppress(OperationError):
            return executor.ask(campaigns_beside, campaign.key)
        return []
    beside = _campaigns_on_disks(executor, executor.shared_locks, campaign)
    return sorted(set().union(*beside.values()))


def room_left(
    executor: Executor, campaign: Campaign, client: int | None, room: Room
) -> tuple[int, Sequence[str]]:
    """Announce what a run takes; return the free bytes without those of other campaigns."""
    if executor.shared_locks is not None:  # unknown to pods
        return sys.maxsize, ()
    with _refusing(executor):
        return executor.ask(announce, room, campaign.key, client)


def shared_note(shared: Mapping[str, Mapping[str, list[str]]]) -> tuple[str, str]:
    """Return a sentence on other campaigns on the same disks, and its only host, or ""."""
    places = [(host, target) for host, targets in sorted(shared.items()) for target in targets]
    keys = sorted({key for targets in shared.values() for own in targets.values() for key in own})
    if not keys:
        return "", ""
    host, target = places[0]
    more = f" and {len(places) - 1} more" if places[1:] else ""
    named = ", ".join(keys[:_MAX_NAMED])
    unnamed = f" and {len(keys) - _MAX_NAMED} more" if keys[_MAX_NAMED:] else ""
    words = (
        f"the disk of {target} on {host}{more} is also used by "
        f"{counted_noun(len(keys), 'other campaign')} ({named}{unnamed}): results may be disturbed;"
        " wait until they have ended (volbench status lists campaigns of yours)"
    )
    return words, host if {name for name, _ in places} == {host} else ""


def release_locks(executor: Executor, campaign: Campaign) -> None:
    """Release the locks and notes of `reserve_host`; locks of other campaigns are kept."""
    if executor.shared_locks is None:
        with _refusing(executor):
            executor.ask(release, campaign.key)
        return
    names = _places_of(executor, campaign)
    for verb, held in (("free", names.locks), ("leave", names.disks)):
        for name in held:
            executor.shared_locks.answer(verb, name, campaign.key)


def _reserve_shared(executor: Executor, locks: SharedLocks, campaign: Campaign) -> Reservation:
    for name, target in _places_of(executor, campaign).locks.items():
        if holder := locks.answer("take", name, campaign.key):
            return Reservation(target, holder, {})
    return Reservation("", "", _campaigns_on_disks(executor, locks, campaign))


def _campaigns_on_disks(
    executor: Executor, locks: SharedLocks, campaign: Campaign
) -> dict[str, list[str]]:
    """Record the disks of a campaign; return target to the keys of the others on its disk."""
    others = {
        target: locks.answer("join", name, campaign.key).split()
        for name, target in _places_of(executor, campaign).disks.items()
    }
    return {target: keys for target, keys in others.items() if keys}


def device_holder(executor: Executor, number: tuple[int, int]) -> str:
    """Return the key of the campaign that has locked a device, by major and minor; or ""."""
    name = f"{number[0]}:{number[1]}"
    if executor.shared_locks is not None:
        return executor.shared_locks.answer("show", name, "-")
    with _refusing(executor):
        return executor.ask(lock_holder, name)


def _places_of(executor: Executor, campaign: Campaign) -> Places:
    devices = list(devices_of(campaign, executor.host))
    with _refusing(executor):
        return executor.ask(places, devices, _file_targets(executor, campaign))


def _file_targets(executor: Executor, campaign: Campaign) -> list[str]:
    """Return the files and directories that a campaign measures on a machine."""
    kinds = {VolumeKind.DIRECTORY, VolumeKind.FILE}
    runs = (run for run in campaign.runs if run.host == executor.host)
    volumes = (volume for run in runs for volume in run.volume.each)
    return sorted({volume.target for volume in volumes if volume.kind in kinds})


@contextmanager
def _refusing(executor: Executor) -> Iterator[None]:
    try:
        yield
    except OperationError as error:
        raise RefusedError(
            f"the locks of volbench on {executor.host} cannot be used: {error.reason}",
            hint="check the permissions of /run/lock; what is not a lock there may be removed",
        ) from error
