"""Matching of logs with the results they belong to.

fio names logs ``PREFIX_bw.N.log``: the prefix is an option (``write_bw_log``), or the jobname where
the option has no value, and N counts all jobs of a process from 1.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import PurePath, PurePosixPath
from statistics import median

from volbench.errors import ArchiveError, OutputError, Problem, VolbenchError
from volbench.extensions.importer.scan_folders import LogFile, Source
from volbench.fio.logs.log_rows import Log, read_head, require_rows
from volbench.fio.results.json_output import parse_version
from volbench.store.log_files import open_log

UNCLAIMED = "no result reports that it wrote this log"
_OPTIONS = ("write_bw_log", "write_iops_log", "write_lat_log", "write_hist_log")
_INTERVALS = ("log_avg_msec", "log_hist_msec")
# Values with which fio takes the jobname for the prefix (``make_log_name``, init.c)
_VALUELESS = {"", "1"}
# Interval of series from logs of every I/O; the second one for runs shorter than _SHORT_S
_SINGLE_S, _SHORT_SINGLE_S = 1.0, 0.1
# A shorter run has too few seconds for a series. Noticed by:
# tests/extensions/importer/test_cases.py::test_logs_beside_a_result_become_its_series
_SHORT_S = 10.0


# Columns of rows with log_window_value=both, log_offset, log_prio and log_issue_time
_BOTH_COLUMNS = 8


@dataclass
class FioProcess:
    """Process of fio that may have written logs."""

    source: Source  # file of its result
    hostname: str  # of the client; empty for none
    prefixes: frozenset[str]  # of logs that its options name; empty if these are not reported
    paths: frozenset[PurePosixPath]  # the same with their folders, as its options name them
    ranges: tuple[tuple[int, int], ...]  # number of the first log of each section, and their count
    runtime_s: float  # of its longest I/O
    fio_version: str  # as reported
    has_options: bool  # whether its options are reported
    options: Mapping[str, str]  # canonical, of its first section
    logs: list[LogFile] = field(default_factory=list)  # assigned to it

    @property
    def numjobs(self) -> int:
        """Number of logs of a kind that it can have."""
        return sum(count for _, count in self.ranges)


def log_paths(texts: Mapping[str, str], *, jobname: str) -> frozenset[PurePosixPath]:
    """Return the paths of logs that an entry's options name, without kind and number."""
    prefixes = {name: texts[name] for name in _OPTIONS if name in texts}
    return frozenset(
        PurePosixPath(jobname if text in _VALUELESS else text.replace("\\", "/"))
        for text in prefixes.values()
    )


def assign_logs(logs: Sequence[LogFile], processes: Sequence[FioProcess]) -> list[Problem]:
    """Assign each log to the process that wrote it.

    Returns:
        A problem for each log that was not assigned.
    """
    left: list[Problem] = []
    by_folder: dict[PurePath, list[FioProcess]] = {}
    by_prefix: dict[str, list[FioProcess]] = {}
    for process in processes:
        by_folder.setdefault(process.source.path.parent, []).append(process)
        for prefix in process.prefixes:
            by_prefix.setdefault(prefix, []).append(process)
    for log in logs:
        beside = by_folder.get(log.source.path.parent, [])
        owner, why = _owner(log, beside, away=by_prefix.get(log.prefix, []))
        if owner is not None:
            why = _unusable_reason(log, owner)
        if owner is None or why:
            left.append(Problem(why, log.source.shown))
        else:
            owner.logs.append(log)
    return [*left, *(problem for process in processes for problem in _release_incomplete(process))]


def _release_incomplete(process: FioProcess) -> list[Problem]:
    """Release logs of sections in which some jobs have none: their sums would be too low."""
    released: list[Problem] = []
    for first, count in process.ranges:
        mine = [log for log in process.logs if first <= (log.job_number or 1) < first + count]
        for kind in {log.kind for log in mine}:
            alike = [log for log in mine if log.kind == kind]
            if len(alike) < count:
                why = f"only {len(alike)} of {count} jobs have a log of this kind"
                released += [Problem(why, log.source.shown) for log in alike]
                process.logs = [log for log in process.logs if log not in alike]
    return released


