"""Rows of the frames series and device, from the logs of a run and samples of its host."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass, fields, replace
from datetime import datetime
from functools import partial
from itertools import pairwise
from statistics import fmean
from typing import Any

import numpy as np

from volbench.analyse.frames.kernel_counters import (
    Disk,
    Sample,
    SampleReader,
    device_latencies,
    disk_rates,
    exceeded_shares,
    host_rates,
)
from volbench.fio.logs.direction_series import DirectionSeries
from volbench.fio.logs.log_rows import BadRows, Log, Recording
from volbench.fio.logs.section_logs import MAX_WINDOWS, parse_log_name, read_series
from volbench.fio.results.json_output import parse_version
from volbench.fio.results.merge_jobs import MIN_TOGETHER
from volbench.ingest.run_summary import longest_latency_s
from volbench.model.campaign.planned_run import Run, Section
from volbench.model.frames.columns import Row
from volbench.model.profile.profile_model import Tool
from volbench.model.results.provenance import VolumeFacts
from volbench.model.results.result import RunOutput
from volbench.store.journal import utc_at
from volbench.store.layout import RunFolder
from volbench.store.log_files import log_path, open_log, plain_name
from volbench.store.parquet_tables import Block

VOLUME, BACKING = "volume", "backing"

# A last interval below this share of the one before it is joined to it: its rates would be noise.
# Noticed by: test_device_rows.py::test_the_last_sample_gives_no_partial_interval
_MIN_LAST_SHARE = 0.5
_DIRECTIONS = 4  # That fio logs
# Intervals without all jobs from which these ended at different times: one may be cut.
# Noticed by: test_clients.py
_MIN_UNEVEN_INTERVALS = 2
# Share of the I/Os that a log may lack, or have too many: fio 3.12 lost 54 to 60 % with rbd, and
# logs of hard disks with pauses lack up to 20 %. Noticed by: tests/ingest/test_field_results.py
_MAX_MISSING_SHARE = 0.25
# Windows from which the last one, which fio loses, is no such share.
# Noticed by: tests/ingest/test_series_rows.py
_MIN_WINDOWS = 10
_MEASURED = tuple(
    field.name
    for field in fields(DirectionSeries)
    if field.name not in {"direction", "t_s", "utc_s"}
)
_LATENCIES = tuple(name for name in _MEASURED if "lat_" in name)
COMMON_MEAN = "common_mean_s"  # Key of the mean latency while all jobs ran; not a column


@dataclass(frozen=True)
class Samples:
    """Samples taken during a run."""

    taken: Sequence[Sample]  # in order
    page_bytes: int  # of the host
    marks: Sequence[str]  # volbench's own lines between them


# Bytes of a sample of a host with 500 disks, and of a log of any length.
# Noticed by: tests/store/test_oversized_files.py
_SAMPLE_BYTES, _FREE_SAMPLE_BYTES = 64 << 10, 4 << 20
# The same of a row of a log, of one of a histogram, and of a log of any length.
# Noticed by: tests/store/test_oversized_files.py
_ROW_BYTES, _HISTOGRAM_BYTES, _FREE_LOG_BYTES = 128, 32 << 10, 4 << 20


def max_sample_bytes(run: Run, *, elapsed_s: float) -> int:
    """Return the size of the largest log of samples that a run of this length can have."""
    count = max(elapsed_s, 0.0) / run.device_sample_s if run.device_sample_s else 0.0
    return _FREE_SAMPLE_BYTES + int(count * _SAMPLE_BYTES)


def read_samples(folder: RunFolder, *, max_bytes: int = _FREE_SAMPLE_BYTES) -> Samples:
    """Return the samples taken during a run; empty if there are none."""
    reader = SampleReader()
    path = log_path(folder.samples)
    if path is None:
        return Samples((), reader.page_bytes, ())
    taken: list[Sample] = []
    with open_log(path, max_bytes=max_bytes) as stream:
        for line in stream:
            taken += reader.feed(line.decode("utf-8", errors="replace"))
    return Samples(taken, reader.page_bytes, reader.marks)


def device_rows(
    samples: Samples, facts: VolumeFacts | None, *, begun_utc_s: float | None
) -> Iterator[Row]:
    """Yield a row for each device and interval between samples.

    Without a block device each interval has one row with the host's own numbers. Times are by
    the monotonic clock, aligned with the time of day at the start of the run.

    Args:
        begun_utc_s: when I/O began; None to count from the first sample after the start.
    """
    if not samples.taken:
        return
    before_start = [sample for sample in samples.taken if not sample.after_start]
    start = before_start[-1] if before_start else samples.taken[0]
    origin_s = start.uptime_s
    if begun_utc_s is not None:
        origin_s += begun_utc_s - start.utc_s
    points = _without_stub(samples.taken)
    devices = [(VOLUME, facts.device if facts else "")]
    if facts and facts.device:
        devices += [(BACKING, name) for name in facts.backing]
        _add_joined_disk(points, facts.device)
    for level, device in devices:
        known = [sample for sample in points if not device or device in sample.disks]
        for before, now in pairwise(known):
            row = _device_row(before, now, device, page_bytes=samples.page_bytes)
            if row is not None:
                yield {
                    "device": device or None,
                    "level": level,
                    "t_s": now.uptime_s - origin_s,
                    **row,
                }


def _add_joined_disk(taken: Sequence[Sample], device: str) -> None:
    """Add the counters of several disks together, such as ``sdb+sdc``; busy is their mean time."""
    names = device.split("+")
    for sample in taken if len(names) > 1 else ():
        if all(name in sample.disks for name in names):
            rows = zip(*(astuple(sample.disks[name]) for name in names), strict=True)
            joined = Disk(*map(sum, rows))
            sample.disks[device] = replace(joined, busy_ticks=joined.busy_ticks // len(names))


def begun_utc_s(
    output: RunOutput | None, series: Iterable[Block], *, started_utc: str | None
) -> float | None:
    """Return when a run's measured I/O began, in seconds since the epoch; None if it is unknown.

    The sources in their order: the series, so that both are aligned; the start that fio 3.36 and
    later report; the time of fio's result less its longest runtime; the start of the process.
    """
    starts: list[float] = [
        _epoch_s(utc) - t_s
        for block in series
        for utc, t_s in zip(block.columns["utc"], block.columns["t_s"].tolist(), strict=True)
        if utc is not None
    ]
    starts += [job.start_utc_s for job in output.jobs if job.start_utc_s] if output else []
    if starts:
        return min(starts)
    started_s = None if started_utc is None else _epoch_s(started_utc)
    if output is None or output.ended_utc_s is None:
        return started_s
    runtimes = [direction.runtime_s for job in output.jobs for direction in job.directions]
    begun_s = output.ended_utc_s - max(runtimes, default=0.0)
    return begun_s if started_s is None else max(begun_s, started_s)


def _epoch_s(utc: str) -> float:
    return datetime.fromisoformat(utc).timestamp()


def _without_stub(taken: Sequence[Sample]) -> list[Sample]:
    """Return the samples without the last but one, when the last came right after it."""
    if len(taken) > 3:
        usual_s = taken[-2].uptime_s - taken[-3].uptime_s
        if taken[-1].uptime_s - taken[-2].uptime_s < _MIN_LAST_SHARE * usual_s:
            return [*taken[:-2], taken[-1]]
    return list(taken)


def _device_row(before: Sample, now: Sample, device: str, *, page_bytes: int) -> Row | None:
    interval_s = now.uptime_s - before.uptime_s
    if interval_s <= 0:
        return None
    row: Row = {
        "utc": utc_at(now.utc_s),
        "interval_s": interval_s,
        "after_fio": before.after_end,
        **host_rates(before, now, interval_s=interval_s, page_bytes=page_bytes),
    }
    if device:
        rates = disk_rates(before.disks[device], now.disks[device], interval_s=interval_s)
        if rates is None:
            return None  # another device of that name, or counters that were reset
        row |= rates
        errors, later = before.io_errors.get(device), now.io_errors.get(device)
        if errors is not None and later is not None and later >= errors:
            row["io_errors"] = later - errors
        row |= exceeded_shares(before, now, device, interval_s=interval_s)
        row |= device_latencies(before, now, device)
    return row


@dataclass(frozen=True)
class SectionSeries:
    """Content of the logs of one section."""

    section: Section  # the section
    directions: Sequence[DirectionSeries]  # its series, one for each direction in its logs
    bad_rows: Sequence[BadRows]  # lines of its logs that could not be used
    empty: Sequence[str]  # names of logs without a row
    jobs: int  # number of jobs in parallel
    ramp_lines: int = 0  # lines of its logs that belong to the ramp


def read_section_series(run: Run, folder: RunFolder, output: RunOutput) -> Iterable[SectionSeries]:
    """Yield the series of each section of a run, `numjobs` summed."""
    for section, logs, recording in section_logs(run, folder, output):
        reading = read_series(logs, recording)
        yield SectionSeries(
            section,
            reading.directions,
            reading.bad_rows,
            reading.empty,
            _log_count(run, section),
            reading.ramp_lines,
        )


def section_logs(
    run: Run, folder: RunFolder, output: RunOutput
) -> Iterable[tuple[Section, list[Log], Recording]]:
    """Yield each section of a run with its logs and their recording parameters; none for a watch.

    fio numbers logs from 1 over all jobs of all sections, in the order of the job file.
    """
    if run.tool is not Tool.FIO or not run.sample_s:
        return
    logs = _log_files(folder, run, output)
    first = 1 if run.imported is None else run.imported.first_job_number
    for section in run.sections:
        options = run.effective(section)
        jobs = _log_count(run, section)
        mine = [log for log in logs if first <= log.job_number < first + jobs]
        first += jobs
        results = [job for job in output.jobs if job.name == section.name]
        runtimes = [direction.runtime_s for job in results for direction in job.directions]
        runtime_s = max(runtimes, default=None)
        starts = [job.start_utc_s for job in results if job.start_utc_s and run.imported]
        recording = Recording(
            interval_s=_interval_s(run),
            fio_version=parse_version(output.tool_version),
            runtime_s=runtime_s,
            epoch_start_s=min(starts, default=None),  # for logs without the time of day
            begun_by_s=_begun_by_s(run, output, runtime_s),
            window_values=options.get(
                "log_window_value", "avg" if run.reports_options(section) else None
            ),
            flushes_at_end=any(
                options.get(name, "0") != "0" for name in ("end_fsync", "fsync_on_close")
            ),
        )
        yield section, mine, recording


def _log_count(run: Run, section: Section) -> int:
    for job in run.imported.jobs if run.imported else ():
        if job.section == section.name:
            return job.numjobs
    return int(run.effective(section).get("numjobs", "1"))


def _interval_s(run: Run) -> float:
    """Return the width of fio's windows, which are whole milliseconds."""
    return max(1, round(run.sample_s * 1000)) / 1000


