"""Matching of logs with the results they belong to.

fio names logs ``PREFIX_bw.N.log``: the prefix is an option (``write_bw_log``), or the jobname where
the option has no value, and N counts all jobs of a process from 1.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import PurePosixPath
from statistics import median

from volbench.errors import ArchiveError, OutputError, Problem, VolbenchError
from volbench.fio.logs.log_rows import Log, read_head
from volbench.fio.version import parse_version
from volbench.importer.scan_folders import LogFile, Source
from volbench.store.log_files import open_log

UNCLAIMED = "no result says that it wrote this log"
_OPTIONS = ("write_bw_log", "write_iops_log", "write_lat_log", "write_hist_log")
_INTERVALS = ("log_avg_msec", "log_hist_msec")
_BARE = {"", "1"}
"""Values with which fio takes the jobname for the prefix (``make_log_name``, init.c)."""
_SINGLE_S, _SHORT_SINGLE_S = 1.0, 0.1
"""Width of points where the logs hold every I/O; the second where that makes few of them."""
_SHORT_S = 10.0


@dataclass
class Claim:
    """One process of fio that may have written logs.

    Attributes:
        source: file of its result.
        hostname: of the client; empty for none.
        prefixes: that its options name; empty where these are not reported.
        ranges: number of the first log of each section, and how many it has.
        ended_utc_s: when it ended.
        runtime_s: of its longest I/O.
        fio_version: as it reports.
        has_options: whether its options are reported.
        options: canonical, of its first section.
        logs: found for it.
    """

    source: Source
    hostname: str
    prefixes: frozenset[str]
    ranges: tuple[tuple[int, int], ...]
    ended_utc_s: float | None
    runtime_s: float
    fio_version: str
    has_options: bool
    options: Mapping[str, str]
    logs: list[LogFile] = field(default_factory=list)

    @property
    def numjobs(self) -> int:
        """How many logs of a kind it can have."""
        return sum(count for _, count in self.ranges)


def prefixes_of(texts: Mapping[str, str], *, jobname: str) -> frozenset[str]:
    """Return the prefixes of logs that an entry's options name, folders left out."""
    found = {name: texts[name] for name in _OPTIONS if name in texts}
    return frozenset(
        jobname if text in _BARE else PurePosixPath(text.replace("\\", "/")).name
        for text in found.values()
    )


def share_out(logs: Sequence[LogFile], claims: Sequence[Claim]) -> list[Problem]:
    """Give each log to the process that wrote it.

    Returns:
        Logs that nobody can have, with the reason.
    """
    left: list[Problem] = []
    for log in logs:
        owner, why = _owner(log, claims)
        if owner is not None:
            why = _trouble(log, owner)
        if owner is None or why:
            left.append(Problem(why, log.source.shown))
        else:
            owner.logs.append(log)
    return [*left, *(problem for claim in claims for problem in _take_back(claim))]


def _take_back(claim: Claim) -> list[Problem]:
    """Take back logs of sections of which some jobs have none: their sums would be too low."""
    back: list[Problem] = []
    for first, count in claim.ranges:
        mine = [log for log in claim.logs if first <= (log.job_number or 1) < first + count]
        for kind in {log.kind for log in mine}:
            those = [log for log in mine if log.kind == kind]
            if len(those) < count:
                why = f"only {len(those)} of {count} jobs have a log of this kind"
                back += [Problem(why, log.source.shown) for log in those]
                claim.logs = [log for log in claim.logs if log not in those]
    return back


def _owner(log: LogFile, claims: Sequence[Claim]) -> tuple[Claim | None, str]:
    """Return whose log it is, or why nobody's."""
    folder = log.source.path.parent
    beside = [claim for claim in claims if claim.source.path.parent == folder]
    named = [claim for claim in beside if log.prefix in claim.prefixes]
    if not named:
        silent = [claim for claim in beside if not claim.has_options]
        named = [claim for claim in silent if claim.source.stem == log.prefix]
        named = named or (silent if len(silent) == 1 else [])
    if not named and not beside:
        away = [claim for claim in claims if log.prefix in claim.prefixes]
        named = away if len({claim.source for claim in away}) == 1 else []
    if not named:
        return None, UNCLAIMED
    fitting = [claim for claim in named if claim.hostname == log.hostname]
    if not fitting:
        return None, f"no client of its result is called {log.hostname!r}"
    if len(fitting) > 1:
        return _last(log, fitting)
    return fitting[0], ""


def _last(log: LogFile, claims: Sequence[Claim]) -> tuple[Claim | None, str]:
    """Return the last of several processes that wrote over one log: fio cuts logs off first."""
    able = [claim for claim in claims if claim.numjobs >= max(1, log.job_number)]
    ends = [claim.ended_utc_s for claim in able]
    times = [end for end in ends if end is not None]
    if log.hostname or len(times) < len(able) or len({*times}) < len(times) or not able:
        return None, f"{len(claims)} results may have written this log, each over the others"
    return max(able, key=lambda claim: claim.ended_utc_s or 0.0), ""


def _trouble(log: LogFile, owner: Claim) -> str:
    """Return why a log can't be used; "" where it can."""
    if log.job_number == 0 and owner.numjobs > 1:
        return f"{owner.numjobs} jobs share this log (per_job_logs=0), so none can be read"
    if log.job_number > owner.numjobs:
        return f"its result has {owner.numjobs} jobs, so this log is another one's"
    if any(
        (other.kind, other.job_number or 1) == (log.kind, log.job_number or 1)
        for other in owner.logs
    ):
        return "its result has another log of this kind and number"
    try:
        parse_version(owner.fio_version)
        read_head(opened_log(log))
    except VolbenchError as error:
        return error.message.replace(str(log.source.path), log.source.inside.name)
    return ""


def opened_log(log: LogFile) -> Log:
    """Return a file as a log that can be read."""
    path = log.source.path
    return Log(log.kind, log.job_number or 1, str(path), partial(open_log, path))


def interval_s(claim: Claim) -> float:
    """Return the width of the windows of a process's logs; 0 without logs.

    Where the options are not reported, the logs show it: those of single I/Os have block sizes.
    """
    if not claim.logs:
        return 0.0
    for name in _INTERVALS:
        text = claim.options.get(name, "")
        if text.isdecimal() and int(text):
            return int(text) / 1000
    steps = [] if claim.has_options else [step for log in claim.logs if (step := _step_s(log))]
    if steps:
        return median(steps)
    return _SHORT_SINGLE_S if claim.runtime_s < _SHORT_S else _SINGLE_S


def _step_s(log: LogFile) -> float | None:
    """Return the time between the rows of an averaged log; None for any other."""
    try:
        rows = read_head(opened_log(log))
    except (OutputError, ArchiveError):
        return None
    if log.kind != "clat_hist" and any(row[3] > 0 for row in rows if len(row) > 3):
        return None
    times = sorted({row[0] for row in rows})
    steps = [later - earlier for earlier, later in itertools.pairwise(times)]
    wide = [step for step in steps if step > 10]
    return round(median(wide), -1) / 1000 if wide else None
