"""Repeats of a measured thing: their identity, and the pooling of their values.

Only true repeats are pooled: the same workload on the same volume of the same host, in the same
campaign, unless ``--by`` says otherwise. The importer gives results of different folders different
names. Percentiles of several repeats are merged from their latency bins; where a repeat has none,
they are left out.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pandas as pd

from volbench.model.frames.columns import PERCENTILES

# Identity of a measured thing; its repeats are pooled
KEY = ("campaign", "profile", "host", "volume", "job", "group", "direction")

# A column that, where a frame has it, replaces campaign, profile, host and volume: rows that are
# equal in it are pooled. It holds the value, as text, that rows are to be distinguished by.
BY = "by"

FOLDER = "import_folder"  # Column of the folder that a result was imported from

_PLACE = ("campaign", "profile", "host", "volume")
_RUN = ["run", "group", "direction"]


def key_of(frame: pd.DataFrame, key: Sequence[str] = KEY) -> list[str]:
    """Return the identifying columns: `BY` instead of the places where the frame has it."""
    if BY not in frame:
        return list(key)
    return [BY, *(name for name in key if name not in _PLACE)]


def pool(
    rows: pd.DataFrame,
    key: Sequence[str],
    columns: Sequence[str],
    *,
    histogram: pd.DataFrame | None = None,
    kind: str = "lat",
) -> pd.DataFrame:
    """Pool rows that are equal in their key.

    Args:
        columns: numeric columns to pool; percentiles are named as in `PERCENTILES`.
        histogram: latency bins of the runs; None for none.
        kind: of the latency of percentiles, ``lat`` or ``clat``.

    Returns:
        A row for each key, indexed by it, in the order of appearance: ``repeats`` (rows with a
        value of the first of `columns`, int) and for each column its median under its own name,
        its minimum under ``<column>_low`` and its maximum under ``<column>_high`` (float); of
        ``max`` the maximum. The percentiles of several rows are those of all their I/Os together,
        NaN where bins lack.
    """
    floats = rows.astype(dict.fromkeys(columns, "float64"))
    groups = floats.groupby(list(key), sort=False, dropna=False)
    pooled = groups[[columns[0]]].count().rename(columns={columns[0]: "repeats"})
    for column in columns:
        pooled[f"{column}_low"] = groups[column].min()
        pooled[f"{column}_high"] = groups[column].max()
        pooled[column] = pooled[f"{column}_high"] if column == "max" else groups[column].median()
    named = [column for column in columns if column in PERCENTILES]
    if named:
        things = floats.assign(_thing=groups.ngroup())
        merged = merged_percentiles(things, histogram, kind=kind, names=named)
        several = groups.size().gt(1).to_numpy()
        for column in named:
            values = merged[column].reindex(range(len(pooled))).to_numpy(dtype=float)
            pooled[column] = np.where(several, values, pooled[column])
    return pooled


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
            int(str(thing)): _percentiles(own.droplevel(0), names)
            for thing, own in counts[counts.index.isin(complete, level=0)].groupby(level=0)
        }
    return pd.DataFrame.from_dict(things, orient="index", columns=list(names), dtype="float64")


def _percentiles(counts: pd.Series, names: Sequence[str]) -> list[float]:
    """Return the midpoint of the first bin that reaches each percentile, as fio does."""
    reached = counts.cumsum().to_numpy(dtype=float) / float(counts.sum())
    shares = [PERCENTILES[name] / 100 - 1e-12 for name in names]
    return [float(counts.index[place]) for place in np.searchsorted(reached, shares)]


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
    found = {name: frame[name].astype("category").cat for name in _RUN}
    # Rows of a run follow each other: what is found for the first of a stretch is so for all.
    is_first = np.ones(len(frame), dtype=bool)
    is_first[1:] = False
    for texts in found.values():
        is_first[1:] |= np.diff(texts.codes.to_numpy()) != 0
    starts = np.flatnonzero(is_first)
    codes = np.zeros(len(starts), dtype=np.int64)
    own = np.zeros(len(rows), dtype=np.int64)
    is_known = np.ones(len(rows), dtype=bool)
    for name, texts in found.items():
        count = len(texts.categories)
        part = texts.categories.get_indexer(pd.Index(rows[name]))
        part = np.where(rows[name].isna(), count, part)
        is_known &= part >= 0
        own = own * (count + 1) + part
        part = texts.codes.to_numpy()[starts].astype(np.int64)
        codes = codes * (count + 1) + np.where(part < 0, count, part)
    keys, first = np.unique(own[is_known], return_index=True)
    if not len(keys):
        return np.full(len(frame), -1, dtype=np.intp)
    near = np.minimum(np.searchsorted(keys, codes), len(keys) - 1)
    places: npt.NDArray[np.intp] = np.flatnonzero(is_known)[first][near]
    lengths = np.diff(np.append(starts, len(frame)))
    return np.repeat(np.where(keys[near] == codes, places, -1), lengths)


def separate_series(
    rows: pd.DataFrame, fixed: Sequence[str], options: Sequence[str]
) -> pd.DataFrame:
    """Number the series of rows that are equal in what is fixed, split where they are several.

    Different things at one point cannot be one series: they are distinguished by the folder that
    they were imported from, or by their size. A folder whose results cover several points is a
    series of its own in any case.

    Returns:
        The rows with ``line`` (int), -1 where different things remain at one point; `FOLDER` and
        ``size_bytes`` are missing where they do not tell series apart.
    """
    key = key_of(rows)
    things = rows.groupby(key, sort=False, dropna=False).ngroup()
    lines = rows.groupby(list(fixed), sort=False, dropna=False).ngroup()
    kept = rows.assign(_thing=things, line=lines)
    kept[["_folder", "_size"]] = None
    for _, line in kept.groupby("line", sort=False):
        found = _series_of(line, options)
        if found is None:
            kept.loc[line.index, "line"] = -1
            continue
        column, values = found
        if column:
            kept.loc[line.index, column] = values
    parts = kept.groupby(["line", "_folder", "_size"], sort=False, dropna=False).ngroup()
    kept["line"] = parts.where(kept["line"] >= 0, -1)
    kept = kept.drop(columns=["_thing", FOLDER, "size_bytes"], errors="ignore")
    return kept.rename(columns={"_folder": FOLDER, "_size": "size_bytes"})


def _series_of(line: pd.DataFrame, options: Sequence[str]) -> tuple[str, pd.Series] | None:
    """Return the column and values that split a line; None if nothing tells its points apart."""
    clashes = _clash(line, options)
    for column, values in _splits(line):
        if values.nunique() < 2 or values.isna().any():
            continue
        own = line.assign(_part=values)
        covers = own.groupby("_part")[list(options)].nunique().ge(2).all(axis=None)
        if covers and not _clash(own, ["_part", *options]):
            return column, values
    return None if clashes else ("", pd.Series(dtype=object))


def _clash(rows: pd.DataFrame, point: Sequence[str]) -> bool:
    return bool(rows.groupby(list(point), dropna=False)["_thing"].nunique().gt(1).any())


def _splits(line: pd.DataFrame) -> list[tuple[str, pd.Series]]:
    """Return the columns that may tell series apart: parts of the folder, all of it, the size."""
    found: list[tuple[str, pd.Series]] = []
    if FOLDER in line and line[FOLDER].notna().all():
        folders = line[FOLDER].astype(object)
        parts = folders.str.split("/", expand=True)
        found = [("_folder", parts[place]) for place in parts]
        found.append(("_folder", folders))
    if "size_bytes" in line:
        found.append(("_size", line["size_bytes"].astype(object)))
    return found
