"""Logs that are written down in tests, read with windows of a second."""

import io
import math
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass, fields
from typing import Any

from volbench.fio.logs.direction_series import DirectionSeries
from volbench.fio.logs.log_rows import Log, Recording
from volbench.fio.logs.section_logs import SeriesReading, read_series
from volbench.model.results.result import Direction


@dataclass(frozen=True)
class SeriesPoint:
    """One interval of a series; None for what is unknown."""

    direction: Direction
    t_s: float
    utc_s: float | None
    iops: float | None
    bw_bytes_per_s: float | None
    lat_mean_s: float | None
    lat_p50_s: float | None
    lat_p99_s: float | None
    lat_p999_s: float | None
    lat_max_s: float | None
    clat_mean_s: float | None
    slat_mean_s: float | None
    jobs_running: float | None


def points_of(reading: SeriesReading) -> tuple[SeriesPoint, ...]:
    """Return the intervals of all directions one by one."""
    return tuple(
        SeriesPoint(series.direction, *values)
        for series in reading.directions
        for values in zip(*_columns(series), strict=True)
    )


def _columns(series: DirectionSeries) -> list[list[Any]]:
    """Return the columns after the direction, None for what is unknown."""
    columns = [getattr(series, field.name) for field in fields(series)[1:]]
    unknown = [None] * len(series.t_s)
    return [
        unknown
        if column is None
        else [None if math.isnan(value) else value for value in column.tolist()]
        for column in columns
    ]


def log_of(kind: str, clone: int, text: str | bytes) -> Log:
    """Return a log that holds a text."""
    raw = text.encode() if isinstance(text, str) else text
    return Log(kind, clone, f"l_{kind}.{clone}.log", lambda: nullcontext(io.BytesIO(raw)))


def reading_of(
    logs: Sequence[Log], *, runtime_s: float | None = 4.0, version: tuple[int, int] = (3, 33)
) -> SeriesReading:
    """Return what logs with windows of a second hold."""
    recording = Recording(interval_s=1.0, runtime_s=runtime_s, fio_version=version)
    return read_series(logs, recording)


def iops(points: Sequence[SeriesPoint]) -> list[float | None]:
    """Return the IOPS of a series in order."""
    return [point.iops for point in points]
