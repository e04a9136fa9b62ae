"""Evidence for the causes of a fall: scatter, tail, waiting, and stalls between two intervals."""

from __future__ import annotations

import pytest

from tests.analyse.runs_at_levels import ran
from volbench.analyse.bottleneck.bottleneck import explain
from volbench.analyse.bottleneck.hypotheses import Fall, explain_fall
from volbench.analyse.bottleneck.volume_context import Earlier
from volbench.analyse.time.run_rates import rates_of
from volbench.model.results.finding import Cause, Explanation


def test_a_stall_between_two_seconds_is_found() -> None:
    """1.6 s without completions leave no second empty; the slowest I/O and both seconds say it."""
    rates = [1000.0] * 20 + [300.0, 100.0] + [1000.0] * 20
    view = ran(rates)
    view.summary["lat_max_s"] = 1.6
    stall = next(found for found in explain(view, "write") if found.cause is Cause.STALL)
    assert stall.from_s == pytest.approx(20.3, abs=0.01)
    assert stall.to_s - stall.from_s == pytest.approx(1.6)
    view = ran(rates)
    view.summary["lat_max_s"] = 0.2
    assert Cause.STALL not in {found.cause for found in explain(view, "write")}


def test_the_two_most_likely_causes_are_named() -> None:
    """An unknown cause names both, a hedged one says so."""
    found = Explanation(Cause.UNKNOWN, "write", 0, 1, 1.0, candidates=("heat", "a cache"))
    assert found.words == "cause unknown (most likely: heat or a cache)"
    hedged = Explanation(Cause.CREDITS, "write", 0, 1, 1.0, is_certain=False)
    assert hedged.words.startswith("consistent with")


@pytest.mark.parametrize(("iops", "caches"), [(1000.0, 1), (290.0, 0)])
def test_slow_writes_contradict_a_full_cache(iops: float, caches: int) -> None:
    """Sixteen in flight at 290 IOPS took 55 ms each: a disk that hung, not a cache that filled."""
    pulse = [0.0] * 6 + [iops / 3] * 2
    view = ran([iops] * 30 + pulse * 4)
    view.summary["lat_max_s"] = 6.0
    causes = [found.cause for found in explain(view, "write")]
    assert causes.count(Cause.CACHE_FULL) == caches


@pytest.mark.parametrize(("iops", "count"), [(90e3, 1), (110e3, 0)])
def test_implausibly_high_rates_contradict_credits(iops: float, count: int) -> None:
    """A fall between flat levels with a full queue, faster than volumes with credits are sold."""
    view = ran(
        [iops] * 30 + [iops / 2] * 30, {"iodepth": "64"}, lat_s=(64 / iops, 60 / iops, 20e-6)
    )
    written = rates_of(view, "write")
    assert written is not None
    ranking = explain_fall(Fall(view, written, written.changes[0], Earlier()))
    assert [each.cause for each in ranking.candidates].count(Cause.CREDITS) == count


@pytest.mark.parametrize(
    ("depth", "low_s", "min_s", "slc_caches"),
    [(4, 160e-6, 20e-6, 0), (4, 140e-6, 20e-6, 1), (5, 160e-6, 20e-6, 1), (5, 300e-6, 160e-6, 0)],
)
def test_slow_first_ios_contradict_garbage_collection(
    depth: int, low_s: float, min_s: float, slc_caches: int
) -> None:
    """NVMe takes 10 to 100 us; in a deep queue only the fastest I/O did not wait."""
    rates = [10_000.0] * 30 + [4000.0] * 30
    view = ran(rates, {"iodepth": str(depth)}, lat_s=(depth / 7000, low_s, min_s))
    written = rates_of(view, "write")
    assert written is not None
    ranking = explain_fall(Fall(view, written, written.changes[0], Earlier()))
    causes = [each.cause for each in ranking.candidates]
    assert causes.count(Cause.SLC_CACHE) == slc_caches


def test_a_hang_at_the_end_is_not_a_full_cache() -> None:
    """Nothing was written after it, so nothing shows that a cache drained."""
    view = ran([2000.0] * 30 + [0.0] * 30)
    view.summary["lat_max_s"] = 30.0
    causes = {found.cause for found in explain(view, "write")}
    assert Cause.STALL in causes
    assert Cause.CACHE_FULL not in causes
