"""Identity of a block device: what pins it in a plan, and whether it is still the same one.

The kernel numbers every attachment of a disk (``diskseq``, Linux 5.15), so that within one boot a
device is known for certain. After a restart, or where it was attached again, it has to name itself
(serial, WWN, file behind a loop device) or its first and last MiB have to be as they were left.
"""

from __future__ import annotations

from dataclasses import replace

from volbench.engine.hosts.block_devices import (
    BlockDevice,
    attribute,
    block_device,
    serial_and_model,
    size_bytes,
    whole_disk,
)
from volbench.engine.hosts.mounts import Number, stat_visible
from volbench.engine.hosts.signatures import read_signature
from volbench.errors import RefusedError
from volbench.execute.protocol import BLANK, Executor, HeldDevice
from volbench.model.campaign.target import DevicePin, Volume

_BOOT_ID = "/proc/sys/kernel/random/boot_id"
_WWIDS = ("wwid", "device/wwid", "uuid", "nguid", "eui")


def find_device(executor: Executor, path: str) -> DevicePin:
    """Return the identity of the block device at a path, with what is on it.

    Raises:
        RefusedError: it is no block device that the kernel knows, or it has no capacity.
    """
    found = executor.stat(path)
    if found is None or found.kind != "block":
        raise _refusal(path, "is not a block device")
    pin = _pin(executor, path, found.rdev)
    return pin.model_copy(
        update={
            "edges": _edges(executor, pin),
            "signature": read_signature(executor, path).mark,
        }
    )


def _pin(executor: Executor, path: str, number: Number) -> DevicePin:
    """Return what the kernel and the device itself say of it."""
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
        backing=_backing(executor, disk),
        start_sector=int(start) if start.isdecimal() else 0,
        boot_id=(executor.read_text(_BOOT_ID) or "").strip(),
        diskseq=int(diskseq) if diskseq.isdecimal() else 0,
    )


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
        executor: the machine.
        volume: pinned.
        held: the device as it was opened; None to look at its path only.
        edges: digest of its first and last MiB as volbench left them, empty if that is unknown;
            None not to look at its content.

    Returns:
        The device, under the name that fio will open.

    Raises:
        RefusedError: it is gone, is not a block device, is a different one, or holds what neither
            the plan nor volbench knows.
    """
    target, pin = volume.target, volume.pin
    found = executor.stat(target)
    if found is None or found.kind != "block":
        raise RefusedError(
            f"{target} no longer exists" if found is None else f"{target} is not a block device",
            hint="attach it again, or plan a new campaign; lsblk lists the devices",
            context={"path": target},
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
    """Return why a device that looks the same is another one, or holds something else."""
    is_same_boot = bool(pin.boot_id) and pin.boot_id == now.boot_id
    is_identified = is_same_boot and 0 < pin.diskseq == now.diskseq
    is_identified |= bool(pin.serial or pin.wwid or pin.backing)
    content = edges and (held.digest(now.size_bytes) if held else _edges(executor, now))
    if not is_identified:
        # Before Linux 5.15 nothing tells attachments apart: then the content has to, even zeros.
        is_unnumbered = is_same_boot and not pin.diskseq and not now.diskseq
        is_same_content = bool(edges) and content == edges and (edges != BLANK or is_unnumbered)
        if not is_same_content and not (is_unnumbered and edges is None):
            since = "it was attached again" if is_same_boot else "the machine has restarted"
            return [f"{since}, and it has no serial number or WWN to identify it by"]
    if edges and content != edges:
        return ["its first or last MiB is not as volbench left it: something else wrote to it"]
    if edges == "" and (mark := read_signature(executor, now.path).mark) not in {"", pin.signature}:
        return [f"it holds {mark} now, which was neither planned nor written by volbench"]
    return []


def _changed(target: str, problems: list[str]) -> RefusedError:
    return RefusedError(
        f"{target} is not the device that was planned: {', '.join(problems)}",
        hint=f"examine it with volbench probe {target}; if it may be overwritten all the same: "
        f"volbench resume DIR --allow-destroy {target}, or plan a new campaign",
        context={"path": target},
    )


def _refusal(path: str, problem: str) -> RefusedError:
    return RefusedError(
        f"{path} {problem}",
        hint="attach the disk, or name another: lsblk lists the devices",
        context={"path": path},
    )
