"""Arithmetic on rates over intervals: medians, resampling onto one time axis, running counters.

A monitoring system wants counters that only grow, as the kernel has them; the device frame holds
the change in each interval. Clients of one host sample the same counters, so their rows overlap:
each moment is counted once.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
import pandas as pd

Floats = npt.NDArray[np.float64]
_EPOCH = pd.Timestamp(0, tz="UTC")
_SERIES = ["run", "group", "direction"]
# Share of an interval from which a missing end is a lost interval and not rounding.
# Noticed by: test_boot_storm.py::test_ios_missing_at_the_end_of_logs_are_taken_from_the_total
_MIN_TAIL = 0.1
# Ends of intervals are recorded to a millisecond by two clocks; a smaller step is not a gap.
# Noticed by: test_counter_series.py
MAX_OVERLAP_S = 0.05
# Part of an interval that is new to a counter: less is rounding of two stamps.
# Noticed by: test_counter_series.py
_MIN_NEW_S = 0.002


def median(values: Floats) -> float:
    """Return the median; NaN for no values, and where one is NaN.

    It equals `numpy.median`, whose checks take ten times as long as sorting a hundred values does.
    """
    ordered = np.sort(values)  # NaN comes last
    count = len(ordered)
    if not count or math.isnan(ordered[-1]):
        return math.nan
    half = count // 2
    if count % 2:
        return float(ordered[half])
    return float((ordered[half - 1] + ordered[half]) / 2)


def row_medians(table: Floats) -> Floats:
    """Return the median of each row of a table that has columns; NaN where one of it is NaN."""
    ordered, columns = np.sort(table, axis=1), table.shape[1]
    medians: Floats = (ordered[:, (columns - 1) // 2] + ordered[:, columns // 2]) / 2
    return np.where(np.isnan(ordered[:, -1]), math.nan, medians)


def median_step(t_s: Floats) -> float:
    """Return the median distance of neighbours; NaN for fewer than two values."""
    return median(t_s[1:] - t_s[:-1])


def interval_of(t_s: Floats) -> float:
    """Return the length of the intervals that end at some times, of which there is at least one."""
    return median_step(t_s) if len(t_s) > 1 else float(t_s[0])


def seconds(utc: pd.Series[str]) -> pd.Series[float]:
    """Return the instants of a frame in seconds since the epoch."""
    return (pd.to_datetime(utc, utc=True, format="ISO8601") - _EPOCH) / pd.Timedelta(seconds=1)


def spread_rows(rows: pd.DataFrame, column: str, edges_s: Floats) -> Floats:
    """Return the mean of a rate in each interval of an axis, as `spread` does."""
    ordered = rows.sort_values("end_s")
    return spread(
        _floats(ordered, "end_s"), _floats(ordered, "width_s"), _floats(ordered, column), edges_s
    )


def covered_rows(rows: pd.DataFrame, edges_s: Floats) -> Floats:
    """Return the share of each interval of an axis that any row covers, as `covered` does."""
    ordered = rows.sort_values("end_s")
    return covered(_floats(ordered, "end_s"), _floats(ordered, "width_s"), edges_s)


def _floats(rows: pd.DataFrame, column: str) -> Floats:
    return rows[column].to_numpy(dtype=np.float64)


def spread(ends_s: Floats, widths_s: Floats, rates: Floats, edges_s: Floats) -> Floats:
    """Return the mean rate in each interval of an axis; nothing is lost and nothing is made up.

    What happened in an interval is taken to be even within it, and counts in each interval of the
    axis by the part within it. Where there is no interval the rate is 0.

    Args:
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
    per_second: Floats = np.diff(np.interp(edges_s, corners, sums)) / np.diff(edges_s)
    return per_second


def covered(ends_s: Floats, widths_s: Floats, edges_s: Floats) -> Floats:
    """Return the share of each interval of an axis that the intervals cover, 0 to 1.

    Args:
        edges_s: of the axis, ascending, length m + 1.
    """
    return spread(ends_s, widths_s, np.ones(len(ends_s)), edges_s)


