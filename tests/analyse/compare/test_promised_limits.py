"""Audit of runs made by hand: what is delivered, what falls short, and what decides nothing."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
import pytest

from tests.analyse.findings.conftest import identity, summary_row
from tests.analyse.noise import noisy
from tests.analyse.runs_at_levels import level, ran
from tests.planned import planned_campaign
from volbench.analyse.bottleneck.campaign_context import Context, verdict_rows
from volbench.analyse.compare.delivered_rate import mean_rate, share_reached
from volbench.analyse.compare.promised_limits import Delivery, Outcome, deliveries, latencies
from volbench.analyse.frames.run_view import RunView
from volbench.errors import InputError
from volbench.model.campaign.planned_run import Campaign, Run
from volbench.model.frames.columns import Row
from volbench.model.profile.profile_settings import Limits
from volbench.store.parquet_tables import frame_of, table_of

PROMISED = Limits(iops=1000, time_percent=99.9)


def audited(*views: RunView, finding: Row | None = None) -> list[Delivery]:
    """Return the deliveries of runs of one campaign, with at most one finding."""
    runs = [
        view.run.model_copy(update={"id": f"{number:03}-run", "step": number})
        for number, view in enumerate(views, start=1)
    ]
    campaign = planned_campaign(*runs)
    named = [_named(view, campaign, run) for view, run in zip(views, runs, strict=True)]
    made = {"verdicts": verdict_rows(Context(tuple(named))), "findings": []}
    if finding is not None:
        made["findings"].append({**identity(runs[0]), **finding})

    def frame(name: str) -> pd.DataFrame:
        if name in made:
            return frame_of(table_of(name, made[name]))
        frames: list[pd.DataFrame] = [getattr(view, name) for view in named]
        return pd.concat(frames, ignore_index=True)

    return deliveries(frame, {view.run.id: view.run for view in named})


def _named(view: RunView, campaign: Campaign, run: Run) -> RunView:
    frames = {
        part: getattr(view, part).assign(run=run.id)
        for part in ("summary", "series", "device", "percentiles")
    }
    frames["summary"]["block_bytes"] = int(run.options["bs"])
    frames["summary"]["iodepth"] = int(run.options["iodepth"])
    frames["summary"]["started_utc"] = f"2026-01-01T00:{run.step:02}:00Z"
    return RunView(campaign=campaign, run=run, **frames)


def at(
    rates: Sequence[float],
    depth: int = 64,
    *,
    limits: Limits = PROMISED,
    block_bytes: int = 4096,
    **options: str,
) -> RunView:
    """Return a run of small writes at a queue depth, with rates second by second."""
    return ran(rates, {"iodepth": str(depth), **options}, limits=limits, block_bytes=block_bytes)


def both(rates: Sequence[float], *, limits: Limits = PROMISED) -> tuple[RunView, RunView]:
    """Return runs at two queue depths that reach the same, in another order of seconds."""
    return at(rates, 64, limits=limits), at(rates[::-1], 256, limits=limits)


def test_a_volume_at_its_limit_delivers() -> None:
    """Ten seconds show the rate, the share of time takes an hour; a machine may promise less."""
    (found,) = audited(*both(level(1000, 300)))
    assert found.outcome is Outcome.DELIVERS
    assert found.limit == "write IOPS"
    assert found.rate.low <= 1000 <= found.rate.high
    assert found.share.low > 0.98
    assert found.time_outcome is Outcome.UNDECIDED
    assert 2000 < found.more_s < 10_000
    limits = Limits(iops=1000, name="azure/P30", machine="m", machine_limits=("iops",))
    (found,) = audited(*both(level(1000, 60), limits=limits))
    assert found.outcome is Outcome.DELIVERS
    assert found.promise.name == "azure/P30, limited by the machine m"


def test_other_disks_of_the_machine_leave_a_shortfall_undecided() -> None:
    """What they took is not what the provider owes; a volume that delivers beside them does."""
    load: Row = {"rule": "other-load", "severity": "warning"}
    (short,) = audited(*both(level(800, 60)), finding=load)
    assert short.outcome is Outcome.UNDECIDED
    assert short.reason.startswith("other load on the device or the machine")
    assert short.causes[0] == "other load on the device or the machine"
    (kept,) = audited(*both(level(1000, 60)), finding=load)
    assert kept.outcome is Outcome.DELIVERS


@pytest.mark.parametrize("share", [0.95, 0.8])
def test_a_lower_limit_falls_short(share: float) -> None:
    """The shortfall is named with its interval, and what is the bottleneck."""
    (found,) = audited(*both(level(1000 * share, 120)))
    assert found.outcome is Outcome.FALLS_SHORT
    assert found.shortfall.estimate == pytest.approx(1 - share, abs=0.003)
    assert 0.0005 < found.shortfall.high - found.shortfall.low < 0.01
    assert "throttled in IOPS" in found.causes


def test_noise_leaves_it_undecided_and_says_how_long_it_takes() -> None:
    """Autocorrelated noise has fewer independent seconds than it has seconds."""
    rates = [float(rate) for rate in 0.98 * noisy(60, cv=0.2, seed=3, phi=0.8)]
    (found,) = audited(at(rates, limits=Limits(iops=1000)))
    assert found.outcome is Outcome.UNDECIDED
    assert found.reason.startswith("about ")
    assert found.effective < 30


def test_a_rate_at_the_edge_is_not_worth_waiting_for() -> None:
    """A mean of 99 % of the promise stays undecided, and so do runs that differ sevenfold."""
    rates = [990.0] + [985.0, 995.0] * 60
    (found,) = audited(at(rates, limits=Limits(iops=1000)))
    assert found.outcome is Outcome.UNDECIDED
    assert found.reason.startswith("too near the limit")
    limits = Limits(iops=100_000)
    (found,) = audited(*(at(level(rate, 60), limits=limits) for rate in (690, 700, 100)))
    assert found.is_wide
    assert found.outcome is Outcome.UNDECIDED


def test_seconds_within_ten_percent_are_delivered() -> None:
    """Seconds at 95 % count, seconds at 85 % do not; one bad minute in ten refutes 99.9 %."""
    (kept,) = audited(*both(level(950, 120)))
    assert kept.share.estimate == 1
    spoilt = level(1000, 300)
    for begin in range(10, 300, 30):
        spoilt[begin : begin + 2] = [850.0, 850.0]
    (found,) = audited(*both(spoilt))
    assert found.share.estimate == pytest.approx(1 - 20 / 299, abs=0.01)
    assert found.outcome is Outcome.FALLS_SHORT
    assert found.time_outcome is Outcome.FALLS_SHORT


def test_a_burst_does_not_show_the_sustained_rate() -> None:
    """While credits last nothing is decided; the seconds after them decide."""
    limits = Limits(iops=1000, burst_iops=3000, burst_ios=600_000)
    (found,) = audited(*both(level(3000, 120), limits=limits))
    assert found.outcome is Outcome.UNDECIDED
    assert found.reason.endswith("from full buckets after 5m 00s")
    ending = level(3000, 60) + level(1000, 120)
    (found,) = audited(at(ending, limits=limits))
    assert found.outcome is Outcome.DELIVERS
    assert found.rate.estimate == pytest.approx(1000, rel=0.01)
    (found,) = audited(at(level(3000, 60) + level(800, 120), limits=limits))
    assert found.outcome is Outcome.UNDECIDED or found.shortfall.estimate == pytest.approx(0.2, 0.1)


def test_a_deeper_queue_that_gains_decides_nothing() -> None:
    """A queue that is too short is not the volume's fault."""
    (found,) = audited(at(level(400, 60), 16), at(level(800, 60), 64))
    assert found.outcome is Outcome.UNDECIDED
    assert found.reason == "the deepest queue gained 100 %: a deeper one may gain more"
    (found,) = audited(at(level(1000, 60), 64), at(level(500, 60), 16))
    assert found.outcome is Outcome.DELIVERS


