"""Drafts of runs from logs without a result, which have only a series.

Such logs contain rates over time, but no totals, options or version. fio numbers the logs of the
jobs of one section, which run concurrently, in the same way as those of sections, which may run
one after another; so each number becomes a run of its own and nothing is aggregated. fio 2 logs
latencies in microseconds and fio 3 in nanoseconds, and histograms of 3.6 to 3.16 are wrong (fio
issue 974), so both need the version.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import PurePosixPath

from volbench.errors import InputError, OutputError, Problem, VolbenchError
from volbench.extensions.importer.log_matching import UNCLAIMED, FioProcess, opened_log
from volbench.extensions.importer.run_drafts import Draft, ReportedOptions
from volbench.extensions.importer.scan_folders import LogFile, ResultFile, ScanResult
from volbench.fio.logs.log_rows import read_head
from volbench.fio.logs.log_windows import histogram_columns
from volbench.fio.results.json_output import parse_version
from volbench.fio.results.merge_jobs import Part
from volbench.model.results.result import JobResult, RunOutput

# Versions assumed for logs that are only known to be of fio 3, or of fio 2
_NEWEST, _FIO2 = "fio-3.42", "fio-2.21"
_RATES = frozenset({"bw", "iops"})
# Columns of rows with offset and priority, which fio writes since 3.18 at the earliest. Noticed by:
# tests/extensions/importer/test_orphan_logs.py::test_latencies_without_a_version_have_no_unit
_FIO3_COLUMNS = 6
_NO_NUMBER = (
    "a log without a number may contain several jobs (per_job_logs=0); if it is of one, name it:"
    " --logs-of NAME"
)
_DAMAGED_BESIDE = "its result may be the malformed file in the same folder; repair that file first"
_NO_UNIT = (
    "the version of fio that wrote it is unknown, so its latencies have no unit; add --fio-version,"
    " such as --fio-version 3.33"
)


@dataclass(frozen=True)
class OrphanRuns:
    """Runs from logs that no result wrote."""

    drafts: list[Draft]  # of these runs
    left: list[Problem]  # logs that cannot be used, with the reason


@dataclass(frozen=True)
class _LogHead:
    """A log with its first rows."""

    log: LogFile
    head: list[list[int]]


def draft_orphan_logs(
    scanned: ScanResult, left: Sequence[Problem], *, fio_version: str, logs_of: str
) -> OrphanRuns:
    """Return a draft for each number of logs in folders without a result.

    Args:
        fio_version: that wrote them, from the user; empty if unknown.
        logs_of: name of the only job of logs without a number; empty if there may be several.
    """
    known_version = _require_version(fio_version)
    unclaimed = {problem.path for problem in left if problem.message == UNCLAIMED}
    busy = {file.source.path.parent for file in scanned.results}
    groups: dict[tuple[str, str, str, int], list[LogFile]] = defaultdict(list)
    for log in scanned.logs:
        if log.source.shown in unclaimed and log.source.path.parent not in busy:
            folder = str(log.source.path.parent)
            groups[folder, log.prefix, log.hostname, log.job_number].append(log)
    damaged = {PurePosixPath(problem.path).parent for problem in scanned.malformed}
    taken = {log.source.shown for logs in groups.values() for log in logs}
    alone = OrphanRuns([], [problem for problem in left if problem.path not in taken])
    several = {key[:3] for key in groups if sum(key[:3] == other[:3] for other in groups) > 1}
    for key, logs in groups.items():
        why = _DAMAGED_BESIDE if PurePosixPath(logs[0].source.shown).parent in damaged else ""
        why = why or ("" if logs[0].job_number or logs_of else _NO_NUMBER)
        if why:
            alone.left.extend(Problem(why, log.source.shown) for log in logs)
        else:
            number, prefix = logs[0].job_number, logs[0].prefix or "log"
            name = f"{prefix}-{number}" if key[:3] in several else prefix
            _add(alone, logs, known_version=known_version, name=name if number else logs_of)
    return alone


def _require_version(text: str) -> str:
    if not text:
        return ""
    version = f"fio-{text.removeprefix('fio-')}"
    try:
        parse_version(version)
    except OutputError as error:
        raise InputError(error.message, hint="write it like --fio-version 3.33") from error
    return version


def _add(alone: OrphanRuns, logs: Sequence[LogFile], *, known_version: str, name: str) -> None:
    """Add the draft of the logs of one number, and the logs that cannot be used."""
    readable: list[_LogHead] = []
    for log in logs:
        try:
            readable.append(_LogHead(log, read_head(opened_log(log))))
        except VolbenchError as error:
            why = error.message.replace(str(log.source.path), log.source.inside.name)
            alone.left.append(Problem(why, log.source.shown))
    version = known_version or _version_from_rows(readable)
    usable = [read for read in readable if version or read.log.kind in _RATES]
    alone.left.extend(
        Problem(_NO_UNIT, read.log.source.shown) for read in readable if read not in usable
    )
    if any(read.head for read in usable):
        kept = [read.log for read in usable]
        alone.drafts.append(_draft(kept, read_as=version or _NEWEST, name=name))
    else:
        alone.left.extend(Problem("it is empty", read.log.source.shown) for read in usable)


def _version_from_rows(logs: Sequence[_LogHead]) -> str:
    """Return a version that writes rows of this form; "" if several different ones do."""
    rows = [row for read in logs if read.log.kind != "clat_hist" for row in read.head]
    if any(len(row) >= _FIO3_COLUMNS for row in rows):
        return _NEWEST
    bins = [row for read in logs if read.log.kind == "clat_hist" for row in read.head]
    return _FIO2 if any(histogram_columns(len(row), fio2=True) for row in bins) else ""


def _draft(logs: Sequence[LogFile], *, read_as: str, name: str) -> Draft:
    first = logs[0]
    number = first.job_number or 1
    job = JobResult(name=name, groupid=0, error=0, directions=(), hostname=first.hostname)
    file_name = name if first.job_number else first.prefix or name
    source = replace(first.source, inside=first.source.inside.with_name(file_name))
    process = FioProcess(
        source=source,
        hostname=first.hostname,
        prefixes=frozenset({first.prefix}),
        ranges=((number, 1),),
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
        part=Part(first.hostname, None, 0, (job,), jobs_before=number - 1),
        reported={(name, 0): ReportedOptions({}, is_whole=False)},
        process=process,
        read_as=read_as,
    )
