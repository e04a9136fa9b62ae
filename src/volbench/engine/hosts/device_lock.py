"""Locks on the block devices of a campaign and notes on its file systems, stored on their machine.

Those of pods are stored in the cluster, as the pods of one node share its devices.

Controllers see each other's locks. A lock outlives its controller, because runs may continue
without one; a resume of the same campaign takes over its lock. File systems may be shared: each
campaign there prints a note about the others.
"""

from __future__ import annotations

from volbench.engine.hosts.described_volumes import identities_of, parse_answer
from volbench.errors import RefusedError
from volbench.execute.protocol import Executor, OperationError
from volbench.model.campaign.planned_run import Campaign, VolumeKind


def devices_of(campaign: Campaign, host: str) -> dict[str, str]:
    """Return the devices that a campaign uses on a host: major:minor to target."""
    return {
        f"{run.volume.pin.major}:{run.volume.pin.minor}": run.volume.target
        for run in campaign.runs
        if run.host == host and run.volume.kind is VolumeKind.DEVICE and run.volume.pin is not None
    }


def lock_devices(executor: Executor, campaign: Campaign) -> None:
    """Lock every block device that a campaign uses on a machine."""
    for number, target in devices_of(campaign, executor.host).items():
        holder = _answer(executor, "take", number, campaign.key)
        if holder:
            unlock_devices(executor, campaign)
            raise RefusedError(
                f"{target} on {executor.host} is used by another campaign ({holder})",
                hint="wait until it has ended; if it was abandoned, end it with volbench reap",
            )


def unlock_devices(executor: Executor, campaign: Campaign) -> None:
    """Release the devices locked by a campaign; locks of other campaigns are kept."""
    for number in devices_of(campaign, executor.host):
        _answer(executor, "free", number, campaign.key)


def device_holder(executor: Executor, number: tuple[int, int]) -> str:
    """Return the key of the campaign that has locked a device, by major and minor; or ""."""
    return _answer(executor, "show", f"{number[0]}:{number[1]}", "-")


def join_filesystems(executor: Executor, campaign: Campaign) -> dict[str, list[str]]:
    """Record that a campaign uses the file systems of its files and directories on a machine.

    Returns:
        Target to the keys of other campaigns on its file system, which may have been abandoned.
    """
    return {
        target: others
        for name, target in _filesystems(executor, campaign).items()
        if (others := _answer(executor, "join", name, campaign.key).split())
    }


def leave_filesystems(executor: Executor, campaign: Campaign) -> None:
    """Remove the records of `join_filesystems`."""
    if executor.shared_locks is None:
        names = ["-"] if _file_targets(executor, campaign) else []
    else:
        names = list(_filesystems(executor, campaign))
    for name in names:
        _answer(executor, "leave", name, campaign.key)


def _filesystems(executor: Executor, campaign: Campaign) -> dict[str, str]:
    """Return name of the record to target, for each file system of a campaign on a machine."""
    targets = _file_targets(executor, campaign)
    identities = zip(targets, identities_of(executor, targets), strict=True)
    return {f"fs-{mark[0]}:{mark[1]}": target for target, mark in identities if mark is not None}


def _file_targets(executor: Executor, campaign: Campaign) -> list[str]:
    """Return the files and directories that a campaign measures on a machine."""
    kinds = {VolumeKind.DIRECTORY, VolumeKind.FILE}
    runs = (run for run in campaign.runs if run.host == executor.host)
    return sorted({run.volume.target for run in runs if run.volume.kind in kinds})


def _answer(executor: Executor, verb: str, name: str, key: str) -> str:
    """Take, free, show, join or leave a lock; return the keys of other campaigns, one per line."""
    if executor.shared_locks is not None:
        return executor.shared_locks.answer(verb, name, key)
    ask = executor.ask
    try:
        match verb:
            case "take":
                answer = ask("take_lock", name=name, key=key)
            case "free":
                answer = ask("free_lock", name=name, key=key) or ""
            case "show":
                answer = ask("lock_holder", name=name)
            case "join":
                others = parse_answer(
                    list[str], ask("join_filesystem", name=name, key=key), host=executor.host
                )
                answer = "\n".join(others)
            case _:
                answer = ask("leave_filesystems", key=key) or ""
    except OperationError as error:
        raise RefusedError(
            f"the lock {name} on {executor.host} cannot be examined: {error.reason}",
            hint="check the permissions of /run/lock; what is not a lock there may be removed",
        ) from error
    return parse_answer(str, answer, host=executor.host)
