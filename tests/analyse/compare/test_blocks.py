"""Comparisons in blocks: what is paired, what a drift does, and what is reported."""

import math

import numpy as np
import pandas as pd
import pytest
from scipy.stats import linregress

from tests.analyse.compared_rows import compared, rows_of
from volbench.analyse.compare.comparison_result import Verdict
from volbench.analyse.compare.repeat_statistics import (
    Group,
    are_blocked,
    contrast,
    fit_line,
    unpaired_contrast,
)
from volbench.present.tables.compare_table import comparison_table, notes


def arm(logs: list[float], *, place: list[int], volume: str = "v") -> Group:
    """Return a group with a value for each block, which ran at a place among all runs."""
    return Group(
        np.exp(logs),
        [volume] * len(logs),
        blocks=[("c", block) for block in range(len(logs))],
        starts=[f"2026-01-01T00:{at:02d}:00.000Z" for at in place],
    )


def in_blocks(level: float, *, seed: int, noise: float = 0.01, drift: float = 0.0) -> pd.DataFrame:
    """Return eight repeats in blocks, A B, B A, ..., on a volume that drifts."""
    rows = rows_of(level, repeats=8, seed=seed, noise=noise)
    rows["block"] = range(1, 9)
    rows["iops"] *= np.exp(np.linspace(0, drift, 8))
    first = [(block + seed) % 2 for block in range(8)]
    rows["started_utc"] = [
        f"2026-01-01T00:{2 * block + late:02d}:00.000Z" for block, late in enumerate(first)
    ]
    return rows


def test_a_drift_from_block_to_block_cancels_out() -> None:
    """3 % are seen on a volume that becomes 30 % faster meanwhile; without blocks they are not."""
    base = in_blocks(1000, seed=1, noise=0.003, drift=0.3)
    candidate = in_blocks(1030, seed=2, noise=0.003, drift=0.3)
    (row,) = compared(base, candidate).rows
    assert (row.verdict, row.design) == (Verdict.FASTER, "8 blocks")
    assert row.interval is not None
    assert row.interval.low < 1.03 < row.interval.high
    wide = unpaired_contrast(row.base_group, row.candidate_group).interval(row.level)
    assert wide.low < 1 < wide.high
    width = math.log(row.interval.high / row.interval.low)
    assert math.log(wide.high / wide.low) > 5 * width


def test_campaigns_without_blocks_compare_as_before() -> None:
    """No pairs, no new column; equal numbers in two plans say nothing about time."""
    base, candidate = in_blocks(1000, seed=1), in_blocks(1030, seed=2)
    paired = compared(base, candidate)
    plain = compared(base.assign(block=math.nan), candidate.assign(block=math.nan))
    (row,) = plain.rows
    assert row.design == "unpaired"
    first = paired.rows[0]
    assert row.contrast == unpaired_contrast(first.base_group, first.candidate_group)
    assert "design" not in [column.name for column in comparison_table(plain).columns]
    assert "design" in [column.name for column in comparison_table(paired).columns]
    assert any(note.startswith("Paired:") for note in notes(paired))
    other = in_blocks(1030, seed=2).assign(campaign="d")
    (row,) = compared(in_blocks(1000, seed=1), other).rows
    assert row.design == "unpaired"


def test_a_block_without_one_arm_is_left_out() -> None:
    """A failed run costs its block, not the campaign; two blocks are too few to pair."""
    (row,) = compared(in_blocks(1000, seed=1), in_blocks(1030, seed=2).iloc[2:]).rows
    assert row.design == "6 blocks"
    base, candidate = in_blocks(1000, seed=1), in_blocks(1030, seed=2)
    (row,) = compared(base.iloc[:4], candidate.iloc[2:6]).rows
    assert row.design == "unpaired"


def test_several_volumes_stay_the_unit() -> None:
    """Blocks would answer for these volumes only, not for volumes like these."""
    base = Group([1, 2, 3, 4], "aabb", blocks=[1, 2, 3, 4], starts=list("abcd"))
    candidate = Group([1, 2, 3, 4], "ccdd", blocks=[1, 2, 3, 4], starts=list("abcd"))
    assert not are_blocked(base, candidate)
    assert contrast(base, candidate).unit == "volumes"
    same = Group([1, 2, 3, 5], "aabb", blocks=[1, 2, 3, 4], starts=list("abcd"))
    assert contrast(base, same).unit == "blocks"


def test_a_drift_within_blocks_is_subtracted() -> None:
    """On a line, with the arms in both orders, the difference is known exactly."""
    places = [(0, 1), (3, 2), (5, 4), (6, 7), (8, 9), (11, 10)]
    noise = [0.001, -0.001, 0.001, -0.001, 0.0, 0.0]
    base = arm([0.05 * first for first, _ in places], place=[first for first, _ in places])
    logs = [0.02 + 0.05 * late + each for (_, late), each in zip(places, noise, strict=True)]
    candidate = arm(logs, place=[late for _, late in places])
    found = contrast(base, candidate)
    assert found.freedom == 4
    assert found.centre == pytest.approx(0.02, abs=0.001)
    assert found.interval().high / found.interval().low < 1.004
    few = contrast(arm([0, 0.15, 0.25], place=[0, 3, 5]), arm([0.05, 0.1, 0.2], place=[1, 2, 4]))
    assert few.freedom == 2


def test_a_line_agrees_with_the_reference() -> None:
    """Slope, intercept and p-value are those of scipy."""
    rng = np.random.default_rng(1)
    x, y = np.arange(9.0), rng.normal(0, 1, 9)
    ours, reference = fit_line(x, y), linregress(x, y)
    assert ours.slope == pytest.approx(reference.slope)
    assert ours.p_value == pytest.approx(reference.pvalue)
    assert ours.intercept_error == pytest.approx(reference.intercept_stderr)


def test_the_drift_that_an_unpaired_comparison_may_hide_is_reported() -> None:
    """The side and the size of the drift are named; noise alone is no drift."""
    base, candidate = (
        in_blocks(1000, seed=seed, drift=drift).assign(block=math.nan)
        for seed, drift in ((1, 0.3), (2, 0.0))
    )
    remarks = [text for text in compared(base, candidate).remarks if "drifted" in text]
    assert len(remarks) == 1
    assert remarks[0].startswith("not paired: randread 4k, queue depth 1 iops drifted by +3")
    assert "over the repeats of A" in remarks[0]
    still = compared(candidate, in_blocks(1000, seed=4).assign(block=math.nan))
    assert not any("drifted" in text for text in still.remarks)
