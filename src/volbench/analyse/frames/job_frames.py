"""Frames for charts and tables: one row for each job, sweep or grid, with its repeats pooled.

Only true repeats are pooled: the same workload on the same volume of the same host, in the same
campaign, unless ``--by`` says otherwise. The importer gives results of different folders different
names. Several repeats are shown by their median, as in tables, comparisons and expectations. No
function here changes a frame that it is given, and NaN stays "unknown".
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import pandas as pd

from volbench.analyse.frames.resample import Floats
from volbench.model.frames.columns import LAST_BINS_S, PERCENTILES
from volbench.model.profile.profile_model import Tool
from volbench.units import utc_text

# Identity of a measured thing; its repeats are pooled
KEY = ("campaign", "profile", "host", "volume", "job", "group", "direction")

# A column that, where a frame has it, replaces campaign, profile, host and volume: rows that are
# equal in it are pooled. It holds the value, as text, that rows are to be distinguished by.
BY = "by"


_PLACE = ("campaign", "profile", "host", "volume")
_RUN = ["run", "group", "direction"]
COLOUR = "colour"  # A column that, where a frame has it, says which rows share a colour in charts
COLOUR_PLACE = "colour_place"  # Place of that colour in the palette, among all that results have
_CONTEXT = ("rw", "direct", "block_bytes", "iodepth", "numjobs", COLOUR, COLOUR_PLACE)
# Columns that distinguish equal jobs, and what joins their values to a name
_PLACES = (("campaign", ", "), ("profile", " of "), ("host", " on "), ("volume", " on "))


def key_of(frame: pd.DataFrame, key: Sequence[str] = KEY) -> list[str]:
    """Return the identifying columns: `BY` instead of the places where the frame has it."""
    if BY not in frame:
        return list(key)
    return [BY, *(name for name in key if name not in _PLACE)]


def per_job(summary: pd.DataFrame, columns: Sequence[str]) -> pd.DataFrame:
    """Return the medians of the repeats of each job and direction, in order of appearance.

    Args:
        columns: numbers, of which a row has the median, of ``max`` the maximum; NaN where some of
            the repeats lack one: the p99 of 21 rows does not belong beside that of 147.
    """
    rows = measured(summary)
    floats = rows.assign(label=labels(rows)).astype(dict.fromkeys(columns, "float64"))
    groups = floats.groupby(["label", *key_of(rows)], sort=False, dropna=False)
    pooled = groups[[*columns]].median()
    if "max" in pooled:
        pooled["max"] = groups["max"].max()
    pooled = pooled.where(groups[[*columns]].count().eq(groups.size(), axis=0))
    others = [name for name in _CONTEXT if name in rows and name not in key_of(rows)]
    return groups[others].first().join(pooled).assign(repeats=groups.size()).reset_index()


def merged_percentiles(
    rows: pd.DataFrame, histogram: pd.DataFrame | None, *, kind: str, names: Sequence[str]
) -> pd.DataFrame:
    """Return the percentiles of all I/Os of several rows together, from their added bins.

    Args:
        rows: with ``run``, ``group``, ``direction`` and ``_thing``, a number for each set of rows.
        histogram: latency bins of the runs; None for none.
        kind: of the latency, ``lat``, ``clat`` or ``slat``; fsync and its kin have ``lat`` only.

    Returns:
        A column of seconds for each name, indexed by ``_thing``: sets of several rows that all
        have bins.
    """
    things: dict[int, list[float]] = {}
    several = rows[rows["_thing"].duplicated(keep=False)].reset_index(drop=True)
    if histogram is not None and len(histogram) and len(several):
        places = places_of(histogram, several)
        kept = (places >= 0) & is_of_kind(histogram, kind)
        places = places[kept]
        bins = histogram.loc[kept, ["bin_s", "count"]].assign(
            _thing=several["_thing"].to_numpy()[places]
        )
        known = several.iloc[np.unique(places)].groupby("_thing")["run"].nunique()
        wanted = several.groupby("_thing")["run"].nunique()
        complete = known.index[known.eq(wanted.reindex(known.index))]
        counts = bins.groupby(["_thing", "bin_s"])["count"].sum()
        things = {
            int(str(thing)): percentiles_of_bins(group.droplevel(0), names)
            for thing, group in counts[counts.index.isin(complete, level=0)].groupby(level=0)
        }
    return pd.DataFrame.from_dict(things, orient="index", columns=list(names), dtype="float64")


def percentiles_of_bins(counts: pd.Series, names: Iterable[str]) -> list[float]:
    """Return the midpoint of the first bin that reaches each percentile, as fio does.

    It is NaN in fio's last bin, which has no end.

    Args:
        counts: I/Os by the midpoint of their bin in seconds, ascending.
    """
    reached = counts.cumsum().to_numpy(dtype=float) / float(counts.sum())
    shares = [PERCENTILES[name] / 100 - 1e-12 for name in names]
    middles = [float(counts.index[place]) for place in np.searchsorted(reached, shares)]
    return [math.nan if round(middle, 9) in LAST_BINS_S else middle for middle in middles]


def is_of_kind(bins: pd.DataFrame, kind: str) -> npt.NDArray[np.bool_]:
    """Return which latency bins are of a kind; fsync and its kin have ``lat`` only."""
    is_sync = bins["direction"].eq("sync") & bins["latency"].eq("lat")
    chosen = bins["latency"].eq(kind) | is_sync
    return chosen.fillna(value=False).to_numpy(dtype=bool)


def places_of(frame: pd.DataFrame, rows: pd.DataFrame) -> npt.NDArray[np.intp]:
    """Find the run, section and direction of each row of a frame in the summary.

    Args:
        frame: with ``run``, ``group`` and ``direction``, as texts or as categories: those take
            a few bytes in each of millions of rows.
        rows: of the summary, with the same columns; of equal rows the first is found.

    Returns:
        The position in `rows` of each row of the frame, -1 where there is none.
    """
    categories = {name: frame[name].astype("category").cat for name in _RUN}
    # Rows of a run follow each other: what is found for the first of a stretch is so for all.
    is_first = np.ones(len(frame), dtype=bool)
    is_first[1:] = False
    for texts in categories.values():
        is_first[1:] |= np.diff(texts.codes.to_numpy()) != 0
    starts = np.flatnonzero(is_first)
    codes = np.zeros(len(starts), dtype=np.int64)
    row_codes = np.zeros(len(rows), dtype=np.int64)
    is_known = np.ones(len(rows), dtype=bool)
    for name, texts in categories.items():
        count = len(texts.categories)
        part = texts.categories.get_indexer(pd.Index(rows[name]))
        part = np.where(rows[name].isna(), count, part)
        is_known &= part >= 0
        row_codes = row_codes * (count + 1) + part
        part = texts.codes.to_numpy()[starts].astype(np.int64)
        codes = codes * (count + 1) + np.where(part < 0, count, part)
    keys, first = np.unique(row_codes[is_known], return_index=True)
    if not len(keys):
        return np.full(len(frame), -1, dtype=np.intp)
    near = np.minimum(np.searchsorted(keys, codes), len(keys) - 1)
    places: npt.NDArray[np.intp] = np.flatnonzero(is_known)[first][near]
    lengths = np.diff(np.append(starts, len(frame)))
    return np.repeat(np.where(keys[near] == codes, places, -1), lengths)


def measured(summary: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of finished measured runs, in their order, with a new index from 0."""
    kept = (summary["phase"] == "measured") & (summary["status"] == "finished")
    return summary[kept.fillna(value=False)].reset_index(drop=True)


