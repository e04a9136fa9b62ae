"""Extents of a warm-up, one run each, which cover a volume exactly once.

fio ignores a partial block at the end of a range, and parallel jobs that share a range each cover
all of it. An extent is therefore divided into whole blocks per job; the remainder forms separate
extents: first the remaining whole blocks, then the partial block.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from volbench.errors import InputError
from volbench.model.campaign.planned_files import Range
from volbench.model.campaign.planned_run import Extent, Section, VolumeKind
from volbench.model.profile.profile_model import Job, Options
from volbench.model.profile.profile_settings import MAX_EXTENTS, Warming, WarmingMode
from volbench.units import SECTOR_BYTES

# An interruption repeats an extent from its start: 16 GiB take two minutes at 125 MB/s. Noticed by:
# tests/plan/expansion/test_extents.py::test_extents_cover_the_volume_once
EXTENT_BYTES = 16 << 30
# Smaller ones cost more in fio starts than in I/O. Noticed by:
# tests/plan/expansion/test_extents.py::test_extents_are_neither_small_nor_many
MIN_EXTENT_BYTES = 64 << 20
# Direct I/O to files must be aligned to the filesystem block, at most 4 KiB (open(2)). Noticed by:
# tests/plan/expansion/test_extents.py::test_extents_are_neither_small_nor_many
PAGE_BYTES = 4096
# Read back after a warm-up: seconds on any volume. Noticed by:
# tests/plan/expansion/test_extents.py::test_extents_are_neither_small_nor_many
SAMPLED_BLOCKS = 64

# Warm-up options of "Disk performance on Azure Kubernetes Service" (Stian Øvrevåge, 2019)
DEFAULTS = {
    "ioengine": "libaio",
    "direct": "1",
    "bs": "1048576",
    "iodepth": "32",
    "numjobs": "32",
    "refill_buffers": "1",
}
# Each block once, without a map in memory; by one job, which knows all regions of a drive
RANDOM = {"rw": "randwrite", "norandommap": "1", "random_generator": "lfsr"}
# Small extents of used blocks, which try parallel reads: eight go beyond 64 reads. Noticed by:
# tests/plan/expansion/test_extents.py::test_used_blocks_are_covered_once
TRIALS, MAX_TRIAL_BYTES = 8, 256 << 20
# Options of passes. Used blocks are read in order, so that `iodepth`, the most parallel reads, is
# what runs in parallel; SNIA's PTS writes twice before a test.
_OWN = {
    "used": {"numjobs": "1", "iodepth": "256"},
    "random": {"bs": "4096"},
    "twice": {"bs": "131072", "loops": "2"},
}


@dataclass(frozen=True)
class Basis:
    """What a host knows that decides how one of its volumes is warmed."""

    size_bytes: int = 0  # of the volume; 0 where it is not known
    ranges: Sequence[Range] | None = None  # that hold data, in order; None for all
    note: str = ""  # what reports them, or why something else is done than was asked for
    has_sprandom: bool = False  # whether fio has that option


@dataclass(frozen=True)
class Piece:
    """A range of a volume touched by one process."""

    offset_bytes: int  # start of the range
    size_bytes: int  # length, a multiple of block size times numjobs
    block_bytes: int  # block size of the I/O
    numjobs: int  # parallel jobs, each with its own part of the range


def cut(size_bytes: int, *, block_bytes: int, numjobs: int, count: int = 0) -> tuple[Piece, ...]:
    """Return ordered pieces that cover every byte of a volume exactly once.

    Args:
        count: number of pieces, without remainders; 0 for one per 16 GiB, or per 64 MiB on small
            volumes.
    """
    blocks = size_bytes // block_bytes
    rows, odd = divmod(blocks, numjobs)
    wanted = max(1, min(count or usual_count(size_bytes), MAX_EXTENTS, rows))
    pieces, at = [], 0
    for index in range(wanted if rows else 0):
        own_rows = rows // wanted + (index < rows % wanted)
        pieces.append(Piece(at, own_rows * numjobs * block_bytes, block_bytes, numjobs))
        at += pieces[-1].size_bytes
    if odd:
        pieces.append(Piece(at, odd * block_bytes, block_bytes, odd))
        at += pieces[-1].size_bytes
    whole_pages = (size_bytes - at) // PAGE_BYTES * PAGE_BYTES
    for rest in (whole_pages, size_bytes - at - whole_pages):
        if rest:
            pieces.append(Piece(at, rest, rest, 1))
            at += rest
    return tuple(pieces)


def cut_used(ranges: Sequence[Range], *, size_bytes: int, block_bytes: int) -> Iterator[Piece]:
    """Yield pieces of ranges below a size, in order; the first ones are small."""
    within = [(first, min(end, size_bytes)) for first, end in ranges if first < size_bytes]
    total, made = sum(end - first for first, end in within), 0
    usual = max(MIN_EXTENT_BYTES, -(-total // usual_count(total)))
    trial = max(MIN_EXTENT_BYTES, min(MAX_TRIAL_BYTES, total // 64))
    for first, end in within:
        at = first
        while at < end:
            size = (trial if made < TRIALS else usual) // block_bytes * block_bytes or block_bytes
            length = min(size, end - at)
            for piece in cut(length, block_bytes=block_bytes, numjobs=1, count=1):
                yield replace(piece, offset_bytes=at + piece.offset_bytes)
            at, made = at + length, made + (length >= MIN_EXTENT_BYTES)


def usual_count(size_bytes: int) -> int:
    """Return the default number of extents of a volume."""
    return max(min(16, size_bytes // MIN_EXTENT_BYTES), size_bytes // EXTENT_BYTES, 1)


@dataclass(frozen=True)
class Touch:
    """A run of a warm-up."""

    label: str  # part of the run's ID, such as ``write-01of16``
    job: str  # name of the job in frames
    extent: Extent  # touched range
    section: Section  # with all options of the run


def given_bytes(job: Job, defaults: Options) -> int:
    """Return the size that a warm-up is given; 0 for none. Sprandom stands for a job of fio's."""
    is_like_others = job.warming and job.warming.mode is WarmingMode.SPRANDOM
    size = job.options.get("size") or (defaults.get("size") if is_like_others else "") or ""
    return int(size) if size.isdecimal() else 0


