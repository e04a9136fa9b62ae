"""Files that a run may create or write, and the ranges of them that it uses."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath

from volbench.model.campaign.planned_run import Run, Section, VolumeKind
from volbench.model.profile.option_policy import MEMORY_ENGINES, block_sizes, shared_sizes

Range = tuple[int, int]
"""Offsets of the first byte and behind the last."""


def section_files(run: Run, section: Section) -> tuple[str, ...]:
    """Return the absolute paths of a section's files; empty for devices and exports."""
    options = run.effective(section)
    if options.get("ioengine") in MEMORY_ENGINES:
        return ()
    if run.volume.kind is VolumeKind.FILE:
        return tuple(volume.node for volume in run.volume.each)
    if run.volume.kind is not VolumeKind.DIRECTORY:
        return ()
    folder = PurePosixPath(run.volume.folder)
    return tuple(str(folder / name) for name in _file_names(section, options))


def _file_names(section: Section, options: dict[str, str]) -> Iterator[str]:
    """Yield names as fio forms them: ``filename``, else ``filename_format`` for each job."""
    if "filename" in options:
        yield from options["filename"].split(":")
        return
    form = options.get("filename_format", "$jobname.$jobnum.$filenum")
    for job in range(int(options.get("numjobs", "1"))):
        for number in range(int(options.get("nrfiles", "1"))):
            name = form.replace("$jobname", section.name).replace("$jobnum", str(job))
            yield name.replace("$filenum", str(number))


def planned_files(run: Run) -> tuple[str, ...]:
    """Return the absolute paths of all files a run may create or write, without duplicates."""
    every = (path for section in run.sections for path in section_files(run, section))
    return tuple(dict.fromkeys(every))


def file_ranges(run: Run, lengths: Mapping[str, int] | None = None) -> dict[str, Range]:
    """Return the range of each file that a run uses, by path; of shared ones only the writer's.

    fio lays a new file out to the end of its range, and makes a file anew that is shorter. An
    offset in percent is one of the length that the job before it has left.

    Args:
        lengths: path to length of files that exist.
    """
    ranges: dict[str, Range] = {}
    least = 0 if run.extent is None else run.extent.volume_bytes
    for section in run.sections:
        if run.only_reads_shared(section):
            continue
        options, paths = run.effective(section), section_files(run, section)
        jobs, files = int(options.get("numjobs", "1")), int(options.get("nrfiles", "1"))
        is_own = "filename" not in options and run.volume.kind is VolumeKind.DIRECTORY
        grows = has_relative_offset(options)
        used: dict[tuple[int, int, str], Range] = {}  # there may be 100,000 files
        shares = shared_sizes(options, files if is_own else len(paths))
        for number, path in enumerate(paths):
            whole, size = (lengths or {}).get(path, 0), shares[number % len(shares)]
            sharing = range(jobs) if grows else {0, jobs - 1}
            for job in {number // files} if is_own else sharing:
                whole = max(whole, ranges[path][1]) if grows and path in ranges else whole
                if (key := (whole, job, size)) not in used:
                    used[key] = used_range({**options, "size": size}, whole=whole, job=job)
                start, end = used[key]
                first, last = ranges.get(path, (start, least))
                ranges[path] = min(start, first), max(end, last)
    return ranges


def device_ranges(run: Run) -> tuple[Range, ...]:
    """Return the range of a device that each section of a run uses."""
    whole = run.volume.size_bytes or 0
    ranges = []
    for options in map(run.effective, run.sections):
        jobs = (0, int(options.get("numjobs", "1")) - 1)
        (first, _), (_, end) = (used_range(options, whole=whole, job=job) for job in jobs)
        ranges.append((first, end))
    return tuple(ranges)


def transferred_bytes(run: Run, section: Section) -> int | None:
    """Return the bytes that a section reads and writes by its size; None when it has no end.

    On a device each job ends where the device does (fio 3.33).
    """
    options, whole = run.effective(section), run.volume.size_bytes
    if any(options.get(name, "0") != "0" for name in ("fill_device", "fill_fs", "read_iolog")):
        return None
    files = max(_lengths(options), default=0) * int(options.get("nrfiles", "1"))
    size = bytes_of(options.get("size", str(files) if files else "100%"), whole=whole)
    io_size, total = options.get("io_size"), 0
    for job in range(int(options.get("numjobs", "1"))):
        start, _ = used_range(options, whole=whole or 0, job=job)
        share = size if whole is None or size is None else max(0, min(size, whole - start))
        moved = share if io_size is None else bytes_of(io_size, whole=share)
        if moved is None:
            return None
        total += moved
    return total * int(options.get("loops", "1"))


def used_range(options: Mapping[str, str], *, whole: int, job: int) -> Range:
    """Return the range of one file that a job uses, as far as its options tell it.

    Args:
        whole: length of the file or device; 0 for a new file.
        job: its number among the jobs of its section, from 0.
    """
    lengths, size = _lengths(options), options.get("size", "100%")
    rest = max([whole, *lengths]) or bytes_of(size, whole=0) or 0
    offset, step = (
        bytes_of(options.get(name, "0"), whole=rest) or 0 for name in ("offset", "offset_increment")
    )
    start = offset + job * step
    if has_relative_offset(options):
        start += -start % min(block_sizes(options))
    share = int(size) if size.isdecimal() else max(0, rest - start)
    end, block = max([start + share, *lengths]), max(block_sizes(options))
    if whole > end:  # fio writes the last block whole where there is space for it
        end = min(whole, start - (start - end) // block * block)
    return start, end


def has_relative_offset(options: Mapping[str, str]) -> bool:
    """Return whether a job begins at a share of the length of its file."""
    return "%" in options.get("offset", "") + options.get("offset_increment", "")


def bytes_of(text: str, *, whole: int | None) -> int | None:
    """Return the bytes of a size; for a percentage only when the whole is known."""
    if text.isdecimal():
        return int(text)
    return whole * int(text[:-1]) // 100 if text.endswith("%") and whole is not None else None


def _lengths(options: Mapping[str, str]) -> list[int]:
    return [int(length) for length in re.findall(r"\d+", options.get("filesize", ""))]
