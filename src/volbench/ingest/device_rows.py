"""Rows of the device frame, from the samples taken during a run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path

from volbench.analyse.frames.kernel_counters import Sample, SampleReader, disk_rates, host_rates
from volbench.model.results.provenance import VolumeFacts
from volbench.model.results.result import RunOutput
from volbench.store.layout import COMPRESSED, RunFolder
from volbench.store.log_files import open_log
from volbench.store.parquet_tables import Block

Row = dict[str, object]

VOLUME, BACKING = "volume", "backing"

_SHORT = 0.5  # A last interval below this share of the one before it is joined to it


@dataclass(frozen=True)
class Samples:
    """Samples taken during a run."""

    taken: Sequence[Sample]  # in order
    page_bytes: int  # of the host
    marks: Sequence[str]  # volbench's own lines between them


def read_samples(folder: RunFolder) -> Samples:
    """Return the samples taken during a run; empty if there are none."""
    reader = SampleReader()
    path = _log_path(folder)
    if path is None:
        return Samples((), reader.page_bytes, ())
    taken: list[Sample] = []
    with open_log(path) as stream:
        for line in stream:
            taken += reader.feed(line.decode("utf-8", errors="replace"))
    return Samples(taken, reader.page_bytes, reader.marks)


def _log_path(folder: RunFolder) -> Path | None:
    """Return the log, the plain one where its compression did not come to an end."""
    plain = folder.samples
    packed = plain.with_name(plain.name + COMPRESSED)
    return next((path for path in (plain, packed) if path.exists()), None)


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
    start = _last_before_start(samples.taken)
    origin_s = start.uptime_s
    if begun_utc_s is not None:
        origin_s += begun_utc_s - start.utc_s
    points = _without_stub(samples.taken)
    for level, device in _devices(facts):
        known = [sample for sample in points if not device or device in sample.disks]
        for before, now in pairwise(known):
            row = _row(before, now, device, page_bytes=samples.page_bytes)
            if row is not None:
                yield {
                    "device": device or None,
                    "level": level,
                    "t_s": now.uptime_s - origin_s,
                    **row,
                }


def begun_utc_s(
    output: RunOutput | None, series: Iterable[Block], *, started_utc: str | None
) -> float | None:
    """Return when a run's measured I/O began, in seconds since the epoch; None if it is unknown.

    It is that of the series, so that both are aligned; without one fio 3.36 and later report it.
    Before, it is the time of fio's result less its longest runtime. For dd, and where fio reported
    nothing, it is when the process was started.

    Args:
        output: of the run, if it could be read.
    """
    starts: list[float] = [
        _epoch(utc) - t_s
        for block in series
        for utc, t_s in zip(block.columns["utc"], block.columns["t_s"].tolist(), strict=True)
        if utc is not None
    ]
    starts += [job.start_utc_s for job in output.jobs if job.start_utc_s] if output else []
    if starts:
        return min(starts)
    started_s = None if started_utc is None else _epoch(started_utc)
    if output is None or output.ended_utc_s is None:
        return started_s
    runtimes = [direction.runtime_s for job in output.jobs for direction in job.directions]
    begun_s = output.ended_utc_s - max(runtimes, default=0.0)
    return begun_s if started_s is None else max(begun_s, started_s)


def _epoch(utc: str) -> float:
    return datetime.fromisoformat(utc).timestamp()


def _devices(facts: VolumeFacts | None) -> list[tuple[str, str]]:
    if facts is None or not facts.device:
        return [(VOLUME, "")]
    return [(VOLUME, facts.device), *((BACKING, name) for name in facts.backing)]


def _last_before_start(taken: Sequence[Sample]) -> Sample:
    before = [sample for sample in taken if not sample.after_start]
    return before[-1] if before else taken[0]


def _without_stub(taken: Sequence[Sample]) -> list[Sample]:
    """Return the samples without the last but one, when the last came right after it."""
    if len(taken) > 3:
        usual_s = taken[-2].uptime_s - taken[-3].uptime_s
        if taken[-1].uptime_s - taken[-2].uptime_s < _SHORT * usual_s:
            return [*taken[:-2], taken[-1]]
    return list(taken)


def _row(before: Sample, now: Sample, device: str, *, page_bytes: int) -> Row | None:
    interval_s = now.uptime_s - before.uptime_s
    if interval_s <= 0:
        return None
    row: Row = {
        "utc": utc_text(now.utc_s),
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
    return row


def utc_text(seconds: float) -> str:
    """Return seconds since the epoch as ISO 8601 with Z, to the millisecond."""
    text = datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds")
    return text.replace("+00:00", "Z")
