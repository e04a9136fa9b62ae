"""Files and block devices of a remote host, parsed from the output of stat."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from dataclasses import dataclass

from volbench.errors import OutputError
from volbench.execute.protocol import FILE_KINDS, FileStat


@dataclass(frozen=True)
class ShellHeldDevice:
    """A block device of a remote host, which the run's program holds open by itself."""

    number: tuple[int, int]  # (major, minor) of the device
    # returns the SHA-256 of the first and last MiB, given the device size
    digest: Callable[[int], str]

    @property
    def is_exclusive(self) -> bool:
        """False: a shell cannot open with O_EXCL, so it can still be mounted."""
        return False

    def close(self) -> None:
        """Do nothing."""


def parse_stat(text: str) -> FileStat:
    """Parse a line of `posix_scripts.STAT`; mode and device numbers are hexadecimal."""
    try:
        mode_hex, device, major_hex, minor_hex, inode, size, owner, born = text.split()
        mode, number = int(mode_hex, 16), int(device)
        is_device = stat.S_ISBLK(mode) or stat.S_ISCHR(mode)
        return FileStat(
            kind=FILE_KINDS.get(stat.S_IFMT(mode), "other"),
            device=(os.major(number), os.minor(number)),
            rdev=(int(major_hex, 16), int(minor_hex, 16)) if is_device else (0, 0),
            inode=int(inode),
            size_bytes=int(size),
            born_ns=_nanoseconds(born),
            owner=int(owner),
            mode=stat.S_IMODE(mode),
        )
    except ValueError as error:
        raise OutputError(
            f"stat printed {text!r}, not eight numbers",
            hint="the host needs stat of coreutils or busybox",
        ) from error


def _nanoseconds(text: str) -> int:
    """Return a time such as ``12.000000345`` in ns; 0 if the host's stat does not report it."""
    seconds, _, fraction = text.partition(".")
    if not seconds.isdecimal() or len(fraction) != 9 or not fraction.isdecimal():
        return 0
    return int(seconds + fraction)
