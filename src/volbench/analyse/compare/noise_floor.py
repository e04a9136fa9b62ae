"""Noise floor of a volume: the smallest difference that blocks of equal arms can show."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from volbench.analyse.compare.comparison import Comparison
from volbench.analyse.compare.comparison_result import Compared
from volbench.analyse.compare.needed_repeats import least_count
from volbench.analyse.compare.repeat_statistics import (
    CONFIDENCE,
    MIN_PAIRS,
    Contrast,
    fit_line,
)

# Samples of the host that slow a run from outside the volume, by what they show
HOST_CAUSES: Mapping[str, str] = {
    "steal_percent": "CPU steal",
    "cpu_pressure_percent": "waiting for a CPU",
    "swap_bytes_per_s": "swapping",
    "other_disks_iops": "IOPS of other disks",
    "other_disks_bw_bytes_per_s": "bandwidth of other disks",
}
# Significance from which a line is a drift, or a cause a cause: one reader in a hundred is misled.
# Noticed by: test_noise_floor.py::test_steady_noise_has_no_drift_and_no_cause
_ALPHA = 0.01


@dataclass(frozen=True)
class NoiseFloor:
    """Noise of one metric of a workload between runs that follow each other."""

    row: Compared  # the two equal arms
    contrast: Contrast  # of these
    block_s: float  # time from block to block, in seconds
    drift: float  # change over all blocks, as a logarithm; 0 if chance explains it
    cause: str  # sample of the host that explains most of the noise; empty for none
    host_share: float  # share of the noise that it explains, from 0 to 1

    @property
    def blocks(self) -> int:
        """Number of measured blocks."""
        return self.contrast.units

    @property
    def scatter(self) -> float:
        """Standard deviation of the ratio in a block, as a logarithm."""
        return self.contrast.error * math.sqrt(self.blocks)

    def detectable(self, blocks: int) -> float:
        """Return the relative difference that so many blocks detect in 80 % of cases."""
        error, freedom = self.scatter / math.sqrt(blocks), float(blocks - 1)
        planned = replace(self.contrast, error=error, freedom=freedom)
        return planned.detectable(CONFIDENCE) - 1

    def blocks_for(self, difference: float) -> int | None:
        """Return the least number of blocks that detect a relative difference; None for too many.

        Below the resolution of a percentile no number of blocks is enough.
        """
        return least_count(self.detectable, difference)


def noise_floors(
    comparison: Comparison, summary: pd.DataFrame, device: pd.DataFrame
) -> Iterator[NoiseFloor]:
    """Yield the noise floor of each metric of arms that were compared in blocks.

    Args:
        comparison: of equal arms.
        summary: rows of their runs; device: the frame with samples of their host.
    """
    samples = device.groupby("run")[[*HOST_CAUSES]].mean()
    of_runs = summary[["campaign", "block", "run", "arm"]].drop_duplicates().join(samples, on="run")
    starts = pd.to_datetime(summary.dropna(subset=["block"]).groupby("block")["started_utc"].min())
    block_s = starts.diff().dt.total_seconds().median() if len(starts) > 1 else math.nan
    for row in comparison.rows:
        if row.contrast is None or row.contrast.unit != "blocks":
            continue
        cause, share = _cause(row, of_runs)
        drift = row.base_group.drift(_ALPHA) or 0.0
        yield NoiseFloor(row, row.contrast, float(block_s), drift, cause, share)


def _cause(row: Compared, of_runs: pd.DataFrame) -> tuple[str, float]:
    """Return the sample that explains most of the differences within blocks, and their share."""
    base, candidate = row.base_group.by_block, row.candidate_group.by_block
    shifts: dict[Hashable, float] = {
        block: candidate[block][0] - base[block][0] for block in base if block in candidate
    }
    best = "", 0.0
    for name, words in HOST_CAUSES.items():
        sides = [
            rows.set_index(["campaign", "block"])[name]
            for arm in (row.base, row.candidate)
            if len(rows := of_runs[of_runs["arm"].eq(arm).fillna(value=False)])
        ]
        if len(sides) < 2:
            continue
        change = (sides[1] - sides[0]).reindex(list(shifts)).to_numpy(dtype=float)
        moved = np.array(list(shifts.values()))
        known = ~np.isnan(change)
        if known.sum() <= MIN_PAIRS or not change[known].std():
            continue
        share = float(np.corrcoef(change[known], moved[known])[0, 1] ** 2)
        line = fit_line(change[known], moved[known])
        if line.p_value < _ALPHA / len(HOST_CAUSES) and share > best[1]:
            best = words, share
    return best