def _log_files(folder: RunFolder, run: Run, output: RunOutput) -> list[Log]:
    """Return a run's logs; a plain one counts where its compression did not come to an end.

    A log has at most a row for each window and direction; of an imported run, for each I/O.
    """
    done = [direction for job in output.jobs for direction in job.directions]
    windows = max((direction.runtime_s for direction in done), default=0.0) / _interval_s(run)
    ios = sum(direction.total_ios or 0 for direction in done) if run.imported else 0
    rows = _DIRECTIONS * (windows if done else MAX_WINDOWS) + ios
    logs: dict[tuple[str, int], Log] = {}
    # Plain logs last: the later of two replaces the earlier.
    for path in sorted(
        folder.path.iterdir(), key=lambda path: (plain_name(path) == path.name, path)
    ):
        key = parse_log_name(plain_name(path))
        if key is not None:
            row_bytes = _HISTOGRAM_BYTES if key[0] == "clat_hist" else _ROW_BYTES
            opened = partial(open_log, path, max_bytes=int(_FREE_LOG_BYTES + rows * row_bytes))
            logs[key] = Log(*key, name=str(path), open=opened)
    return list(logs.values())


def _begun_by_s(run: Run, output: RunOutput, runtime_s: float | None) -> float | None:
    """Return an instant at which I/O had begun: fio reports its end with its result.

    The result of several hosts has the time at which fio connected to them, by another clock.
    """
    is_of_client = run.imported is not None and bool(run.imported.hostname)
    if output.ended_utc_s is None or runtime_s is None or is_of_client:
        return None
    # Old versions report whole seconds only, truncated.
    cut_s = 1.0 if output.ended_utc_s.is_integer() else 0.0
    return output.ended_utc_s + cut_s - runtime_s


