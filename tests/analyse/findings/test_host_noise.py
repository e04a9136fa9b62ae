"""What the host did to a run, its other disks included, is not taken for the volume."""

import math
from collections.abc import Sequence

import numpy as np
import pytest

from tests.analyse.findings.conftest import (
    BLOCK,
    IOPS,
    SECONDS,
    Row,
    a_run,
    a_view,
    device_samples,
    found,
    series_rows,
    summary_row,
)
from volbench.analyse.bottleneck.campaign_context import Context, verdict_rows
from volbench.analyse.findings import find
from volbench.analyse.frames.disturbed import clean_rate_per_s, disturbed
from volbench.analyse.frames.resample import Floats
from volbench.analyse.frames.run_view import RunView
from volbench.model.profile.profile_settings import Limits
from volbench.model.results.finding import Cause, Finding, Severity

NOISY = range(20, 32)
"""Seconds that the host disturbed, in which a steady volume of 1,000 IOPS gave 700."""


def disturbed_run(noise: Row, *, rates: Sequence[float] | None = None, **usual: object) -> RunView:
    """Return a run with twelve disturbed seconds and what the sampler saw in them."""
    run = a_run()
    seen = [700.0 if second in NOISY else IOPS for second in range(SECONDS)]
    samples = device_samples(run, **usual)
    for sample in samples:
        # The interval that ends at t_s is that of the second before it.
        if int(str(sample["t_s"]).partition(".")[0]) - 1 in NOISY:
            sample.update({"write_bw_bytes_per_s": 700.0 * BLOCK} | noise)
    summary = [summary_row(run, direct=True, volume_bytes=64 << 30)]
    return a_view(run, summary=summary, series=series_rows(run, rates or seen), device=samples)


@pytest.mark.parametrize(
    ("noise", "words"),
    [
        ({"steal_percent": 20.0}, "steal"),
        ({"tool_wait_percent": 25.0}, "waits for a CPU"),
        ({"cpu_pressure_percent": 60.0}, "CPU pressure"),
        ({"read_bw_bytes_per_s": 20e6}, "other I/O"),
    ],
)
def test_disturbed_seconds_are_counted_and_left_out(noise: Row, words: str) -> None:
    """A fall by 30 % beside steal, waits or foreign I/O is no step of the volume."""
    view = disturbed_run(noise)
    flags = disturbed(view).flags
    assert set(np.flatnonzero(flags)) == set(NOISY)
    context = Context((view,))
    assert context.steadiness(view, "write").changes == ()
    assert not {cause.cause for cause in context.explanations(view)} & {Cause.NEIGHBOUR}
    (entry,) = found(view, rule="host-noise")
    assert words in entry.message
    assert "12 of 60" in entry.message
    assert entry.severity is Severity.WARNING
    assert entry.evidence["clean_iops"] == IOPS


CLIMB = [100.0 + 15 * second for second in range(SECONDS)]
"""A volume that gets faster."""


@pytest.mark.parametrize(
    ("rates", "seconds", "severity"),
    [
        (CLIMB, range(25), Severity.NOTE),
        (CLIMB, range(20, 50), Severity.NOTE),
        ([3000.0] * 20 + [1000.0] * 40, range(22, 50), Severity.NOTE),
        ([1000.0, 1001.0] * 30, range(SECONDS), Severity.NOTE),
        ([1000.0, 600.0] * 30, range(SECONDS), Severity.WARNING),
        ([rate * (0.7 if rate < 600 else 1) for rate in CLIMB], range(33), Severity.WARNING),
    ],
)
def test_neither_a_trend_nor_a_limit_is_noise(
    rates: list[float], seconds: range, severity: Severity
) -> None:
    """The rates of disturbed seconds are compared with those around them, not with the mean."""
    run = a_run()
    samples = device_samples(run)
    for sample in samples:
        if round(float(str(sample["t_s"]))) - 1 in seconds:
            sample["steal_percent"] = 20.0
    row = summary_row(run, lat_mean_s=0.016, lat_min_s=0.004)
    view = a_view(run, summary=[row], series=series_rows(run, rates), device=samples)
    (entry,) = found(view, rule="host-noise")
    assert entry.severity is severity
    assert ("uncertain" in entry.message) is (severity is Severity.WARNING and len(seconds) < 60)


