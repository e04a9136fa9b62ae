"""The series of runs that ran side by side in, their intervals on one clock and to the end out."""

from __future__ import annotations

import pandas as pd

from volbench.analyse.time.resample import seconds

_SAME = ["run", "group", "direction"]
_LEAST_TAIL = 0.1
"""Of an interval, from which an end is a part that is missing and not a rounding."""


def on_clock(series: pd.DataFrame, summary: pd.DataFrame, *, rate: str, total: str) -> pd.DataFrame:
    """Return intervals with ``end_s``, seconds since the epoch, and ``width_s``.

    fio before 3.37 loses the last interval of its logs (its pull request 1782). What the series
    lack at their ends to the total that fio told is added as an interval of its own.

    Args:
        series: rows of the series frame of one campaign, all with ``utc``.
        summary: the summary of the same runs.
        rate: column of the series, such as ``iops``.
        total: column of the summary that it adds up to, such as ``total_ios``.
    """
    rows = series.assign(end_s=seconds(series["utc"]), width_s=_widths(series))
    return pd.concat([rows, _tails(rows, summary, rate, total)], ignore_index=True)


def _tails(rows: pd.DataFrame, summary: pd.DataFrame, rate: str, total: str) -> pd.DataFrame:
    """Return the end of each series that the logs leave out: what is missing to the total."""
    done = (rows[rate] * rows["width_s"]).groupby([rows[name] for name in _SAME]).sum()
    last = rows.sort_values("end_s").drop_duplicates(_SAME, keep="last")
    last = last.merge(done.rename("done").reset_index(), on=_SAME)
    last = last.merge(summary[[*_SAME, total, "runtime_s"]], on=_SAME)
    lost = last[total].astype("float64") - last["done"]
    rest_s = last["runtime_s"] - last["t_s"]
    kept = (lost > 0) & (rest_s > _LEAST_TAIL * last["width_s"])
    tails = last.assign(end_s=last["end_s"] + rest_s, width_s=rest_s, **{rate: lost / rest_s})
    return tails[kept.fillna(value=False)][list(rows.columns)]


def _widths(series: pd.DataFrame) -> pd.Series[float]:
    """Return the length of intervals: the step of the series, or up to its only point."""
    steps = series.groupby(_SAME, sort=False, dropna=False)["t_s"]
    usual = steps.transform(lambda times: times.diff().median())
    return usual.fillna(series["t_s"]).astype("float64")
