"""Identification of a user's targets, and the facts of their volumes."""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from volbench.engine.hosts.described_volumes import Content, content_of, look_at, look_at_volume
from volbench.errors import InputError, RefusedError, quoted
from volbench.execute.agent.volumes import DescribedVolume, VolumeQuestion
from volbench.execute.protocol import Executor
from volbench.model.campaign.planned_run import DevicePin, Volume, VolumeKind
from volbench.model.campaign.target_paths import paths_of
from volbench.model.profile.secret_values import mask_text
from volbench.model.results.provenance import VolumeFacts, joined_facts

_NBD_SCHEMES = ("nbd://", "nbd+unix://", "nbds://", "nbds+unix://")
# Folders whose children are mount points; a new file in them would fill the root disk
_MOUNT_FOLDERS = {"/", "/mnt", "/media"}
_DEVICES = "/dev"
_NUMBERS = re.compile(r"\d+")
# Ratio of difflib from which a name may be another one misspelt: dtaa for data has 0.75, and x1
# for x2 0.5. Noticed by: tests/cli/test_measure.py
_SIMILAR = 0.75


def is_nbd_uri(target: str) -> bool:
    """Return whether a target is an NBD URI, not a path."""
    return target.startswith(_NBD_SCHEMES)


def find_volume(executor: Executor, *, role: str, target: str) -> Volume:
    """Return the volume of a path or an NBD URI; a block device is pinned by its identity."""
    return examine_targets(executor, {role: target})[role][0]


def probe_volume(executor: Executor, volume: Volume) -> VolumeFacts:
    """Return the facts of a volume and its backing devices."""
    if volume.kind is VolumeKind.NBD:
        return volume_facts(volume, {})
    questions = [VolumeQuestion(each.target, details=("content",)) for each in volume.each]
    return volume_facts(volume, look_at(executor, questions).volumes)


def examine_targets(
    executor: Executor, targets: Mapping[str, str], *, new: Collection[str] | None = None
) -> dict[str, tuple[Volume, VolumeFacts]]:
    """Return the volume of each target, by role, and its facts; see `find_volume`.

    Args:
        new: paths that may become new files although something with a similar name is beside them;
            None for all.
    """
    for role, target in targets.items():
        if not target or not target.isprintable():
            raise InputError(
                f"{target!r} is not a target for role {role}",
                hint="name a device, a file, a directory or an NBD URI",
            )
    named = {
        role: {str(Path(path).absolute()): path.endswith("/") for path in paths_of(target)}
        for role, target in targets.items()
        if not is_nbd_uri(target)
    }
    paths = [path for each in named.values() for path in each]
    questions = [VolumeQuestion(path, details=("content", "edges")) for path in paths]
    seen = look_at(executor, questions).volumes if questions else {}
    examined = {}
    for role, target in targets.items():
        parts = [
            _identified(role, path, seen[path], is_folder=is_folder)
            for path, is_folder in named.get(role, {}).items()
        ]
        marks = {
            (each.stat and (each.stat.rdev if each.is_device else each.stat.identity)) or each.real
            for each in (seen[part.target] for part in parts)
        }
        if parts and len(marks) < len(paths_of(target)):
            raise InputError(f"{target} has a device or file twice", hint="name each once")
        for path in named.get(role, {}):
            if seen[path].stat is None and new is not None and path not in new:
                _check_name(path, seen[path])
        nbd = Volume(role=role, kind=VolumeKind.NBD, target=mask_text(target))
        volume = joined_volume(parts) if parts else nbd
        examined[role] = volume, volume_facts(volume, seen)
    return examined


def joined_volume(parts: Sequence[Volume]) -> Volume:
    """Return the volume of several devices or files; of a single one itself."""
    if len(parts) == 1:
        return parts[0]
    target, kinds = ":".join(part.target for part in parts), {part.kind for part in parts}
    if len(kinds) > 1 or VolumeKind.DIRECTORY in kinds:
        raise InputError(
            f"{target} is not a list of devices, or of files",
            hint="name devices alone or files alone; directories are targets of their own",
        )
    return parts[0].model_copy(update={"target": target, "pin": None, "parts": tuple(parts)})


def _identified(role: str, path: str, seen: DescribedVolume, *, is_folder: bool) -> Volume:
    if seen.is_device:
        return Volume(role=role, kind=VolumeKind.DEVICE, target=path, pin=_whole_pin(path, seen))
    if seen.stat is not None and seen.stat.kind not in {"file", "directory"}:
        is_char = seen.stat.kind == "char"
        what = "a character device" if is_char else "a pipe or a socket"
        raise RefusedError(
            f"{path} is {what}, which cannot be measured",
            hint="name a block device, a file or a directory",
        )
    check_not_among_devices(path, seen)
    if seen.stat is not None:
        return Volume(role=role, kind=VolumeKind(seen.stat.kind), target=path)
    _check_new_file(path, seen, is_folder=is_folder)
    return Volume(role=role, kind=VolumeKind.FILE, target=path)


def find_device(executor: Executor, path: str) -> tuple[DevicePin, Content]:
    """Return the identity of the block device at a path, and its content."""
    seen = look_at_volume(executor, VolumeQuestion(path, details=("content", "edges")))
    return _whole_pin(path, seen), content_of(seen)


