"""Logs that are written down in tests, read with windows of a second."""

from __future__ import annotations

import io
from collections.abc import Sequence
from contextlib import nullcontext

from volbench.fio.logs.log_rows import Log
from volbench.fio.logs.section_logs import SeriesReading, read_series
from volbench.fio.logs.time_grid import Recording
from volbench.model.results.result import SeriesPoint


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
