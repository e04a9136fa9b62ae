"""Groups of unlike jobs, which fio merges into one entry under group_reporting.

Such an entry has the name of the first job and the options of the last (fio issues 499 and 2132),
so its pattern, block size and depth are those of none. The runtimes of all jobs are added up in it
(``job_runtime``, since fio 3.8), which tells how many they are.
"""

from __future__ import annotations

from collections.abc import Mapping

from volbench.fio.results.merge_jobs import plain_name
from volbench.model.results.result import Direction, JobResult
from volbench.units import format_size

# Options that are likely to differ within such a group: those of all of it say nothing of its jobs
OF_EACH = frozenset({"rw", "bs", "bsrange", "bssplit", "iodepth", "rwmixread", "rwmixwrite"})
_DIRECTIONS = {
    "read": {Direction.READ},
    "write": {Direction.WRITE},
    "trim": {Direction.TRIM},
    "rw": {Direction.READ, Direction.WRITE},
    "readwrite": {Direction.READ, Direction.WRITE},
    "trimwrite": {Direction.TRIM, Direction.WRITE},
}
# Options with which other directions, or other block sizes, are no contradiction
_ANY_DIRECTION = ("verify", "trim_percentage", "read_iolog")
_ANY_BLOCK = ("bsrange", "bssplit", "bs_unaligned", "read_iolog", "zonemode", "num_range")
# Directions that a job of any pattern can have, and those whose I/Os are not of its block size
_UNNAMED = {Direction.SYNC, Direction.MIXED, Direction.OTHER}
_OTHER_BLOCKS = {Direction.SYNC, Direction.TRIM, Direction.OTHER}
# Share by which bytes differ from I/Os times block size: the last block may be short. Noticed by:
# tests/extensions/importer/test_unlike_jobs.py::test_a_group_is_recognised_by_its_totals
_MAX_BLOCK_DIFFERENCE = 0.05


def is_unlike_group(job: JobResult, options: Mapping[str, str]) -> bool:
    """Return whether an entry is of several sections, as the only one of its name and group.

    Args:
        options: canonical, all that are reported of it.
    """
    declared = int(options.get("numjobs", "1"))
    return bool(job.merged) or (job.jobs_in_it or 1) > declared or _contradicts(job, options)


def _contradicts(job: JobResult, options: Mapping[str, str]) -> bool:
    """Return whether an entry did what a job with its options cannot do.

    Of one job, other blocks may be an error of the result; a failed I/O counts without bytes.
    """
    possible = _DIRECTIONS.get(options.get("rw", "read").partition(":")[0].removeprefix("rand"))
    known = possible is not None and not any(name in options for name in _ANY_DIRECTION)
    done = {direction.direction for direction in job.directions}
    if known and done - (possible or set()) - _UNNAMED:
        return True
    block = options.get("bs", "")
    if job.error or job.total_errors:
        return False
    if job.jobs_in_it or not block.isdecimal() or any(name in options for name in _ANY_BLOCK):
        return False
    return any(
        abs(totals.io_bytes - totals.total_ios * int(block))
        > _MAX_BLOCK_DIFFERENCE * totals.io_bytes
        for totals in job.directions
        if totals.total_ios and totals.direction not in _OTHER_BLOCKS
    )


def differing_options(job: JobResult, options: Mapping[str, str]) -> frozenset[str]:
    """Return the options that may differ within a group, though they are set for all of it.

    A queue depth is as likely that of all jobs as any global option; a block size if all bytes are
    whole blocks of it.
    """
    block = options.get("bs", "")
    is_of_all = block.isdecimal() and all(
        totals.io_bytes == totals.total_ios * int(block)
        for totals in job.directions
        if totals.total_ios and totals.direction not in _OTHER_BLOCKS
    )
    return OF_EACH - {"iodepth", "bs" if is_of_all else "iodepth"}


def merge_note(job: JobResult) -> str:
    """Return what fio merged into an entry, with each section where the output names them."""
    if job.merged:
        parts = "; ".join(f"{name}: {_workload(options)}" for name, options in job.merged.items())
        return f"fio merged unlike jobs (group_reporting): {parts}"
    count = f"{job.jobs_in_it} " if (job.jobs_in_it or 1) > 1 else ""
    return (
        f"fio merged {count}unlike jobs (group_reporting); the first is {plain_name(job)}, the last"
        f" {_workload(job.options)}"
    )


def _workload(options: Mapping[str, str]) -> str:
    block = options.get("bs", "")
    parts = [
        options.get("rw", "read"),
        format_size(int(block)) if block.isdecimal() else block,
        *(f"{name} {options[name]}" for name in ("iodepth", "numjobs") if name in options),
    ]
    return " ".join(filter(None, parts))