def is_watched(summary: pd.DataFrame) -> pd.Series[bool]:
    """Return which rows are of a load that was watched: its numbers are those of the device."""
    return summary["tool"].eq(Tool.WATCH.value).fillna(value=False).astype(bool)


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

    What distinguishes two of them is in every name, so that all names of a chart are alike.

    Returns:
        Texts with the frame's index, such as ``test1``, ``oltp/log`` (fio's section) or
        ``test1 on node-2``.
    """
    plain = frame["group"].isna() | (frame["group"] == frame["job"])
    names = frame["job"].where(plain, frame["job"] + "/" + frame["group"].fillna(""))
    if BY in frame:
        return (names + ", " + frame[BY]).where(frame[BY] != names, names).astype(str)
    for column, joint in _PLACES:
        if frame.groupby(names, dropna=False)[column].nunique().max() > 1:
            names += joint + frame[column].fillna("?")
    return names.astype(str)


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


def plain_rows(frame: pd.DataFrame) -> list[dict[str, object]]:
    """Return the rows of a frame as plain Python values, None where a value is missing."""
    # Column by column: pandas takes many times as long over rows of many types at once.
    columns = {str(name): plain_values(column) for name, column in frame.items()}
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def plain_values(column: pd.Series) -> list[object]:
    """Return values as plain Python values, None where one is missing."""
    values, known = column.tolist(), (~column.array.isna()).tolist()
    if isinstance(column.dtype, pd.DatetimeTZDtype):
        return [
            utc_text(v) if is_known else None for v, is_known in zip(values, known, strict=True)
        ]
    return [
        (value.item() if isinstance(value, np.generic) else value) if is_known else None
        for value, is_known in zip(values, known, strict=True)
    ]
