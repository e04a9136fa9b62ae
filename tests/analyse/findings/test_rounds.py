"""Rounds that ended without steady state are not steady."""

import math
from collections.abc import Sequence

import pytest

from tests.analyse.findings.conftest import a_run, a_view, found, summary_row
from volbench.analyse.bottleneck.campaign_context import Context
from volbench.analyse.findings import find
from volbench.analyse.frames.run_view import RunView
from volbench.model.campaign.planned_run import Campaign
from volbench.model.profile.profile_settings import Metric, Rounds, Track
from volbench.model.results.finding import Finding, Severity

STILL = (1000.0, 1010, 990, 1000, 1000)
FALLING = (6000.0, 5000, 4000, 3000, 2000)


def rounds_of(max_rounds: int = 5, **by_job: Sequence[float]) -> list[RunView]:
    """Return the runs of a profile that tracks IOPS of all its jobs; NaN for one that failed."""
    rounds = Rounds(
        max_rounds=max_rounds, track=tuple(Track(job=job, metric=Metric.IOPS) for job in by_job)
    )
    runs = [
        (a_run(name=job).model_copy(update={"id": f"{number}-{job}", "repeat": number}), iops)
        for number, values in enumerate(zip(*by_job.values(), strict=True), start=1)
        for job, iops in zip(by_job, values, strict=True)
    ]
    campaign = Campaign(
        name="c",
        created_utc="2026-01-01T00:00:00Z",
        runs=tuple(run for run, _ in runs),
        seed=1,
        rounds={"p": rounds},
    )
    return [
        a_view(
            run,
            campaign=campaign,
            summary=[
                summary_row(run, iops=iops, status="failed" if math.isnan(iops) else "finished")
            ],
        )
        for run, iops in runs
    ]


def reported_of(views: Sequence[RunView]) -> list[Finding]:
    """Return what the rule says of the last run."""
    return found(*views, rule="not-steady")


def test_rounds_that_still_fall_are_reported_with_their_numbers() -> None:
    """By hand: 6,000 to 2,000 is a range of 100 % of 4,000, and so is the line's change."""
    (entry,) = reported_of(rounds_of(w=FALLING))
    assert entry.severity is Severity.WARNING
    assert entry.evidence["rounds"] == 5
    assert entry.evidence["not_steady"] == "w.iops"
    assert entry.evidence["range_percent"] == pytest.approx(100)
    assert entry.evidence["slope_percent"] == pytest.approx(100)
    assert "steady state not achieved in 5 rounds" in entry.message
    assert "w.iops ranged over 100 % of its mean" in entry.message
    (entry,) = reported_of(rounds_of(w=(1000.0, 1000, math.nan, 1000, 1000)))
    assert "w.iops lacks a value" in entry.message


@pytest.mark.slow
def test_only_variables_that_fail_are_named() -> None:
    """One that is still keeps quiet beside one that is not; it is one finding for all."""
    views = rounds_of(w=FALLING, r=STILL)
    (entry,) = reported_of(views)
    assert entry.evidence["not_steady"] == "w.iops"
    everything = find(Context(tuple(views)))
    assert [reported.run for reported in everything if reported.rule == entry.rule] == ["5-r"]


@pytest.mark.slow
def test_steady_rounds_have_no_findings() -> None:
    """Neither at the first five, nor where it took more."""
    assert not reported_of(rounds_of(w=STILL))
    assert not reported_of(rounds_of(max_rounds=25, w=FALLING + STILL))


@pytest.mark.slow
def test_a_stopped_campaign_says_how_far_it_came() -> None:
    """Fewer rounds than planned, and fewer than can be judged."""
    (some,) = reported_of(rounds_of(max_rounds=25, w=FALLING))
    assert "not steady after 5 of at most 25 rounds" in some.message
    (few,) = reported_of(rounds_of(max_rounds=25, w=STILL[:3]))
    assert "needs 5 rounds" in few.message
    assert "range_percent" not in few.evidence
