"""How fast each Run was once it was steady: frames enter, a row for each Run leaves."""

from __future__ import annotations

import math
from collections.abc import Mapping

import pandas as pd

from volbench.analyse.frames import measured

BURST = 1.2
"""A burst is at least this much above the steady rate; less is noise."""

COLUMNS = (
    "run",
    "job",
    "host",
    "volume",
    "steady",
    "iops",
    "bw_bytes_per_s",
    "burst_iops",
    "steal_percent",
)


def performance(frames: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """Return what each finished measured Run reached.

    Directions are added up. Where a Run was judged steady, ``iops`` is the median of its steady
    window and ``bw_bytes_per_s`` the same times the mean size of its I/Os; elsewhere they are the
    means of the whole Run, and ``steady`` is False.

    Args:
        frames: ``summary``, ``verdicts``, ``series`` and ``device``.

    Returns:
        `COLUMNS`: ``burst_iops`` is the median before the steady window, where that is a fifth
        above it (NaN for no burst); ``steal_percent`` the mean of the Run (NaN when not sampled).
    """
    summary = measured(frames["summary"])
    summary = summary[summary["direction"] != "sync"]
    verdicts = frames["verdicts"].drop_duplicates(["run", "direction"])
    verdicts = verdicts.set_index(["run", "direction"])
    series = dict(iter(frames["series"].groupby("run", sort=False)))
    steal = frames["device"].groupby("run")["steal_percent"].mean()
    rows = [
        _row(str(run), own, verdicts, series.get(run), float(steal.get(run, math.nan)))
        for run, own in summary.groupby("run", sort=False)
    ]
    return pd.DataFrame(rows, columns=list(COLUMNS))


def _row(
    run: str,
    own: pd.DataFrame,
    verdicts: pd.DataFrame,
    series: pd.DataFrame | None,
    steal_percent: float,
) -> dict[str, object]:
    """Return the row of one Run."""
    by_direction = own.groupby("direction")[["iops", "bw_bytes_per_s"]].sum()
    keys = [(run, direction) for direction in by_direction.index]
    judged = verdicts.reindex(pd.MultiIndex.from_tuples(keys))
    steady = bool((judged["verdict"] == "steady").all())
    iops = judged["iops"].astype("float64") if steady else by_direction["iops"].astype("float64")
    means = by_direction["bw_bytes_per_s"].astype("float64") / by_direction["iops"]
    first = own.iloc[0]
    total = float(iops.sum())
    return {
        "run": run,
        "job": first["job"],
        "host": first["host"],
        "volume": first["volume"],
        "steady": steady,
        "iops": total,
        "bw_bytes_per_s": float((iops.to_numpy() * means.fillna(0.0).to_numpy()).sum()),
        "burst_iops": _burst(series, judged, total) if steady else math.nan,
        "steal_percent": steal_percent,
    }


def _burst(series: pd.DataFrame | None, judged: pd.DataFrame, steady: float) -> float:
    """Return the rate before the steady window, where it was a burst."""
    if series is None:
        return math.nan
    from_s = float(judged["from_s"].astype("float64").max())
    block_s = float(judged["block_s"].astype("float64").max())
    before = series[series["t_s"] < from_s].groupby("t_s")["iops"].sum()
    if before.empty or from_s < block_s:
        return math.nan
    rate = float(before.median())
    return rate if rate >= BURST * steady else math.nan