def touches(
    job: Job, defaults: Options, *, size_bytes: int, kind: VolumeKind, basis: Basis | None = None
) -> Iterator[Touch]:
    """Yield the runs of a warm-up: the extents of each pass, then a sample read back.

    Args:
        defaults: defaults of its profile; only ioengine and direct apply, with sprandom also the
            filename in a directory.
        basis: for modes that depend on the host; None where it is not known.
    """
    warming, basis = job.warming or Warming(mode=WarmingMode.READ), basis or Basis()
    is_file = warming.mode is WarmingMode.SPRANDOM and kind is VolumeKind.DIRECTORY
    names = ("ioengine", "direct", *(["filename"] if is_file else []))
    shared: Options = {name: defaults[name] for name in names if name in defaults}
    passes = _passes(warming.mode, basis)
    own = _OWN.get(passes[0], {})
    merged: Options = {**DEFAULTS, **own, **shared, **job.options}
    options = {name: value for name, value in merged.items() if value is not None}
    block = int(options["bs"])
    if size_bytes <= 0:
        raise InputError(
            f"job {job.name}: the volume has no size", hint="declare it with size: 10g"
        )
    if basis.has_sprandom and passes == ["random"]:  # not in another pass over the same role
        options = {"sprandom": "1", **options}
    pieces = _pieces(passes[0], warming.extents, options, basis, size_bytes=size_bytes)
    if not pieces:
        raise InputError(
            f"job {job.name}: nothing to read, for the volume holds no data ({basis.note})",
            hint="to read all of it: mode read",
        )
    for direction in passes:
        rw = {"used": "read", "twice": "write"}.get(direction, direction)
        for number, piece in enumerate(pieces, start=1):
            label = f"{job.name}-{rw}-{number:0{len(str(len(pieces)))}d}of{len(pieces)}"
            whole = piece.block_bytes == block  # sprandom needs many blocks
            given = {name: options[name] for name in options if whole or name != "sprandom"}
            of_extent = {**given, **_extent_range(piece), "rw": rw, **_unaligned(piece, kind, rw)}
            if direction == "random":
                of_extent |= RANDOM if whole else {"rw": "write"}
            if kind is VolumeKind.DIRECTORY:
                of_extent.setdefault("filename", f"{job.name}.warm")
            if direction == "write" and piece.block_bytes % SECTOR_BYTES == 0:
                of_extent |= {"verify": "crc32c", "do_verify": "0"}
            extent = Extent(
                offset_bytes=piece.offset_bytes,
                size_bytes=piece.size_bytes * int(options.get("loops", "1")),
                volume_bytes=size_bytes,
                direction=direction,
                note=basis.note,
            )
            yield Touch(label, job.name, extent, Section(name=job.name, options=of_extent))
    if "write" in passes and pieces[0].block_bytes % SECTOR_BYTES == 0:
        yield _sample(job, options, pieces, size_bytes=size_bytes, kind=kind)