def _owner(
    log: LogFile, beside: Sequence[FioProcess], *, away: Sequence[FioProcess]
) -> tuple[FioProcess | None, str]:
    """Return the process that wrote a log, or None and the reason."""
    named = [process for process in beside if log.prefix in process.prefixes]
    if not named:
        without_options = [process for process in beside if not process.has_options]
        named = [process for process in without_options if process.source.stem == log.prefix]
        named = named or (without_options if len(without_options) == 1 else [])
    if not named and not beside:
        named = _nearest(log, away)
    if not named:
        return None, UNCLAIMED
    fitting = [process for process in named if process.hostname == log.hostname]
    if not fitting:
        return None, f"its result has no client {log.hostname!r}"
    if len(fitting) > 1:
        return None, f"{len(fitting)} results may have overwritten this log"
    return fitting[0], ""


def _nearest(log: LogFile, away: Sequence[FioProcess]) -> list[FioProcess]:
    """Return the processes of the one result whose options and place fit a log's path best.

    The end of the path in an option decides, then the folders that result and log share.
    """
    path = (*log.source.path.parent.parts, log.prefix)
    ranks = {
        id(process): (
            max(_shared(path[::-1], named.parts[::-1]) for named in process.paths),
            _shared(path, process.source.path.parts),
        )
        for process in away
    }
    best = [process for process in away if ranks[id(process)] == max(ranks.values())]
    return best if len({process.source for process in best}) == 1 else []


def _shared(first: Sequence[str], second: Sequence[str]) -> int:
    """Return the number of equal parts at the begin of two paths."""
    pairs = zip(first, second, strict=False)
    return len(list(itertools.takewhile(lambda pair: pair[0] == pair[1], pairs)))


def _unusable_reason(log: LogFile, owner: FioProcess) -> str:
    """Return why a log cannot be used; "" if it can."""
    if log.job_number == 0 and owner.numjobs > 1:
        return f"{owner.numjobs} jobs share this log (per_job_logs=0), which mixes their values"
    if log.job_number > owner.numjobs:
        return f"its result has only {owner.numjobs} jobs, so this log belongs to another result"
    if any(
        (other.kind, other.job_number or 1) == (log.kind, log.job_number or 1)
        for other in owner.logs
    ):
        return "its result has another log of this kind and number"
    try:
        parse_version(owner.fio_version)
        require_rows(opened_log(log))
    except VolbenchError as error:
        return error.message.replace(str(log.source.path), log.source.inside.name)
    return ""


def opened_log(log: LogFile) -> Log:
    """Return a file as a log for the parsers of fio's logs."""
    path = log.source.path
    return Log(log.kind, log.job_number or 1, str(path), partial(open_log, path))


def interval_s(process: FioProcess) -> float:
    """Return the width of the windows of a process's logs; 0 without logs.

    If the options are not reported, it is derived from the logs: those of every I/O have block
    sizes.
    """
    if not process.logs:
        return 0.0
    for name in _INTERVALS:
        text = process.options.get(name, "")
        if text.isdecimal() and int(text):
            return int(text) / 1000
    steps = [] if process.has_options else [step for log in process.logs if (step := _step_s(log))]
    if steps:
        return median(steps)
    return _SHORT_SINGLE_S if process.runtime_s < _SHORT_S else _SINGLE_S


def _step_s(log: LogFile) -> float | None:
    """Return the time between rows of an averaged log; None for a log of every I/O."""
    try:
        rows = read_head(opened_log(log))
    except (OutputError, ArchiveError):
        return None
    # With 8 columns the maximum of a window is third, so that direction and block size follow it.
    size_at = 4 if all(len(row) >= _BOTH_COLUMNS for row in rows) else 3
    if log.kind != "clat_hist" and any(row[size_at] > 0 for row in rows if len(row) > size_at):
        return None
    times = sorted({row[0] for row in rows})
    steps = [later - earlier for earlier, later in itertools.pairwise(times)]
    wide = [step for step in steps if step > 10]
    return round(median(wide), -1) / 1000 if wide else None
