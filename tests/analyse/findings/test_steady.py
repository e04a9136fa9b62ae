"""Rules on how the rate moved over time, and over rounds."""

import math
import re
from collections.abc import Sequence

import numpy as np
import pytest

from tests.analyse.findings.conftest import Until, a_run, a_view, found, over_time, summary_row
from tests.analyse.noise import noisy, restless, times
from tests.planned import planned_campaign
from volbench.analyse.bottleneck.campaign_context import Context
from volbench.analyse.findings import find
from volbench.analyse.findings.rate_rules import _declines
from volbench.analyse.frames.run_view import RunView
from volbench.analyse.time.steady_state import judge_steady
from volbench.model.campaign.planned_run import Imported
from volbench.model.profile.profile_settings import Metric, Rounds, Track
from volbench.model.results.finding import Finding, Severity
from volbench.model.results.steadiness import State


def test_a_step_is_reported_with_its_levels() -> None:
    """From 3,000 to 1,000 after two minutes; or a third less at the end than at the start."""
    rates = [3000.0 * entry / 1000 for entry in restless(120, spread=0.01)]
    (entry,) = found(over_time(rates + restless(180, spread=0.01, seed=2)), rule="not-steady")
    assert entry.severity is Severity.WARNING
    assert entry.evidence["verdict"] == "stepped"
    assert "2m 00s" in entry.message
    assert entry.direction == "write"
    rates = [entry * (1 - 0.33 * t / 600) for t, entry in enumerate(restless(600, spread=0.01))]
    (entry,) = found(over_time(rates), rule="not-steady")
    assert entry.evidence["verdict"] == "drifting"
    assert "drifted down by 26 %" in entry.message


def test_a_drift_is_a_share_of_its_start() -> None:
    """129k to 62k is down by half, although it is 74 % of the median."""
    noise = restless(600, spread=0.01)
    rates = [entry / 1000 * (129_000 - 67_000 * t / 600) for t, entry in enumerate(noise)]
    (entry,) = found(over_time(rates), rule="not-steady")
    assert "drifted down by 42 %, from 121k in the first quarter to 70.3k in" in entry.message


@pytest.mark.parametrize("seconds", [30, 300])
def test_a_steady_rate_has_no_findings(seconds: int) -> None:
    """One per cent of noise is steady."""
    assert found(over_time(restless(seconds, spread=0.01)), rule="not-steady") == []


def test_a_noisy_decline_is_warned_of_with_its_bound() -> None:
    """5.3k to 3.8k IOPS in half a minute, under noise of a fifth."""
    noise = restless(30, spread=0.2, seed=4)
    rates = [entry * (5.3 - 1.5 * second / 29) for second, entry in enumerate(noise)]
    (entry,) = found(over_time(rates), rule="not-steady")
    assert entry.severity is Severity.WARNING
    assert float(entry.evidence["drift_bound_percent"]) > 10
    assert "to call them steady: a drift of up to " in entry.message


@pytest.mark.parametrize(("seconds", "count"), [(5, 0), (6, 1)])
def test_a_short_run_is_not_judged(seconds: int, count: int) -> None:
    """A step within ten seconds proves nothing; in twelve it shows."""
    view = over_time([3000.0] * seconds + [1000.0] * seconds)
    assert len(found(view, rule="not-steady")) == count


@pytest.mark.parametrize(("option", "count"), [("thinktime", 0), ("rate_iops", 1)])
def test_a_pausing_job_is_not_judged(option: str, count: int) -> None:
    """Pauses that were asked for are not the volume's; a rate that it could not keep is."""
    rates = [3000.0] * 120 + [1000.0] * 180
    assert len(found(over_time(rates, a_run({option: "3000"})), rule="not-steady")) == count


def test_a_deadline_before_a_steady_rate_is_reported() -> None:
    """A job with until: steady that ran for all of its time is judged by its last window."""
    run = a_run({"runtime": "300s"}, until=Until(window_s=120, block_s=10))
    falling = [1000.0 - 2 * t for t in range(300)]
    (entry,) = found(over_time(falling, run), rule="not-steady")
    assert "until: steady" in entry.message
    assert entry.from_s == pytest.approx(180)
    late = [3000.0] * 100 + restless(200, spread=0.01)
    assert found(over_time(late, run), rule="not-steady") == []
    early = a_run({"runtime": "900s"}, until=Until(window_s=120, block_s=10))
    assert found(over_time(falling, early), rule="not-steady") == []


