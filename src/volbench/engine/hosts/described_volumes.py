"""Volumes as the agent of a host describes them, and the content of their devices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from volbench.errors import InputError, RefusedError, TransportError
from volbench.execute.agent import volumes
from volbench.execute.agent.signatures import Part
from volbench.execute.agent.volumes import (
    DescribedFile,
    DescribedVolume,
    VolumeQuestion,
    describe_volumes,
    file_identities,
)
from volbench.execute.protocol import Executor, OperationError
from volbench.model.campaign.planned_run import FileIdentity
from volbench.units import format_capacity

# Members of larger volumes that blkid does not class as ``raid``
_OWNED_TYPES = {"bcache", "ceph_bluestore", "drbd", "stratis", "zfs_member"}


class Content:
    """Content of a block device: `parts` are the device itself, then its partitions."""

    def __init__(self, parts: Sequence[Part]) -> None:
        self._parts = parts
        self.is_unidentified = any(part.unidentified for part in parts)

    def __str__(self) -> str:
        """Return a description; empty when the device could not be examined."""
        if self.unreadable:
            return ""
        device, *partitions = self._parts
        if not _mark_of(device) and self.is_unidentified:
            return "data that cannot be identified without blkid"
        named = (f"{name_of(part)}: {signature_of(part)}" for part in partitions if _mark_of(part))
        return "; ".join((signature_of(device), *named))

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
        return next((part for part in self._parts if is_member(part)), None)

    @property
    def mark(self) -> str:
        """Unique mark of the content; empty if there is none, or if not examined."""
        return " ".join(filter(None, map(_mark_of, self._parts)))

    def describe(self, part: Part) -> str:
        """Return the content of a part, with its name unless it is the device itself."""
        signature = signature_of(part)
        return signature if part is self._parts[0] else f"{name_of(part)}: {signature}"


def content_of(seen: DescribedVolume) -> Content:
    """Return the content of a device; unreadable without a device, or if not examined."""
    parts = seen.device.content if seen.device is not None else None
    return Content(parts or (Part(seen.real),))


def signature_of(part: Part) -> str:
    """Return the description of a part; empty when it could not be examined."""
    if not part.known:
        return ""
    if part.ambivalent:
        return "several signatures that contradict each other"
    content = f'{part.type} "{part.label}"' if part.type and part.label else part.type
    table = f"partition table {part.table}" if part.table else ""
    return ", ".join(filter(None, (content, table))) or "no known signature"


def name_of(part: Part) -> str:
    """Return the name of a part, such as ``/dev/sdb1`` or ``partition 2 (1m at 8m)``."""
    if not part.number:
        return part.node
    size, offset = format_capacity(part.size_bytes), format_capacity(part.offset)
    return f"partition {part.number} ({size} at {offset})"


def is_member(part: Part) -> bool:
    """Return whether a part belongs to a larger volume."""
    is_owned = part.type.endswith("_member") or part.type in _OWNED_TYPES
    return part.usage == "raid" or is_owned or (part.type == "btrfs" and part.siblings != 1)


def _mark_of(part: Part) -> str:
    """Return the unique mark of a part's content; empty for none, or if not examined."""
    if part.ambivalent:
        return signature_of(part)
    return " ".join(filter(None, (part.type, part.table, part.uuids)))


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
        campaign_dir: absolute path of the campaign folder; it may not exist yet.
        space: paths whose free space is needed.
        flush_s: time to write back dirty pages of each volume before the look; 0 for no flush.
        by_sudo: whether fio runs as root regardless of the login user.
    """
    joined: dict[str, VolumeQuestion] = {}
    for question in questions:
        first = joined.get(question.target, question)
        joined[question.target] = first._replace(
            files=tuple(dict.fromkeys([*first.files, *question.files])),
            details=tuple(dict.fromkeys([*first.details, *question.details])),
        )
    try:
        answer = executor.ask(
            describe_volumes,
            [*joined.values()],
            campaign_dir=campaign_dir,
            space=[*space],
            limit_s=flush_s * len(joined),
            by_sudo=by_sudo,
        )
    except OperationError as error:
        if error.kind == "refused":  # the table of mounts
            hint = "mount /proc, and see what it holds: findmnt"
            raise RefusedError(error.reason, hint=hint) from error
        raise InputError(error.reason, hint="check the path and its permissions") from error
    if len(answer.volumes) != len(joined) or len(answer.free_bytes) != len(space):
        raise _incomplete(executor)
    files = {
        path: file
        for question, volume in zip(joined.values(), answer.volumes, strict=True)
        for path, file in zip(question.files, volume.files, strict=False)
    }
    return HostState(
        answer.user,
        dict(zip(space, answer.free_bytes, strict=True)),
        dict(zip(joined, answer.volumes, strict=True)),
        files,
        [problem for problem in answer.flush_problems if problem],
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
    """Return the descriptions of files, in the order of their paths."""
    files = executor.ask(volumes.describe_files, [*paths], [*allow]) if paths else ()
    if len(files) != len(paths):
        raise _incomplete(executor)
    return files


def identities_of(executor: Executor, paths: Sequence[str]) -> tuple[FileIdentity | None, ...]:
    """Return the identities of files, even if they are symlinks; None for missing ones."""
    identities = executor.ask(file_identities, [*paths]) if paths else ()
    if len(identities) != len(paths):
        raise _incomplete(executor)
    return identities


def _incomplete(executor: Executor) -> TransportError:
    return TransportError(
        f"{executor.host} does not answer all questions",
        hint="check the host with volbench hosts; repeat the command",
    )