def log_share(series: DirectionSeries, total_ios: object) -> float | None:
    """Return the I/Os of the series as a share of the result's; None if either is unknown."""
    if not isinstance(total_ios, int) or not total_ios or np.isnan(series.iops).any():
        return None
    return float(series.iops.sum() * _width_s(series) / total_ios)


def _width_s(series: DirectionSeries) -> float:
    return float(series.t_s[1] - series.t_s[0] if len(series.t_s) > 1 else series.t_s[0])


def is_false(logs: SectionSeries, series: DirectionSeries, share: float) -> bool:
    """Return whether a series contradicts the result, although all its lines could be read."""
    is_long = len(series.t_s) >= _MIN_WINDOWS
    is_too_much = len(series.t_s) > 1 and share - 1 > _MAX_MISSING_SHARE
    return not logs.bad_rows and (is_too_much or (is_long and abs(share - 1) > _MAX_MISSING_SHARE))


def without_impossible_latencies(
    series: DirectionSeries, longest_s: float
) -> tuple[DirectionSeries, str]:
    """Return a series without latencies longer than the run, and a remark on them."""
    longest_s = max(longest_s, float(series.t_s[-1]))
    bound_s, largest_s = longest_latency_s(longest_s), 0.0
    kept: dict[str, Any] = {}
    for name in _LATENCIES:
        values = getattr(series, name)
        if (is_wrong := values > bound_s).any():
            largest_s = max(largest_s, float(values[is_wrong].max()))
            kept[name] = np.where(is_wrong, np.nan, values)
    if not kept:
        return series, ""
    remark = f"logs with a latency of {largest_s:,.0f} s in a run of {longest_s:,.0f} s"
    return replace(series, **kept), remark


