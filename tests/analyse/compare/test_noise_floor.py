"""Noise floors of equal arms whose noise, drift and host are known."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest

from tests.analyse.compared_rows import compared, rows_of
from volbench.analyse.compare.noise_floor import MAX_BLOCKS, NoiseFloor, noise_floors
from volbench.present.plots.charts.noise_chart import noise_plot
from volbench.present.plots.description import numbers
from volbench.present.tables.noise_table import noise_table

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
        }
    )


def floor_of(rows: pd.DataFrame, device: pd.DataFrame) -> NoiseFloor:
    """Return the floor of IOPS."""
    base, candidate = (rows[rows["arm"] == arm] for arm in ("a", "b"))
    (found,) = noise_floors(compared(base, candidate, metrics=("iops",)), rows, device)
    return found


def test_the_scatter_is_that_of_two_runs() -> None:
    """2 % noise of a run gives a ratio with 2.8 %; more blocks detect less."""
    rows = arms(drift=0.3)
    found = floor_of(rows, device_of(rows))
    assert found.blocks == BLOCKS
    assert found.scatter == pytest.approx(0.02 * math.sqrt(2), rel=0.4)
    assert found.drift == pytest.approx(0.3, abs=0.05)
    assert found.block_s == pytest.approx(60, abs=1)
    floors = [found.detectable(count) for count in (3, 5, 10, 30)]
    assert floors == sorted(floors, reverse=True)
    assert found.detectable(BLOCKS) == pytest.approx(found.row.detectable)


def test_blocks_for_a_difference() -> None:
    """The number is the least that detects it; what no number detects is reported."""
    rows = arms()
    found = floor_of(rows, device_of(rows))
    count = found.blocks_for(0.01)
    assert count is not None
    assert found.detectable(count) <= 0.01 < found.detectable(count - 1)
    assert found.blocks_for(0.9) == 3
    assert found.blocks_for(1e-9) is None
    (note,) = noise_table([found], detect=1e-9).notes[-1:]
    assert note == f"iops: {MAX_BLOCKS} blocks would not detect 1e-07 %."
    assert f"(--repeat {count})" in noise_table([found], detect=0.01).notes[-1]


def test_steady_noise_has_no_drift_and_no_cause() -> None:
    """Chance is not reported as a drift or as the host's part."""
    rows = arms()
    found = floor_of(rows, device_of(rows))
    assert (found.drift, found.cause, found.host_share) == (0.0, "", 0.0)


def test_the_host_is_named_with_its_share() -> None:
    """Steal that takes up to a third of the rate explains most of the scatter."""
    steal = np.random.default_rng(5).uniform(0, 30, (BLOCKS, 2))
    rows = arms(steal=steal).replace({"arm": {"a": "A", "b": "B"}})
    sides = [rows[rows["arm"] == arm] for arm in ("A", "B")]
    comparison = compared(*sides, metrics=("iops",))
    (found,) = noise_floors(comparison, rows, device_of(rows, steal))
    assert found.cause == "CPU steal"
    assert found.host_share > 0.8


@pytest.mark.parametrize("repeats", [3, 20])
def test_the_chart_joins_the_runs_of_each_block(repeats: int) -> None:
    """Left each run, right the floor of each metric."""
    rows = arms()
    found = floor_of(rows, device_of(rows))
    plot = noise_plot([found], rows[rows["block"] <= repeats])
    left, right = plot.panels
    assert len(left.marks) == 2
    drawn = numbers(plot)
    assert drawn["arm"].notna().sum() == 2 * repeats
    assert drawn["detectable_percent"].notna().sum() == 10
    assert right.y.format == "percent"
