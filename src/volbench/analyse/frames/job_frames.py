"""Frames for charts and tables, derived from those of the column contract.

Nothing here changes a frame it is given, and NaN stays "unknown".
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import pandas as pd

from volbench.analyse.frames.repeats import (
    BY,
    FOLDER,
    key_of,
    pool,
    separate_series,
)

COLOUR = "colour"  # A column that, where a frame has it, says which rows share a colour in charts

# Numeric options that people sweep, in the order of preference for an x axis
OPTIONS = ("iodepth", "block_bytes", "numjobs")

# What must be equal along a line of a sweep, beside the other options
SETTING = (
    "campaign",
    "profile",
    "host",
    "volume",
    "tool",
    "rw",
    "rwmixread",
    "direction",
    "direct",
    "ioengine",
)

_CONTEXT = (
    "campaign",
    "host",
    "volume",
    "role",
    "tool",
    "rw",
    "direct",
    "block_bytes",
    "iodepth",
    "numjobs",
    "limit_iops",
    "limit_bw_bytes_per_s",
    COLOUR,
)

Floats = npt.NDArray[np.float64]


def measured(summary: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of finished measured runs, in their order, with a new index from 0."""
    kept = (summary["phase"] == "measured") & (summary["status"] == "finished")
    return summary[kept.fillna(value=False)].reset_index(drop=True)


def left_out(summary: pd.DataFrame) -> dict[str, int]:
    """Return the number of unfinished measured runs by state, such as ``failed``."""
    rows = summary[(summary["phase"] == "measured") & (summary["status"] != "finished")]
    states = rows.drop_duplicates("run")["status"].dropna()
    return {str(state): int(count) for state, count in states.value_counts(sort=False).items()}


