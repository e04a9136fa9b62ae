"""Volumes of a campaign: all that the guard and the archive must know of them, at one instant."""

import os
import re
import time
from itertools import chain
from typing import Iterator, NamedTuple, Sequence

from volbench.execute.agent import block_reads, mounts
from volbench.execute.agent.block_devices import BlockDevice, DeviceIdentity, Devices, SharedStorage
from volbench.execute.agent.files import FileIdentity, FileStat, NamedFile
from volbench.execute.agent.locks import Room
from volbench.execute.agent.mounts import LoopFile, Mount, mount_of, read_mounts, stored_at
from volbench.execute.agent.signatures import Part, read_content, read_whole
from volbench.execute.agent.snapshot import Snapshot, parent_of

_MAX_NAMES = 2000  # In a folder whose names are listed beside a missing path: a trade-off

_CHOSEN = re.compile(r"\[(.+)\]")
_IN_MEMORY = ("tmpfs", "ramfs")
_IN_PLACE = ("ext2", "ext3", "ext4", "xfs")  # what is overwritten keeps its blocks


class VolumeQuestion(NamedTuple):
    """Question about a volume."""

    target: str  # absolute path
    files: "tuple[str, ...]" = ()  # that a run may use
    allow: "tuple[str, ...]" = ()  # what may be overwritten, as the user named it
    folder: str = ""  # that must exist
    private_folder: str = ""  # of the campaign in a directory
    # of a device: ``content``, ``edges`` (digest of its first and last MiB), ``use`` by others;
    # of any volume: ``access``
    details: "tuple[str, ...]" = ()


class ParentFolder(NamedTuple):
    """Folder of a path whose symlinks are resolved."""

    path: str
    kind: str  # empty if it does not exist
    mount_point: str
    nearest: str  # the folder or its nearest existing parent


class FolderOwner(NamedTuple):
    """A folder with its owner and mode."""

    path: str
    owner: int
    mode: int


class RequiredFolder(NamedTuple):
    """Folder in which files of a run are to be made."""

    kind: str  # empty if it does not exist
    parents: "tuple[FolderOwner, ...]"  # the folder and all its parents


class DescribedFile(NamedTuple):
    """A file that a run may use."""

    real: str  # path with all symlinks resolved
    placed: str  # path with the symlinks of its folder resolved
    stat: "FileStat | None"
    identity: "FileIdentity | None"  # of the path itself, even if it is a symlink
    # ``swap PATH`` or ``loop NAME``; of a file that the user named also ``hidden NAME``, a loop
    # device that cannot be compared with it, or ``program ``; empty for none
    user: str
    named: bool  # whether the user named it as a file that may be overwritten
    copied_bytes: int  # that an overlay copies before they are overwritten
    content: "Part | None"  # None if the user did not name it


class KnownFile(NamedTuple):
    """A file that a run must leave in its place, with its length and its blocks."""

    path: str
    identity: "FileIdentity"
    size_bytes: int
    allocated_bytes: int  # with blocks of its own; 0 if it is only read
    mark: "str | None" = None  # of its content; None if it was not examined


class OtherName(NamedTuple):
    """An independent name of a device."""

    node: str
    exclusive: str  # error of an exclusive open; empty if it is free


class DeviceUse(NamedTuple):
    """Uses of a device, under any of its names."""

    disk_of: "tuple[str, ...]"  # which of / and the campaign folder are on its disks
    mounted_at: "tuple[str, ...]"
    is_swap: bool
    held_by: "tuple[str, ...]"  # kernel names of devices built on it
    loops: "tuple[str, ...]"  # loop devices on it
    hidden: str  # loop device whose file may be its own under another number; empty for none
    file_use: str  # what else uses the file of a loop device on which it is; empty for nothing
    members: "tuple[Part, ...]"  # disks of which it is a partition
    exclusive: str  # error of an exclusive open; empty if it is free
    others: "tuple[OtherName, ...]"
    writer: str  # program that may write to it, which is not volbench's; empty for none


