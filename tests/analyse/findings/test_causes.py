"""Rules that rest on what explains a rate: caps, credits, cold blocks, neighbours."""

from dataclasses import replace

import pytest

from tests.analyse.findings.conftest import (
    Limits,
    Phase,
    VolumeKind,
    a_run,
    a_view,
    found,
    over_time,
    percentile_rows,
    series_rows,
    summary_row,
)
from tests.analyse.noise import noisy, restless
from volbench.analyse.bottleneck.campaign_context import Context
from volbench.analyse.findings import find
from volbench.model.results.finding import Severity
from volbench.model.results.provenance import ColdProbe, HostFacts


def level(iops: float, *, seconds: int = 120) -> list[float]:
    """Return a flat rate with the little noise that a throttle leaves."""
    return [iops * entry / 1000 for entry in restless(seconds, spread=0.005)]


def test_a_declared_limit_is_a_note() -> None:
    """At 1,100 of 1,100 IOPS the price list was measured, or that of the machine."""
    run = a_run(limits=Limits(iops=1100))
    (entry,) = found(over_time(level(1100), run), rule="throttled")
    assert entry.severity is Severity.NOTE
    assert entry.evidence["declared"] == 1100
    assert "100 % of the declared 1.1k IOPS" in entry.message
    assert "flat within 0.4 %" in entry.message
    limits = Limits(
        iops=1280, name="azure/P30", machine="azure/Standard_B2s", machine_limits=("iops",)
    )
    (entry,) = found(over_time(level(1280), a_run(limits=limits)), rule="throttled")
    expected = "1.28k IOPS of the machine azure/Standard_B2s, not of the azure/P30"
    assert expected in entry.message


def test_a_limit_below_the_declared_is_a_warning() -> None:
    """A flat 800 IOPS with all I/Os waiting alike is a cap, but not the one that was sold."""
    run = a_run(limits=Limits(iops=1100))
    view = over_time(level(800), run)
    waits = summary_row(run, iops=800.0, lat_mean_s=0.02, lat_min_s=0.001, lat_max_s=0.021)
    capped = a_view(
        run,
        summary=[waits],
        series=view.series.to_dict("records"),
        device=[],
        percentiles=[
            {**percentile_rows(run)[0], "percentile": percentile, "value_s": 0.0195}
            for percentile in (1.0, 50.0)
        ],
    )
    (entry,) = found(capped, rule="throttled")
    assert entry.severity is Severity.WARNING
    assert "only 73 %" in entry.message


def test_reads_and_writes_count_together() -> None:
    """Half of the cap in each direction is the cap, and told once."""
    run = a_run({"rw": "randrw"}, limits=Limits(iops=1100))
    half = level(550)
    rows = [
        summary_row(run, direction=way, iops=550.0, runtime_s=120.0, total_ios=66_000)
        for way in ("read", "write")
    ]
    series = [row for way in ("read", "write") for row in series_rows(run, half, direction=way)]
    (entry,) = found(a_view(run, summary=rows, series=series, device=[]), rule="throttled")
    assert (entry.severity, entry.direction) == (Severity.NOTE, None)
    assert entry.evidence["level"] == 1100


def test_a_run_that_ended_at_a_standstill_is_judged() -> None:
    """A full cache may leave nothing completing to the very end, beside a run to compare with."""
    run = a_run(limits=Limits(iops=1100))
    other = over_time(level(1000), a_run({"iodepth": "4"}, name="other"))
    (entry, *_) = found(other, over_time([3000.0] * 20 + [0.0] * 60, run), rule="host-cache")
    assert entry.severity is Severity.WARNING
    assert found(over_time([3000.0] * 20 + [0.0] * 60, run), rule="stall")


@pytest.mark.parametrize("seed", [2, 3, 7])
@pytest.mark.parametrize(("seconds", "cv"), [(18, 0.06), (30, 0.12)])
def test_a_step_in_latency_is_not_a_full_cache(seed: int, seconds: int, cv: float) -> None:
    """I/Os that take 1.6 times as long from second 9 on: an uneven step, and no steady run."""
    noise = [entry / 1000 for entry in noisy(seconds, cv=cv, seed=seed)]
    rates = [1600 * entry for entry in noise[:9]] + [1000 * entry for entry in noise[9:]]
    run = a_run({"rw": "randwrite"}, kind=VolumeKind.NBD)
    view = over_time(rates, run)
    assert found(view, rule="host-cache") == []
    (entry,) = found(view, rule="not-steady")
    assert entry.severity is Severity.WARNING


def test_credits_that_ran_out_are_reported_with_both_levels() -> None:
    """3,000 IOPS for two minutes, then the baseline of 300: the bucket held 324,000."""
    run = a_run(limits=Limits(iops=300, burst_iops=3000, burst_ios=324_000))
    (entry,) = found(over_time([*level(3000), *level(300)], run), rule="credits-ran-out")
    assert entry.from_s == pytest.approx(120, abs=2)
    assert entry.evidence["level"] == pytest.approx(300, rel=0.02)
    assert entry.evidence["predicted_s"] == pytest.approx(120, rel=0.01)
    assert "3k to 300" in entry.message
    assert found(over_time(level(3000), run), rule="credits-ran-out") == []


