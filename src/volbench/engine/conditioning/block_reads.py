"""Script that reads blocks of a volume and prints how many hold only zeros, run on the target.

Arguments: path, offset and length of the range in bytes, number of blocks, time limit in seconds.
Prints ``blocks READ ZEROS`` and, for files, ``data BYTES OF``: bytes of the range that the
filesystem has data for. It opens for reading only, past the page cache where it can, and runs on
Python 3.7 and newer.
"""

from __future__ import annotations

import errno
import mmap
import os
import stat
import sys
import time

BLOCK = 4096
_SCATTER = 37
_MOST_EXTENTS = 2000


def _opened(path: str) -> int:
    """Open past the page cache; without it where the filesystem has no direct I/O."""
    try:
        return os.open(path, os.O_RDONLY | os.O_DIRECT)
    except OSError as error:
        if error.errno != errno.EINVAL:
            raise
        return os.open(path, os.O_RDONLY)


def _data_bytes(descriptor: int, first: int, end: int, until_s: float) -> int | None:
    """Return the bytes of a range that have data; None if that takes too long."""
    found = 0
    at = first
    for _ in range(_MOST_EXTENTS):
        try:
            begin = os.lseek(descriptor, at, os.SEEK_DATA)
        except OSError as error:
            return found if error.errno == errno.ENXIO else None
        at = os.lseek(descriptor, begin, os.SEEK_HOLE)
        found += max(0, min(at, end) - max(begin, first))
        if at >= end:
            return found
        if time.monotonic() > until_s:
            return None
    return None


def main(path: str, first: int, length: int, count: int, limit_s: float) -> None:
    """Read up to `count` blocks, evenly spread with an offset, until the time is over."""
    until_s = time.monotonic() + limit_s
    descriptor = _opened(path)
    size = os.lseek(descriptor, 0, os.SEEK_END)
    end = min(size, first + length) if length else size
    if stat.S_ISREG(os.fstat(descriptor).st_mode) and end > first:
        data = _data_bytes(descriptor, first, end, until_s)
        if data is not None:
            os.write(1, b"data %d %d\n" % (data, end - first))
    stride = max(BLOCK, (end - first) // count)
    zeros = read = 0
    buffer = mmap.mmap(-1, BLOCK)
    for turn in range(count):
        # In no order, so that a slow disk is sampled everywhere before the time is over.
        number = turn * _SCATTER % count
        # Not the first block of each part: headers and allocation units begin there.
        at = (first + number * stride + stride // 3) // BLOCK * BLOCK
        if time.monotonic() > until_s:
            break
        if at + BLOCK > end:
            continue
        if os.preadv(descriptor, [buffer], at) == BLOCK:
            read += 1
            zeros += buffer[:] == bytes(BLOCK)
    os.write(1, b"blocks %d %d\n" % (read, zeros))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]), float(sys.argv[5]))
