"""Causes of a fall that lasts, and stalls between two intervals."""

from dataclasses import replace
from typing import Any

import pytest

from tests.analyse.runs_at_levels import level, ran
from volbench.analyse.bottleneck.bottleneck import explain
from volbench.analyse.bottleneck.lasting_falls import MAX_FLAT_SPREAD, Fall, explain_fall
from volbench.analyse.bottleneck.sustained_level import sustained_level
from volbench.analyse.time.run_rates import rates_of
from volbench.model.results.finding import Cause, Explanation
from volbench.model.results.provenance import HostFacts


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
    found = Explanation(Cause.UNKNOWN, "write", 0, 1, 1.0, candidates=("one", "another"))
    assert found.words == "most likely: one or another"
    hedged = Explanation(Cause.CREDITS, "write", 0, 1, 1.0, is_certain=False)
    assert hedged.words.startswith("consistent with")


BURST = 20_000.0
"""Rate before a fall to half of it: with 64 in flight each I/O takes 3.2 ms."""


@pytest.mark.parametrize(
    ("changed", "cause"),
    [
        ({}, Cause.CREDITS),
        ({"is_remote": False}, Cause.SLOWER),  # of unknown kind
        ({"iops": 110e3}, Cause.SLOWER),
        ({"iodepth": 5}, Cause.SLOWER),  # 250 us: no I/O waited
        ({"cv": 0.06}, Cause.SLOWER),
        ({"fastest_s": 2e-3}, Cause.SLOWER),  # the queue was not full
        ({"block_bytes": 65536}, Cause.SLOWER),  # 1.3 GB/s, as fast as memory
    ],
    ids=["all", "kind", "rate", "latency", "flat", "queue", "memory"],
)
def test_undeclared_credits_need_every_sign_of_a_throttle(
    changed: dict[str, Any], cause: Cause
) -> None:
    """A fall between flat levels of a network volume whose queue was full, at a rate as is sold."""
    iops, depth = changed.get("iops", BURST), changed.get("iodepth", 64)
    cv = changed.get("cv", 0.005)
    view = ran(
        level(iops, 30, cv=cv) + level(iops / 2, 30, cv=cv, seed=6),
        {"iodepth": str(depth)},
        lat_s=(1.5 * depth / iops, depth / iops, changed.get("fastest_s", 20e-6)),
        block_bytes=changed.get("block_bytes", 4096),
    )
    if changed.get("is_remote", True):
        view = replace(view, host=HostFacts(host="local", virtualization="kvm"))
    rates = rates_of(view, "write")
    assert rates is not None
    found = explain_fall(Fall(view, rates, rates.changes[0]))
    assert found.cause is cause
    is_flat = cv <= MAX_FLAT_SPREAD
    assert len(found.candidates) == (3 if cause is Cause.SLOWER and is_flat else 0)


def test_writes_that_stall_repeatedly_have_become_slow() -> None:
    """11,500 IOPS for 20 s, then mostly nothing: its mean is the level; a hang has none."""
    rates = level(11_500, 20) + (level(2000, 3) + [0.0] * 7) * 4
    view = ran(rates)
    (first, *_) = explain(view, "write")
    assert first.cause is Cause.SLOWER
    assert first.from_s == pytest.approx(20, abs=3)
    assert first.evidence["before_iops"] == pytest.approx(11_500, rel=0.05)
    assert first.evidence["stalls"] == 4
    written = rates_of(view, "write")
    assert written is not None
    assert sustained_level(written, [first]).iops == pytest.approx(600, rel=0.3)
    (hung,) = explain(ran([11_500.0] * 20 + [0.0] * 4 + [11_500.0] * 20), "write")[1:]
    assert hung.cause is Cause.STALL
    view = ran([2000.0] * 30 + [0.0] * 30)
    view.summary["lat_max_s"] = 30.0
    causes = {found.cause for found in explain(view, "write")}
    assert Cause.STALL in causes
    assert Cause.SLOWER not in causes