def test_what_makes_a_result_doubtful_decides_nothing() -> None:
    """Reads of cold blocks, and invalid results, show nothing of the limit."""
    for rule, severity, reason in (
        ("cold-blocks", "warning", "cold blocks: warm up the volume first"),
        ("io-errors", "invalid", "finding io-errors: see volbench check"),
    ):
        finding: Row = {"rule": rule, "severity": severity, "message": "m"}
        (found,) = audited(*both(level(500, 60)), finding=finding)
        assert found.outcome is Outcome.UNDECIDED
        assert found.reason == reason
    finding = {"rule": "throttled", "severity": "warning", "message": "m"}
    (found,) = audited(*both(level(500, 60)), finding=finding)
    assert found.outcome is Outcome.FALLS_SHORT


@pytest.mark.parametrize(
    ("rule", "rate", "outcome"),
    [
        ("never-written", 500, Outcome.FALLS_SHORT),
        ("never-written", 1000, Outcome.UNDECIDED),
        ("host-cache", 500, Outcome.FALLS_SHORT),
        ("host-cache", 1500, Outcome.UNDECIDED),
        ("cold-blocks", 500, Outcome.UNDECIDED),
        ("cold-blocks", 1000, Outcome.DELIVERS),
        ("cpu-bound", 500, Outcome.UNDECIDED),
        ("cpu-bound", 1000, Outcome.DELIVERS),
    ],
)
def test_a_disturbance_leaves_what_it_can_not_have_made(
    rule: str, rate: float, outcome: Outcome
) -> None:
    """Blocks that were never written only read faster, and cold blocks only slower."""
    finding: Row = {"rule": rule, "severity": "warning", "message": "m"}
    (found,) = audited(*both(level(rate, 60)), finding=finding)
    assert found.outcome is outcome