class DescribedDevice(NamedTuple):
    """The block device that a volume is, or is on."""

    name: str  # of the kernel
    number: "tuple[int, int]"
    is_partition: bool
    serial: str
    model: str
    size_bytes: int
    read_only: bool
    rotational: "bool | None"
    scheduler: str
    logical_block_bytes: "int | None"
    physical_block_bytes: "int | None"
    write_cache: str
    link: str
    link_bytes_per_s: int
    backing: "tuple[str, ...]"
    memory_below: str  # filesystem in memory that holds the file of a loop device; empty for none
    pin: "DeviceIdentity | None" = None  # where the volume is the device
    named: bool = False  # whether the user named it as a device that may be overwritten
    edges: "str | None" = None  # None where not asked; empty if unreadable
    content: "tuple[Part, ...] | None" = None  # None where not asked
    use: "DeviceUse | None" = None  # None where not asked


class DescribedVolume(NamedTuple):
    """A volume at the time of the description."""

    real: str  # path with all symlinks resolved
    stat: "FileStat | None"
    nearest: str  # the path or its nearest existing parent
    mount: "Mount | None"  # of the nearest path; of a device, its newest one
    storage: "Mount | None"  # that takes what is written: of an overlay, that of its upper folder
    space: "tuple[int, int]"  # free bytes at the nearest path, and files that can be made there
    real_mount_point: str  # of the resolved path
    parent: ParentFolder
    # for a path below /dev, names of devices; for a missing path, names beside it, directories
    # with / at the end
    similar: "tuple[str, ...]"
    access: str  # why it cannot be opened, or a missing file not created; empty if not asked
    unmounted: str  # mount point of /etc/fstab at or above it where nothing is mounted
    folder: RequiredFolder
    private_folder: "FileIdentity | None"
    files: "tuple[DescribedFile, ...]"
    device: "DescribedDevice | None"
    # of each loop device in or below it: what its file lacks, and the free space for that
    holes: "tuple[tuple[Room, int], ...]"

    @property
    def is_device(self) -> bool:
        """Whether it is a block device."""
        return self.stat is not None and self.stat.kind == "block"


class DescribedHost(NamedTuple):
    """Answer to questions about volumes."""

    user: int  # who may write to a folder besides root
    free_bytes: "tuple[int, ...]" = ()
    # why dirty pages of a volume were not written back, or empty texts; in the order of the volumes
    flush_problems: "tuple[str, ...]" = ()
    volumes: "tuple[DescribedVolume, ...]" = ()


def describe_volumes(
    volumes: "Sequence[VolumeQuestion]",
    campaign_dir: str = "/",
    space: "Sequence[str]" = (),
    limit_s: float = 0.0,
    *,
    by_sudo: bool = False,
    snapshot: "Snapshot | None" = None,
) -> DescribedHost:
    """Describe volumes for the guard, all at one instant.

    Args:
        campaign_dir: whose disk must not be overwritten; it may not exist yet.
        space: paths whose free space is needed.
        limit_s: time to write back dirty pages of all volumes before the look; 0 for no flush.
        by_sudo: whether fio runs as root regardless of the login user.
    """
    snapshot = snapshot or Snapshot()
    questions = [VolumeQuestion(*each) for each in volumes]
    problems = []
    if limit_s:
        until_s = time.monotonic() + limit_s
        for each in questions:
            left_s = max(0.0, until_s - time.monotonic())
            problems.append(block_reads.flush(each.target, left_s, snapshot))
        snapshot.forget()
    described = tuple(map(_Describer(snapshot, campaign_dir).describe, questions))
    free_bytes = tuple(snapshot.free_space(snapshot.nearest(path))[0] for path in space)
    process, login = snapshot.stat("/proc/self"), os.environ.get("SUDO_UID", "")
    user = 0 if process is None else process.owner
    user = int(login) if by_sudo and not user and login.isdigit() else user
    return DescribedHost(user, free_bytes, tuple(problems), described)