def of_measured(frame: pd.DataFrame, summary: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of another frame that belong to finished measured runs."""
    return frame[frame["run"].isin(measured(summary)["run"])].reset_index(drop=True)


def labels(frame: pd.DataFrame) -> pd.Series[str]:
    """Return a name for each row: its job, and whatever else distinguishes equal jobs.

    Returns:
        Texts with the frame's index, such as ``test1``, ``oltp/log`` (fio's section) or
        ``test1 on node-2``.
    """
    plain = frame["group"].isna() | (frame["group"] == frame["job"])
    names = frame["job"].where(plain, frame["job"] + "/" + frame["group"].fillna(""))
    if BY in frame:
        return (names + ", " + frame[BY]).where(frame[BY] != names, names).astype(str)
    campaigns = frame.assign(name=names).groupby("name", dropna=False)["campaign"]
    names = names.where(
        campaigns.transform("nunique") < 2, names + ", " + frame["campaign"].fillna("?")
    )
    several = frame.assign(name=names)
    for column, joint in (("profile", " of "), ("host", " on "), ("volume", " on ")):
        found = several.groupby("name", dropna=False)[column].transform("nunique")
        names = names.where(found < 2, names + joint + frame[column].fillna("?"))
    return names.astype(str)


def per_job(
    summary: pd.DataFrame,
    columns: Sequence[str],
    *,
    histogram: pd.DataFrame | None = None,
    kind: str = "lat",
) -> pd.DataFrame:
    """Pool the repeats of each job and direction.

    Args:
        kind: of the latency of percentiles, ``lat`` or ``clat``.

    Returns:
        A row for each combination of `key_of` among the finished measured runs, in the order of
        their first appearance: the key, ``label``, the options and limits of the job, and the
        columns of `pool`.
    """
    rows = measured(summary)
    rows["label"] = labels(rows)
    key = key_of(rows)
    groups = rows.groupby(key, sort=False, dropna=False)
    pooled = groups[
        ["label", *(name for name in _CONTEXT if name not in key and name in rows)]
    ].first()
    for name in ("campaign", "host", "volume"):
        if name in pooled:  # the first of several would pass for all of them
            pooled[name] = pooled[name].where(groups[name].nunique(dropna=False).le(1))
    values = pool(rows, key, columns, histogram=histogram, kind=kind)
    return pooled.join(values).reset_index()


def latency_column(summary: pd.DataFrame, statistic: str) -> str:
    """Return the latency column that all rows have.

    Total latency is preferred. fio reports percentiles of completion latency only, unless
    ``lat_percentiles`` is set; as soon as one row has only those, they are taken for all.

    Args:
        statistic: such as ``p99`` or ``mean``.

    Returns:
        ``lat_<statistic>_s`` or ``clat_<statistic>_s``.
    """
    rows = summary[summary["direction"] != "sync"]  # fio reports only total latency for these
    total, completion = f"lat_{statistic}_s", f"clat_{statistic}_s"
    lacking = rows[completion].notna() & rows[total].isna()
    return completion if lacking.any() else total


def with_latencies(summary: pd.DataFrame, statistics: Sequence[str]) -> tuple[pd.DataFrame, str]:
    """Add a column for each statistic, all of one kind of latency.

    Args:
        statistics: such as ``("p50", "p99", "max")``. Percentiles decide the kind, if there are
            any: means and extremes are reported even where percentiles are not.

    Returns:
        The frame with float columns named like the statistics, in seconds, and the kind: ``lat``
        or ``clat``. Rows of fsync always hold total latency, the only kind fio reports for them.
    """
    rows = measured(summary)
    deciding = [name for name in statistics if name.startswith("p")] or statistics[:1]
    completion = any(latency_column(rows, name).startswith("clat_") for name in deciding)
    kind = "clat" if completion else "lat"
    added = summary.copy()
    sync = added["direction"] == "sync"
    for name in statistics:
        chosen = added[f"{kind}_{name}_s"]
        added[name] = chosen.where(~sync, added[f"lat_{name}_s"]).astype("float64")
    return added, kind


def swept_options(summary: pd.DataFrame) -> list[str]:
    """Return the options that a campaign sweeps, the one with most values first.

    An option is swept when jobs that are equal in everything else have at least three values of
    it, or at least two in two thirds of such sets of jobs. (Two values in some sets come about by
    chance in any list of unlike jobs; requiring all sets would fail with a single failed run.)

    Returns:
        Names out of `OPTIONS`; empty when nothing is swept.
    """
    rows = measured(summary)
    rows = rows[rows["direction"] != "sync"]
    most: dict[str, int] = {}
    for option in OPTIONS:
        values = _values_per_line(rows.dropna(subset=[option]), option)
        if len(values) and (values.max() >= 3 or (values >= 2).mean() >= 2 / 3):
            most[option] = int(values.max())
    return sorted(most, key=lambda option: -most[option])


def sweep(
    summary: pd.DataFrame,
    option: str,
    columns: Sequence[str],
    *,
    histogram: pd.DataFrame | None = None,
    kind: str = "lat",
) -> pd.DataFrame:
    """Return the points along a swept option.

    Returns:
        A row for each combination of `SETTING` and `OPTIONS` on a line of at least two
        values, ordered by `option`: those columns, the limits, ``line`` (number of the line, from
        0, in the order of appearance) and what `pool` returns. Lines that cannot be
        distinguished are left out.
    """
    return _lines_of(_swept(summary, [option]), [option], columns, histogram, kind)


def grid(summary: pd.DataFrame, options: tuple[str, str], columns: Sequence[str]) -> pd.DataFrame:
    """Return the points of the grids over two swept options.

    Returns:
        As `sweep`, but ``line`` numbers the grids: sets of jobs, equal in everything else, in
        which both options have at least two values. Points may be missing from a grid.
    """
    return _lines_of(_swept(summary, list(options)), list(options), columns, None, "lat")


def inseparable(summary: pd.DataFrame, options: Sequence[str]) -> str:
    """Return a sentence on jobs that a sweep leaves out, because a point would mix them.

    They are equal in all that a line shows, and are no repeats of each other. Empty for none.
    """
    rows = _swept(summary, options)
    names = list(dict.fromkeys(labels(rows)[rows["line"] < 0]))
    if not names:
        return ""
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return (
        f"not drawn: {', '.join(names[:3])}{more} differ in nothing that a line shows and are no"
        " repeats; choose with --where, or tell them apart with --by"
    )


def _swept(summary: pd.DataFrame, options: Sequence[str]) -> pd.DataFrame:
    """Return the rows on lines along options, with ``line``; -1 where things would be mixed."""
    rows = measured(summary).dropna(subset=list(options))
    rows = rows[rows["direction"] != "sync"].reset_index(drop=True)
    rows = separate_series(rows, key_of(rows, _fixed(*options)), options)
    lines = rows.groupby("line", sort=False)[list(options)]
    return rows[(lines.transform("nunique") >= 2).all(axis=1)]


def _lines_of(
    rows: pd.DataFrame,
    options: list[str],
    columns: Sequence[str],
    histogram: pd.DataFrame | None,
    kind: str,
) -> pd.DataFrame:
    """Return pooled points of lines."""
    rows = rows[rows["line"] >= 0]
    rows = rows.assign(line=pd.factorize(rows["line"])[0])
    key = ["line", *key_of(rows, _fixed(*options)), FOLDER, "size_bytes", *options]
    limits = rows.groupby(key, sort=False, dropna=False)[["limit_iops", "limit_bw_bytes_per_s"]]
    pooled = pool(rows, key, columns, histogram=histogram, kind=kind)
    points = limits.first().join(pooled).reset_index()
    return points.sort_values(["line", *options], ignore_index=True)


def keep_extremes(x: Floats, y: Floats, *, buckets: int = 1000) -> tuple[Floats, Floats]:
    """Thin out a line to the minimum and maximum of each bucket, so no spike is lost.

    Args:
        y: length n; NaN leaves a gap, which stays if it fills a bucket.
        buckets: how many; at most two points are kept for each.

    Returns:
        The kept points in their order, or all of them when there are few.
    """
    if len(x) <= 2 * buckets:
        return x, y
    edges = np.linspace(0, len(x), buckets + 1).astype(int)
    low, high = np.where(np.isnan(y), np.inf, y), np.where(np.isnan(y), -np.inf, y)
    kept: set[int] = set()
    for first, last in pairwise(edges):
        kept.add(int(first + low[first:last].argmin()))
        kept.add(int(first + high[first:last].argmax()))
    index = np.array(sorted(kept))
    return x[index], y[index]


def _fixed(*options: str) -> list[str]:
    """Return the columns that are equal along a line or over a grid of options."""
    return [*SETTING, *(name for name in OPTIONS if name not in options)]


def _values_per_line(rows: pd.DataFrame, option: str) -> pd.Series[int]:
    """Return the number of values of an option in each line."""
    fixed = key_of(rows, _fixed(option))
    return rows.groupby(fixed, sort=False, dropna=False)[option].nunique()


def plain_rows(frame: pd.DataFrame) -> list[dict[str, object]]:
    """Return the rows of a frame as plain Python values, None where a value is missing."""
    # Column by column: pandas takes many times as long over rows of many types at once.
    columns = {str(name): _plain(column) for name, column in frame.items()}
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def _plain(column: pd.Series) -> list[object]:
    """Return values, of numpy's types those of Python."""
    values, known = column.tolist(), (~column.array.isna()).tolist()
    return [
        (value.item() if isinstance(value, np.generic) else value) if is_known else None
        for value, is_known in zip(values, known, strict=True)
    ]
