"""Thresholds of rules: what lies a little below and a little above each of them."""

import pytest

from tests.analyse.findings.conftest import (
    BLOCK,
    IOPS,
    SECONDS,
    Limits,
    a_run,
    a_view,
    device_sample,
    device_samples,
    found,
    over_time,
    series_rows,
    summary_row,
)
from volbench.analyse.bottleneck.campaign_context import Context
from volbench.analyse.frames.run_view import RunView
from volbench.model.results.finding import Severity


@pytest.mark.parametrize(("rate", "count"), [(0.9e6, 0), (1.1e6, 1)])
def test_swapping_counts_from_one_megabyte_a_second(rate: float, count: int) -> None:
    """Less is a page now and then."""
    view = a_view(device=device_samples(a_run(), swap_bytes_per_s=rate))
    assert len(found(view, rule="host-noise")) == count


@pytest.mark.parametrize(
    ("lat_mean_s", "runtime_s", "count"),
    [(0.0085, 60.0, 0), (0.0075, 60.0, 1), (0.002, 1.9, 0), (0.002, 2.1, 1)],
)
def test_a_queue_counts_as_empty_below_half_of_its_depth(
    lat_mean_s: float, runtime_s: float, count: int
) -> None:
    """8.5 of 16 in flight are enough, 7.5 are not, and a run of less than 2 s is not judged."""
    row = summary_row(a_run(), lat_mean_s=lat_mean_s, runtime_s=runtime_s)
    assert len(found(a_view(summary=[row]), rule="queue-depth")) == count


@pytest.mark.parametrize(("slat_mean_s", "is_named"), [(4.5e-4, False), (5.5e-4, True)])
def test_libaio_waited_if_half_of_the_latency_is_submission(
    slat_mean_s: float, *, is_named: bool
) -> None:
    """16 submissions of 0.55 ms are more than half of 16 ms."""
    run = a_run({"direct": None})
    view = a_view(run, summary=[summary_row(run, slat_mean_s=slat_mean_s, lat_mean_s=0.016)])
    (entry,) = found(view, rule="queue-depth")
    assert ("slat_mean_s" in entry.evidence) is is_named


@pytest.mark.parametrize(("percent", "count"), [(94.0, 0), (96.0, 1)])
def test_a_core_is_full_from_95_percent(percent: float, count: int) -> None:
    """The kernel and interrupts take the rest."""
    view = a_view(summary=[summary_row(a_run(), cpu_usr=percent, cpu_sys=0.0)])
    assert len(found(view, rule="cpu-bound")) == count


@pytest.mark.parametrize(("samples", "count"), [(2, 0), (3, 1)])
def test_a_mean_needs_three_samples(samples: int, count: int) -> None:
    """Two samples are the begin and the end of a run."""
    run = a_run()
    rows = [device_sample(run, t_s + 1.0, cpu_busy_percent=98.0) for t_s in range(samples)]
    assert len(found(a_view(run, device=rows), rule="cpu-bound")) == count


def stolen(seconds: int, rate: float, level: float = IOPS) -> RunView:
    """Return a run whose host was disturbed for some seconds, in which its rate was another."""
    run = a_run()
    rates = [rate if second < seconds else level for second in range(SECONDS)]
    samples = device_samples(run)
    for sample in samples:
        if 0 < float(str(sample["t_s"])) <= seconds:
            sample["steal_percent"] = 20.0
    return a_view(run, series=series_rows(run, rates), device=samples)


@pytest.mark.parametrize(
    ("seconds", "rate", "severities", "words"),
    [
        (2, 700.0, [], ""),
        (4, 700.0, [Severity.NOTE], "uncertain by"),
        (12, 820.0, [Severity.NOTE], "uncertain by"),
        (12, 700.0, [Severity.WARNING], "uncertain by"),
        (12, 996.0, [Severity.NOTE], "less than 0.1 %"),
        (12, 990.0, [Severity.NOTE], "uncertain by"),
        (59, 700.0, [Severity.WARNING], "the others are too few"),
    ],
)
def test_host_noise_is_weighted_by_its_effect(
    seconds: int, rate: float, severities: list[Severity], words: str
) -> None:
    """From 5 % of the intervals on it is a note, from 5 % of the result a warning."""
    entries = found(stolen(seconds, rate), rule="host-noise")
    assert [entry.severity for entry in entries] == severities
    assert all(words in entry.message for entry in entries)
    (alike,) = found(stolen(12, 154.2, level=155.0), rule="host-noise")
    assert "less than 1 %" in alike.message  # both would be printed as 155


@pytest.mark.parametrize(("share", "count"), [(1.04, 0), (1.06, 1)])
def test_reads_of_an_empty_volume_are_too_fast_above_105_percent(share: float, count: int) -> None:
    """Providers allow a few percent more than they declare."""
    run = a_run({"rw": "randread"}, limits=Limits(iops=IOPS / share))
    view = a_view(run, summary=[summary_row(run, direction="read")], device=[], series=[])
    assert len(found(view, rule="never-written")) == count


@pytest.mark.parametrize(("times", "count"), [(15, 0), (17, 1)])
def test_buffers_are_repetitive_from_sixteen_uses(times: int, count: int) -> None:
    """Deduplication pays only if the same data comes again and again."""
    run = a_run({"refill_buffers": None})
    view = a_view(run, summary=[summary_row(run, io_bytes=times * BLOCK * 16)])
    assert len(found(view, rule="compressible")) == count


@pytest.mark.parametrize(("dirty_bytes", "is_named"), [(0.9e6, False), (1.1e6, True)])
def test_dirty_pages_are_named_from_one_megabyte(dirty_bytes: float, *, is_named: bool) -> None:
    """Less is metadata."""
    run = a_run({"direct": None, "iodepth": None, "ioengine": "psync"})
    rows = [
        device_sample(run, t_s + 1.0, dirty_bytes=dirty_bytes if t_s else 0.0)
        for t_s in range(SECONDS)
    ]
    (entry,) = found(a_view(run, device=rows), rule="page-cache")
    assert ("Dirty pages" in entry.message) is is_named


@pytest.mark.parametrize(("rate", "is_near"), [(960.0, True), (940.0, False)])
def test_a_level_is_at_the_declared_limit_within_five_percent(
    rate: float, *, is_near: bool
) -> None:
    """Beyond that, the limit of something else explains the level."""
    view = over_time([rate] * SECONDS, a_run(limits=Limits(iops=1000.0)))
    texts = [text for each in Context((view,)).explanations(view) for text in each.speaks_for]
    assert any(text.startswith("within") for text in texts) is is_near
