"""Counters rebuilt from the rates of the device frame: running sums in the host's time.

A monitoring system wants counters that only grow, as the kernel has them; the frame holds what
happened in each interval. Clients of one host look at the same counters, so their rows overlap:
each moment is counted once.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

OVERLAP_S = 0.05
"""Ends of intervals are told to a millisecond by two clocks; a smaller step is no gap."""

_LEAST_S = 0.002


def epoch_s(utc: pd.Series) -> pd.Series[float]:
    """Return seconds since the epoch of texts such as ``2026-01-01T00:00:00.000Z``; NaN for none.

    Args:
        utc: texts in ISO 8601 with Z, with fractions of a second or without.
    """
    moments = pd.to_datetime(utc, format="ISO8601", utc=True)
    return (moments - pd.Timestamp(0, tz="UTC")).dt.total_seconds()


def once_each(device: pd.DataFrame, *, by: list[str]) -> pd.DataFrame:
    """Choose the rows that tell of time no earlier row told of.

    Args:
        device: the device frame, or one with its columns ``utc`` and ``interval_s``.
        by: columns that name what was counted, such as host and device.

    Returns:
        The rows in the order of `by` and time, with ``begin_s`` and ``end_s`` (seconds since the
        epoch), ``new_s`` (the part of the interval that is new, above 0) and ``opens`` (whether
        it was not recorded right before: a counter needs its value at ``begin_s`` too).
    """
    rows = device.assign(end_s=epoch_s(device["utc"])).dropna(subset=["end_s", "interval_s"])
    rows = rows.assign(begin_s=rows["end_s"] - rows["interval_s"])
    rows = rows.sort_values([*by, "end_s"], ignore_index=True, kind="stable")
    covered = rows.groupby(by, dropna=False)["end_s"].cummax()
    covered = covered.groupby([rows[name] for name in by], dropna=False).shift()
    opens = covered.isna() | (rows["begin_s"] > covered + OVERLAP_S)
    meets = (rows["begin_s"] - covered).abs() <= OVERLAP_S
    rest = (rows["end_s"] - covered).clip(lower=0)
    rows = rows.assign(opens=opens, new_s=np.where(opens | meets, rows["interval_s"], rest))
    return rows[rows["new_s"] > _LEAST_S].reset_index(drop=True)


def running_sum(
    rows: pd.DataFrame, amounts: pd.Series[float], *, by: list[str]
) -> pd.Series[float]:
    """Return how far a counter has come at the end of each row, from 0 before the first.

    Args:
        rows: as `once_each` returns them.
        amounts: what each row adds; NaN adds nothing and stays NaN.
        by: the columns that name the counter.
    """
    sums = amounts.groupby([rows[name] for name in by], dropna=False).cumsum()
    return sums.round(6)  # so that whole counts, once divided by a time, are whole again