def test_a_slow_start_is_a_note() -> None:
    """One slow second at the begin of a minute hardly moves the mean."""
    rates = [500.0, *restless(59, spread=0.005)]
    findings = found(over_time(rates), rule="not-steady")
    assert {finding.severity for finding in findings} <= {Severity.NOTE}
    late = [*restless(30, spread=0.005), *[0.5 * finding for finding in restless(30, spread=0.005)]]
    assert [finding.severity for finding in found(over_time(late), rule="not-steady")] == [
        Severity.WARNING
    ]


def test_noise_that_lasts_is_seldom_called_a_decline() -> None:
    """Of 150 steady series with noise of 20 % that lasts for seconds, 5 are warned of at most."""
    judged = [judge_steady(times(40), noisy(40, cv=0.2, phi=0.6, seed=seed)) for seed in range(150)]
    noise = [verdict for verdict in judged if verdict.state is State.NOISY]
    assert len(noise) > 100
    assert sum(map(_declines, noise)) <= 5


def test_steps_within_ten_percent_are_a_note() -> None:
    """Levels of 1,000 and 930 IOPS: their mean is right within the 10 % that steady allows."""
    rates = restless(60, spread=0.005) + [0.93 * r for r in restless(60, spread=0.005, seed=2)]
    (entry,) = found(over_time(rates), rule="not-steady")
    assert entry.evidence["verdict"] == "stepped"
    assert entry.severity is Severity.NOTE


@pytest.mark.parametrize(
    ("low", "seconds", "severities"),
    [
        (400.0, 300, [Severity.WARNING]),
        (600.0, 300, [Severity.NOTE]),
        (900.0, 300, []),
        (400.0, 1200, []),  # its mean is off by one in 600 at most
    ],
)
def test_a_rate_that_alternates_is_not_steady(
    low: float, seconds: int, severities: list[Severity]
) -> None:
    """Medians of blocks say nothing of two levels that change each second."""
    rates = [1000.0 if second % 2 else low for second in range(seconds)]
    entries = found(over_time(rates), rule="not-steady")
    assert [entry.severity for entry in entries] == severities
    for entry in entries:
        assert f"alternate between {low:.0f} and 1k, every 2s on average." in entry.message
        assert entry.evidence["verdict"] == "noisy"


@pytest.mark.parametrize(
    ("slowest_s", "period", "is_named"), [(0.6, 5, 1), (1.0, 5, 0), (0.3, 5, 0), (0.6, 2, 0)]
)
def test_periodic_stalls_are_named(slowest_s: float, period: int, is_named: int) -> None:
    """A second of 420 IOPS every 5 s lacks 0.58 s, which is what the slowest I/O took."""
    rates = [420.0 if second % period == 1 else 1000.0 for second in range(60)]
    (entry,) = found(over_time(rates, lat_max_s=slowest_s), rule="not-steady")
    assert entry.severity is Severity.WARNING
    assert entry.message.count("as if nothing completed for 0.58s each time") == is_named


def test_alternating_levels_of_a_short_run_are_named() -> None:
    """Means over four periods are too few to judge in 30 s; the levels show."""
    view = over_time([500.0, 1500.0] * 15)
    (entry,) = found(view, rule="not-steady")
    assert "alternate between 500 and 1.5k, every 2s" in entry.message
    assert (entry.from_s, entry.to_s) == (0.0, 30.0)
    assert Context((view,)).steadiness(view, "write").state is State.NOISY


def test_a_rise_by_nineteen_is_a_warning_in_a_short_run_too() -> None:
    """Noise of 30 % does not rise from 100 to 1,900 within 16 s, and a mean is not its level."""
    noise = restless(16, spread=0.3, seed=3)
    rates = [entry * (0.1 + 1.8 * second / 15) for second, entry in enumerate(noise)]
    assert [entry.severity for entry in found(over_time(rates), rule="not-steady")] == [
        Severity.WARNING
    ]
    few = [entry / 50 for entry in rates]  # 2 to 38 I/Os a second may be chance
    assert all(
        entry.severity is Severity.NOTE for entry in found(over_time(few), rule="not-steady")
    )
    late = [100.0] * 191 + [1900.0] * 9  # at its end only, but that moves the mean by half
    assert [entry.severity for entry in found(over_time(late), rule="not-steady")] == [
        Severity.WARNING
    ]


