"""Blocks that a run is about to read: how many were never written; and flushes before a run.

Storage answers reads of blocks that were never written without looking anything up, many times
faster than it can read. Files and devices are opened for reading only.
"""

import errno
import mmap
import os
import socket
import stat
import typing
from collections.abc import Iterator
from time import monotonic
from urllib.parse import parse_qs, urlsplit

from volbench.execute.agent.agent_error import AgentError
from volbench.execute.agent.snapshot import Snapshot, within

BLOCK_BYTES = 4096  # The smallest unit that a cloud volume or a flash drive maps.
# 1 - 0.95**64 = 96 %: the probability that 5 % of unwritten blocks are seen.
# Noticed by: test_block_sample.py::test_holes_and_zeros_of_a_file_are_detected
BLOCKS = 64
# Time of the sample: a trade-off, so that it delays no run noticeably.
# Noticed by: tests/execute/agent/test_snapshot.py::test_blocks_are_sampled_until_the_time_is_over
_LIMIT_S = 0.1
_PATIENCE_S = 5.0  # A single read of a volume that catches up may take seconds.
_NBD_S = 1.0  # A server answers at once, or does not know.
_PORT = 10809
_REACH_S = 5.0  # A server that answers at all does so within a retransmission or two.
_SCATTER = 37  # Prime to the number of blocks: consecutive reads are far apart.
_MAX_EXTENTS = 2000  # A bound where extents are counted fast; the time limit ends it elsewhere.


class SampledBlocks(typing.NamedTuple):
    """Sample of the blocks of a range."""

    sampled: int = 0  # blocks read
    zeros: int = 0  # of these, blocks that hold only zeros
    unmapped_share: "float | None" = None  # share of the range without data
    reported_by: str = ""  # what reports that share
    problem: str = ""


def sample_blocks(
    paths: "list[str]", first: int, length: int, snapshot: "Snapshot | None" = None
) -> "SampledBlocks | None":
    """Sample a range (length 0: all) of the first path that is a device or a file, or None."""
    snapshot = snapshot or Snapshot()
    for path in paths:
        status = snapshot.stat(path)
        if status is not None and status.kind in ("file", "block"):
            sample = _sample(path, first, length)
            if status.kind == "block":
                folder = "/sys/dev/block/{}:{}".format(*status.rdev)
                sample = _mapped(sample, snapshot, snapshot.real_path(folder))
            return sample
    return None


def _sample(path: str, first: int, length: int) -> SampledBlocks:
    try:
        return within(_PATIENCE_S, _read_blocks, path, first, length)
    except OSError as error:
        return SampledBlocks(problem="{}: {}".format(path, error.strerror or error))


def _mapped(sample: SampledBlocks, snapshot: Snapshot, sysfs: str) -> SampledBlocks:
    """Add the mapping that a loop device's file or a thin pool reports."""
    backing = snapshot.text(sysfs + "/loop/backing_file").rstrip("\n")
    if backing:
        below = _sample(backing, 0, 0)
        if below.unmapped_share is not None:
            share = below.unmapped_share
            return sample._replace(unmapped_share=share, reported_by="the file of the loop")
    name = snapshot.text(sysfs + "/dm/name").strip()
    dmsetup = snapshot.which("dmsetup") if name else ""
    if dmsetup:
        mapped = thin_share(snapshot.run([dmsetup, "status", name], _PATIENCE_S).stdout)
        if mapped is not None:
            return sample._replace(unmapped_share=mapped, reported_by="the thin pool")
    return sample


def thin_share(status: str) -> "float | None":
    """Return the unmapped share of a thin volume: ``0 LENGTH thin MAPPED HIGHEST``, in sectors."""
    fields = status.split()
    if len(fields) < 4 or fields[2] != "thin" or not (fields[1] + fields[3]).isdigit():
        return None
    return 1 - int(fields[3]) / max(1, int(fields[1]))


def sample_nbd(uri: str, snapshot: "Snapshot | None" = None) -> SampledBlocks:
    """Return the share of an export that its server reports as holes, by libnbd's nbdinfo.

    A server without block status calls everything data, so that nothing is known without holes.
    """
    snapshot = snapshot or Snapshot()
    nbdinfo = snapshot.which("nbdinfo")
    share = _unmapped_share(snapshot, uri)
    if share:
        return SampledBlocks(unmapped_share=share, reported_by="the NBD server")
    reason = "the server reports no holes" if nbdinfo else "nbdinfo of libnbd is not installed"
    problem = "whether the blocks were ever written is unknown: {}".format(reason)
    return SampledBlocks(problem=problem)


def nbd_size(uri: str, snapshot: "Snapshot | None" = None) -> int:
    """Return the size of an export as reported by libnbd's nbdinfo; 0 if it is unknown."""
    snapshot = snapshot or Snapshot()
    nbdinfo = snapshot.which("nbdinfo")
    text = snapshot.run([nbdinfo, "--size", uri]).stdout.strip() if nbdinfo else ""
    return int(text) if text.isdigit() else 0


