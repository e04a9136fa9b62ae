"""Lock on the block devices of a campaign, stored on the machine that has them.

Controllers see each other's locks. A lock outlives its controller, because runs may continue
without one; a resume of the same campaign takes over its lock.
"""

from __future__ import annotations

from importlib.resources import files

from volbench.errors import RefusedError
from volbench.execute.protocol import Executor
from volbench.model.campaign.planned_run import Campaign
from volbench.model.campaign.target import VolumeKind


def devices_of(campaign: Campaign, host: str) -> dict[str, str]:
    """Return the devices that a campaign uses on a host: major:minor to target."""
    return {
        f"{run.volume.pin.major}:{run.volume.pin.minor}": run.volume.target
        for run in campaign.runs
        if run.host == host and run.volume.kind is VolumeKind.DEVICE and run.volume.pin is not None
    }


def lock_devices(executor: Executor, campaign: Campaign) -> None:
    """Lock every block device that a campaign uses on a machine.

    Raises:
        RefusedError: another campaign has locked one of them.
    """
    for number, target in devices_of(campaign, executor.host).items():
        holder = _run_lock_script(executor, "take", number, campaign.key)
        if holder:
            unlock_devices(executor, campaign)
            raise RefusedError(
                f"{target} on {executor.host} is used by another campaign ({holder})",
                hint="wait until it has ended; if it was abandoned: volbench reap DIR",
                context={"path": target, "host": executor.host},
            )


def unlock_devices(executor: Executor, campaign: Campaign) -> None:
    """Release the devices locked by a campaign; locks of other campaigns are kept."""
    for number in devices_of(campaign, executor.host):
        _run_lock_script(executor, "free", number, campaign.key)


def _run_lock_script(executor: Executor, verb: str, number: str, key: str) -> str:
    text = files("volbench.engine.hosts").joinpath("lock.sh").read_text(encoding="utf-8")
    return executor.run(["sh", "-c", text, "lock", verb, number, key]).stdout.strip()