def test_no_sentence_holds_an_invalid_number() -> None:
    """A rate cannot fall by more than all of it, and an interval over 10x says nothing."""
    fall = [4000.0 * 0.9**second + 5 for second in range(60)]
    wild = [float(1000 * 10 ** (2 * np.sin(7.0 * second))) for second in range(40)]
    messages = [
        entry.message
        for rates in (fall, fall[::-1], wild)
        for entry in found(over_time(rates), rule="not-steady")
    ]
    assert len(messages) == 3
    for message in messages:
        percents = [float(text) for text in re.findall(r"([\d.]+) %", message)]
        assert all(percent < 100 for percent in percents), message
        assert "0.0000" not in message


def _of_any(views: Sequence[RunView], *, rule: str) -> list[Finding]:
    return [entry for entry in find(Context(tuple(views))) if entry.rule == rule]


@pytest.mark.parametrize(
    ("rates", "odd"),
    [
        ((1900.0, 1000.0, 1100.0), []),
        ((2100.0, 1000.0, 1100.0), ["001-a-r1"]),
        ((2100.0, 1000.0, 2000.0), ["001-a-r2"]),
        ((1000.0, 1100.0, 1200.0, 2100.0), ["001-a-r4"]),
        ((1000.0, 2100.0), ["001-a-r2"]),
    ],
)
def test_repeats_that_differ_twofold_are_warned_of(
    rates: tuple[float, ...], odd: list[str]
) -> None:
    """One finding, at the repeat that differs from the others; of two, at the second."""
    views = [
        over_time(
            [rate] * 60, a_run().model_copy(update={"id": f"001-a-r{repeat}", "repeat": repeat})
        )
        for repeat, rate in enumerate(rates, start=1)
    ]
    entries = _of_any(views, rule="uneven-repeats")
    assert [entry.run for entry in entries] == odd
    assert all("by a factor of 2.1" in entry.message for entry in entries)


def test_a_rejected_repeat_is_not_quoted() -> None:
    """Its latency allows no such rate; the others agree."""
    for latency_s, count in ((1e-6, 1), (0.1, 0)):
        views = [
            over_time(
                [rate] * 60,
                a_run().model_copy(update={"id": f"001-a-r{n}", "repeat": n}),
                numjobs=1,
            )
            for n, rate in enumerate((50_000.0, 1000.0, 1100.0), start=1)
        ]
        views[0].summary.loc[:, "lat_mean_s"] = latency_s
        assert len(found(views[0], rule="contradicting-latency")) == 1 - count
        assert len(_of_any(views, rule="uneven-repeats")) == count


@pytest.mark.parametrize(
    ("imported", "depths", "count"),
    [
        (None, "11", 0),
        (Imported(files=(), jobs=(), folder="r"), "11", 1),
        (Imported(files=(), jobs=(), folder="r"), "12", 0),
    ],
)
def test_jobs_are_no_repeats_but_files_of_one_workload_are(
    imported: Imported | None, depths: str, count: int
) -> None:
    """Two jobs on one volume have rates of their own; r1.json and r2.json of one test have not."""
    views = [
        over_time(
            [rate] * 60,
            a_run({"iodepth": depth}, name=name, imported=imported),
            import_folder=imported and imported.folder,
            iodepth=int(depth),
        )
        for name, rate, depth in zip(("r1", "r2"), (1e3, 4e3), depths, strict=True)
    ]
    assert len(_of_any(views, rule="uneven-repeats")) == count


@pytest.mark.parametrize(("slowest_s", "count"), [(0.01, 0), (5.0, 1)])
def test_a_replay_is_idle_or_stalls(slowest_s: float, count: int) -> None:
    """Nothing completed for 5 s: without an I/O that took so long, the recording was idle."""
    rates = [1000.0] * 10 + [0.0] * 5 + [1000.0] * 10
    replay = a_run({"read_iolog": "../../replay/lane-00.iolog"})
    assert len(found(over_time(rates, replay, lat_max_s=slowest_s), rule="stall")) == count
    assert len(found(over_time(rates, lat_max_s=slowest_s), rule="stall")) == 1


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
    campaign = planned_campaign(*(run for run, _ in runs), rounds={"p": rounds})
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