class _Describer:
    """Descriptions of volumes from one snapshot."""

    def __init__(self, snapshot: Snapshot, campaign_dir: str) -> None:
        self._snapshot = snapshot
        self._devices = Devices(snapshot)
        self._campaign_dir = campaign_dir

    def describe(self, question: VolumeQuestion) -> DescribedVolume:
        """Return the description of one volume."""
        snapshot, target, details = self._snapshot, question.target, question.details
        real, stat = snapshot.real_path(target), snapshot.stat(target)
        nearest = snapshot.nearest(target)
        parent = parent_of(real)
        missing = next((path for path in question.files if snapshot.stat(path) is None), "")
        is_device = stat is not None and stat.kind == "block"
        number = stat.rdev if stat and is_device else mounts.number_under(snapshot, nearest)
        device = None if number is None else self._devices.with_number(number)
        own = (m for m in read_mounts(snapshot) if number in mounts.mount_numbers(snapshot, m))
        mount = next(reversed([*own]), None) if is_device else mount_of(snapshot, nearest)
        return DescribedVolume(
            real=real,
            stat=stat,
            nearest=nearest,
            mount=mount,
            storage=mount_of(snapshot, stored_at(snapshot, nearest)),
            space=snapshot.free_space(nearest),
            real_mount_point=self._mount_point(real),
            parent=ParentFolder(
                parent, self._kind(parent), self._mount_point(parent), snapshot.nearest(parent)
            ),
            similar=() if is_device else self._similar(real, parent, stat),
            access=self._access(question, missing) if "access" in details else "",
            unmounted=mounts.unmounted_above(snapshot, target),
            folder=self._folder(question.folder),
            private_folder=_identity(snapshot.stat(question.private_folder, follow=False)),
            files=tuple(self.file(path, question.allow) for path in question.files),
            device=device and self._device(device, target if is_device else "", question),
            holes=tuple(self._holes([device] if device else self._under_layers(nearest))),
        )

    def _under_layers(self, path: str) -> "list[BlockDevice]":
        """Return the device below an overlay or similar: of a mount with the same free space."""
        every = read_mounts(self._snapshot) if mounts.is_layered(self._snapshot, path) else []
        numbers = {mount.number: mount.mount_point for mount in every if mount.number[0]}
        space, free = self._snapshot.free_space(path), self._snapshot.free_space
        found = (self._devices.with_number(n) for n, p in numbers.items() if free(p) == space)
        return [device for device in found if device is not None]

    def _access(self, question: VolumeQuestion, missing: str) -> str:
        """Return why a file cannot be opened, or a missing one not created; empty if it can."""
        snapshot, writes = self._snapshot, "use" in question.details
        for path in (question.target, *question.files):
            is_known = self._kind(path) in ("file", "block")
            error = is_known and snapshot.open_error(path, writes=writes)
            if error:
                return "{} cannot be opened: {}".format(path, error)
        folder = missing and snapshot.nearest(missing)
        error = folder and snapshot.access_error(folder, os.W_OK | os.X_OK)
        return error and "files cannot be created in {}: {}".format(folder, error)

    def _kind(self, path: str) -> str:
        stat = self._snapshot.stat(path)
        return "" if stat is None else stat.kind

    def _mount_point(self, path: str) -> str:
        mount = mount_of(self._snapshot, path)
        return "" if mount is None else mount.mount_point

    def _similar(self, real: str, parent: str, stat: "FileStat | None") -> "tuple[str, ...]":
        """Return names of devices, or names beside a missing path, directories with /."""
        if real.startswith("/dev/"):
            names = self._snapshot.names("/sys/class/block")
            return tuple(name.replace("!", "/") for name in names)
        names = self._snapshot.names(parent) if stat is None else []
        if len(names) > _MAX_NAMES:
            return ()
        kinds = {name: self._kind(parent + "/" + name) for name in names}
        return tuple(name + "/" if kind == "directory" else name for name, kind in kinds.items())

    def _folder(self, path: str) -> RequiredFolder:
        """Return the kind of a folder, and path, owner and mode of it and each of its parents."""
        here = self._snapshot.real_path(path or "/")
        parents = []
        while path:
            stat = self._snapshot.stat(here)
            if stat is not None:
                parents.append(FolderOwner(here, stat.owner, stat.mode))
            if here == "/":
                break
            here = parent_of(here)
        return RequiredFolder(self._kind(path) if path else "", tuple(parents))

    def file(self, path: str, allow: "Sequence[str]") -> DescribedFile:
        """Describe a file that a run may use."""
        snapshot = self._snapshot
        real, stat = snapshot.real_path(path), snapshot.stat(path)
        folder = snapshot.real_path(parent_of(path)).rstrip("/")
        named = any(snapshot.real_path(entry) == real for entry in allow)
        others, copied_bytes, content = "", 0, None
        if named and stat is not None and stat.kind == "file":
            stat = stat._replace(allocated_bytes=snapshot.allocated_bytes(path, stat.size_bytes))
            others = self._other_user(real, stat)
            content = read_whole(snapshot, real, stat.size_bytes)
            copied_bytes = self._copied_bytes(real, stat)
        return DescribedFile(
            real=real,
            placed=folder + "/" + path.rpartition("/")[2],
            stat=stat,
            identity=_identity(snapshot.stat(path, follow=False)),
            user=self._kernel_user(stored_at(snapshot, real), stat) or others,
            named=named,
            copied_bytes=copied_bytes,
            content=content,
        )

    def _copied_bytes(self, path: str, file: FileStat) -> int:
        """Return the bytes that an overlay still has to copy to its upper folder."""
        mount, place = mount_of(self._snapshot, path), stored_at(self._snapshot, path)
        if mount is None or "overlay" not in mount.filesystem:
            return 0
        stored = self._snapshot.stat_visible(place) if place != path else None
        return max(0, file.allocated_bytes - (stored.allocated_bytes if stored else 0))

    def _kernel_user(self, place: str, shown: "FileStat | None") -> str:
        file = self._snapshot.stat_visible(place) or shown
        if file is None:
            return ""
        swap = self._swap_of(file)
        if swap:
            return "swap " + swap
        for name, loop in self._devices.loops().items():
            if (loop.stat.device, loop.stat.inode) == (file.device, file.inode):
                return "loop " + name
        return ""

    def _swap_of(self, file: FileStat) -> str:
        """Return the path under which a file is in use as swap; empty if it is not."""
        for path in mounts.read_swaps(self._snapshot):
            used = self._snapshot.stat_visible(path)
            if used and (used.device, used.inode) == (file.device, file.inode):
                return path
        return ""

    def _other_user(self, path: str, file: FileStat) -> str:
        """Return who may use a file that no kernel table names, as `_kernel_user` does."""
        if any(map(self._snapshot.is_open, {path, stored_at(self._snapshot, path)})):
            return "program "
        is_unknown = mounts.is_layered(self._snapshot, path)
        hidden = self._devices.hidden_user(file, layered=True) if is_unknown else ""
        return hidden and "hidden " + hidden

    def _attributes(self, device: BlockDevice) -> DescribedDevice:
        """Return the attributes of a block device; details are for `_device` to add."""
        devices = self._devices
        disk, below = devices.whole_disk(device), devices.below(device, through_files=True)
        scheduler = devices.attribute(disk, "queue/scheduler")
        chosen = _CHOSEN.search(scheduler)
        rotational = devices.attribute(disk, "queue/rotational")
        serial, model = devices.serial_and_model(disk)
        link, link_bytes_per_s = devices.link(disk)
        return DescribedDevice(
            name=device.name,
            number=device.number,
            is_partition=disk != device,
            serial=serial,
            model=model,
            size_bytes=devices.size_bytes(device),
            read_only=devices.attribute(device, "ro") == "1",
            rotational=rotational == "1" if rotational else None,
            scheduler=chosen.group(1) if chosen else scheduler,
            logical_block_bytes=devices.number_in(disk, "queue/logical_block_size"),
            physical_block_bytes=devices.number_in(disk, "queue/physical_block_size"),
            write_cache=devices.attribute(disk, "queue/write_cache"),
            link=link if link_bytes_per_s else "",
            link_bytes_per_s=link_bytes_per_s,
            backing=tuple(lower.name for lower in below),
            memory_below=self._memory_below([device, *below]),
        )

    def _device(self, device: BlockDevice, target: str, asked: VolumeQuestion) -> DescribedDevice:
        """Return the attributes of a block device, and more if it is the target."""
        description, details = self._attributes(device), asked.details
        if not target:
            return description
        snapshot, devices = self._snapshot, self._devices
        ends = "edges" in details and snapshot.edges(target, devices.size_bytes(device))
        parts = "content" in details and read_content(snapshot, devices, device, target)
        return description._replace(
            pin=devices.identity(device, target),
            named=self._is_named(device, target, asked.allow),
            edges=None if ends is False else ends,
            content=None if parts is False else tuple(parts),
            use=self._use(device, target, asked.allow) if "use" in details else None,
        )

    def _memory_below(self, devices: "list[BlockDevice]") -> str:
        """Return the filesystem in memory that holds the file of a loop device; empty for none."""
        for device in devices:
            loop = self._devices.loops().get(device.name)
            mount = self._mount_below(loop) if loop is not None else None
            if mount is not None and mount.filesystem in _IN_MEMORY:
                return "{} under {}".format(mount.filesystem, device.name)
        return ""

    def _mount_below(self, loop: LoopFile) -> "Mount | None":
        """Return a mount of the filesystem that holds the file of a loop device."""
        snapshot = self._snapshot
        same = (each for each in read_mounts(snapshot) if each.number == loop.stat.device)
        seen = (each for each in same if mount_of(snapshot, each.mount_point) == each)
        return next(seen, None) or mount_of(snapshot, stored_at(snapshot, loop.path))

    def _holes(self, devices: "list[BlockDevice]") -> "Iterator[tuple[Room, int]]":
        """Yield what the file of each loop device lacks, and the free space for that."""
        below = (self._devices.below(device, through_files=True) for device in devices)
        for lower in (*devices, *chain.from_iterable(below)):
            loop = self._devices.loops().get(lower.name)
            if loop is None or loop.stat.kind != "file":
                continue
            mount = self._mount_below(loop)
            if mount and mount.root == "/" and self._kind(mount.mount_point) == "file":
                continue  # a filesystem of one file, as of nbdfuse, shares no space
            size, allocated = self._devices.size_bytes(lower), 0
            if loop.stat.size_bytes:  # else its name is gone
                size = loop.stat.size_bytes
                allocated = self._snapshot.allocated_bytes(loop.path, size)
            place = mount.mount_point if mount else self._snapshot.nearest(loop.path)
            number, files = mount.number if mount else (0, 0), (loop.path,) * bool(allocated)
            free = self._snapshot.free_space(place)[0]
            yield Room(number, place, max(0, size - allocated), files), free

    def _is_named(self, device: BlockDevice, target: str, allow: "Sequence[str]") -> bool:
        """Return whether the user named this device, by its resolved path and its number."""
        stats = ((entry, self._snapshot.stat_visible(entry)) for entry in allow)
        same = (e for e, s in stats if s and s.kind == "block" and s.rdev == device.number)
        return self._snapshot.real_path(target) in map(self._snapshot.real_path, same)

    def _use(self, device: BlockDevice, target: str, allow: "Sequence[str]") -> DeviceUse:
        """Return the uses of a device, under any of its names."""
        snapshot, devices = self._snapshot, self._devices
        shared = SharedStorage(snapshot, devices, device)
        used = shared.overlapping + shared.elsewhere
        numbers = {part.number for part in used}
        below = devices.below(device, through_files=False)
        stack_numbers = {part.number for part in [device, *below]}
        own_names = {part.name for part in [device, *below]}
        disk = devices.whole_disk(device)
        family = {part.number for part in [device, disk, *devices.partitions(device)]}
        files = devices.loops()
        own = [files[name] for name in own_names if name in files]
        unnamed = {part.name for part in used if not self._is_named(part, part.node, allow)}
        hidden = (devices.hidden_user(f.stat, layered=f.is_layered) for f in own)
        return DeviceUse(
            disk_of=tuple(
                path
                for path in ("/", self._campaign_dir)
                if stack_numbers & {part.number for part in self._under(path)}
            ),
            mounted_at=tuple(dict.fromkeys(mounts.mount_points(snapshot, numbers))),
            is_swap=bool(numbers & mounts.swap_numbers(snapshot)),
            held_by=tuple(sorted({n for part in used for n in devices.holders(part)} - own_names)),
            loops=tuple(
                name
                for name, file in files.items()
                if (file.stat.kind == "block" and file.stat.rdev in family)
                or name in unnamed - own_names
            ),
            hidden=next(filter(None, hidden), ""),
            file_use=next(filter(None, map(self._use_of_file, own)), self._export_of(numbers)),
            members=tuple(
                read_whole(snapshot, each.node, devices.size_bytes(each)) for each in shared.wholes
            ),
            exclusive=snapshot.exclusive_error(target),
            others=tuple(
                OtherName(other.node, snapshot.exclusive_error(other.node))
                for other in shared.independent
            ),
            writer=snapshot.opener_of(None, numbers | stack_numbers),
        )

    def _export_of(self, numbers: "set[tuple[int, int]]") -> str:
        """Return how the machine exports one of some devices; empty if it does not."""
        sources = mounts.sources_elsewhere(self._snapshot)
        return next(("in use " + words for words, at in sources if at and at.rdev in numbers), "")

    def _use_of_file(self, loop: LoopFile) -> str:
        """Return what uses the file of a loop device besides loop devices; empty for nothing."""
        if loop.stat.kind != "file":
            return ""
        users = ["as swap"] if self._swap_of(loop.stat) else []
        for mount in read_mounts(self._snapshot):
            source = mounts.source_of(self._snapshot, mount)
            if source and source.identity[:3] == loop.stat.identity[:3]:
                users.append("as {} at {}".format(mount.filesystem, mount.mount_point))
        for words, source in mounts.sources_elsewhere(self._snapshot):
            if source is None or source.identity[:3] == loop.stat.identity[:3]:
                users.append(words)
        program = "" if users else self._snapshot.opener_of(loop.stat)
        users += ["by " + program] if program else []
        return "{} is in use {}".format(loop.path, users[0]) if users else ""

    def _under(self, path: str) -> "list[BlockDevice]":
        return self._devices.of_path(self._snapshot.nearest(self._snapshot.real_path(path)))


