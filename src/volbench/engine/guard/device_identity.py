"""Identity of a block device: pinned in the plan and verified before each use.

The kernel numbers every attachment of a disk (``diskseq``, Linux 5.15), which identifies a device
within one boot. After a reboot or a reattachment it must have the same serial number, WWN or loop
backing file, or its first and last MiB must be unchanged.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from volbench.engine.guard.device_content import content_of
from volbench.engine.hosts.block_devices import (
    BlockDevice,
    attribute,
    block_device,
    serial_and_model,
    size_bytes,
    whole_disk,
)
from volbench.engine.hosts.mounts import Number, stat_visible
from volbench.errors import RefusedError
from volbench.execute.agent.held_device import BLANK
from volbench.execute.protocol import Executor, HeldDevice
from volbench.model.campaign.planned_run import DevicePin, Volume

_BOOT_ID = "/proc/sys/kernel/random/boot_id"
_NAMES = 'for f in /dev/disk/by-id/*; do [ "$f" -ef "$1" ] && echo "${f##*/}"; done; exit 0'
"""Print the names of a device in /dev/disk/by-id, sorted: node."""
_WWIDS = ("wwid", "device/wwid", "uuid", "nguid", "eui")


@dataclass(frozen=True)
class Attachment:
    """Attachment of a device to a running machine; another disk, or the same later, has another."""

    diskseq: str  # the kernel's number of it; empty before Linux 5.15
    boot_id: str  # boot ID of the kernel that reported it


def attachment_of(executor: Executor, volume: Volume) -> Attachment | None:
    """Return the attachment of the device that has a volume's number now; None without a pin.

    Read before the guard's check and verified when fio starts, it covers all that lies between.
    """
    if volume.pin is None:
        return None
    device = block_device(executor, (volume.pin.major, volume.pin.minor))
    diskseq = attribute(executor, whole_disk(executor, device), "diskseq") if device else ""
    return Attachment(diskseq, (executor.read_text(_BOOT_ID) or "").strip())


def find_device(executor: Executor, path: str) -> DevicePin:
    """Return the identity of the block device at a path, including its signature."""
    found = executor.stat(path)
    if found is None or found.kind != "block":
        raise _refusal(path, "is not a block device")
    pin = _pin(executor, path, found.rdev)
    return pin.model_copy(
        update={
            "edges": _edges(executor, pin),
            "signature": content_of(executor, path).mark,
        }
    )


def _pin(executor: Executor, path: str, number: Number) -> DevicePin:
    """Return the identity reported by the kernel and the device."""
    device = block_device(executor, number)
    size = 0 if device is None else size_bytes(executor, device)
    if device is None or not size:
        raise _refusal(path, "is a block device without capacity")
    serial, model = serial_and_model(executor, device)
    disk = whole_disk(executor, device)
    diskseq, start = attribute(executor, disk, "diskseq"), attribute(executor, device, "start")
    names = (attribute(executor, disk, name) for name in _WWIDS)
    return DevicePin(
        path=executor.real_path(path),
        major=number[0],
        minor=number[1],
        size_bytes=size,
        serial=serial,
        model=model,
        wwid=next(filter(None, names), ""),
        by_id=_by_id(executor, path),
        backing=_backing(executor, disk),
        start_sector=int(start) if start.isdecimal() else 0,
        boot_id=(executor.read_text(_BOOT_ID) or "").strip(),
        diskseq=int(diskseq) if diskseq.isdecimal() else 0,
    )


def _by_id(executor: Executor, path: str) -> str:
    names = executor.run(["sh", "-c", _NAMES, "by-id", path]).stdout.splitlines()
    return names[0] if names else ""


def _backing(executor: Executor, disk: BlockDevice) -> str:
    """Return device and inode of the file behind a loop device."""
    path = attribute(executor, disk, "loop/backing_file")
    found = stat_visible(executor, path) if path else None
    return "" if found is None else ":".join(map(str, found.identity))


def _edges(executor: Executor, pin: DevicePin) -> str:
    try:
        opened = executor.hold(pin.path, exclusive=False)
    except RefusedError:
        return ""  # an ordinary user, who cannot measure it either
    try:
        return opened.digest(pin.size_bytes)
    finally:
        opened.close()


def check_identity(
    executor: Executor,
    volume: Volume,
    *,
    held: HeldDevice | None = None,
    edges: str | None = None,
) -> BlockDevice:
    """Check that a target is still the block device that was planned.

    Args:
        held: the opened device; None to check its path only.
        edges: digest of its first and last MiB after volbench's last write, empty if unknown; None
            to skip the check of its content.

    Returns:
        The device, under the name that fio will open.
    """
    target, pin = volume.target, volume.pin
    found = executor.stat(target)
    if found is None or found.kind != "block":
        raise RefusedError(
            f"{target} no longer exists" if found is None else f"{target} is not a block device",
            hint="attach it again, or plan a new campaign; lsblk lists the devices",
        )
    now = _pin(executor, target, found.rdev)
    problems = ["it was not identified then"] if pin is None else _changes(pin, now)
    if held is not None and held.number != found.rdev:
        problems.append("another device was opened")
    if pin is not None and not problems:
        problems = _mismatches(executor, pin, now, held=held, edges=edges)
    device = block_device(executor, found.rdev)
    if problems or device is None:
        raise _changed(target, problems)
    return replace(device, node=target)


def _changes(pin: DevicePin, now: DevicePin) -> list[str]:
    pairs = (
        ("device number", f"{pin.major}:{pin.minor}", f"{now.major}:{now.minor}"),
        ("size in bytes", str(pin.size_bytes), str(now.size_bytes)),
        ("serial", pin.serial, now.serial),
        ("model", pin.model, now.model),
        ("WWN", pin.wwid, now.wwid),
        ("name in /dev/disk/by-id", pin.by_id, now.by_id),
        ("file behind it", pin.backing, now.backing),
        ("first sector", str(pin.start_sector), str(now.start_sector)),
    )
    return [
        f"{what} was {before or 'unknown'}, is {after or 'unknown'}"
        for what, before, after in pairs
        if before != after
    ]


def _mismatches(
    executor: Executor,
    pin: DevicePin,
    now: DevicePin,
    *,
    held: HeldDevice | None,
    edges: str | None,
) -> list[str]:
    """Return the reasons why a device is a different one or has foreign content."""
    is_same_boot = bool(pin.boot_id) and pin.boot_id == now.boot_id
    is_identified = is_same_boot and 0 < pin.diskseq == now.diskseq
    is_identified |= bool(pin.serial or pin.wwid or pin.by_id or pin.backing)
    content = edges and (held.digest(now.size_bytes) if held else _edges(executor, now))
    if not is_identified:
        # Linux before 5.15 does not number attachments: the content must match, even zeros.
        is_unnumbered = is_same_boot and not pin.diskseq and not now.diskseq
        is_same_content = bool(edges) and content == edges and (edges != BLANK or is_unnumbered)
        if not is_same_content and not (is_unnumbered and edges is None):
            since = "it was attached again" if is_same_boot else "the machine has restarted"
            return [f"{since}, and it has no serial number or WWN to identify it by"]
    if edges and content != edges:
        return ["its first or last MiB is not as volbench left it: something else wrote to it"]
    if edges == "" and (mark := content_of(executor, now.path).mark) not in {"", pin.signature}:
        return [f"it holds {mark} now, which was neither planned nor written by volbench"]
    return []


def _changed(target: str, problems: list[str]) -> RefusedError:
    return RefusedError(
        f"{target} is not the device that was planned: {', '.join(problems)}",
        hint=f"examine it with volbench probe {target}; if it may be overwritten all the same: "
        f"volbench resume DIR --allow-destroy {target}, or plan a new campaign",
    )


def _refusal(path: str, problem: str) -> RefusedError:
    return RefusedError(
        f"{path} {problem}",
        hint="attach the disk, or name another: lsblk lists the devices",
    )