def _corners(ends_s: Floats, widths_s: Floats) -> Floats:
    """Return start and end of each interval in turn, never going back."""
    corners = np.empty(2 * len(ends_s))
    corners[::2], corners[1::2] = ends_s - widths_s, ends_s
    increasing: Floats = np.maximum.accumulate(corners)
    return increasing


def on_clock(series: pd.DataFrame, summary: pd.DataFrame, *, rate: str, total: str) -> pd.DataFrame:
    """Return intervals with ``end_s``, seconds since the epoch, and ``width_s``.

    fio before 3.37 loses the last interval of its logs (its pull request 1782). What the series
    lack at their ends to the total that fio reports is added as an interval of its own.

    Args:
        series: rows of the series frame of one campaign, all with ``utc``.
        rate: column of the series, such as ``iops``.
        total: column of the summary that it adds up to, such as ``total_ios``.
    """
    rows = series.assign(end_s=seconds(series["utc"]), width_s=_widths(series))
    return pd.concat([rows, _tails(rows, summary, rate, total)], ignore_index=True)


def _tails(rows: pd.DataFrame, summary: pd.DataFrame, rate: str, total: str) -> pd.DataFrame:
    """Return the end of each series that the logs leave out: the remainder of the total."""
    done = (rows[rate] * rows["width_s"]).groupby([rows[name] for name in _SERIES]).sum()
    last = rows.sort_values("end_s").drop_duplicates(_SERIES, keep="last")
    last = last.merge(done.rename("done").reset_index(), on=_SERIES)
    last = last.merge(summary[[*_SERIES, total, "runtime_s"]], on=_SERIES)
    lost = last[total].astype("float64") - last["done"]
    rest_s = last["runtime_s"] - last["t_s"]
    kept = (lost > 0) & (rest_s > _MIN_TAIL * last["width_s"])
    tails = last.assign(end_s=last["end_s"] + rest_s, width_s=rest_s, **{rate: lost / rest_s})
    return tails[kept.fillna(value=False)][list(rows.columns)]


def _widths(series: pd.DataFrame) -> pd.Series[float]:
    steps = series.groupby(_SERIES, sort=False, dropna=False)["t_s"]
    usual = steps.transform(lambda times: times.diff().median())
    return usual.fillna(series["t_s"]).astype("float64")


def once_each(device: pd.DataFrame, *, by: list[str]) -> pd.DataFrame:
    """Choose the rows that cover time no earlier row covers.

    Args:
        device: the device frame, or one with its columns ``utc`` and ``interval_s``.

    Returns:
        The rows in the order of `by` and time, with ``begin_s`` and ``end_s`` (seconds since the
        epoch), ``new_s`` (the part of the interval that is new, above 0) and ``opens`` (whether
        it was not recorded right before: a counter needs its value at ``begin_s`` too).
    """
    rows = device.assign(end_s=seconds(device["utc"])).dropna(subset=["end_s", "interval_s"])
    rows = rows.assign(begin_s=rows["end_s"] - rows["interval_s"])
    rows = rows.sort_values([*by, "end_s"], ignore_index=True, kind="stable")
    covered = rows.groupby(by, dropna=False)["end_s"].cummax()
    covered = covered.groupby([rows[name] for name in by], dropna=False).shift()
    opens = covered.isna() | (rows["begin_s"] > covered + MAX_OVERLAP_S)
    meets = (rows["begin_s"] - covered).abs() <= MAX_OVERLAP_S
    rest = (rows["end_s"] - covered).clip(lower=0)
    rows = rows.assign(opens=opens, new_s=np.where(opens | meets, rows["interval_s"], rest))
    return rows[rows["new_s"] > _MIN_NEW_S].reset_index(drop=True)


def running_sum(
    rows: pd.DataFrame, amounts: pd.Series[float], *, by: list[str]
) -> pd.Series[float]:
    """Return the value of a counter at the end of each row, from 0 before the first.

    Args:
        amounts: what each row adds; NaN adds nothing and stays NaN.
    """
    sums = amounts.groupby([rows[name] for name in by], dropna=False).cumsum()
    return sums.round(6)  # so that whole counts, once divided by a time, are whole again