def test_more_than_promised_is_delivered() -> None:
    """That the rate is above its limit is no reason against it; a cache is named as one for it."""
    above: Row = {"rule": "host-cache", "severity": "warning", "evidence": '{"declared": 1000}'}
    (found,) = audited(*both(level(1500, 60)), finding=above)
    assert found.outcome is Outcome.DELIVERS
    assert found.reason.startswith("more than promised")
    limits = Limits(iops=1000, bandwidth_bytes_per_s=1e10)
    large = [at(level(900, 60), depth, limits=limits, block_bytes=1 << 20) for depth in (4, 16)]
    iops, bandwidth = audited(*large)
    assert (iops.outcome, bandwidth.outcome) == (Outcome.FALLS_SHORT, Outcome.OUT_OF_REACH)
    assert bandwidth.reason == "1k IOPS in blocks of 1m are 1.05 GB/s at most"


def test_what_the_host_took_decides_nothing() -> None:
    """Disturbed seconds are left out; if they are the majority, the verdict is open."""
    rates = [1000.0] * 60
    few: list[Row] = [{"t_s": t + 1.0, "steal_percent": 30.0 * (t % 4 == 0)} for t in range(60)]
    slowed = [rate * (0.6 if t % 4 == 0 else 1.0) for t, rate in enumerate(rates)]
    (found,) = audited(_stolen(slowed, few))
    assert found.outcome is Outcome.DELIVERS
    most: list[Row] = [{"t_s": t + 1.0, "steal_percent": 30.0 * (t % 4 != 0)} for t in range(60)]
    slowed = [rate * (0.6 if t % 4 != 0 else 0.9) for t, rate in enumerate(rates)]
    (found,) = audited(_stolen(slowed, most))
    assert found.outcome is Outcome.UNDECIDED
    assert found.reason.startswith("the host disturbed 7")


def _stolen(rates: Sequence[float], samples: Sequence[Row], depth: int = 64) -> RunView:
    rows = [
        {"device": "sdb", "level": "volume", "interval_s": 1.0, "after_fio": False, **sample}
        for sample in samples
    ]
    return ran(rates, {"iodepth": str(depth)}, limits=PROMISED, device=rows)


_EMPTY: Row = {"rule": "never-written", "severity": "invalid"}
_ALL_STOLEN: list[Row] = [{"t_s": t + 1.0, "steal_percent": 30.0} for t in range(60)]


def test_a_run_that_the_host_disturbed_throughout_is_left_out() -> None:
    """Its seconds count only where the majority of all runs was disturbed."""
    quiet = [*both(level(800, 60)), at(level(800, 60, seed=2))]
    (found,) = audited(*quiet, _stolen(level(200, 60), _ALL_STOLEN))
    assert found.outcome is Outcome.FALLS_SHORT
    assert found.shortfall.estimate == pytest.approx(0.2, abs=0.003)
    assert found.shortfall.high < 0.21
    (found,) = audited(*(_stolen(level(800, 60), _ALL_STOLEN) for _ in range(2)), quiet[0])
    assert found.outcome is Outcome.UNDECIDED
    assert found.reason == "the host disturbed 67 % of the time: audit while it is idle"


