"""Rates of intervals of any length and place in, mean rates of the intervals of one axis out."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pandas as pd

Floats = npt.NDArray[np.float64]
_EPOCH = pd.Timestamp(0, tz="UTC")


def seconds(utc: pd.Series[str]) -> pd.Series[float]:
    """Return instants as frames tell them, in seconds since the epoch."""
    return (pd.to_datetime(utc, utc=True, format="ISO8601") - _EPOCH) / pd.Timedelta(seconds=1)


def spread_rows(rows: pd.DataFrame, column: str, edges_s: Floats) -> Floats:
    """Return the mean of a rate in each interval of an axis, as `spread` does.

    Args:
        rows: with ``end_s`` and ``width_s``, in any order.
        column: the rate.
        edges_s: of the axis.
    """
    ordered = rows.sort_values("end_s")
    return spread(
        _floats(ordered, "end_s"), _floats(ordered, "width_s"), _floats(ordered, column), edges_s
    )


def covered_rows(rows: pd.DataFrame, edges_s: Floats) -> Floats:
    """Return which share of each interval of an axis lies in any row, as `covered` does."""
    ordered = rows.sort_values("end_s")
    return covered(_floats(ordered, "end_s"), _floats(ordered, "width_s"), edges_s)


def _floats(rows: pd.DataFrame, column: str) -> Floats:
    return rows[column].to_numpy(dtype=np.float64)


def spread(ends_s: Floats, widths_s: Floats, rates: Floats, edges_s: Floats) -> Floats:
    """Return the mean rate in each interval of an axis; nothing is lost and nothing is made up.

    What happened in an interval is taken to be even within it, and counts in each interval of the
    axis by the part that lies there. Where no interval lies the rate is 0.

    Args:
        ends_s: ends of the intervals, ascending, length n.
        widths_s: their lengths, length n; an interval that would begin before the end of the one
            before it begins there.
        rates: mean rate in each, length n; NaN counts as 0.
        edges_s: of the axis, ascending, length m + 1.

    Returns:
        Rates, length m.
    """
    if not len(ends_s):
        return np.zeros(len(edges_s) - 1)
    corners = _corners(ends_s, widths_s)
    done = np.nan_to_num(rates) * (corners[1::2] - corners[::2])
    # Between two intervals nothing is added; within one it grows evenly.
    sums = np.repeat(np.concatenate([[0.0], np.cumsum(done)]), 2)[1:-1]
    found: Floats = np.diff(np.interp(edges_s, corners, sums)) / np.diff(edges_s)
    return found


def covered(ends_s: Floats, widths_s: Floats, edges_s: Floats) -> Floats:
    """Return which share of each interval of an axis lies in any of the intervals, 0 to 1.

    Args:
        ends_s: as `spread` takes them.
        widths_s: as `spread` takes them.
        edges_s: of the axis, ascending, length m + 1.
    """
    return spread(ends_s, widths_s, np.ones(len(ends_s)), edges_s)


def _corners(ends_s: Floats, widths_s: Floats) -> Floats:
    """Return start and end of each interval in turn, never going back."""
    corners = np.empty(2 * len(ends_s))
    corners[::2], corners[1::2] = ends_s - widths_s, ends_s
    found: Floats = np.maximum.accumulate(corners)
    return found