def test_a_host_that_stood_still_is_named() -> None:
    """Nothing ran there, so that no sample was taken: a frozen or suspended machine."""
    run = a_run()
    device = [row for row in device_samples(run) if not 20 < float(str(row["t_s"])) < 50]
    device = [row | {"interval_s": 30.0} if row["t_s"] == 50 else row for row in device]
    view = a_view(run, summary=[summary_row(run)], device=device)
    (entry,) = found(view, rule="host-noise")
    assert entry.message.startswith("The whole host stood still for 30s after 20s: ")


def test_disturbed_seconds_at_the_rate_around_them_count() -> None:
    """Cold blocks get warm in ten seconds, and a host that is busy from then on slows nothing."""
    rates = [160.0, 180, 220, 260, 330, 430, 550, 800, 1300, 1850, *[1950.0, 2000] * 5]
    run = a_run()
    waits = [15.0 if t_s > 8 and t_s % 4 != 2 else 4.0 for t_s in range(-2, SECONDS + 3)]
    rows = zip(device_samples(run), waits, strict=True)
    samples = [{**row, "steal_percent": wait} for row, wait in rows]
    view = a_view(run, series=series_rows(run, rates), device=samples)
    assert len(clean_rate_per_s(view, "iops", direction="write")[0]) == len(rates)
    assert Cause.WARMING in {each.cause for each in Context((view,)).explanations(view)}
    assert len(found(view, rule="cold-blocks")) == 1


def test_a_step_in_disturbed_seconds_is_located_among_them() -> None:
    """The fall comes at 26 s; from 20 to 32 s the host took a tenth of the rate."""
    rates = [1000.0 if second < 26 else 500.0 for second in range(SECONDS)]
    seen = [rate * (0.9 if second in NOISY else 1) for second, rate in enumerate(rates)]
    view = disturbed_run({"steal_percent": 10.0}, rates=seen, write_bw_bytes_per_s=0.0)
    context = Context((view,))
    (change,) = context.steadiness(view, "write").changes
    falls = [each.from_s for each in context.explanations(view) if each.from_s]
    assert change.t_s == 26
    assert 26 in falls


def mostly_disturbed() -> RunView:
    """Return a run that fell when the hypervisor took CPU time, for four fifths of it."""
    run = a_run()
    rates = [IOPS] * 12 + [600.0] * 48
    samples = device_samples(run)
    for sample in samples:
        if float(str(sample["t_s"])) > 12:
            sample["steal_percent"] = 30.0
    return a_view(run, series=series_rows(run, rates), device=samples)


def test_a_step_under_a_disturbed_host_is_a_note_beside_its_warning() -> None:
    """With four fifths disturbed nothing is left out, and the warning is that of the host."""
    severities = {entry.rule: entry.severity for entry in find(Context((mostly_disturbed(),)))}
    assert severities["not-steady"] is Severity.NOTE
    assert severities["host-noise"] is Severity.WARNING
    view = mostly_disturbed()
    causes = {cause.cause for cause in Context((view,)).explanations(view)}
    assert Cause.HOST_NOISE in causes
    assert Cause.CREDITS not in causes
    assert verdict_rows(Context((view,)))[0]["level_iops"] is None


