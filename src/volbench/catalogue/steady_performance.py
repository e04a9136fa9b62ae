"""Performance of each run once it was steady.

The mean of a run with `until: steady` includes its climb and is no speed of the volume.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import pandas as pd

from volbench.analyse.frames.job_frames import measured
from volbench.model.frames.metadata import NOT_SET

# Columns that `with_steady` adds to rows of the summary
STEADY = STEADY_IOPS, STEADY_BW = "steady_iops", "steady_bw_bytes_per_s"
BURST = 1.2  # A burst is at least this much above the steady rate; less is noise

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
    """Return the steady rates of each finished measured run.

    Directions are added up. Where a run was steady, or became so, ``iops`` is the median of the
    steady stretch at its end and ``bw_bytes_per_s`` the same times the mean size of its I/Os;
    elsewhere they are the means of the whole run, and ``steady`` is False.

    Args:
        frames: ``summary``, ``verdicts``, ``series`` and ``device``.

    Returns:
        `COLUMNS`: ``burst_iops`` is the median before the steady stretch, where that is a fifth
        above it (NaN for no burst); ``steal_percent`` the mean of the run (NaN when not sampled).
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
    by_direction = own.groupby("direction")[["iops", "bw_bytes_per_s"]].sum()
    keys = [(run, direction) for direction in by_direction.index]
    judged = verdicts.reindex(pd.MultiIndex.from_tuples(keys))
    levels = judged["steady_iops"].astype("float64")
    steady = bool(levels.notna().all())
    iops = levels if steady else by_direction["iops"].astype("float64")
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
    """Return the rate before the steady stretch, where it was a burst."""
    if series is None:
        return math.nan
    from_s = float(judged["steady_from_s"].astype("float64").max())
    block_s = float(judged["block_s"].astype("float64").max())
    before = series[series["t_s"] < from_s].groupby("t_s")["iops"].sum()
    if before.empty or from_s < block_s:
        return math.nan
    rate = float(before.median())
    return rate if rate >= BURST * steady else math.nan


def with_steady(rows: pd.DataFrame, verdicts: pd.DataFrame) -> pd.DataFrame:
    """Add the steady rates to rows of the summary.

    Returns:
        The rows with `STEADY_IOPS` and `STEADY_BW` (bytes a second): the median of the steady
        stretch at the end, and that times the mean size of an I/O. NaN where a direction was not
        shown to be steady in the end, or where several fio sections share one verdict.
    """
    keys = ["run", "direction"]
    levels = verdicts.drop_duplicates(keys).set_index(keys)["steady_iops"].astype("float64")
    index = pd.MultiIndex.from_frame(rows[keys])
    alone = ~rows.duplicated(keys, keep=False).to_numpy()
    level = levels.reindex(index).where(alone).to_numpy()
    share = level / rows["iops"].astype("float64").to_numpy()
    bandwidth = share * rows["bw_bytes_per_s"].astype("float64").to_numpy()
    return rows.assign(**{STEADY_IOPS: level, STEADY_BW: bandwidth})


def steadiness_remarks(rows: pd.DataFrame, columns: Sequence[str]) -> list[str]:
    """Return remarks on missing steady rates, and on means that include a climb.

    Args:
        rows: with their ``side``, and ``until`` where it is known.
    """
    steady = [name for name in columns if name in STEADY]
    remarks = []
    for side, part in rows.groupby("side", sort=False) if steady else ():
        lost = part[part[steady].isna().any(axis=1)]["run"].nunique()
        if lost:
            runs = part["run"].nunique()
            remarks.append(f"{side}: {lost} of {runs} runs not shown to be steady, left out")
    if len(steady) < len(columns) and _has_climbs(rows):
        remarks.append(
            "means and percentiles of runs with until: steady include the climb to it;"
            f" --metric {STEADY_IOPS} leaves it out"
        )
    return remarks


def _has_climbs(rows: pd.DataFrame) -> bool:
    return "until" in rows and bool((rows["until"].fillna(NOT_SET) != NOT_SET).any())
