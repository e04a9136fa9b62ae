"""What ``stat -L -c "%f %d %t %T %i %s"`` prints: a line enters, a FileStat leaves."""

from __future__ import annotations

import os
import stat

from volbench.errors import OutputError
from volbench.execute.protocol import FileStat

_KINDS = {
    stat.S_IFREG: "file",
    stat.S_IFDIR: "directory",
    stat.S_IFBLK: "block",
    stat.S_IFCHR: "char",
}


def parse_stat(text: str) -> FileStat:
    """Return what a line of stat says; mode and device numbers are in base 16.

    Raises:
        OutputError: it is no such line.
    """
    try:
        mode_hex, device, major_hex, minor_hex, inode, size = text.split()
        mode, number = int(mode_hex, 16), int(device)
        is_device = stat.S_ISBLK(mode) or stat.S_ISCHR(mode)
        return FileStat(
            kind=_KINDS.get(stat.S_IFMT(mode), "other"),
            device=(os.major(number), os.minor(number)),
            rdev=(int(major_hex, 16), int(minor_hex, 16)) if is_device else (0, 0),
            inode=int(inode),
            size_bytes=int(size),
        )
    except ValueError as error:
        raise OutputError(
            f"stat printed {text!r}, not six numbers",
            hint="the host needs stat of coreutils or busybox",
        ) from error