def while_all_ran(series: DirectionSeries) -> Row:
    """Return the spread of the summed rates of several jobs, and their means while all ran.

    Means are left out where the jobs ended together: then fio's own rates are right.
    """
    running = series.jobs_running[~np.isnan(series.jobs_running)]
    whole = series.jobs_running == running.max(initial=0)
    if not len(running):
        whole = np.ones(len(series.t_s), dtype=np.bool_)
    count = int(np.count_nonzero(whole))
    rates = {
        name: values
        for name in ("iops", "bw_bytes_per_s")
        if not np.isnan(values := getattr(series, name)[whole]).any()
    }
    columns: Row = {}
    if "iops" in rates and count > 1:
        iops = rates["iops"]
        columns = {
            "iops_min": float(iops.min()),
            "iops_max": float(iops.max()),
            "iops_stddev": float(iops.std(ddof=1)),
        }
    if len(running) - count < max(_MIN_UNEVEN_INTERVALS, (1 - MIN_TOGETHER) * len(running)):
        return columns
    columns |= {name: fmean(values.tolist()) for name, values in rates.items()}
    weights = np.where(np.isnan(series.lat_mean_s), 0.0, series.iops)[whole]
    if weights.sum() > 0:
        columns[COMMON_MEAN] = float(np.nansum(series.lat_mean_s[whole] * weights) / weights.sum())
    return {"parallel_s": count * _width_s(series), **columns}


def series_block(identity: Mapping[str, object], series: DirectionSeries) -> Block:
    """Return the rows of the series frame for one direction of a section."""
    utc = np.full(len(series.t_s), None, dtype=object)
    if series.utc_s is not None:
        utc[:] = [utc_at(instant) for instant in series.utc_s.tolist()]
    return Block(
        {**identity, "direction": series.direction.value},
        {"t_s": series.t_s, "utc": utc, **{name: getattr(series, name) for name in _MEASURED}},
    )
