"""Identification of a user's target, and the facts of its volume."""

from __future__ import annotations

import re
from pathlib import Path

from volbench.engine.guard.device_content import content_of
from volbench.engine.guard.device_identity import find_device
from volbench.engine.guard.path_checks import check_not_among_devices, nearest_existing, parent_of
from volbench.engine.hosts.block_devices import (
    BlockDevice,
    attribute,
    backing_devices,
    block_device,
    is_read_only,
    serial_and_model,
    size_bytes,
    whole_disk,
)
from volbench.engine.hosts.mounts import (
    Mount,
    Number,
    mount_numbers,
    mount_of,
    number_under,
    read_mounts,
)
from volbench.errors import InputError, RefusedError
from volbench.execute.protocol import Executor, FileStat
from volbench.model.campaign.planned_run import Volume, VolumeKind
from volbench.model.profile.secret_values import mask_text
from volbench.model.results.provenance import MEMORY_FILESYSTEMS, VolumeFacts

_NBD_SCHEMES = ("nbd://", "nbd+unix://", "nbds://", "nbds+unix://")
# Folders whose children are mount points; a new file in them would fill the root disk
_MOUNT_FOLDERS = {"/", "/mnt", "/media"}

_CHOSEN = re.compile(r"\[(.+)\]")


def find_volume(executor: Executor, *, role: str, target: str) -> Volume:
    """Return the volume of a target; a block device is pinned by its identity.

    Args:
        target: a path or an NBD URI; the folder of a new file must exist.
    """
    if not target or not target.isprintable():
        raise InputError(
            f"{target!r} is not a target for role {role}",
            hint="name a device, a file, a directory or an NBD URI",
        )
    if target.startswith(_NBD_SCHEMES):
        return Volume(role=role, kind=VolumeKind.NBD, target=mask_text(target))
    path = str(Path(target).absolute())
    found = executor.stat(path)
    if found is not None and found.kind == "block":
        pin = find_device(executor, path)
        return Volume(role=role, kind=VolumeKind.DEVICE, target=path, pin=pin)
    if found is not None:
        kind = _kind_of(path, found)
        check_not_among_devices(executor, path)
        return Volume(role=role, kind=kind, target=path)
    check_not_among_devices(executor, path)
    _check_new_file(executor, path, is_folder=target.endswith("/"))
    return Volume(role=role, kind=VolumeKind.FILE, target=path)


def _kind_of(path: str, found: FileStat) -> VolumeKind:
    if found.kind not in {"file", "directory"}:
        what = "a character device" if found.kind == "char" else "neither file nor folder"
        raise RefusedError(
            f"{path} is {what}, not a volume",
            hint="name a block device, a file or a directory",
        )
    return VolumeKind(found.kind)


def _check_new_file(executor: Executor, path: str, *, is_folder: bool) -> None:
    """Check that a path that does not exist may become a file."""
    folder = parent_of(executor.real_path(path))
    above = executor.stat(folder)
    mount = mount_of(executor, folder)
    is_root = folder in _MOUNT_FOLDERS and (mount is None or mount.mount_point == "/")
    if is_folder or is_root:
        raise RefusedError(
            f"{path} does not exist: fio would fill the disk of {folder}",
            hint=f"mount the volume there, or make the folder: mkdir {path}",
        )
    if above is None or above.kind != "directory":
        raise RefusedError(
            f"{path} cannot be created: there is no folder {folder}; fio would create it and fill "
            f"the disk of {nearest_existing(executor, folder)}",
            hint=f"mount the volume, or make the folder: mkdir -p {folder}",
        )


def probe_volume(executor: Executor, volume: Volume) -> VolumeFacts:
    """Return the facts of a volume and its backing devices."""
    known: dict[str, object] = {"role": volume.role, "target": volume.target, "kind": volume.kind}
    if volume.kind is VolumeKind.NBD:
        return VolumeFacts.model_validate({**known, "path": volume.target})
    known["path"] = executor.real_path(volume.target)
    if volume.kind is VolumeKind.DEVICE:
        found = executor.stat(volume.target)
        number = None if found is None or found.kind != "block" else found.rdev
        mount = None if number is None else _mount_with(executor, number)
        if number is not None:
            known["content"] = str(content_of(executor, volume.target))
    else:
        place = nearest_existing(executor, volume.target)
        number, mount = number_under(executor, place), mount_of(executor, place)
        known["free_bytes"] = executor.free_bytes(place)
    device = None if number is None else block_device(executor, number)
    return VolumeFacts.model_validate(
        {**known, **_mount_facts(mount), **_device_facts(executor, device)}
    )


def _mount_with(executor: Executor, number: Number) -> Mount | None:
    """Return the newest mount of a device."""
    mounts = reversed(read_mounts(executor))
    return next((mount for mount in mounts if number in mount_numbers(executor, mount)), None)


def _mount_facts(mount: Mount | None) -> dict[str, object]:
    if mount is None:
        return {}
    return {
        "filesystem": mount.filesystem,
        "mount_point": mount.mount_point,
        "mount_options": mount.options,
    }


def _device_facts(executor: Executor, device: BlockDevice | None) -> dict[str, object]:
    if device is None:
        return {}
    disk = whole_disk(executor, device)
    serial, model = serial_and_model(executor, device)
    scheduler = attribute(executor, disk, "queue/scheduler")
    rotational = attribute(executor, disk, "queue/rotational")
    backing = backing_devices(executor, device, through_files=True)
    return {
        "device": device.name,
        "major": device.number[0],
        "minor": device.number[1],
        "model": model,
        "serial": serial,
        "size_bytes": size_bytes(executor, device),
        "rotational": rotational == "1" if rotational else None,
        "scheduler": match[1] if (match := _CHOSEN.search(scheduler)) else scheduler,
        "logical_block_bytes": _integer(attribute(executor, disk, "queue/logical_block_size")),
        "physical_block_bytes": _integer(attribute(executor, disk, "queue/physical_block_size")),
        "write_cache": attribute(executor, disk, "queue/write_cache"),
        "read_only": is_read_only(executor, device),
        "backing": tuple(lower.name for lower in backing),
        "memory_below": _memory_below(executor, (device, *backing)),
    }


def _memory_below(executor: Executor, devices: tuple[BlockDevice, ...]) -> str:
    """Return the filesystem in memory that holds the file of a loop device; empty for none."""
    for device in devices:
        path = attribute(executor, device, "loop/backing_file")
        mount = mount_of(executor, nearest_existing(executor, path)) if path else None
        if mount is not None and mount.filesystem in MEMORY_FILESYSTEMS:
            return f"{mount.filesystem} under {device.name}"
    return ""


def _integer(text: str) -> int | None:
    return int(text) if text.isdecimal() else None
