"""Drafts of runs from logs without a result, which have a series and no totals, options or version.

fio numbers the logs of jobs that run at the same time in the same way as those of jobs that run one
after another, so each number becomes a run of its own. fio 2 logs latencies in microseconds and fio
3 in nanoseconds, and histograms of 3.6 to 3.16 are wrong (fio issue 974), so both need the version.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import PurePosixPath

from volbench.errors import InputError, OutputError, Problem, VolbenchError
from volbench.extensions.importer.log_matching import UNCLAIMED, FioProcess, opened_log
from volbench.extensions.importer.run_drafts import Draft, ReportedOptions
from volbench.extensions.importer.scan_folders import LogFile, ResultFile, ScanResult
from volbench.fio.logs.log_rows import PLAIN, read_head
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
# Versions that added a column, and how many a line has at most: offset, priority, maximum, issue
# time. Noticed by: tests/extensions/importer/test_orphan_logs.py
_MAX_COLUMNS = (((0, 0), 5), ((3, 18), 6), ((3, 37), 7), ((3, 38), 8))
_PRIORITY_SINCE = (3, 18)
_HEAD_BYTES = 4096
_NO_NUMBER = (
    "a log without a number may contain several jobs (per_job_logs=0); if it is of one, name a copy"
    " of it like NAME_iops.1.log"
)
_DAMAGED_BESIDE = "its result may be the malformed file in the same folder; repair that file first"
_NO_UNIT = (
    "the version of fio that wrote it is unknown, so its latencies have no unit; add --fio-version,"
    " such as --fio-version 3.33"
)


def draft_orphan_logs(
    scanned: ScanResult, left: Sequence[Problem], *, fio_version: str
) -> tuple[list[Draft], list[Problem]]:
    """Return a draft for each number of logs in folders without a result, and the logs left out.

    Args:
        left: logs that no result claims, with the reason.
        fio_version: that wrote them, from the user; empty for that of the results, if they agree.
    """
    versions = {output.tool_version for file in scanned.results for output in file.results}
    given, shared = _parsed_version(fio_version), versions.pop() if len(versions) == 1 else ""
    damaged = {PurePosixPath(problem.path).parent for problem in scanned.malformed}
    reasons = {problem.path: problem.message for problem in left}
    groups = _by_number(scanned, reasons)
    numbers = Counter(key[:3] for key in groups)
    drafts = []
    for key, logs in groups.items():
        if PurePosixPath(logs[0].source.shown).parent in damaged:
            reasons |= {log.source.shown: _DAMAGED_BESIDE for log in logs}
        elif not logs[0].job_number:
            reasons |= {log.source.shown: _NO_NUMBER for log in logs}
        else:
            version, faults = _version_and_faults(logs, given, shared)
            reasons |= faults
            usable = [log for log in logs if not faults[log.source.shown]]
            name = logs[0].prefix or "log"
            name = f"{name}-{logs[0].job_number}" if numbers[key[:3]] > 1 else name
            drafts += [_draft(usable, read_as=version, name=name)] if usable else []
    return drafts, [Problem(reason, path) for path, reason in reasons.items() if reason]


def _parsed_version(text: str) -> str:
    version = f"fio-{text.removeprefix('fio-')}" if text else ""
    try:
        parse_version(version or _NEWEST)
    except OutputError as error:
        raise InputError(error.message, hint="write it like --fio-version 3.33") from error
    return version


def _by_number(
    scanned: ScanResult, reasons: Mapping[str, str]
) -> Mapping[tuple[str, str, str, int], Sequence[LogFile]]:
    """Return the unclaimed logs in folders without a result, by folder, prefix, client, number."""
    busy = {file.source.path.parent for file in scanned.results}
    groups: dict[tuple[str, str, str, int], list[LogFile]] = defaultdict(list)
    for log in scanned.logs:
        if reasons.get(log.source.shown) == UNCLAIMED and log.source.path.parent not in busy:
            folder = str(log.source.path.parent)
            groups[folder, log.prefix, log.hostname, log.job_number].append(log)
    return groups


def _version_and_faults(
    logs: Sequence[LogFile], given: str, shared: str
) -> tuple[str, dict[str, str]]:
    """Return the version that wrote the logs of one number, and path to why a log is unusable."""
    rows: dict[str, list[list[int]]] = {"clat_hist": [], "": []}
    faults = {}
    for log in logs:
        try:
            head = read_head(opened_log(log))
            rows["clat_hist" if log.kind == "clat_hist" else ""] += head
            faults[log.source.shown] = "" if head else "it is empty"
        except VolbenchError as error:
            message = error.message.replace(str(log.source.path), log.source.inside.name)
            faults[log.source.shown] = message
    has_priority = any(map(_has_priority, logs))
    if shared and not _writes(shared, rows[""], has_priority=has_priority):
        shared = ""
    version = known = given or shared
    if any(len(row) >= _FIO3_COLUMNS for row in rows[""]) or has_priority:
        version = known or _NEWEST
    elif any(histogram_columns(len(row), fio2=True) for row in rows["clat_hist"]):
        version = known or _FIO2
    for log in logs if not version else ():
        if log.kind not in _RATES:
            faults[log.source.shown] = faults[log.source.shown] or _NO_UNIT
    return version or _NEWEST, faults


def _writes(version: str, rows: Sequence[Sequence[int]], *, has_priority: bool) -> bool:
    """Return whether a version of fio writes as many columns as some rows have."""
    columns = max(map(len, rows), default=_MAX_COLUMNS[0][1]) + has_priority
    known = parse_version(version)
    most = max(most for since, most in _MAX_COLUMNS if known >= since)
    return (known < _PRIORITY_SINCE or columns > len(PLAIN)) and columns <= most


def _has_priority(log: LogFile) -> bool:
    """Return whether a log has priorities in hexadecimal, as fio writes them since 3.28."""
    with opened_log(log).open() as stream:
        return b", 0x" in stream.read(_HEAD_BYTES)


def _draft(logs: Sequence[LogFile], *, read_as: str, name: str) -> Draft:
    first = logs[0]
    job = JobResult(name=name, groupid=0, error=0, directions=(), hostname=first.hostname)
    source = replace(first.source, inside=first.source.inside.with_name(name))
    process = FioProcess(
        source=source,
        hostname=first.hostname,
        prefixes=frozenset({first.prefix}),
        paths=frozenset({PurePosixPath(first.prefix)}),
        ranges=((first.job_number, 1),),
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
        process=process,
        read_as=read_as,
    )
