"""The grid of a run: times of logs go in, numbers of windows and sums by window come out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from volbench.fio.logs.log_rows import Ints

Floats = npt.NDArray[np.float64]
_Array = TypeVar("_Array", Ints, Floats)

_OLD_WINDOW_S = 0.5
"""Before 2.21 the windows of bw and iops were never shorter than their default, bwavgtime=500."""


@dataclass(frozen=True)
class Recording:
    """How the logs of a section came to be.

    Attributes:
        interval_s: fio's log_avg_msec and log_hist_msec; also the width of the points when the logs
            hold every I/O.
        fio_version: of the fio that wrote them.
        runtime_s: how long I/O went on; None to end with the last row.
        epoch_start_s: when I/O began, in seconds since the epoch, where that is known.
        begun_by_s: an instant at which it had begun: what rows of absolute times then lack at the
            end of the run was a stall at its start.
        window_values: fio's log_window_value; None when unknown, which the rows mostly tell.
    """

    interval_s: float
    fio_version: tuple[int, int]
    runtime_s: float | None = None
    epoch_start_s: float | None = None
    begun_by_s: float | None = None
    window_values: str | None = None


@dataclass(frozen=True)
class Windows:
    """The grid of a run: windows of one width from its start.

    Attributes:
        interval_s: the width.
        start_ms: the time in the logs at which I/O began.
        fio_version: of the fio that wrote them.
    """

    interval_s: float
    start_ms: float
    fio_version: tuple[int, int]

    def at(self, times_ms: Ints) -> Floats:
        """Return times of the logs in windows since the start."""
        width_ms = round(self.interval_s * 1000, 6)
        at: Floats = np.maximum(0.0, (times_ms - self.start_ms) / width_ms)
        return at

    def holding(self, times_ms: Ints) -> Ints:
        """Return the window in which each I/O ended."""
        return self.at(times_ms).astype(np.int64)

    def nearest(self, at: Floats) -> Ints:
        """Return the window whose end is nearest to each place on the grid."""
        return np.maximum(0, np.floor(at + 0.5).astype(np.int64) - 1)

    @property
    def per_second(self) -> float:
        """Return how many of the logs' units of latency make a second."""
        return 1e6 if self.fio_version[0] < 3 else 1e9

    @property
    def rate_span(self) -> int:
        """Return how many windows one row of an averaged rate covers."""
        if self.fio_version >= (2, 21):
            return 1
        return max(1, round(_OLD_WINDOW_S / self.interval_s))


def grown(values: _Array, count: int) -> _Array:
    """Return an array with room for a count of windows, 0 in those that are new."""
    if count <= len(values):
        return values
    room = np.zeros(max(count, 2 * len(values)), dtype=values.dtype)
    room[: len(values)] = values
    return room


def fitted(values: _Array, count: int) -> _Array:
    """Return exactly this many windows, 0 in those that are missing."""
    return grown(values, count)[:count]
