"""Windows of equal width into which a run is divided, and arrays by window."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from volbench.fio.logs.log_rows import Ints

Floats = npt.NDArray[np.float64]
_Array = TypeVar("_Array", Ints, Floats)

_OLD_WINDOW_S = 0.5  # Minimum window of bw and iops logs before 2.21, the default of bwavgtime


@dataclass(frozen=True)
class Recording:
    """How the logs of a section were recorded."""

    # fio's log_avg_msec and log_hist_msec; for per-I/O logs the width of the points
    interval_s: float
    fio_version: tuple[int, int]  # of the fio that wrote them
    runtime_s: float | None = None  # duration of I/O; None to end with the last row
    epoch_start_s: float | None = None  # start of I/O in seconds since the epoch, if known
    # an instant by which I/O had started: if rows with absolute times are missing at the end of the
    # run, then it stalled at the start
    begun_by_s: float | None = None
    # fio's log_window_value; None when unknown; the rows usually reveal it
    window_values: str | None = None


@dataclass(frozen=True)
class Windows:
    """Windows of equal width from the start of a run."""

    interval_s: float  # their width
    start_ms: float  # start of I/O in the time of the logs
    fio_version: tuple[int, int]  # of the fio that wrote them

    def at(self, times_ms: Ints) -> Floats:
        """Return times of the logs as fractional windows since the start."""
        width_ms = round(self.interval_s * 1000, 6)
        at: Floats = np.maximum(0.0, (times_ms - self.start_ms) / width_ms)
        return at

    def holding(self, times_ms: Ints) -> Ints:
        """Return the window in which each I/O completed."""
        return self.at(times_ms).astype(np.int64)

    def nearest(self, at: Floats) -> Ints:
        """Return the window whose end is nearest to each time in windows."""
        return np.maximum(0, np.floor(at + 0.5).astype(np.int64) - 1)

    @property
    def per_second(self) -> float:
        """Return the number of latency units of the logs in a second."""
        return 1e6 if self.fio_version[0] < 3 else 1e9

    @property
    def rate_span(self) -> int:
        """Return the number of windows that a row of an averaged rate covers."""
        if self.fio_version >= (2, 21):
            return 1
        return max(1, round(_OLD_WINDOW_S / self.interval_s))


def grown(values: _Array, count: int) -> _Array:
    """Return an array extended to at least `count` windows, with zeros in new ones."""
    if count <= len(values):
        return values
    room = np.zeros(max(count, 2 * len(values)), dtype=values.dtype)
    room[: len(values)] = values
    return room


def fitted(values: _Array, count: int) -> _Array:
    """Return exactly `count` windows, with zeros in missing ones."""
    return grown(values, count)[:count]
