"""Trends over campaigns whose levels are known: regressions, limits, and silence about noise."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pandas as pd
import pytest
from scipy.stats import t

from tests import nightly_campaigns
from tests.analyse.compared_rows import findings_of, no_findings
from tests.nightly_campaigns import WORKLOADS, Level, dropping, steady
from volbench.analyse.compare.workload_trends import (
    EARLY_FALSE_ALARMS,
    State,
    Trend,
    TrendQuestion,
    Trends,
    find_trends,
)
from volbench.errors import ComparisonError
from volbench.present.tables.compare_table import trend_headline, trend_words

SINGLE = WORKLOADS[:1]


def summary_of(
    nights: int,
    *,
    level: Level = steady,
    workloads: tuple[tuple[str, int], ...] = SINGLE,
    seed: int = 1,
) -> pd.DataFrame:
    """Return the summary of many nights, of one workload unless others are named."""
    return nightly_campaigns.summary_of(nights, level=level, workloads=workloads, seed=seed)


def trends_of(summary: pd.DataFrame, **options: object) -> list[Trend]:
    """Return the trends of IOPS."""
    question = TrendQuestion(metrics=("iops",), **options)  # type: ignore[arg-type]  # by name
    return list(find_trends(summary, no_findings(), question).rows)


def only(summary: pd.DataFrame, **options: object) -> Trend:
    """Return the only trend."""
    (trend,) = trends_of(summary, **options)
    return trend


def test_a_lasting_drop_is_a_regression() -> None:
    """The night, the size and the level are those that were made."""
    trend = only(summary_of(40, level=dropping(at=30)))
    assert trend.state is State.REGRESSION
    (change,) = trend.changes
    assert trend.campaigns[change.place] == "2026-01-31"
    assert trend.loss(trend.level) == pytest.approx(0.15, abs=0.02)
    assert set(range(32, 40)) <= {*trend.outside}


@pytest.mark.parametrize(("hours", "when"), [(24, "2026-01-31"), (1, "2026-01-02 06:00")])
def test_campaigns_of_one_day_have_times(hours: int, when: str) -> None:
    """The words name the campaign by its date, and by its time if that is not enough."""
    summary = summary_of(40, level=dropping(at=30))
    began = pd.date_range("2026-01-01", periods=len(summary), freq=f"{hours}h")
    summary["started_utc"] = began.strftime("%Y-%m-%dT%H:%M:%S.000Z")
    assert f"since {when}" in trend_words(only(summary))


@pytest.mark.slow
def test_noise_alone_is_stable() -> None:
    """A year of nine workloads has hardly a change, and few values beyond their limits."""
    trends = trends_of(summary_of(350, workloads=WORKLOADS))
    assert {trend.state for trend in trends} == {State.STABLE}
    assert sum(len(trend.changes) for trend in trends) <= 2
    assert sum(len(trend.outside) for trend in trends) < 15


def test_a_drop_that_recovered_is_history() -> None:
    """Changes are listed; a level that rose is told, which is worse for a latency."""

    def level(night: int, place: int) -> float:
        return steady(night, place) * (0.7 if 15 <= night < 25 else 1.0)

    trend = only(summary_of(45, level=level))
    assert (trend.state, len(trend.changes)) == (State.STABLE, 2)
    rising = summary_of(40, level=dropping(at=30, factor=1.3))
    assert only(rising).state is State.IMPROVED
    slower = rising.assign(lat_p99_s=rising["iops"] / 1e6)
    (trend,) = find_trends(slower, no_findings(), TrendQuestion(metrics=("p99",))).rows
    assert trend.state is State.REGRESSION


@pytest.mark.parametrize(("nights", "state"), [(1, State.TOO_FEW), (4, State.TOO_FEW)])
def test_too_few_campaigns_are_reported(nights: int, state: State) -> None:
    """Nothing is judged before a reference period and one campaign behind it."""
    trend = only(summary_of(nights, level=dropping(at=nights - 1)))
    assert (trend.state, trend.limits) == (state, None)
    assert trend.shortage == f"{nights} of at least 5 campaigns"
    assert trend.reference == max(1, nights - 1)


@pytest.mark.slow
def test_five_campaigns_are_enough() -> None:
    """A collapse is seen, noise is not, and the reference grows to eight campaigns before more."""
    for nights, reference in ((5, 4), (6, 5), (9, 8), (16, 8), (20, 10)):
        trend = only(summary_of(nights, level=dropping(at=nights - 1, factor=0.3)))
        assert (trend.state, trend.reference) == (State.OUTSIDE, reference)
    states = [only(summary_of(5, seed=seed), tolerance=0.0001).state for seed in range(200)]
    assert states.count(State.OUTSIDE) <= 5  # 1 % at most: 2 are expected


def test_limits_that_show_nothing_decide_nothing() -> None:
    """Nobody reads limits from 0 to 108,009T as stable; a collapse beyond them is seen."""

    def ending_at(last: float) -> Trend:
        rates = [2000.0, 200.0, 3000.0, 500.0, last]
        return only(summary_of(5, level=lambda night, _: rates[night]))

    calm, low = ending_at(1000.0), ending_at(1e-9)
    assert calm.limits is not None
    assert calm.limits.high > 10 * calm.limits.centre
    assert calm.state is State.TOO_FEW
    assert trend_words(calm) == "4 reference campaigns are too few to show a change below 10x"
    assert low.state is State.OUTSIDE
    rates = [20000.0, 24000.0, 17000.0, 22000.0, 19000.0, 21000.0]
    wide = only(summary_of(6, level=lambda night, _: rates[night]))
    assert wide.limits is not None
    assert 2 < wide.limits.high / wide.limits.centre < 10
    assert wide.state is State.TOO_FEW  # half of it could be lost unnoticed
    assert Trends((wide,), (), wide.campaigns).undecided == (wide,)
    assert Trends((wide,), (), ("later",)).undecided == ()  # a workload that is gone
    assert Trends((wide,), ()).false_alarms == EARLY_FALSE_ALARMS


def test_a_reference_period_ends_at_a_change() -> None:
    """A change in its first nights leaves no limits; it is a regression all the same."""
    trend = only(summary_of(40, level=dropping(at=3)))
    assert (trend.reference, trend.limits) == (3, None)
    assert trend.state is State.REGRESSION


@pytest.mark.parametrize(
    ("at", "few"), [(1, "1 campaign before is"), (2, "2 campaigns before are")]
)
def test_a_fall_after_one_or_two_nights_is_not_stable(at: int, few: str) -> None:
    """Nothing confirms the level before it."""
    for nights in (6, 30):
        trend = only(summary_of(nights, level=dropping(at=at, factor=0.7)))
        assert (trend.state, trend.reference) == (State.TOO_FEW, at)
        day = f"2026-01-0{at + 1}"
        assert trend_words(trend).endswith(f" on {day}: {few} too few to confirm it")
        assert Trends((trend,), ()).judged == (trend,)


@pytest.mark.slow
def test_a_fall_in_the_last_nights_is_not_stable() -> None:
    """Of six, two show it, but do not confirm it; at most 2 % of unchanged series look like it."""

    def of(rates: npt.NDArray[np.float64]) -> Trend:
        return only(summary_of(len(rates), level=lambda night, _: float(rates[night])))

    assert of(np.array([1000.0, 1004, 999, 1002, 700, 702])).state is not State.STABLE
    rng = np.random.default_rng(1)
    words = set()
    for _ in range(20):
        rates = 1000 * np.exp(0.05 * rng.standard_normal(6)) * [1, 1, 1, 1, 0.7, 0.7]
        late = of(rates)
        words.update([trend_words(late)] if late.is_late else [])
        assert not late.is_late or (late.state, late.limits) == (State.TOO_FEW, None)
    assert any(text.endswith("the last 2 campaigns are too few to confirm it") for text in words)
    noise = (1000 * np.exp(0.05 * rng.standard_normal(6)) for _ in range(300))
    assert sum(of(rates).state is not State.STABLE for rates in noise) <= 6


def test_the_reference_period_can_be_chosen() -> None:
    """Its length is that which was asked for."""
    assert only(summary_of(60), reference=30).reference == 30
    assert only(summary_of(60)).reference == 30
    assert only(summary_of(120)).reference == 50


@pytest.mark.parametrize(("factor", "state"), [(0.97, State.STABLE), (0.92, State.REGRESSION)])
def test_five_percent_are_tolerated(factor: float, state: State) -> None:
    """Less is within the noise of cloud volumes."""
    assert only(summary_of(120, level=dropping(at=60, factor=factor))).state is state


def test_limits_are_computed_from_moving_ranges() -> None:
    """Student's t at 0.01 %, with 0.605 degrees of freedom a difference, and d2 of 1.128."""
    trend = only(summary_of(20))
    logs = np.log(trend.results[: trend.reference])
    assert trend.limits is not None
    scatter = np.abs(np.diff(logs)).mean() / 1.128
    width = t.ppf(0.9999, 0.605 * (len(logs) - 1)) * np.sqrt(1 + 1 / len(logs))
    assert np.log(trend.limits.high / trend.limits.centre) == pytest.approx(width * scatter)


