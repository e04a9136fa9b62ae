"""Repeats that a difference needs, from made-up campaigns whose scatter is known."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from volbench.analyse.compare.needed_repeats import NeededRepeats, needed_repeats
from volbench.model.campaign.planned_run import Campaign, Run, Section, Volume, VolumeKind

DATA = Volume(role="data", kind=VolumeKind.DIRECTORY, target="/data")


def plan(*arms: str) -> Campaign:
    """Return a plan of one job, or of its arms."""
    runs = tuple(
        Run(
            id=f"00{place}",
            profile="p",
            job=f"reads-{arm}" if arm else "reads",
            arm=arm,
            block=1 if arm else 0,
            volume=DATA,
            sections=(Section(name="reads", options={"rw": "randread", "bs": "4096"}),),
        )
        for place, arm in enumerate(arms or ("",))
    )
    return Campaign(name="c", created_utc="2026-01-01T00:00:00Z", runs=runs, seed=1, arms=arms)


def earlier(count: int, *, noise: float, volume: str = "/data", **changed: object) -> pd.DataFrame:
    """Return repeats with exactly this deviation."""
    logs = np.random.default_rng(1).normal(0, 1, count)
    logs = noise * (logs - logs.mean()) / logs.std(ddof=1)
    row: dict[str, object] = {
        "campaign": "before",
        "job": "any",
        "arm": None,
        "block": None,
        "host": "local",
    }
    row |= {"volume": volume, "direction": "read", "rw": "randread", "block_bytes": 4096}
    row |= {"iodepth": 1, "numjobs": 1, "direct": False, "phase": "measured"}
    rows = pd.DataFrame([row | {"status": "finished"} | changed] * count)
    return rows.assign(iops=1000 * np.exp(logs))


def only(campaign: Campaign, rows: pd.DataFrame, difference: float) -> NeededRepeats:
    """Return what the only workload needs."""
    (found,) = needed_repeats(campaign, rows, difference)
    return found


def test_the_number_has_80_percent_power() -> None:
    """That many repeats a side find the difference in at least 80 % of simulated comparisons."""
    need = only(plan(), earlier(20, noise=0.03), 0.05)
    assert need.scatter is not None
    assert need.scatter.value == pytest.approx(0.03 * np.sqrt(2))
    assert need.scatter.source == "20 repeats of any in before"
    assert need.count == 8
    rng = np.random.default_rng(3)
    sides = rng.normal(0, 0.03, (4000, 2, 8)) + np.log([[1.0], [1.05]])
    distance = np.diff(sides.mean(axis=2))[:, 0]
    error = np.sqrt(sides.var(axis=2, ddof=1).sum(axis=1) / 8)
    assert np.mean(distance > 2.145 * error) == pytest.approx(0.86, abs=0.05)


def test_blocks_know_arms_and_a_shared_drift_costs_nothing() -> None:
    """Of arms in blocks, the ratio is what scatters."""
    base = earlier(10, noise=0.2, arm="a", job="reads-a").assign(block=range(10))
    other = base.assign(arm="b", job="reads-b", iops=base["iops"] * 1.1)
    need = only(plan("b", "a"), pd.concat([base, other]), 0.01)
    assert (need.is_paired, need.count) == (True, 3)
    assert need.scatter is not None
    assert need.scatter.source == "10 blocks of reads in before"


def test_the_same_job_is_used_before_others_and_other_volumes_never() -> None:
    """A noise run of another job is better than nothing."""
    same, other = earlier(5, noise=0.01), earlier(50, noise=0.1, iodepth=16, job="deep")
    need = only(plan(), pd.concat([same, other]), 0.05)
    assert need.scatter is not None
    assert need.scatter.source == "5 repeats of any in before"
    deep = only(plan(), other, 0.05)
    assert deep.scatter is not None
    assert deep.scatter.source == "50 repeats of deep in before"
    assert only(plan(), earlier(9, noise=0.1, volume="/other"), 0.05).scatter is None
    assert only(plan(), earlier(2, noise=0.1), 0.05).scatter is None
    assert only(plan(), earlier(9, noise=9.0), 0.001).count is None