def test_a_deepest_queue_that_the_host_disturbed_shows_no_lack_of_gain() -> None:
    """Rates that are not those of a throttle could rise with the depth."""
    noise = [float(rate) for rate in 0.8 * noisy(60, cv=0.1, seed=3)]
    disturbed = _stolen([rate / 2 for rate in noise], _ALL_STOLEN, depth=256)
    (found,) = audited(at(noise, 64), at(noise[::-1], 64), disturbed)
    assert found.outcome is Outcome.UNDECIDED
    assert found.reason == "the host disturbed the deepest queues: they may gain more"
    assert np.isnan(found.gain)
    (found,) = audited(at(noise, 64), at(noise[::-1], 64), disturbed, finding=_EMPTY)
    assert found.reason.startswith("never-written, ")
    assert "zeros" not in audited(*both(level(500, 2)), finding=_EMPTY)[0].reason  # but the time


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "cv", "of_fio", "of_host", "outcome"),
    [
        ({}, 0.0, 94.0, 50.0, Outcome.UNDECIDED),
        ({}, 0.05, 86.0, 97.0, Outcome.UNDECIDED),
        ({}, 0.05, 86.0, 50.0, Outcome.FALLS_SHORT),
        ({}, 0.0, 1.4, 100.0, Outcome.FALLS_SHORT),
        ({"hipri": "1"}, 0.05, 99.0, 99.0, Outcome.FALLS_SHORT),
    ],
)
def test_a_busy_cpu_decides_no_shortfall(
    options: dict[str, str], cv: float, of_fio: float, of_host: float, outcome: Outcome
) -> None:
    """That of fio, or all where no flat rate shows a limit (the kernel uses some); no polling."""
    views = []
    for depth in (64, 256):
        rows: list[dict[str, object]] = [
            {"device": "sdb", "level": "volume", "interval_s": 1.0, "after_fio": False}
            | {"t_s": t + 1.0, "cpu_busy_percent": of_host}
            for t in range(6)
        ]
        rates = level(800, 6, cv=cv, seed=depth)
        view = ran(rates, {"iodepth": str(depth), **options}, limits=PROMISED, device=rows)
        view.summary["cpu_sys"] = of_fio - view.summary["cpu_usr"]
        views.append(view)
    (found,) = audited(*views)
    assert found.outcome is outcome
    assert ("CPU" in found.reason) is (outcome is Outcome.UNDECIDED)


def test_a_declared_limit_without_a_usable_second_keeps_its_row() -> None:
    """Runs of never-written blocks that are too short for a rate show nothing, and say so."""
    limits = Limits(iops=1000, bandwidth_bytes_per_s=1e8)
    large = [at(level(95, 60), depth, limits=limits, block_bytes=1 << 20) for depth in (4, 16)]
    short = [at([9000.0], depth, limits=limits) for depth in (64, 256)]
    bandwidth, iops = sorted(audited(*short, *large), key=lambda each: each.is_iops)
    assert bandwidth.seconds > 100
    assert (iops.outcome, iops.depths) == (Outcome.UNDECIDED, (64, 256))
    assert iops.reason == "its runs are too short: measure longer"
    found = next(each for each in audited(*short, *large, finding=_EMPTY) if each.is_iops)
    assert found.reason == "never-written, its blocks hold only zeros: run volbench warmup first"
    (alone,) = audited(*large)  # no run is meant to show the other limit
    assert not alone.is_iops


def test_an_iops_limit_above_that_of_bandwidth_keeps_its_row() -> None:
    """At 400 KB/s blocks of 4 KiB reach 98 of 1,000 IOPS: no depth shows more."""
    low = Limits(iops=1000, bandwidth_bytes_per_s=4e5)
    iops, bandwidth = sorted(audited(*both(level(97, 60), limits=low)), key=lambda e: not e.is_iops)
    assert bandwidth.outcome is not Outcome.UNDECIDED
    assert iops.outcome is Outcome.UNDECIDED
    assert iops.reason == "blocks of 4k meet the bandwidth limit first: use smaller ones"


def test_what_the_device_reports_comes_first() -> None:
    """An EBS volume says itself that the instance was the limit."""
    told = {"instance_iops_exceeded_percent": 98.0, "volume_iops_exceeded_percent": 0.0}
    (found,) = audited(_stolen(level(800, 60), [{"t_s": t + 1.0, **told} for t in range(60)]))
    assert found.causes[0] == (
        "limit of the instance in IOPS, reported by the device for 98 % of the time"
    )


