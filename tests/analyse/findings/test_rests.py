"""The rule on what a rest gives back: hand-made buckets whose refill is known."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from tests.analyse.findings.conftest import (
    BLOCK,
    a_run,
    found,
    over_time,
    utc,
)
from volbench.analyse.frames.run_view import RunView
from volbench.model.results.finding import Finding, Severity

DRAIN = [3000.0] * 60 + [300.0] * 60


def a_rest(rates: Sequence[float], *, rest_s: float, **options: str) -> list[Finding]:
    """Return what is found when a drained volume rests, and then does this."""
    drained = a_run_of("drain", DRAIN, began_s=0.0)
    rested = a_run_of("after", rates, began_s=len(DRAIN) + rest_s, pause_before_s=rest_s, **options)
    return found(drained, rested, rule="credits-refilled")


def a_run_of(
    name: str,
    rates: Sequence[float],
    *,
    began_s: float,
    pause_before_s: float = 0.0,
    **options: str,
) -> RunView:
    """Return a run with a row a second."""
    run = a_run(options, name=name, id=f"{name}-r1", pause_before_s=pause_before_s)
    return over_time(rates, run, started_utc=utc(began_s))


def test_the_recovered_rate_is_reported_as_a_number() -> None:
    """20 s at 3,000 IOPS after 180 s of rest are 60,000 I/Os in 200 s."""
    (entry,) = a_rest([3000.0] * 20 + [300.0] * 40, rest_s=180)
    assert entry.severity is Severity.NOTE
    assert entry.evidence["refill_ios_per_s"] == pytest.approx(300)
    assert entry.evidence["refill_bytes_per_s"] == pytest.approx(300 * BLOCK)
    assert entry.evidence["refill_is"] == "measured"
    assert (entry.from_s, entry.to_s) == (0, 20)
    assert entry.message.startswith("After 3m 00s of idle time the volume delivered 3k IOPS for 20")
    assert "credits refill at 300 I/Os (1.23 MB/s) a second" in entry.message


def test_a_burst_to_the_end_is_a_lower_bound() -> None:
    """A minute at 3,000 IOPS after an hour: the bucket may have held more."""
    (entry,) = a_rest([3000.0] * 60, rest_s=3600)
    assert entry.evidence["refill_is"] == "at least"
    assert entry.evidence["refill_ios_per_s"] == pytest.approx(180_000 / 3660)
    assert "a second or more" in entry.message


def test_a_longer_rest_than_was_requested_counts() -> None:
    """The controller was away for an hour: that is the rest, not the planned minute."""
    drained = a_run_of("drain", DRAIN, began_s=0.0)
    rates = [3000.0] * 20 + [300.0] * 40
    late = a_run_of("after", rates, began_s=len(DRAIN) + 3600.0, pause_before_s=60)
    (entry,) = found(drained, late, rule="credits-refilled")
    assert entry.evidence["rest_s"] == pytest.approx(3600)


@pytest.mark.parametrize(
    ("rates", "options"),
    [
        ([300.0] * 60, {}),
        ([3000.0] * 20 + [1500.0] * 40, {}),
        ([3000.0] * 20 + [300.0] * 40, {"bs": "65536"}),
    ],
    ids=["no burst", "another level", "another job"],
)
def test_nothing_is_reported_without_a_burst_of_the_same_job(
    rates: Sequence[float], options: dict[str, str]
) -> None:
    """Where nothing came back, or it can't be told, no number is made up."""
    assert not a_rest(rates, rest_s=60, **options)


def test_without_a_pause_nothing_is_reported() -> None:
    """Two runs one after another say nothing of a rest."""
    assert not a_rest([3000.0] * 20 + [300.0] * 40, rest_s=0)