def _whole_pin(path: str, seen: DescribedVolume) -> DevicePin:
    """Return the identity of a device with the marks of its content."""
    edges = "" if seen.device is None else seen.device.edges or ""
    marks = {"edges": edges, "signature": content_of(seen).mark}
    return pin_of(path, seen).model_copy(update=marks)


def pin_of(path: str, seen: DescribedVolume) -> DevicePin:
    """Return the identity of the block device at a path, without its content."""
    pin = None if seen.device is None else seen.device.pin
    if pin is None or not pin.size_bytes:
        is_known = "without capacity" if seen.is_device else ""
        problem = f"is a block device {is_known}" if is_known else "is not a block device"
        raise RefusedError(
            f"{path} {problem}", hint="attach the disk, or name another: lsblk lists the devices"
        )
    return DevicePin(**pin._asdict())


def _check_new_file(path: str, seen: DescribedVolume, *, is_folder: bool) -> None:
    """Check that a path that does not exist may become a file."""
    folder = seen.parent
    is_root = folder.path in _MOUNT_FOLDERS and folder.mount_point in {"", "/"}
    if is_folder or is_root:
        raise RefusedError(
            f"{path} does not exist: fio would fill the disk of {folder.path}",
            hint=f"mount the volume there, or create the folder: mkdir {quoted(path)}",
        )
    if folder.kind != "directory":
        raise RefusedError(
            f"{path} cannot be created: there is no folder {folder.path}; fio would create it and "
            f"fill the disk of {folder.nearest}",
            hint=f"mount the volume, or create the folder: mkdir -p {quoted(folder.path)}",
        )


def _check_name(path: str, seen: DescribedVolume) -> None:
    """Refuse a new file whose name is probably a typo.

    Files whose names differ in digits only are a series.
    """
    stem, ending = _stem_and_ending(Path(path).name)
    for entry in seen.similar:
        near, near_ending = _stem_and_ending(entry.rstrip("/"))
        is_series = _NUMBERS.sub("", near) == _NUMBERS.sub("", stem) and ending == near_ending
        pairs = ((near, stem), (near_ending, ending))
        ratios = (difflib.SequenceMatcher(None, *pair).ratio() for pair in pairs)
        if min(ratios) >= _SIMILAR and (entry.endswith("/") or not is_series):
            raise RefusedError(
                f"{path} does not exist, but {seen.parent.path.rstrip('/')}/{entry} does",
                hint=f"check the name; for a new file of this name: --allow-destroy {path}",
            )


def _stem_and_ending(name: str) -> tuple[str, str]:
    ending = Path(name).suffix
    return name.removesuffix(ending).lower(), ending.lower()


def check_not_among_devices(path: str, seen: DescribedVolume) -> None:
    """Check that a path other than a block device is not below /dev.

    For a mistyped device name, fio creates a file in memory and exits with 0. File systems mounted
    below /dev, such as /dev/shm, are accepted. In /proc/self, fio would find files of its own.
    """
    if path.startswith("/proc/") or seen.real.startswith("/proc/"):
        real = seen.real.removeprefix("/proc/self")
        raise RefusedError(f"{path} differs between processes", hint=f"name it as {real}")
    is_below = seen.real == _DEVICES or seen.real.startswith(f"{_DEVICES}/")
    if not is_below or seen.real_mount_point.startswith(f"{_DEVICES}/"):
        return
    close = difflib.get_close_matches(seen.real.removeprefix(f"{_DEVICES}/"), seen.similar, n=3)
    similar = " or ".join(f"{_DEVICES}/{name}" for name in close)
    raise RefusedError(
        f"{path} is not a block device but a file in memory below /dev"
        if seen.stat is not None
        else f"{path} does not exist: fio would create a file in memory there",
        hint=f"did you mean {similar}?" if similar else "lsblk lists the devices",
    )


def volume_facts(volume: Volume, seen: Mapping[str, DescribedVolume]) -> VolumeFacts:
    """Return the facts of a volume from the descriptions of its paths; none of an NBD export."""
    facts = [_facts_of_path(each, seen.get(each.target)) for each in volume.each]
    return facts[0] if len(facts) == 1 else joined_facts(volume, facts)


def _facts_of_path(volume: Volume, seen: DescribedVolume | None) -> VolumeFacts:
    facts: dict[str, object] = {"role": volume.role, "target": volume.target, "kind": volume.kind}
    if seen is None:
        return VolumeFacts.model_validate({**facts, "path": volume.target})
    facts["path"] = seen.real
    device = seen.device
    if volume.kind is not VolumeKind.DEVICE:
        facts["free_bytes"] = seen.space[0]
        facts["content"] = "nothing: it does not exist yet" if seen.stat is None else ""
    elif seen.is_device:
        facts["content"] = str(content_of(seen))
    else:
        device = None  # it is gone; facts of the file system at its path are not its own
    if seen.mount is not None and (volume.kind is not VolumeKind.DEVICE or device is not None):
        facts["filesystem"] = seen.mount.filesystem
        facts["mount_point"] = seen.mount.mount_point
        facts["mount_options"] = seen.mount.options
    if device is not None:
        known = set(VolumeFacts.model_fields) & set(device._fields) - {"content"}
        facts |= {name: getattr(device, name) for name in known}
        facts |= {"device": device.name, "major": device.number[0], "minor": device.number[1]}
    return VolumeFacts.model_validate(facts)