def test_a_campaign_almost_without_io_has_a_logarithm() -> None:
    """It counts as one percent of the usual level."""

    def level(night: int, place: int) -> float:
        return 1e-6 if night == 3 else steady(night, place)

    trend = only(summary_of(20, level=level))
    assert trend.limits is not None
    assert trend.limits.centre / trend.results[0] == pytest.approx(0.01 ** (1 / 10), rel=0.05)


def test_changed_facts_are_listed_beside_the_change() -> None:
    """Both values are named, and that is all: no cause is claimed."""
    summary = summary_of(40, level=dropping(at=30))
    nights = summary["campaign"].unique()
    facts = {name: {"kernel": "6.1" if n < 30 else "6.8"} for n, name in enumerate(nights)}
    (trend,) = find_trends(
        summary, no_findings(), TrendQuestion(metrics=("iops",)), facts=facts
    ).rows
    assert trend.changes[0].facts == ("kernel: 6.1 -> 6.8",)


def test_campaigns_are_in_the_order_of_their_starts() -> None:
    """The order of folders does not matter."""
    backwards = summary_of(40, level=dropping(at=30)).iloc[::-1].reset_index(drop=True)
    assert only(backwards).state is State.REGRESSION
    undated = backwards.assign(started_utc=None)
    found = find_trends(undated, no_findings(), TrendQuestion(metrics=("iops",)))
    assert any("sorted by name" in remark for remark in found.remarks)