def test_rates_are_reported_without_a_promise() -> None:
    """Small blocks measure IOPS, large ones bandwidth, each with an interval and no verdict."""
    found = audited(
        at(level(1000, 60), limits=Limits()),
        at(level(100, 60), limits=Limits(), block_bytes=1 << 20),
    )
    assert [delivery.limit for delivery in found] == ["write IOPS", "write bandwidth"]
    assert {delivery.outcome for delivery in found} == {Outcome.NOT_PROMISED}
    assert found[1].rate.estimate == pytest.approx(100 * (1 << 20), rel=0.01)


def test_the_smaller_limit_of_a_block_size_is_audited_and_the_worst_comes_first() -> None:
    """1,000 IOPS of 1 MiB are beyond 50 MB/s: large blocks measure bandwidth."""
    limits = Limits(iops=1000, bandwidth_bytes_per_s=50e6)
    found = audited(
        *both(level(1000, 60), limits=limits),
        at(level(40e6 / (1 << 20), 60), 16, limits=limits, block_bytes=1 << 20),
        at(level(40e6 / (1 << 20), 60), 64, limits=limits, block_bytes=1 << 20),
    )
    assert [(each.limit, each.outcome) for each in found] == [
        ("write bandwidth", Outcome.FALLS_SHORT),
        ("write IOPS", Outcome.DELIVERS),
    ]
    assert found[0].shortfall.estimate == pytest.approx(0.2, abs=0.01)


@pytest.mark.parametrize(
    "options",
    [{"iodepth": "1"}, {"rate_iops": "500"}, {"direct": "0"}, {"rw": "randrw"}, {"fsync": "1"}],
)
def test_runs_that_measure_no_limit_are_refused(options: dict[str, str]) -> None:
    """One I/O at a time, a rate of its own, the page cache, two directions, or flushes."""
    with pytest.raises(InputError, match="no finished run measures a limit"):
        audited(ran(level(1000, 60), {"iodepth": "64", **options}, limits=PROMISED))


def test_latencies_are_those_of_one_io_at_a_time() -> None:
    """Others wait in the queue."""
    view = at(level(1000, 30), 1)
    row = summary_row(view.run, iodepth=1, numjobs=1, lat_p50_s=0.002, lat_p99_s=0.004)
    deep = summary_row(view.run, iodepth=16, numjobs=1, lat_p50_s=0.02, lat_p99_s=0.04)
    rows = latencies(lambda name: frame_of(table_of(name, [row, deep])))
    assert list(rows["p99"]) == [0.004]


def test_the_interval_of_a_mean_counts_independent_seconds() -> None:
    """19 of 20 intervals hold the mean; runs that differ widen it."""
    for phi in (0.0, 0.6):
        held = 0
        for seed in range(200):
            values = noisy(240, cv=0.1, seed=seed, phi=phi)
            estimate = mean_rate([values])
            held += estimate.interval.low <= 1000 <= estimate.interval.high
        assert 183 <= held <= 200, phi
    assert mean_rate([noisy(240, cv=0.1, seed=1, phi=0.8)]).effective < 60
    assert mean_rate([np.array([5.0])]).interval.excludes(7.0) is False
    apart = mean_rate([noisy(60, cv=0.01, seed=seed) * share for seed, share in _APART])
    assert apart.interval.low < 900 < apart.interval.high


_APART = ((1, 0.9), (2, 1.0), (3, 1.1))


def test_a_share_of_time_has_the_interval_of_clopper_and_pearson() -> None:
    """Of 300 good seconds 98.8 %; of none 0 to 1.2 %; three of 300 as in their tables."""
    good = share_reached(np.full(300, 10.0), 9.0)
    assert (good.interval.low, good.interval.high) == pytest.approx((0.98778, 1.0), abs=1e-4)
    bad = share_reached(np.full(300, 10.0), 11.0)
    assert (bad.interval.low, bad.interval.high) == pytest.approx((0.0, 0.01222), abs=1e-4)
    values = np.full(300, 10.0)
    values[[40, 140, 240]] = 1.0
    some = share_reached(values, 9.0)
    assert (some.interval.low, some.interval.high) == pytest.approx((0.97105, 0.99793), abs=1e-4)
    values[:] = 10.0
    values[100:130] = 1.0
    assert share_reached(values, 9.0).effective < 40
