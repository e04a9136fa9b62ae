"""Load of several clients on one volume at the same time."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from volbench.analyse.frames.run_view import RunView
from volbench.analyse.time.resample import Floats, on_clock, spread_rows

_GRID_S = 1.0


@dataclass(frozen=True)
class ConcurrentLoad:
    """All clients that worked on one volume at a time.

    Attributes:
        edges_s: of intervals, in seconds since the epoch.
        bytes_per_s: run, then direction, to its rate in each of them; ``""`` stands for all runs.
        is_whole: whether all of them told what they did.
    """

    edges_s: Floats
    bytes_per_s: dict[tuple[str, str], Floats]
    is_whole: bool

    def others_bytes(self, run: str, direction: str, *, from_s: float, to_s: float) -> float:
        """Return the bytes that all but one run moved in a time; NaN when not all of them told."""
        if not self.is_whole:
            return math.nan
        nothing = np.zeros(len(self.edges_s) - 1)
        rate = self.bytes_per_s.get(("", direction), nothing) - self.bytes_per_s.get(
            (run, direction), nothing
        )
        inside = np.clip(self.edges_s, from_s, to_s)
        return float((rate * np.diff(inside)).sum())


def concurrent_load(views: Sequence[RunView]) -> ConcurrentLoad:
    """Return the load of runs that ran side by side on one volume."""
    series = pd.concat([view.series for view in views], ignore_index=True)
    summary = pd.concat([view.summary for view in views], ignore_index=True)
    known = series.dropna(subset=["utc", "bw_bytes_per_s"])
    is_whole = {view.run.id for view in views} == set(known["run"])
    if not is_whole:
        return ConcurrentLoad(np.zeros(1), {}, is_whole=False)
    rows = on_clock(known, summary, rate="bw_bytes_per_s", total="io_bytes")
    begin_s = float((rows["end_s"] - rows["width_s"]).min())
    count = math.ceil((float(rows["end_s"].max()) - begin_s) / _GRID_S)
    edges_s: Floats = begin_s + np.arange(count + 1, dtype=np.float64) * _GRID_S
    rates: dict[tuple[str, str], Floats] = {}
    for (run, _, direction), part in rows.groupby(["run", "group", "direction"], sort=False):
        own = spread_rows(part, "bw_bytes_per_s", edges_s)
        for name in (str(run), ""):
            rates[name, str(direction)] = rates.get((name, str(direction)), 0.0) + own
    return ConcurrentLoad(edges_s, rates, is_whole=True)