def test_nights_of_one_folder_are_campaigns() -> None:
    """Imported results of several nights in one campaign are told apart by their times."""
    trend = only(summary_of(6).assign(campaign="imported"))
    assert [*trend.campaigns] == sorted({start[:10] for start in trend.started_utc})


def test_a_missing_workload_is_reported() -> None:
    """It would otherwise look healthy for ever."""
    summary = summary_of(12, workloads=WORKLOADS[:2])
    gone = summary[~(summary["campaign"].eq("2026-01-12") & summary["rw"].eq("randwrite"))]
    found = find_trends(gone.reset_index(drop=True), no_findings(), TrendQuestion())
    assert "not in 2026-01-12: randwrite 4k, queue depth 4" in found.remarks


def disturbed(summary: pd.DataFrame, nights: Sequence[int]) -> pd.DataFrame:
    """Name each run after its night; return findings that the host disturbed some nights."""
    names = summary["campaign"].unique()
    summary["run"] = summary["campaign"] + "/" + summary["run"]
    noisy = summary[summary["campaign"].isin([names[night] for night in nights])]
    return findings_of(*(("host-noise", "note", run, "read") for run in noisy["run"]))


def test_volumes_and_labels_of_a_campaign_are_apart_and_a_new_name_is_no_other_volume() -> None:
    """A drop of one volume does not hide behind others; one volume a night is one series."""
    good, bad = summary_of(40), summary_of(40, level=dropping(at=30))
    both = pd.concat([good.assign(volume="/dev/sda"), bad], ignore_index=True)
    states = {"/dev/sda": State.STABLE, "/dev/sdb": State.REGRESSION}
    assert {trend.by["volume"]: trend.state for trend in trends_of(both)} == states
    tiers = both.assign(label_tier=both["volume"].str[-1])
    assert [dict(trend.by) for trend in trends_of(tiers)] == [{"tier": "a"}, {"tier": "b"}]
    trend = only(bad.assign(volume="/dev/" + bad["campaign"]))
    assert (trend.state, trend.by) == (State.REGRESSION, {})