def export_map(
    snapshot: Snapshot, uri: str, limit_s: float = _NBD_S
) -> "list[tuple[int, int, bool]]":
    """Return offset, length and whether it is a hole of each extent of an export; [] if unknown."""
    nbdinfo = snapshot.which("nbdinfo")
    text = snapshot.run([nbdinfo, "--map", uri], limit_s).stdout if nbdinfo else ""
    rows = (line.split()[:3] for line in text.splitlines())
    known = (list(map(int, row)) for row in rows if len(row) > 2 and "".join(row).isdigit())
    return [(offset, length, bool(kind & 1)) for offset, length, kind in known]


def _unmapped_share(snapshot: Snapshot, uri: str) -> "float | None":
    extents = export_map(snapshot, uri)
    whole = sum(length for _, length, _ in extents)
    return sum(length * hole for _, length, hole in extents) / whole if whole else None


def _sampled_offsets(first: int, end: int, until_s: float) -> "Iterator[int]":
    """Yield offsets of up to `BLOCKS` whole blocks, evenly spread, until the time is over."""
    stride = max(BLOCK_BYTES, (end - first) // BLOCKS)
    for turn in range(BLOCKS):
        # In no order, so that a slow disk is sampled everywhere before the time is over.
        number = turn * _SCATTER % BLOCKS
        # Not the first block of each part: headers and allocation units begin there.
        at = (first + number * stride + stride // 3) // BLOCK_BYTES * BLOCK_BYTES
        if monotonic() > until_s:
            return
        if at + BLOCK_BYTES <= end:
            yield at


def _read_blocks(path: str, first: int, length: int) -> SampledBlocks:
    until_s = monotonic() + _LIMIT_S
    descriptor = _open_direct(path)
    try:
        size = os.lseek(descriptor, 0, os.SEEK_END)
        end = min(size, first + length) if length else size
        mapped = SampledBlocks()
        if stat.S_ISREG(os.fstat(descriptor).st_mode) and end > first:
            data = _data_bytes(descriptor, first, end, until_s)
            if data is not None:
                share = 1 - data / max(1, end - first)
                mapped = SampledBlocks(unmapped_share=share, reported_by="the filesystem")
        zeros = read = 0
        buffer = mmap.mmap(-1, BLOCK_BYTES)
        for at in _sampled_offsets(first, end, until_s):
            os.lseek(descriptor, at, os.SEEK_SET)
            if os.readv(descriptor, [buffer]) == BLOCK_BYTES:
                read += 1
                zeros += buffer[:] == bytes(BLOCK_BYTES)
        return mapped._replace(sampled=read, zeros=zeros)
    finally:
        os.close(descriptor)


def _open_direct(path: str) -> int:
    """Open past the page cache; without it where the filesystem has no direct I/O."""
    try:
        return os.open(path, os.O_RDONLY | os.O_DIRECT | os.O_CLOEXEC)
    except OSError as error:
        if error.errno != errno.EINVAL:
            raise
        return os.open(path, os.O_RDONLY | os.O_CLOEXEC)


def holes(descriptor: int, first: int, end: int) -> "Iterator[tuple[int, int]]":
    """Yield the holes of a range of a file."""
    at = first
    while at < end:
        try:
            begin = os.lseek(descriptor, at, os.SEEK_DATA)
        except OSError as error:
            if error.errno != errno.ENXIO:
                raise
            begin = end
        yield at, min(begin, end)
        at = os.lseek(descriptor, begin, os.SEEK_HOLE) if begin < end else end


def _data_bytes(descriptor: int, first: int, end: int, until_s: float) -> "int | None":
    """Return the bytes of a range that have data; None if that takes too long."""
    data_bytes = end - first
    for number, (begin, stop) in enumerate(holes(descriptor, first, end)):
        data_bytes -= stop - begin
        if number >= _MAX_EXTENTS or monotonic() > until_s:
            return None
    return data_bytes


def flush(path: str, limit_s: float, snapshot: "Snapshot | None" = None) -> str:
    """Write back every dirty page of a device, or of the filesystem that holds a path.

    Return the reason of a failure; empty on success.
    """
    snapshot = snapshot or Snapshot()
    nearest = snapshot.nearest(path)
    status = snapshot.stat(nearest)
    is_device = status is not None and status.kind == "block"
    argv = ["sync", nearest] if is_device else ["sync", "-f", nearest]
    try:
        done = snapshot.run(argv, limit_s)
    except AgentError as error:
        return "sync: " + error.message
    return done.stderr.strip() if done.status else ""


def reach_nbd(uri: str) -> str:
    """Return why the server of an export cannot be reached; empty where it can, and with TLS."""
    parts = urlsplit(uri)
    try:
        if parts.scheme == "nbd" and parts.hostname:
            address = parts.hostname, parts.port or _PORT
            socket.create_connection(address, timeout=_REACH_S).close()
        elif parts.scheme == "nbd+unix":
            with socket.socket(socket.AF_UNIX) as connection:
                connection.settimeout(_REACH_S)
                connection.connect(parse_qs(parts.query).get("socket", [""])[0])
    except (OSError, ValueError) as error:  # ValueError: the port is no number
        return str(getattr(error, "strerror", None) or error)
    return ""
