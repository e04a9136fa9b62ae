"""Logs without a result: drafts of runs that have a series only.

Such logs hold rates over time and nothing else: no totals, options or version. fio numbers the logs
of one section's jobs, which ran together, as it numbers those of sections, which may have run in
turn; so each number is a run of its own and nothing is added up. fio 2 logs latencies in
microseconds and fio 3 in nanoseconds, and histograms of 3.6 to 3.16 are wrong (fio issue 974), so
both need the version.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import PurePosixPath

from volbench.errors import InputError, OutputError, Problem, VolbenchError
from volbench.fio.logs.log_rows import read_head
from volbench.fio.logs.per_io_logs import histogram_columns
from volbench.fio.results.result_parts import Part
from volbench.fio.version import parse_version
from volbench.importer.log_matching import UNCLAIMED, Claim, opened_log
from volbench.importer.reported_options import ReportedOptions
from volbench.importer.run_drafts import Draft
from volbench.importer.scan_folders import Found, LogFile, ResultFile
from volbench.model.results.result import JobResult, RunOutput

_NEWEST, _FIO2 = "fio-3.42", "fio-2.21"
"""Versions in whose form logs are read that are only known to be of fio 3, or of fio 2."""
_RATES = frozenset({"bw", "iops"})
_FIO3_COLUMNS = 6
"""Columns that rows have since 3.18 at the earliest: with offset and priority, or more."""
_UNSHARED = "a log without a number may hold several jobs (per_job_logs=0), and no result says so"
_DAMAGED_BESIDE = "its result may be a file that can't be read; mend that first"
_NO_UNIT = (
    "it is not known which fio wrote it, so its latencies have no unit; say --fio-version, such as"
    " 3.33"
)


@dataclass(frozen=True)
class Alone:
    """What became of logs that no result claimed.

    Attributes:
        drafts: a run each.
        left: what can't be used, with the reason.
    """

    drafts: list[Draft]
    left: list[Problem]


@dataclass(frozen=True)
class _Read:
    """A log with its first rows."""

    log: LogFile
    head: list[list[int]]


def draft_logs(found: Found, left: Sequence[Problem], *, fio_version: str) -> Alone:
    """Return a draft for each number of logs in folders that hold no result.

    Args:
        found: everything that was found.
        left: logs that no result can have, with the reason.
        fio_version: that wrote them, as the user knows; empty for unknown.

    Raises:
        InputError: the version is none.
    """
    known_version = _checked_version(fio_version)
    unclaimed = {problem.path for problem in left if problem.message == UNCLAIMED}
    busy = {file.source.path.parent for file in found.results}
    groups: dict[tuple[str, str, str, int], list[LogFile]] = defaultdict(list)
    for log in found.logs:
        if log.source.shown in unclaimed and log.source.path.parent not in busy:
            folder = str(log.source.path.parent)
            groups[folder, log.prefix, log.hostname, log.job_number].append(log)
    damaged = {PurePosixPath(problem.path).parent for problem in found.malformed}
    taken = {log.source.shown for logs in groups.values() for log in logs}
    alone = Alone([], [problem for problem in left if problem.path not in taken])
    several = {key[:3] for key in groups if sum(key[:3] == other[:3] for other in groups) > 1}
    for key, logs in groups.items():
        why = _DAMAGED_BESIDE if PurePosixPath(logs[0].source.shown).parent in damaged else ""
        why = why or ("" if logs[0].job_number else _UNSHARED)
        if why:
            alone.left.extend(Problem(why, log.source.shown) for log in logs)
        else:
            _add(alone, logs, known_version=known_version, is_numbered=key[:3] in several)
    return alone


def _checked_version(text: str) -> str:
    if not text:
        return ""
    version = f"fio-{text.removeprefix('fio-')}"
    try:
        parse_version(version)
    except OutputError as error:
        raise InputError(error.message, hint="write it like --fio-version 3.33") from error
    return version


def _add(alone: Alone, logs: Sequence[LogFile], *, known_version: str, is_numbered: bool) -> None:
    """Add the draft of one number's logs, and what of them can't be used."""
    sound: list[_Read] = []
    for log in logs:
        try:
            sound.append(_Read(log, read_head(opened_log(log))))
        except VolbenchError as error:
            why = error.message.replace(str(log.source.path), log.source.inside.name)
            alone.left.append(Problem(why, log.source.shown))
    version = known_version or _version_by(sound)
    usable = [read for read in sound if version or read.log.kind in _RATES]
    alone.left.extend(
        Problem(_NO_UNIT, read.log.source.shown) for read in sound if read not in usable
    )
    if any(read.head for read in usable):
        kept = [read.log for read in usable]
        alone.drafts.append(_draft(kept, read_as=version or _NEWEST, is_numbered=is_numbered))
    else:
        alone.left.extend(Problem("it is empty", read.log.source.shown) for read in usable)


def _version_by(logs: Sequence[_Read]) -> str:
    """Return a version that writes such rows, where they show enough of it; "" otherwise."""
    rows = [row for read in logs if read.log.kind != "clat_hist" for row in read.head]
    if any(len(row) >= _FIO3_COLUMNS for row in rows):
        return _NEWEST
    bins = [row for read in logs if read.log.kind == "clat_hist" for row in read.head]
    return _FIO2 if any(histogram_columns(len(row), fio2=True) for row in bins) else ""


def _draft(logs: Sequence[LogFile], *, read_as: str, is_numbered: bool) -> Draft:
    first = logs[0]
    name = first.prefix or "log"
    name = f"{name}-{first.job_number}" if is_numbered else name
    job = JobResult(name=name, groupid=0, error=0, directions=(), hostname=first.hostname)
    source = replace(first.source, inside=first.source.inside.with_name(name))
    claim = Claim(
        source=source,
        hostname=first.hostname,
        prefixes=frozenset({first.prefix}),
        ranges=((first.job_number, 1),),
        ended_utc_s=None,
        runtime_s=0.0,
        fio_version=read_as,
        has_options=False,
        options={},
        logs=list(logs),
    )
    return Draft(
        file=ResultFile(source, "", ()),
        document=0,
        output=RunOutput(read_as, (job,)),
        part=Part(first.hostname, None, 0, (job,), jobs_before=first.job_number - 1),
        reported={(name, 0): ReportedOptions({}, is_whole=False)},
        claim=claim,
        read_as=read_as,
    )