def test_rates_of_clients_at_one_time_are_their_total() -> None:
    """It is that of the aggregate, and of a host alone what it had."""
    hosts = [summary_of(9, seed=n).assign(host=f"h{n}", step="1/1") for n in (1, 2)]
    keys = hosts[0][["campaign", "group", "direction"]].assign(step="1", repeat="1", clients=2)
    sums = keys.assign(iops=[2000.0 + night for night in range(9)], bw_bytes_per_s=1.0)
    question = TrendQuestion(metrics=("iops",))
    rows = pd.concat(hosts, ignore_index=True)
    (trend,) = find_trends(rows, no_findings(), question, sums=sums).rows
    assert trend.results.tolist() == [2000.0 + night for night in range(9)]
    (alone,) = find_trends(hosts[0], no_findings(), question, sums=sums.assign(clients=1)).rows
    assert alone.results.tolist() == hosts[0]["iops"].tolist()


def test_a_night_with_a_busy_host_is_not_judged() -> None:
    """What the host slowed is no level of the volume, and the remark names those nights."""
    summary = summary_of(40, level=lambda n, place: steady(n, place) * (0.7 if n > 36 else 1))
    findings = disturbed(summary, [20, 37, 38, 39])
    question = TrendQuestion(metrics=("iops",))
    found = find_trends(summary, findings, question)
    assert (found.rows[0].state, len(found.rows[0].results)) == (State.STABLE, 36)
    assert [remark.split(":")[:2] for remark in found.remarks] == [
        ["left out of 1 of 1 trend", " 2026-02-09, 2026-02-08, 2026-02-07 and 2026-01-21"]
    ]
    assert trend_headline(found).startswith("Trends over 40 campaigns (2026-01-01 to ")
    bad = findings.assign(severity="invalid").tail(1)
    assert find_trends(summary, bad, question).remarks[1] == "no valid result in 2026-02-09"
    (trend,) = find_trends(summary, findings, replace(question, keep_invalid=True)).rows
    assert (trend.state, trend.disturbed) == (State.REGRESSION, ())


def test_a_host_that_is_always_busy_is_judged() -> None:
    """Its nights are like each other: all count."""
    summary = summary_of(40, level=dropping(at=30))
    findings = disturbed(summary, range(40))
    (trend,) = find_trends(summary, findings, TrendQuestion(metrics=("iops",))).rows
    assert (trend.state, len(trend.results), trend.disturbed) == (State.REGRESSION, 40, ())
    assert trend.campaigns[trend.changes[0].place] == "2026-01-31"


def test_a_trend_without_workloads_is_an_error() -> None:
    """The error says that no run reports the metric, or which rule rejected all."""
    summary = summary_of(3).assign(iops=float("nan"))
    with pytest.raises(ComparisonError, match="there is no trend to show"):
        trends_of(summary)
    summary = summary_of(5)
    found = {"run": summary["run"].unique(), "severity": "invalid", "rule": "page-cache"}
    with pytest.raises(ComparisonError, match="invalid by page-cache, left out"):
        find_trends(summary, pd.DataFrame(found).assign(direction=None), TrendQuestion())
