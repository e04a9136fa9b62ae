"""Devices that back a boot storm: one line for each direction, from the samples of all clients."""

from __future__ import annotations

import numpy as np
import pandas as pd

from volbench.analyse.time.resample import Floats, covered_rows, seconds, spread_rows

_WAYS = ("read", "write")
_AS_MUCH = 0.95
"""Share of the best view of an interval that counts as no worse."""
_LEAST_SEEN = 0.25
"""Share of an interval that must have been watched for its rate to be told."""


def devices_on(
    samples: pd.DataFrame, edges_s: Floats, *, first_s: float
) -> tuple[str, Floats, Floats]:
    """Return the name of the devices, and the reads and writes of all of them together.

    Args:
        samples: rows of the device frame, of one step.
        edges_s: of the axis.
        first_s: where the axis begins, in seconds since the epoch.

    Returns:
        The kernel name, or how many devices there are, empty for none; and for each interval the
        reads and the writes a second, NaN where nobody watched.
    """
    rows = samples[(samples["level"] == "volume").fillna(value=False)]
    rows = rows.dropna(subset=["device", "utc", "read_iops", "write_iops"])
    if not len(rows):
        nothing = np.full(len(edges_s) - 1, np.nan)
        return "", nothing, nothing
    rows = rows.assign(end_s=seconds(rows["utc"]) - first_s, width_s=rows["interval_s"])
    groups = rows.groupby(["host", "device"], sort=False)
    views = np.array([_device(part, edges_s) for _, part in groups])
    is_known = ~np.isnan(views).all(axis=0)
    sums = np.where(is_known, np.nansum(views, axis=0), np.nan)
    name = str(rows["device"].iloc[0]) if len(groups) == 1 else f"{len(groups)} devices"
    return name, sums[0], sums[1]


def _device(rows: pd.DataFrame, edges_s: Floats) -> Floats:
    """Return reads and writes of one device that several clients may have watched.

    What they saw is the same. In each interval those count that saw most of it, for one that saw
    only its busy half would tell too much.
    """
    parts = [part for _, part in rows.groupby("run", sort=False)]
    seen = np.array([covered_rows(part, edges_s) for part in parts])
    rates = np.array(
        [[spread_rows(part, f"{way}_iops", edges_s) for part in parts] for way in _WAYS]
    )
    most = seen.max(axis=0)
    weights = np.where(seen >= _AS_MUCH * most, seen, 0.0)
    total = weights.sum(axis=0)
    enough = most >= _LEAST_SEEN
    found: Floats = np.full((len(_WAYS), len(edges_s) - 1), np.nan)
    found[:, enough] = (rates * (weights > 0)).sum(axis=1)[:, enough] / total[enough]
    return found
