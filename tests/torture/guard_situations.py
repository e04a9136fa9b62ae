"""Random machines before the guard: no device in use ever gets a yes."""

import random
from collections.abc import Mapping
from pathlib import Path

from tests.engine.conftest import check_now
from tests.execute.fake import FakeExecutor
from tests.planned import planned_run
from tests.torture.device_world import Device, World, made_up
from tests.torture.scripted_devices import CAMPAIGN, ScriptedDevices
from volbench.engine.guard.device_guard import HeldDevices
from volbench.engine.guard.run_guard import RunConsent
from volbench.engine.guard.volume_targets import find_volume
from volbench.errors import RefusedError
from volbench.model.campaign.planned_run import Section

WRITES: tuple[Mapping[str, str], ...] = (
    {"rw": "write"},
    {"rw": "randwrite"},
    {"rw": "randrw", "rwmixread": "99"},
    {"rw": "trim"},
    {"rw": "randtrimwrite"},
    {"rw": "trimwrite"},
)


class _Log:
    """Journal that forgets."""

    def write(self, kind: str, **facts: object) -> None:
        """Forget a line."""


def guard_situation(chance: random.Random, folder: Path) -> int:
    """Ask the guard about every device of a random machine, by several names."""
    del folder
    world = made_up(chance)
    host = ScriptedDevices(world, chance)
    questions = 0
    for device in world.devices:
        for target in {device.node, chance.choice(host.names(device))}:
            wipe = chance.random() < 0.5
            refused = answer(host.executor, target, chance, wipe=wipe)
            harm = world.harm(device, wipe=wipe)
            assert refused or not harm, f"yes to {target}: {harm}\n{picture(world)}"
            assert "without a hint" not in refused, refused
            is_free = not harm and is_untouched(world, device)
            assert not (refused and is_free), f"{refused}\n{picture(world)}"
            questions += 1
    return questions


def answer(executor: FakeExecutor, target: str, chance: random.Random, *, wipe: bool) -> str:
    """Return why a run that writes to a target is refused, or an empty text."""
    try:
        volume = find_volume(executor, role="data", target=target)
        run = planned_run(volume, Section(name="j", options=dict(chance.choice(WRITES))))
        consent = RunConsent(
            campaign_dir=CAMPAIGN, allow_destroy=(volume.target,), wipe_signatures=wipe
        )
        check_now(executor, run, consent, files=())
        if chance.random() < 0.5:
            return ""
        with HeldDevices(executor, _Log(), {}).holding(run) as opened:
            check_now(executor, run, consent, files=(), opened=opened[volume.target])
    except RefusedError as error:
        return error.message if error.hint else f"without a hint: {error.message}"
    return ""


def is_untouched(world: World, device: Device) -> bool:
    """Return whether nothing has to do with any of the disks below a device."""
    disks = {name for name, _ in device.blocks}
    return not (
        device.is_read_only
        or device.is_extended
        or any(disks & {name for name, _ in use.device.blocks} for use in world.uses)
        or any("loop" in d.name and d.blocks & device.blocks for d in world.devices if d != device)
        # an image on a root whose disks are not known
        or (world.root is None and world.campaign is not None and "loop" in world.campaign.name)
    )


def picture(world: World) -> str:
    """Return the devices and uses of a world, one a line."""
    lines = [
        f"{d.name} {d.number} on {[low.name for low in d.lower]} {d.file} "
        f"blocks {min(d.blocks, default=None)}..{max(d.blocks, default=None)} ({len(d.blocks)}) "
        f"{world.contents.get(d.blocks, '')} {'extended' if d.is_extended else ''} {d.wwid}"
        for d in world.devices
    ]
    lines += [f"use: {u.how} of {u.device.name} by {u.by.name if u.by else ''}" for u in world.uses]
    for name, device in (("root", world.root), ("campaign", world.campaign)):
        lines.append(f"{name}: {device.name if device else None}")
    return "\n".join(lines)