def _passes(mode: WarmingMode, basis: Basis) -> list[str]:
    """Return the passes of a mode: what fio does, or the name of another way to do it."""
    if mode is WarmingMode.SPRANDOM:
        return ["random" if basis.has_sprandom else "twice"]
    return ["used"] if mode is WarmingMode.READ_WRITTEN else mode.split("-")


def _pieces(
    direction: str, count: int, options: Mapping[str, str], basis: Basis, *, size_bytes: int
) -> tuple[Piece, ...]:
    block, numjobs = int(options["bs"]), max(1, int(options["numjobs"]))
    if direction == "used":
        ranges = [(0, size_bytes)] if basis.ranges is None else basis.ranges
        return tuple(cut_used(ranges, size_bytes=size_bytes, block_bytes=block))
    if direction in {"random", "twice"}:
        return cut(size_bytes, block_bytes=block, numjobs=1, count=1)
    return cut(size_bytes, block_bytes=block, numjobs=numjobs, count=count)


def _sample(
    job: Job,
    options: dict[str, str],
    pieces: tuple[Piece, ...],
    *,
    size_bytes: int,
    kind: VolumeKind,
) -> Touch:
    """Return the run that reads random blocks and verifies the written data."""
    block = pieces[0].block_bytes
    covered = sum(piece.size_bytes for piece in pieces if piece.block_bytes == block)
    read = min(SAMPLED_BLOCKS, covered // block) * block
    of_sample = {
        **options,
        **_unaligned(pieces[0], kind, "read"),
        "rw": "randread",
        "bs": str(block),
        "size": str(covered),
        "io_size": str(read),
        "offset": "0",
        "numjobs": "1",
        "verify": "crc32c",
        "verify_fatal": "1",
    }
    if kind is VolumeKind.DIRECTORY:
        of_sample.setdefault("filename", f"{job.name}.warm")
    name = f"{job.name}-sample"
    extent = Extent(offset_bytes=0, size_bytes=read, volume_bytes=size_bytes, direction="sample")
    return Touch(name, name, extent, Section(name=name, options=of_sample))


def _extent_range(piece: Piece) -> dict[str, str]:
    each = piece.size_bytes // piece.numjobs
    return {
        "bs": str(piece.block_bytes),
        "numjobs": str(piece.numjobs),
        "size": str(each),
        "offset": str(piece.offset_bytes),
        "offset_increment": str(each),
    }


def _unaligned(piece: Piece, kind: VolumeKind, rw: str) -> dict[str, str]:
    in_file = kind in {VolumeKind.FILE, VolumeKind.DIRECTORY}
    if not in_file or piece.block_bytes % PAGE_BYTES == 0:
        return {}
    return {"direct": "0"} | ({"end_fsync": "1"} if rw == "write" else {})
