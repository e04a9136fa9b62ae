"""Volumes as the agent of a host describes them: validated once, where the description enters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError

from volbench.errors import InputError, RefusedError, TransportError
from volbench.execute.protocol import Executor, FileStat
from volbench.model.campaign.planned_run import DevicePin, FileIdentity
from volbench.model.frozen_model import Count, Frozen
from volbench.units import format_capacity

# Members of larger volumes that blkid does not class as ``raid``
_OWNED_TYPES = {"bcache", "ceph_bluestore", "drbd", "stratis", "zfs_member"}


class Part(Frozen):
    """The whole device, or one of its partitions."""

    node: str  # its device node; that of the disk for a partition that the kernel has not scanned
    number: int  # of a partition that the kernel has not scanned; 0 otherwise
    offset: Count  # of such a partition
    size_bytes: Count  # of such a partition
    known: bool  # whether it could be examined
    type: str  # such as ext4, LVM2_member or btrfs; empty for none
    usage: str  # its class in blkid, such as filesystem or raid
    label: str
    table: str  # type of the partition table
    uuids: str  # UUIDs of content and partition table
    ambivalent: bool  # signatures contradict each other
    unidentified: bool  # data, on a host without blkid, that is no known signature
    siblings: Count  # number of devices of its btrfs; 1 for other content

    @property
    def signature(self) -> str:
        """Description; empty when it could not be examined."""
        if not self.known:
            return ""
        if self.ambivalent:
            return "several signatures that contradict each other"
        content = f'{self.type} "{self.label}"' if self.type and self.label else self.type
        table = f"partition table {self.table}" if self.table else ""
        return ", ".join(filter(None, (content, table))) or "no known signature"

    @property
    def name(self) -> str:
        """Name, such as ``/dev/sdb1`` or ``partition 2 (1m at 8m)``."""
        if not self.number:
            return self.node
        size, offset = format_capacity(self.size_bytes), format_capacity(self.offset)
        return f"partition {self.number} ({size} at {offset})"

    @property
    def mark(self) -> str:
        """Unique mark of its content; empty if there is none, or if not examined."""
        if self.ambivalent:
            return self.signature
        return " ".join(filter(None, (self.type, self.table, self.uuids)))

    @property
    def is_member(self) -> bool:
        """Whether it belongs to a larger volume."""
        is_owned = self.type.endswith("_member") or self.type in _OWNED_TYPES
        return self.usage == "raid" or is_owned or (self.type == "btrfs" and self.siblings != 1)


class Content:
    """What is on a block device.

    Args:
        parts: the device itself, then its partitions.
    """

    def __init__(self, parts: Sequence[Part]) -> None:
        self._parts = parts
        self.is_unidentified = any(part.unidentified for part in parts)

    def __str__(self) -> str:
        """Return a description; empty when the device could not be examined."""
        if self.unreadable:
            return ""
        device, *partitions = self._parts
        if not device.mark and self.is_unidentified:
            return "data that cannot be identified without blkid"
        named = (f"{part.name}: {part.signature}" for part in partitions if part.mark)
        return "; ".join((device.signature, *named))

    @property
    def unreadable(self) -> str:
        """Node of the first part that could not be examined; empty if all could."""
        return next((part.node for part in self._parts if not part.known), "")

    @property
    def ambivalent(self) -> Part | None:
        """First part with signatures that contradict each other."""
        return next((part for part in self._parts if part.ambivalent), None)

    @property
    def member(self) -> Part | None:
        """First part that belongs to a larger volume."""
        return next((part for part in self._parts if part.is_member), None)

    @property
    def mark(self) -> str:
        """Unique mark of the content; empty if there is none, or if not examined."""
        return " ".join(filter(None, (part.mark for part in self._parts)))

    def describe(self, part: Part) -> str:
        """Return what a part holds, with its name unless it is the device itself."""
        is_device = part is self._parts[0]
        return part.signature if is_device else f"{part.name}: {part.signature}"


T = TypeVar("T")

# Longer than the agent waits for a hanging volume (`snapshot.READ_S`), so that its reason arrives.
# Noticed by: tests/execute/agent/test_snapshot.py::test_a_hung_volume_is_skipped
_LOOK_S = 180.0


@dataclass(frozen=True)
class VolumeQuestion:
    """What to describe of a volume."""

    target: str  # absolute path
    files: Sequence[str] = ()  # that a run may use
    allow: Sequence[str] = ()  # what may be overwritten, as the user named it
    folder: str = ""  # that must exist
    private_folder: str = ""  # of the campaign in a directory
    # of a device: ``content``, ``edges`` (digest of its first and last MiB), ``use`` by others;
    # of any volume: ``access``
    details: Sequence[str] = ()


class MountPoint(Frozen):
    """A mounted filesystem."""

    filesystem: str
    mount_point: str
    options: str


class ParentFolder(Frozen):
    """Folder of a path whose symlinks are resolved."""

    path: str
    kind: str  # empty if it does not exist
    mount_point: str
    nearest: str  # the folder or its nearest existing parent


class RequiredFolder(Frozen):
    """Folder in which files of a run are to be made."""

    kind: str  # empty if it does not exist
    parents: tuple[tuple[str, int, int], ...]  # path, owner and mode of it and all its parents


class DescribedFile(Frozen):
    """A file that a run may use."""

    real: str  # path with all symlinks resolved
    placed: str  # path with those of its folder resolved
    stat: FileStat | None
    identity: FileIdentity | None  # of the path itself, even if it is a symlink
    user: str  # in the kernel: ``swap PATH`` or ``loop NAME``; empty for none
    named: bool  # whether the user named it as one that may be overwritten


class DeviceUse(Frozen):
    """Uses of a device, under any of its names."""

    disk_of: tuple[str, ...]  # which of / and the campaign folder are on its disks
    mounted_at: tuple[str, ...]
    is_swap: bool
    held_by: tuple[str, ...]  # kernel names of devices built on it
    loops: tuple[str, ...]  # loop devices on it
    members: tuple[Part, ...]  # disks of which it is a partition
    exclusive: str  # error of an exclusive open; empty if it is free
    others: tuple[tuple[str, str], ...]  # node and that error of its independent names


class DescribedDevice(Frozen):
    """The block device that a volume is, or is on."""

    name: str  # of the kernel
    number: tuple[Count, Count]
    is_partition: bool
    serial: str
    model: str
    size_bytes: Count
    read_only: bool
    rotational: bool | None
    scheduler: str
    logical_block_bytes: Count | None
    physical_block_bytes: Count | None
    write_cache: str
    backing: tuple[str, ...]
    memory_below: str
    pin: DevicePin | None  # where the volume is the device
    named: bool  # whether the user named it as one that may be overwritten
    edges: str | None  # None where not asked; empty if unreadable
    content: tuple[Part, ...] | None  # None where not asked
    use: DeviceUse | None  # None where not asked


class DescribedVolume(Frozen):
    """A volume at the time of the description."""

    denied: str
    real: str  # path with all symlinks resolved
    stat: FileStat | None
    exists_at_real: bool
    nearest: str  # the path or its nearest existing parent
    mount: MountPoint | None  # of the nearest path; of a device, its newest one
    free_bytes: Count
    room_bytes: Count | None  # free space for the first missing file; None if all exist
    real_mount_point: str
    parent: ParentFolder
    # for a path below /dev, names of devices; for a missing path, those beside it, directories
    # with / at the end
    similar: tuple[str, ...]
    access: str  # why it cannot be opened, or a missing file not created; empty if not asked
    unmounted: str  # mount point of /etc/fstab at or above it where nothing is mounted
    folder: RequiredFolder
    private_folder: FileIdentity | None
    files: tuple[DescribedFile, ...]
    device: DescribedDevice | None

    @property
    def is_device(self) -> bool:
        """Whether it is a block device."""
        return self.stat is not None and self.stat.kind == "block"

    @property
    def content(self) -> Content:
        """What is on the device; unreadable where it is none, or was not examined."""
        parts = self.device.content if self.device is not None else None
        return Content(parts or (_UNEXAMINED.model_copy(update={"node": self.real}),))


_UNEXAMINED = Part(
    node="",
    number=0,
    offset=0,
    size_bytes=0,
    known=False,
    type="",
    usage="",
    label="",
    table="",
    uuids="",
    ambivalent=False,
    unidentified=False,
    siblings=1,
)


class _Answer(Frozen):
    """Answer to questions about volumes."""

    user: int
    free_bytes: tuple[Count, ...]
    flush_problems: tuple[str, ...]  # in the order of the volumes
    volumes: tuple[DescribedVolume, ...]


@dataclass(frozen=True)
class HostState:
    """State of volumes and files of a host at one instant."""

    user: int  # who may write to a folder besides root
    free_bytes: Mapping[str, int]  # by path
    volumes: Mapping[str, DescribedVolume]  # by target
    files: Mapping[str, DescribedFile]  # by path
    flush_problems: Sequence[str]  # why dirty pages were not written back


def look_at(
    executor: Executor,
    questions: Sequence[VolumeQuestion],
    *,
    campaign_dir: str = "/",
    space: Sequence[str] = (),
    flush_s: float = 0.0,
    by_sudo: bool = False,
) -> HostState:
    """Return the state of volumes of a host; questions about one target are joined.

    Args:
        executor: the machine.
        questions: the volumes.
        campaign_dir: absolute path of the campaign folder; it may not exist yet.
        space: paths whose free space is needed.
        flush_s: time to write back dirty pages of each volume before the look; 0 for no flush.
        by_sudo: whether fio runs as root regardless of the login user.

    Raises:
        InputError: access to a volume is denied.
        RefusedError: the mounted devices cannot be listed.
        TransportError: the machine does not answer, or its answer is malformed.
    """
    joined: dict[str, VolumeQuestion] = {}
    for question in questions:
        first = joined.get(question.target, question)
        joined[question.target] = replace(
            first,
            files=list(dict.fromkeys([*first.files, *question.files])),
            details=list(dict.fromkeys([*first.details, *question.details])),
        )
    answer = executor.ask(
        "describe_volumes",
        within_s=_LOOK_S + flush_s * len(joined),
        volumes=[{**asdict(each), "allow": list(each.allow)} for each in joined.values()],
        campaign_dir=campaign_dir,
        space=list(space),
        flush_s=flush_s,
        by_sudo=by_sudo,
    )
    raw = parse_answer(dict[str, object], answer, host=executor.host)
    if not raw.pop("mounts_known", False):
        raise RefusedError(
            "/proc/self/mountinfo cannot be read, so mounted devices are unknown",
            hint="mount /proc, and see what it holds: findmnt",
        )
    volumes = parse_answer(list[dict[str, object]], raw.get("volumes"), host=executor.host)
    if denied := next((str(volume["denied"]) for volume in volumes if volume.get("denied")), ""):
        raise InputError(denied, hint="check the path and its permissions")
    answered = parse_answer(_Answer, raw, host=executor.host)
    if len(answered.volumes) != len(joined) or len(answered.free_bytes) != len(space):
        raise _malformed(executor.host, "it does not answer all questions")
    files = {
        path: file
        for question, volume in zip(joined.values(), answered.volumes, strict=True)
        for path, file in zip(question.files, volume.files, strict=False)
    }
    return HostState(
        answered.user,
        dict(zip(space, answered.free_bytes, strict=True)),
        dict(zip(joined, answered.volumes, strict=True)),
        files,
        [problem for problem in answered.flush_problems if problem],
    )


def look_at_volume(executor: Executor, question: VolumeQuestion) -> DescribedVolume:
    """Return the state of one volume of a host."""
    return look_at(executor, [question]).volumes[question.target]


def free_bytes_at(executor: Executor, path: str) -> int:
    """Return the free space at a path, which may not exist yet."""
    return look_at(executor, [], space=[path]).free_bytes[path]


def describe_files(
    executor: Executor, paths: Sequence[str], *, allow: Sequence[str] = ()
) -> tuple[DescribedFile, ...]:
    """Return what there is to know of files, in the order of their paths."""
    if not paths:
        return ()
    answer = executor.ask("describe_files", paths=list(paths), allow=list(allow))
    files = parse_answer(tuple[DescribedFile, ...], answer, host=executor.host)
    if len(files) != len(paths):
        raise _malformed(executor.host, "it does not describe all files")
    return files


def identities_of(executor: Executor, paths: Sequence[str]) -> tuple[FileIdentity | None, ...]:
    """Return the identities of files, even if they are symlinks; None for missing ones."""
    if not paths:
        return ()
    answer = executor.ask("file_identities", paths=list(paths))
    identities = parse_answer(tuple[FileIdentity | None, ...], answer, host=executor.host)
    if len(identities) != len(paths):
        raise _malformed(executor.host, "it does not identify all files")
    return identities


# Validators by the shape of answers; making one takes longer than a look at a file
_adapters: dict[object, TypeAdapter[Any]] = {}


def parse_answer(shape: type[T], answer: object, *, host: str) -> T:
    """Return the validated answer of an agent.

    Raises:
        TransportError: it does not have the expected shape.
    """
    try:
        if shape not in _adapters:
            _adapters[shape] = TypeAdapter(shape)
        value: T = _adapters[shape].validate_python(answer)
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(map(str, first["loc"])) or "it"
        raise _malformed(host, f"{field}: {first['msg']}") from error
    return value


def _malformed(host: str, problem: str) -> TransportError:
    return TransportError(
        f"{host} sent a malformed answer: {problem}",
        hint="check the host with volbench hosts; repeat the command",
    )
