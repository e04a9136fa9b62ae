"""Signatures of file systems, RAID members and partition tables, as detected by blkid(8)."""

from __future__ import annotations

from dataclasses import dataclass

from volbench.execute.protocol import Executor

_BLKID = "blkid"
_NOTHING_FOUND = 2
_AMBIVALENT = 8


@dataclass(frozen=True)
class Signature:
    """Signature of a device's content."""

    known: bool = False  # whether the device could be examined
    type: str = ""  # such as ``ext4``, ``LVM2_member`` or ``btrfs``; empty for none
    usage: str = ""  # its class in blkid, such as ``filesystem`` or ``raid``
    label: str = ""  # may be empty
    table: str = ""  # type of the partition table; may be empty
    uuids: str = ""  # UUIDs of content and partition table; may be empty
    ambivalent: bool = False  # signatures contradict each other

    def __str__(self) -> str:
        """Return a description; empty when the device could not be examined."""
        if not self.known:
            return ""
        if self.ambivalent:
            return "several signatures that contradict each other"
        named = f'{self.type} "{self.label}"' if self.type and self.label else self.type
        table = f"partition table {self.table}" if self.table else ""
        return ", ".join(filter(None, (named, table))) or "no known signature"

    @property
    def mark(self) -> str:
        """Unique mark of this content; empty if there is none, or if not examined."""
        if self.ambivalent:
            return str(self)
        return " ".join(filter(None, (self.type, self.table, self.uuids)))


def read_signature(
    executor: Executor, node: str, *, part: tuple[int, int] | None = None
) -> Signature | None:
    """Return the signature that blkid reads from a device, bypassing its cache.

    Args:
        part: offset and length in bytes of the part to examine; None for the whole device.

    Returns:
        None without the blkid of util-linux: that of busybox knows no ``-p``, and prints nothing.
    """
    blkid = executor.which(_BLKID)
    if blkid is None:
        return None
    span = [] if part is None else ["-O", str(part[0]), "-S", str(part[1])]
    done = executor.run([blkid, "-p", "-o", "export", *span, node])
    if done.exit_status == _AMBIVALENT:
        return Signature(known=True, ambivalent=True)
    if done.exit_status == _NOTHING_FOUND and not done.stderr.strip():
        return Signature(known=True)
    if not done.exit_status and not done.stdout.strip():
        return None
    if done.exit_status:
        return Signature()
    tags = dict(line.partition("=")[::2] for line in done.stdout.splitlines())
    return Signature(
        known=True,
        type=tags.get("TYPE", ""),
        usage=tags.get("USAGE", ""),
        label=tags.get("LABEL", ""),
        table=tags.get("PTTYPE", ""),
        uuids=" ".join(tags[name] for name in ("UUID", "PTUUID") if name in tags),
    )
