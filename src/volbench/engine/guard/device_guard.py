"""Checks that a block device is the planned one, is not in use, and may be overwritten.

fio only looks for the given name in the mount table, so it misses symlinks, mounted partitions,
swap and RAID members. These checks compare device numbers instead.

The kernel's number of an attachment (``diskseq``, Linux 5.15) identifies a device within one boot.
Later it must have the same serial number, WWN or loop backing file, or its first and last MiB as at
the end of the last run, which are unknown while a run writes and after a crash.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from threading import RLock
from types import MappingProxyType

from volbench.engine.guard.scratch_files import Log
from volbench.engine.guard.volume_targets import pin_of
from volbench.engine.hosts.described_volumes import (
    Content,
    content_of,
    is_member,
    name_of,
    signature_of,
)
from volbench.errors import RefusedError, quoted
from volbench.execute.agent.held_device import BLANK, edges_digest
from volbench.execute.agent.volumes import DescribedDevice, DescribedVolume, DeviceUse
from volbench.execute.protocol import Executor, HeldDevice
from volbench.fio.jobs.render_job import writes
from volbench.model.campaign.host import LOCAL
from volbench.model.campaign.planned_run import DevicePin, Run, Volume

_Reason = tuple[str, str]
"""Predicate that follows the name of the device, and a hint."""

# Maximum size of an extended partition in sysfs: two sectors or a logical block, whatever its real
# size (put_partition in block/partitions/msdos.c of the kernel)
_EXTENDED_BYTES = 4096

LAYERED = "measure a file in a filesystem that is not an overlay or FUSE"

_WIPE = "if everything on it may be erased, add --wipe-signatures to --allow-destroy"


@dataclass(frozen=True)
class Attachment:
    """Attachment of a device to a running machine; another disk, or the same later, has another."""

    diskseq: str  # the kernel's number of it; empty before Linux 5.15
    boot_id: str  # boot ID of the kernel that reported it


def attachment_of(seen: DescribedVolume) -> Attachment | None:
    """Return the attachment of a described device; None for other volumes.

    Described before the guard's check and verified when fio starts, it covers all that lies
    between.
    """
    pin = None if seen.device is None else seen.device.pin
    return None if pin is None else Attachment(str(pin.diskseq or ""), pin.boot_id)


def consent_option(host: str, target: str) -> str:
    """Return the option that lets a campaign overwrite a device or file of a host."""
    return f"--allow-destroy {quoted(target if host == LOCAL else f'{host}:{target}')}"


def check_identity(
    volume: Volume,
    seen: DescribedVolume,
    *,
    host: str = LOCAL,
    held: HeldDevice | None = None,
    edges: str | None = None,
) -> DescribedDevice:
    """Check that a target is still the block device that was planned.

    Args:
        volume: pinned.
        seen: its description; with its edges if `edges` is a digest, with its content if it is "".
        held: the opened device; None to check its path only.
        edges: digest of its first and last MiB after volbench's last write, empty if unknown; None
            to skip the check of its content.
    """
    target, pin = volume.target, volume.pin
    if seen.stat is None or not seen.is_device:
        problem = "no longer exists" if seen.stat is None else "is not a block device"
        hint = "attach it again, or plan a new campaign; lsblk lists the devices"
        raise RefusedError(f"{target} {problem}", hint=hint)
    now = pin_of(target, seen)
    problems = (
        ["it was not identified when the campaign was planned"]
        if pin is None
        else _changes(pin, now)
    )
    if held is not None and held.number != seen.stat.rdev:
        problems.append("another device was opened")
    verdict = "is not" if problems else "may not be"
    if pin is not None and not problems:
        problems = _mismatches(pin, now, seen, edges=edges)
    if problems or seen.device is None:
        examine = f"examine it: volbench hosts --on {quoted(target)}; " if host == LOCAL else ""
        raise RefusedError(
            f"{target} {verdict} the device that was planned: {', '.join(problems)}",
            hint=examine
            + "if everything on it may be erased: volbench resume DIR "
            + consent_option(host, target)
            + ", with --wipe-signatures if it holds data; otherwise plan a new campaign",
        )
    return seen.device


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
    pin: DevicePin, now: DevicePin, seen: DescribedVolume, *, edges: str | None
) -> list[str]:
    """Return the reasons why a device is a different one or has foreign content."""
    is_same_boot = bool(pin.boot_id) and pin.boot_id == now.boot_id
    is_identified = is_same_boot and 0 < pin.diskseq == now.diskseq
    is_identified |= bool(pin.serial or pin.wwid or pin.by_id or pin.backing)
    content = seen.device.edges if edges and seen.device is not None else ""
    if not is_identified:
        # Linux before 5.15 does not number attachments: the content must match, even zeros.
        is_unnumbered = is_same_boot and not pin.diskseq and not now.diskseq
        is_same_content = bool(edges) and content == edges and (edges != BLANK or is_unnumbered)
        if not is_same_content and not (is_unnumbered and edges is None):
            since = "it was attached again" if is_same_boot else "the machine has restarted"
            return [f"{since}, and the device has no serial number or WWN"]
    if edges and content != edges:
        return ["its first or last MiB is not as volbench left it: something else wrote to it"]
    if edges == "" and (mark := content_of(seen).mark) not in {"", pin.signature}:
        return [f"it holds {mark} now, which was neither planned nor written by volbench"]
    return []


def check_unused(target: str, device: DescribedDevice, *, is_held: bool = False) -> None:
    """Check that a device, which volbench may hold, is neither in use nor part of a volume."""
    if device.use is None:
        raise RefusedError(
            f"{target} was not examined for users", hint="repeat the command; examine it with lsblk"
        )
    problem, hint = _reason(target, device, device.use, is_held=is_held)
    if problem:
        raise RefusedError(f"{target} {problem}", hint=hint)


def _reason(target: str, device: DescribedDevice, use: DeviceUse, *, is_held: bool) -> _Reason:
    """Return the first reason why a device must not be overwritten, with a hint; or ("", "")."""
    disk = "/" if "/" in use.disk_of else "the campaign folder"
    loop = use.loops[0] if use.loops else ""
    member = next((whole for whole in use.members if is_member(whole)), None)
    names = [("", "" if is_held else use.exclusive)]
    names += [(f" as {node}", error) for node, error in use.others]
    opened = next(((name, error) for name, error in names if error), None)
    reasons: tuple[tuple[object, str, str], ...] = (
        (device.read_only, "is read-only", f"make it writable: blockdev --setrw {target}"),
        (
            device.is_partition and device.size_bytes <= _EXTENDED_BYTES,
            "is an extended partition: it holds the partition table of the logical ones",
            "name one of the logical partitions; lsblk lists them",
        ),
        (
            use.disk_of,
            f"is the disk of {disk}, or part of it",
            "use a separate disk, or measure through a file",
        ),
        (
            use.mounted_at,
            f"is mounted, or one of its partitions is: {', '.join(use.mounted_at)}",
            f"unmount it: umount {quoted(next(reversed(use.mounted_at), ''))}",
        ),
        (
            use.is_swap,
            "is in use as swap, or one of its partitions is",
            "disable it: swapoff DEVICE",
        ),
        (
            use.held_by,
            f"is held by {', '.join(use.held_by)} (LVM, RAID, device mapper or similar)",
            "remove it from the stack that uses it, as shown by lsblk",
        ),
        (loop, f"is in use by the loop device {loop}", f"detach it: losetup -d /dev/{loop}"),
        (use.hidden, f"cannot be compared with the file of the loop device {use.hidden}", LAYERED),
        (use.file_use, f"is in other use: {use.file_use}", "end it: fuser -v FILE"),
        (
            member,
            f"is a partition of {member.node}, a member of a larger volume: {signature_of(member)}"
            if member
            else "",
            f"if that volume is gone, clear what is left of it: wipefs {member and member.node}",
        ),
        (
            opened,
            "cannot be opened exclusively{}: {}".format(*opened or ("", "")),
            "end the process that uses it, or run volbench as a user who may write to it",
        ),
        (use.writer, f"is open for writing in {use.writer}", f"end it: fuser -v {target}"),
    )
    return next(((problem, hint) for applies, problem, hint in reasons if applies), ("", ""))


def check_content(target: str, content: Content, *, may_wipe: bool) -> None:
    """Check that a device is empty, or that the user agreed to overwrite its content."""
    if reason := _unclear(content) or (None if may_wipe else _occupied(content)):
        raise RefusedError(f"{target} {reason[0]}", hint=reason[1])


def _unclear(content: Content) -> _Reason | None:
    if node := content.unreadable:
        return (
            f"cannot be searched for signatures of LVM, RAID and similar: {node}",
            f"see what blkid reports: blkid -p {node} (it is part of util-linux)",
        )
    if part := content.ambivalent:
        return f"holds {content.describe(part)}", f"examine them: wipefs {part.node}"
    return None


def _occupied(content: Content) -> _Reason | None:
    if part := content.member:
        what = f"is a member of a larger volume: {name_of(part)} holds {signature_of(part)}"
        if part.type == "btrfs":
            what = f"is part of a btrfs that spans several devices: {name_of(part)}"
        return what, f"remove it from that volume; {_WIPE}"
    if content.mark or content.is_unidentified:
        return f"holds {content}", f"examine it with volbench hosts; {_WIPE}"
    return None


@dataclass(frozen=True)
class OpenDevice:
    """Result of opening a device for the guard."""

    # the open device; None if there is nothing to hold, or the open failed
    held: HeldDevice | None = None
    # digest of its first and last MiB after volbench's last write, empty if unknown; None to skip
    # the check of its content
    edges: str | None = None
    refusal: RefusedError | None = None  # reason of a failed open
    is_shared: bool = False  # another client of the campaign writes to it


Opened = Mapping[str, OpenDevice]
"""Target of each device or file of a volume to its open device."""

NOT_OPENED: Opened = MappingProxyType({})


@dataclass
class _Use:
    """A device in use by the runs of one or more clients."""

    held: HeldDevice | None  # None on another machine
    count: int = 0
    is_written: bool = False
    is_unknown: bool = False


class HeldDevices:
    """Devices of a campaign on one machine, shared by its clients."""

    def __init__(self, executor: Executor, log: Log, edges: Mapping[str, str]) -> None:
        self._executor = executor
        self._log = log
        self._edges = dict(edges)
        self._uses: dict[str, _Use] = {}
        self._lock = RLock()

    @contextmanager
    def holding(self, run: Run) -> Iterator[Opened]:
        """Hold the devices that a run writes; a read-only run holds none."""
        with ExitStack() as stack:
            held = {each.volume.target: self._holding(each) for each in run.parts}
            yield {target: stack.enter_context(device) for target, device in held.items()}

    @contextmanager
    def _holding(self, run: Run) -> Iterator[OpenDevice]:
        """Hold the only device of a run.

        On another machine the run's own program holds it.
        When the last run on a device ends, its first and last MiB are recorded.
        """
        number = number_of(run)
        if not number or not writes(run):
            yield OpenDevice()
            return
        try:
            opened = self._open(number, run)
        except RefusedError as refusal:
            # The guard gives a more precise reason: mounted, swap, RAID member.
            yield OpenDevice(edges=self._expected(number, run), refusal=refusal)
            return
        try:
            yield opened
        except BaseException:
            self._uses[number].is_unknown = True
            raise
        finally:
            self._release(number, run)

    def _open(self, number: str, run: Run) -> OpenDevice:
        with self._lock:
            use = self._uses.get(number)
            if use is None:
                use = self._uses[number] = _Use(self._executor.hold(run.volume.node))
            use.count += 1
            # While another client writes, the content cannot be verified.
            is_shared = use.count > 1
            edges = None if is_shared else self._expected(number, run)
            return OpenDevice(use.held, edges, is_shared=is_shared)

    def _expected(self, number: str, run: Run) -> str:
        return self._edges.get(number, run.volume.pin.edges if run.volume.pin else "")

    def begin(self, run: Run) -> None:
        """Record that a run is about to write: the content is unknown until it ends."""
        # The content of trimmed blocks is undefined.
        options = (run.effective(section) for section in run.sections)
        trims = any("trim" in each.get("rw", "") or "trim_percentage" in each for each in options)
        with self._lock:
            for number in map(number_of, run.parts):
                if use := self._uses.get(number):
                    use.is_written = True
                    use.is_unknown |= trims
                    self._device_record(number, "")

    def _release(self, number: str, run: Run) -> None:
        with self._lock:
            use = self._uses[number]
            use.count -= 1
            if use.count:
                return
            del self._uses[number]
            try:
                if use.is_written and not use.is_unknown and run.volume.pin is not None:
                    self._device_record(number, self._digest(use, run, run.volume.pin.size_bytes))
            finally:
                if use.held is not None:
                    use.held.close()

    def _digest(self, use: _Use, run: Run, size_bytes: int) -> str:
        """Return the digest of the first and last MiB; empty if they cannot be read."""
        if use.held is not None:
            return use.held.digest(size_bytes)
        return self._executor.ask(edges_digest, run.volume.node, size_bytes)

    def _device_record(self, number: str, digest: str) -> None:
        if self._edges.get(number) != digest:
            self._edges[number] = digest
            self._log.write("edges", host=self._executor.host, target=number, digest=digest)


def number_of(run: Run) -> str:
    """Return the number of a run's device; empty for other volumes."""
    pin = run.volume.pin
    return f"{pin.major}:{pin.minor}" if pin is not None else ""