def describe_files(
    paths: "Sequence[str]", allow: "Sequence[str]" = (), snapshot: "Snapshot | None" = None
) -> "tuple[DescribedFile, ...]":
    """Describe files, in the order of their paths."""
    describer = _Describer(snapshot or Snapshot(), "/")
    return tuple(describer.file(path, allow) for path in paths)


def file_identities(
    paths: "Sequence[str]", snapshot: "Snapshot | None" = None
) -> "tuple[FileIdentity | None, ...]":
    """Return the identities of files, even if they are symlinks; None for missing ones."""
    snapshot = snapshot or Snapshot()
    return tuple(_identity(snapshot.stat(path, follow=False)) for path in paths)


def changed_files(
    files: "Sequence[KnownFile]", snapshot: "Snapshot | None" = None
) -> "tuple[str, ...]":
    """Return a sentence on each file that was removed, replaced, cut or made longer."""
    snapshot, found = snapshot or Snapshot(), []
    for path, identity, size_bytes, allocated_bytes, _mark in files:
        stat = snapshot.stat(path, follow=False)
        if stat is None or stat.identity != tuple(identity):
            found.append("{} was {}".format(path, "replaced" if stat else "removed"))
        elif stat.size_bytes != size_bytes:
            change = "from {} to {} bytes".format(size_bytes, stat.size_bytes)
            found.append("the length of {} changed {}".format(path, change))
        elif stat.allocated_bytes < allocated_bytes:
            mount = mount_of(snapshot, path)
            if mount is not None and mount.filesystem in _IN_PLACE:
                found.append("{} was cut, and made as long again by fio".format(path))
    return tuple(found)


def folder_contents(path: str, snapshot: "Snapshot | None" = None) -> "tuple[NamedFile, ...]":
    """Return path and identity of everything in a directory; empty if it does not exist."""
    snapshot = snapshot or Snapshot()
    paths = ["{}/{}".format(path, name) for name in snapshot.names(path)]
    return tuple(NamedFile(each, _identity(snapshot.stat(each, follow=False))) for each in paths)


def _identity(stat: "FileStat | None") -> "FileIdentity | None":
    return None if stat is None else stat.identity