def test_a_third_of_quiet_seconds_is_enough() -> None:
    """Twenty quiet seconds of sixty show the level of the volume, whatever happened in the rest."""
    run = a_run()
    rates = [IOPS if second % 3 == 0 else 700.0 for second in range(SECONDS)]
    samples = device_samples(run)
    for sample in samples:
        if (round(float(str(sample["t_s"]))) - 1) % 3:
            sample["steal_percent"] = 20.0
    view = a_view(run, series=series_rows(run, rates), device=samples)
    level = Context((view,)).level(view, "write")
    assert level is not None
    assert level.iops == pytest.approx(IOPS)


@pytest.mark.parametrize(
    ("used", "waited", "is_noted", "is_cause"),
    [
        (20.0, 0.5, False, False),
        (3.0, 30.0, False, False),
        (65.0, 30.0, True, True),
        (65.0, None, True, False),
    ],
)
def test_a_busy_host_limits_only_jobs_that_need_a_cpu_all_the_time(
    used: float, waited: float | None, *, is_noted: bool, is_cause: bool
) -> None:
    """A job that slept most of the time waited for the volume, however busy the CPUs were."""
    run = a_run()
    view = a_view(
        run,
        summary=[summary_row(run, cpu_usr=used, cpu_sys=0.0)],
        device=device_samples(run, cpu_busy_percent=99.0, tool_wait_percent=waited),
    )
    assert bool(found(view, rule="cpu-bound")) == is_noted
    is_cpu = any(cause.cause is Cause.CPU for cause in Context((view,)).explanations(view))
    assert is_cpu == is_cause


BUSY: Floats = np.where(np.arange(SECONDS) % 10 < 5, 2.0, 0.0)
"""Whether the other disks are busy: five seconds of ten."""


def beside(rates: Floats, loads: Floats, limits: Limits | None = None) -> RunView:
    """Return a run with the IOPS of each second, and those of other disks, of the same size."""
    run = a_run(limits=limits or Limits())
    samples = device_samples(run)
    for sample in samples:
        second = round(float(str(sample["t_s"]))) - 1
        load = loads[second] if 0 <= second < len(loads) else 0.0
        sample.update(other_disks_iops=load, other_disks_bw_bytes_per_s=load * BLOCK)
    return a_view(
        run, summary=[summary_row(run)], series=series_rows(run, rates.tolist()), device=samples
    )


def finding(view: RunView) -> Finding | None:
    """Return the finding of the rule, if there is one."""
    found_here = found(view, rule="other-load")
    assert len(found_here) <= 1
    return found_here[0] if found_here else None


def noise(seed: int, scale: float = 20.0) -> Floats:
    """Return small changes of a rate, of a fixed seed."""
    return np.random.default_rng(seed).normal(0, scale, SECONDS)


def test_a_shared_limit_of_the_machine_is_named() -> None:
    """A constant load of 300 IOPS of the machine's 1,280, and the volume gets the rest."""
    limits = Limits(machine="azure/Standard_B2s", machine_iops=1280)
    entry = finding(beside(980 + noise(1), np.full(SECONDS, 300.0), limits))
    assert entry is not None
    assert entry.severity is Severity.WARNING
    assert entry.evidence["machine_share_percent"] == pytest.approx(23.4, abs=0.1)
    assert "300 IOPS" in entry.message
    assert "23 % of the limit of azure/Standard_B2s, which was reached" in entry.message


def test_a_limit_that_is_not_reached_is_not_shared() -> None:
    """The machine could do 5,000, or nothing is known of other disks."""
    limits = Limits(machine="azure/Standard_D4s_v5", machine_iops=5000)
    assert finding(beside(980 + noise(1), np.full(SECONDS, 300.0), limits)) is None
    assert finding(beside(np.full(SECONDS, IOPS), np.full(SECONDS, math.nan))) is None


def test_a_small_load_is_tolerated() -> None:
    """They take 3 % of the machine's limit, and 3 % of the rate."""
    limits = Limits(machine="m", machine_iops=1000)
    load = 30 * BUSY
    assert finding(beside(IOPS - load + noise(3, 2), load, limits)) is None