def test_cold_blocks_getting_warm_are_reported() -> None:
    """A climb from 200 IOPS to a plateau of 2,000 over a minute."""
    climb = [200 + 30.0 * t for t in range(60)]
    (entry,) = found(over_time([*climb, *level(2000, seconds=240)]), rule="cold-blocks")
    assert entry.evidence["plateau_iops"] == pytest.approx(2000, rel=0.02)
    assert entry.to_s == pytest.approx(55, abs=5)
    assert "below its plateau" in entry.message
    assert found(over_time(level(2000)), rule="cold-blocks") == []


def test_a_neighbour_that_comes_and_goes_is_reported() -> None:
    """A minute at half the rate in the middle of five, with steal."""
    rates = [*level(2000), *level(900, seconds=60), *level(2000)]
    run = a_run()
    view = over_time(rates, run)
    assert found(view, rule="neighbour") == []  # a disk of unknown kind may have no neighbours
    guest = replace(view, host=HostFacts(host="local", virtualization="kvm"))
    (entry,) = found(guest, rule="neighbour")
    assert entry.from_s == pytest.approx(120, abs=2)
    assert entry.to_s == pytest.approx(180, abs=2)
    assert "recovered" in entry.message
    assert found(over_time(level(2000)), rule="neighbour") == []


def probe(*, cold: bool = False, zero_share: float | None = None) -> ColdProbe:
    """Return what a probe of a cold, or of a warm volume tells."""
    ratio = 8.0 if cold else 1.02
    return ColdProbe(
        pairs=1000,
        median_ratio=ratio,
        p99_ratio=ratio,
        p_value=1e-9 if cold else 0.4,
        slower_share=1.0,
        cold=cold,
        first_median_s=0.0025 * ratio,
        second_median_s=0.0025,
        zero_share=zero_share,
    )


def test_a_cold_volume_found_by_the_probe_is_reported() -> None:
    """First reads eight times as slow taint what follows, until something warms the volume up."""
    cold = a_view(cold=probe(cold=True))
    (entry,) = found(cold, rule="cold-blocks")
    assert entry.severity is Severity.WARNING
    assert entry.evidence["median_ratio"] == 8
    assert "20 ms" in entry.message
    warmed = a_view(a_run({"rw": "read"}, name="warm", phase=Phase.WARMUP))
    assert found(warmed, cold, rule="cold-blocks") == []
    assert found(a_view(cold=probe()), rule="cold-blocks") == []


@pytest.mark.parametrize(
    ("share", "severities"), [(0.9, [Severity.INVALID]), (0.1, [Severity.WARNING]), (None, [])]
)
def test_empty_blocks_found_by_the_probe_are_reported(
    share: float | None, severities: list[Severity]
) -> None:
    """Reads of a volume of zeros are doubted, unless the campaign filled it first."""
    run = a_run({"rw": "randread"})
    parts = {"summary": [summary_row(run, direction="read")], "device": [], "series": []}
    view = a_view(run, **parts, cold=probe(zero_share=share))
    assert [entry.severity for entry in found(view, rule="never-written")] == severities
    fill = a_view(a_run({"rw": "write"}, name="fill", phase=Phase.PRECONDITION))
    assert found(fill, view, rule="never-written") == []
    assert found(a_view(cold=probe(zero_share=share)), rule="never-written") == []


@pytest.mark.parametrize(
    ("rates", "options", "count"),
    [
        ([1000.2, 999.4, 1001.0, 1000.0, 998.7], {}, 5),
        ([2501.0, 2499.0, 2500.0, 1900.0], {}, 3),
        ([1000.0, 1000.0], {}, 0),
        ([80.0, 80.0, 80.0], {}, 0),
        ([1043.0, 1042.0, 1044.0], {}, 0),
        ([1000.0, 1030.0, 970.0], {}, 0),
        ([1000.0, 1000.0, 1000.0], {"rate_iops": "1000"}, 0),
        ([1800.0, 1800.0, 1800.0], {"bs": "65536"}, 0),
        ([1831.0, 1831.0, 1831.0], {"bs": "65536"}, 3),
    ],
)
def test_a_round_rate_that_repeats_is_a_limit(
    rates: list[float], options: dict[str, str], count: int
) -> None:
    """Exactly 1,000 IOPS in five repeats is what somebody sells; 1,043 is what a disk does."""
    views = []
    for number, rate in enumerate(rates):
        run = a_run(options, name=f"r{number}")
        moved = rate * int(options.get("bs", 4096))
        row = summary_row(run, iops=rate, total_ios=int(60 * rate), bw_bytes_per_s=moved)
        views.append(a_view(run, summary=[row], series=[], device=[], volume=None))
    entries = [entry for entry in find(Context(tuple(views))) if entry.rule == "throttled"]
    assert len(entries) == count
    level = "120 MB/s" if "bs" in options else "IOPS"
    assert all(f"{level}: {count} runs" in entry.message for entry in entries)
