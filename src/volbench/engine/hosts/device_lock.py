"""One campaign for each block device: a machine and devices in, a lock on each while they are used.

The lock lies on the device's own machine, so that two controllers see each other. It outlives its
controller: a Run may go on without one. A resume of the same campaign finds it its own.
"""

from __future__ import annotations

from collections.abc import Iterable
from importlib.resources import files

from volbench.errors import RefusedError
from volbench.execute.protocol import Executor
from volbench.model.campaign.planned_run import Campaign, Run
from volbench.model.campaign.target import VolumeKind


def devices_of(campaign: Campaign, host: str) -> dict[str, str]:
    """Return the devices that a campaign uses on a host: major:minor to target."""
    return {
        f"{run.volume.pin.major}:{run.volume.pin.minor}": run.volume.target
        for run in campaign.runs
        if run.host == host and _is_device(run) and run.volume.pin is not None
    }


def _is_device(run: Run) -> bool:
    return run.volume.kind is VolumeKind.DEVICE


def hold_devices(executor: Executor, campaign: Campaign) -> None:
    """Take every block device that a campaign uses on a machine.

    Raises:
        RefusedError: another campaign has one of them.
    """
    for number, target in devices_of(campaign, executor.host).items():
        holder = _lock(executor, "take", number, campaign.key)
        if holder:
            free_devices(executor, campaign)
            raise RefusedError(
                f"{target} on {executor.host} is used by another campaign ({holder})",
                hint="wait until that has ended; if nobody goes on with it: volbench reap DIR",
                context={"path": target, "host": executor.host},
            )


def free_devices(executor: Executor, campaign: Campaign) -> None:
    """Let go of the devices that a campaign holds; those of others are left alone."""
    numbers: Iterable[str] = devices_of(campaign, executor.host)
    for number in numbers:
        _lock(executor, "free", number, campaign.key)


def _lock(executor: Executor, verb: str, number: str, key: str) -> str:
    text = files("volbench.engine.hosts").joinpath("lock.sh").read_text(encoding="utf-8")
    return executor.run(["sh", "-c", text, "lock", verb, number, key]).stdout.strip()
