"""Latency bins of the histogram, added up by job or by run."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pandas as pd

from volbench.analyse.frames.job_frames import labels, measured
from volbench.analyse.frames.repeats import is_of_kind, key_of, places_of

# Columns of the histogram that charts read: the summary has what else identifies its rows
BINS = ("run", "group", "direction", "latency", "bin_s", "bin_high_s", "count")


def distribution(histogram: pd.DataFrame, summary: pd.DataFrame) -> tuple[pd.DataFrame, str]:
    """Add up the latency bins of all repeats of each job and direction.

    Args:
        summary: the summary frame; it identifies the bins, and says which runs are finished and
            measured.

    Returns:
        A row for each combination of `KEY` and bin, ascending in the bin: `KEY` and ``label`` as
        categories, ``bin_high_s`` (upper edge), ``count`` (int), ``share`` (of the I/Os faster
        than the upper edge, 0 to 1) and ``line``, the number of the combination from 0; and the
        kind of latency, ``lat`` or ``clat``.
    """
    rows, places = _identified(histogram, summary)
    key = key_of(rows)
    order = rows.groupby(key, sort=False, dropna=False).ngroup().to_numpy().astype(np.int32)
    kind = _kind_of_all(histogram, places, order)
    kept = (places >= 0) & is_of_kind(histogram, kind)
    counts = histogram.loc[kept, ["bin_high_s", "count"]].assign(order=order[places[kept]])
    del places, kept
    pooled = counts.groupby(["order", "bin_high_s"])["count"].sum().astype("int64").reset_index()
    running = pooled.groupby("order")["count"]
    pooled["share"] = running.cumsum() / running.transform("sum")
    identity = rows.assign(order=order).drop_duplicates("order")[[*key, "label"]]
    texts = identity.astype(dict.fromkeys(identity.columns, "category"))
    named = texts.iloc[pooled["order"].to_numpy()].reset_index(drop=True)
    line = pd.factorize(pooled["order"])[0]
    return pd.concat([named, pooled.drop(columns="order").assign(line=line)], axis=1), kind


def _kind_of_all(
    histogram: pd.DataFrame, places: npt.NDArray[np.intp], order: npt.NDArray[np.int32]
) -> str:
    """Return the kind of latency that every combination reports: total latency if all do."""
    is_reported = (places >= 0) & histogram["direction"].ne("sync").to_numpy()
    reported = histogram.loc[is_reported, ["latency"]].assign(order=order[places[is_reported]])
    kinds = reported.drop_duplicates().astype({"latency": str}).groupby("order")["latency"].agg(set)
    return "clat" if any("clat" in known and "lat" not in known for known in kinds) else "lat"


def in_steps(
    histogram: pd.DataFrame, summary: pd.DataFrame, *, per_decade: int
) -> tuple[pd.DataFrame, str]:
    """Add up the latency bins of each run in equal steps of the logarithm.

    Returns:
        A row of the summary for each run, section, direction and step that holds an I/O, with
        ``label``, ``count`` (int) and ``step`` (from ``10 ** (step / per_decade)`` seconds on);
        and the kind of latency, ``lat`` or ``clat``.
    """
    rows, places = _identified(histogram, summary)
    is_measured = places >= 0
    kinds = set(histogram.loc[is_measured & histogram["direction"].ne("sync"), "latency"].unique())
    kind = "lat" if "lat" in kinds else "clat"
    kept = is_measured & histogram["latency"].eq(kind).to_numpy(dtype=bool)
    middle = histogram.loc[kept, "bin_s"].clip(lower=1e-9).to_numpy(dtype=float)
    steps = pd.DataFrame(
        {
            "_place": places[kept],
            "step": np.floor(np.log10(middle) * per_decade).astype(int),
            "count": histogram.loc[kept, "count"].to_numpy(dtype="int64"),
        }
    )
    added = steps.groupby(["_place", "step"])["count"].sum().reset_index()
    found = rows.iloc[added["_place"].to_numpy()].reset_index(drop=True)
    return found.assign(step=added["step"], count=added["count"]), kind


def in_classes(shares: pd.DataFrame, summary: pd.DataFrame, quantity: str) -> pd.DataFrame:
    """Return the I/Os of each run in fio's own classes, which it reports without json+ too.

    Args:
        quantity: ``clat`` or ``iodepth``.

    Returns:
        A row of the summary for each run, section and class that holds an I/O, with ``label``,
        ``low`` and ``high`` (its ends) and ``count`` (float). The direction is ``all`` where a
        section had several: fio does not count them apart.
    """
    rows = measured(summary)
    rows["label"] = labels(rows)
    sections = rows.groupby(["run", "group"], sort=False)
    rows["total_ios"] = sections["total_ios"].transform("sum")
    is_single = sections["direction"].transform("nunique") == 1
    rows["direction"] = rows["direction"].where(is_single, "all")
    chosen = shares[shares["quantity"] == quantity][["run", "group", "low", "high", "percent"]]
    found = rows.drop_duplicates(["run", "group"]).merge(chosen, on=["run", "group"])
    return found.assign(count=found["percent"] / 100 * found["total_ios"])


def _identified(
    histogram: pd.DataFrame, summary: pd.DataFrame
) -> tuple[pd.DataFrame, npt.NDArray[np.intp]]:
    """Return the measured rows of the summary with ``label``, and the one of each bin or -1."""
    rows = measured(summary)
    rows["label"] = labels(rows)
    return rows, places_of(histogram, rows)
