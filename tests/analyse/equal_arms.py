"""Runs of two equal arms in blocks, whose noise, drift and host are known."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd

from tests.analyse.compared_rows import compared, rows_of
from volbench.analyse.compare.noise_floor import NoiseFloor, noise_floors

BLOCKS = 20


def arms(
    *, drift: float = 0.0, steal: np.ndarray | None = None, noise: float = 0.02
) -> pd.DataFrame:
    """Return runs of two equal arms in blocks; CPU steal takes its share of the rate."""
    sides = []
    for seed, name in enumerate(("a", "b"), start=1):
        rows = rows_of(1000, repeats=BLOCKS, seed=seed + 10, noise=noise)
        rows["arm"], rows["run"] = name, name + rows["run"].astype(str)
        rows["block"] = range(1, BLOCKS + 1)
        rows["iops"] *= np.exp(np.linspace(0, drift, BLOCKS))
        if steal is not None:
            rows["iops"] *= 1 - steal[:, seed - 1] / 100
        late = [(block + seed) % 2 for block in range(BLOCKS)]
        rows["started_utc"] = [
            f"2026-01-01T00:{block:02d}:{30 * after:02d}.000Z" for block, after in enumerate(late)
        ]
        sides.append(rows)
    return pd.concat(sides, ignore_index=True)


def device_of(rows: pd.DataFrame, steal: np.ndarray | None = None) -> pd.DataFrame:
    """Return a sample of the host for each run."""
    values = np.zeros(2 * BLOCKS) if steal is None else np.concatenate([steal[:, 0], steal[:, 1]])
    return pd.DataFrame(
        {
            "run": rows["run"],
            "steal_percent": values,
            "cpu_pressure_percent": 0.0,
            "swap_bytes_per_s": math.nan,
            "other_disks_iops": math.nan,
            "other_disks_bw_bytes_per_s": math.nan,
        }
    )


def floor_of(rows: pd.DataFrame, device: pd.DataFrame) -> NoiseFloor:
    """Return the floor of IOPS."""
    base, candidate = (rows[rows["arm"] == arm] for arm in ("a", "b"))
    (found,) = noise_floors(compared(base, candidate, metrics=("iops",)), rows, device)
    return found
