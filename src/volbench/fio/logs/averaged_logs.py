"""Sums by window over the averaged logs of parallel jobs.

fio writes an averaged row when a window closes in which something completed. Rows are aligned with
the windows of the run; rates of parallel jobs are added, and their mean latencies are weighted by
their IOPS.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from volbench.fio.logs.log_rows import Ints
from volbench.fio.logs.time_grid import Floats, Windows, fitted, grown

_DENSE = 0.9  # Share of windows with a row from which a job's last row is held to be its end

Flags = npt.NDArray[np.bool_]


def _nothing() -> Floats:
    return np.zeros(0)


@dataclass
class Averages:
    """Averaged rows of one log and one direction, accumulated block by block."""

    windows: Windows
    span: int = 1
    # sums of the values, each multiplied by the share of the window it covers
    weighted: Floats = field(default_factory=_nothing)
    # sums of these shares; 0 in a window without a row
    weights: Floats = field(default_factory=_nothing)
    # the maximum in a window, where the log has maxima
    highest: Floats = field(default_factory=_nothing)
    _at: float = 0.0
    _slot: int = -1

    def add(self, table: Ints) -> None:
        """Add rows; rows in the same window are averaged by the time they cover."""
        at = self.windows.at(table[0])
        steps = at - np.concatenate(([self._at], at[:-1]))
        slots = self._closing(at, steps / self.span)
        befores = np.concatenate(([self._slot], slots[:-1]))
        shares = np.clip(steps, 1e-3, 1.0)
        count = int(slots.max()) + 1
        self.weighted = grown(self.weighted, count)
        self.weights = grown(self.weights, count)
        for back in range(self.span):
            # A row covers the windows since the row before, and always its own.
            covers = (slots - back > befores) if back else np.ones(len(slots), dtype=bool)
            covered, share = slots[covers] - back, shares[covers]
            np.add.at(self.weighted, covered, table[1][covers] * share)
            np.add.at(self.weights, covered, share)
        if len(table) > 4:
            self.highest = grown(self.highest, count)
            np.maximum.at(self.highest, slots, table[4])
        self._at, self._slot = float(at[-1]), int(slots[-1])

    def means(self) -> tuple[Floats, Flags]:
        """Return the mean of each window, and which windows have one."""
        known = self.weights > 0
        return self.weighted / np.where(known, self.weights, 1.0), known

    def last(self) -> int:
        """Return the last window with a row, -1 for none."""
        return int(np.flatnonzero(self.weights)[-1]) if self.weights.any() else -1

    def _closing(self, at: Floats, steps: Floats) -> Ints:
        """Return the window that each row closes; on a loaded host rows come late.

        A row about one window after the last one closes the next window, unless that drifts from
        the clock. The offset from the clock only changes at rows that come out of step.
        """
        nearest = self.windows.nearest(at)
        timely = (steps > 0.5) & (steps < 1.5)
        on_beat = timely & (np.diff(nearest, prepend=-1) == self.span)
        on_beat[0] = False
        breaks = np.flatnonzero(~on_beat)
        leads = np.zeros(len(breaks), dtype=np.int64)
        lead = 0
        for number, row in enumerate(breaks.tolist()):
            before = self._slot if row == 0 else int(nearest[row - 1]) + lead
            lead = before + self.span - int(nearest[row])
            if not timely[row] or abs(lead) > 1:
                lead = 0
            leads[number] = lead
        closing: Ints = nearest + np.repeat(leads, np.diff([*breaks.tolist(), len(at)]))
        return closing


@dataclass
class Totals:
    """Sums over all jobs with averaged logs in one direction, by window."""

    iops: Floats | None = None  # None without such a log
    bw_bytes_per_s: Floats | None = None  # None without such a log
    # mean latencies in the unit of the logs, each multiplied by its weight
    lat_weighted: Floats = field(default_factory=_nothing)
    # the job's IOPS behind each mean; 1 where they are unknown
    lat_weights: Floats = field(default_factory=_nothing)
    lat_max: Floats = field(default_factory=_nothing)  # in the unit of the logs; 0 where unknown
    # for each job the windows in which it has a rate
    reported: list[Flags] = field(default_factory=list)
    _last: int = -1

    def add_job(self, logs: Mapping[str, Averages]) -> None:
        """Add the logs of one job: ``iops``, ``bw`` and ``lat``, if it has them."""
        for averages in logs.values():
            self._last = max(self._last, averages.last())
        rates = {kind: logs[kind].means() for kind in ("iops", "bw") if kind in logs}
        if "iops" in rates:
            self.iops = added(self.iops, rates["iops"][0])
        if "bw" in rates:
            # Averaged logs have KiB/s (per-I/O logs kB/s, which are not used).
            self.bw_bytes_per_s = added(self.bw_bytes_per_s, rates["bw"][0] * 1024)
        if rates:
            flags = (rates["iops"] if "iops" in rates else rates["bw"])[1]
            self.reported.append(flags)
        if "lat" in logs:
            means, known = logs["lat"].means()
            if "iops" in rates:
                weights = fitted(rates["iops"][0], len(means)) * known
            else:
                weights = known.astype(np.float64)
            self.lat_weighted = added(self.lat_weighted, means * weights)
            self.lat_weights = added(self.lat_weights, weights)
            highest = logs["lat"].highest
            self.lat_max = grown(self.lat_max, len(highest))
            mine = self.lat_max[: len(highest)]
            np.maximum(mine, highest, out=mine)

    def last(self) -> int:
        """Return the last window with a row, -1 for none."""
        return self._last


def span_of(directions: Sequence[Flags]) -> tuple[int, int] | None:
    """Return the first window with a row of any direction, and the one after the last.

    Returns:
        None where so many windows in between are empty that the last one does not tell the end.
    """
    flags = np.zeros(max(map(len, directions), default=0), dtype=bool)
    for part in directions:
        flags[: len(part)] |= part
    known = np.flatnonzero(flags)
    if not len(known):
        return None
    first, end = int(known[0]), int(known[-1]) + 1
    return (first, end) if len(known) >= _DENSE * (end - first) else None


def added(total: Floats | None, part: Floats) -> Floats:
    """Return the sum of two arrays by window."""
    total = grown(np.zeros(0) if total is None else total, len(part))
    total[: len(part)] += part
    return total


def by_direction(
    tables: Iterable[Ints], windows: Windows, *, ways: int, span: int
) -> dict[int, Averages]:
    """Return the averages of one log by fio's direction number."""
    found: dict[int, Averages] = {}
    for table in tables:
        for way in range(ways):
            of_way = table[2] == way
            if of_way.any():
                mine = table if of_way.all() else table[:, of_way]
                found.setdefault(way, Averages(windows, span)).add(mine)
    return found
