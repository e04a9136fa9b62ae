import numpy as np
import pandas as pd
import pytest

from tests.present.frames_for_plots import bins, frames, only_bandwidth, result
from volbench.analyse.frames.aggregate import distribution
from volbench.analyse.frames.job_frames import (
    keep_extremes,
    labels,
    latency_column,
    left_out,
    measured,
    of_measured,
    per_job,
    places_of,
    with_latencies,
)


def test_only_finished_measured_runs_count() -> None:
    """Warm-ups and failed runs stay out with their bins; what failed is counted by run."""
    rows = [
        result("a"),
        result("warm", phase="warmup"),
        result("b", status="failed", direction="read"),
        result("b", status="failed"),
        result("c", status="interrupted"),
        result("w2", phase="warmup", status="failed"),
    ]
    given = frames(rows)
    assert list(measured(given["summary"])["job"]) == ["a"]
    assert left_out(given["summary"]) == {"failed": 1, "interrupted": 1}
    good, bad = result("a"), result("b", status="failed")
    given = frames([good, bad], histogram=[*bins(good, {1.0: 1}), *bins(bad, {1.0: 1})])
    assert list(of_measured(given["histogram"], given["summary"])["job"]) == ["a"]


def test_repeats_are_pooled() -> None:
    """A row has the median, and the maximum of ``max``, of what all three repeats report."""
    rows = frames([result("a", repeat=n) for n in (1, 2, 3)])["summary"]
    given = rows.assign(p99=[0.1, 0.3, 0.15], max=[1.0, 2.0, 1.0], p50=[np.nan, 1.0, 1.0])
    before = given.copy()
    [row] = per_job(given, ["p50", "p99", "max"]).to_dict("records")
    assert (row["p99"], row["max"], row["repeats"]) == (0.15, 2.0, 3)
    assert np.isnan(row["p50"])
    pd.testing.assert_frame_equal(given, before)


def test_labels_name_the_options_that_differ() -> None:
    """A section is named after its job; all have their host where one job ran on several."""
    rows = [result("a", host="n1"), result("a", host="n2"), result("oltp", group="log", host="n1")]
    assert list(labels(frames(rows)["summary"])) == ["a on n1", "a on n2", "oltp/log on n1"]


def test_total_latency_is_preferred() -> None:
    """Completion latency is for all rows as soon as one has nothing else, except of syncs."""
    assert (
        latency_column(frames([result("a"), only_bandwidth("b")])["summary"], "p99") == "lat_p99_s"
    )
    summary = frames([result("a", lat_p99_s=None), result("b")])["summary"]
    assert latency_column(summary, "p99") == "clat_p99_s"
    added, kind = with_latencies(summary, ("p99", "max"))
    assert kind == "clat"
    assert list(added["p99"]) == pytest.approx([0.0054, 0.0054])
    assert list(added["max"]) == pytest.approx([0.036, 0.036])
    sync = result("a", direction="sync", clat_p99_s=None, clat_max_s=None)
    rows = [result("a", lat_p99_s=None), sync]
    added, kind = with_latencies(frames(rows)["summary"], ("p99", "max"))
    assert kind == "clat"
    assert list(added["p99"]) == pytest.approx([0.0054, 0.006])


def test_bins_of_repeats_are_added() -> None:
    """The distribution of two repeats is that of their bins together."""
    first, second = result("a"), result("a", repeat=2)
    reported = [*bins(first, {0.001: 3, 0.002: 1}), *bins(second, {0.001: 2, 0.004: 2})]
    given = frames([first, second], histogram=reported)
    pooled, kind = distribution(given["histogram"], given["summary"])
    assert kind == "lat"
    assert list(pooled["bin_high_s"]) == [0.001, 0.002, 0.004]
    assert list(pooled["count"]) == [5, 1, 2]
    assert list(pooled["share"]) == pytest.approx([5 / 8, 6 / 8, 1])


def test_distribution_is_of_one_kind() -> None:
    """Total and completion latency are never mixed in one chart."""
    first, second = result("a"), result("b")
    reported = [
        *bins(first, {0.001: 1}),
        *bins(first, {0.0009: 1}, latency="clat"),
        *bins(second, {0.0005: 1}, latency="clat"),
    ]
    given = frames([first, second], histogram=reported)
    pooled, kind = distribution(given["histogram"], given["summary"])
    assert kind == "clat"
    assert list(pooled["bin_high_s"]) == [0.0009, 0.0005]


def test_thinning_keeps_every_spike() -> None:
    """A single stalled and a single slow second survive among 100,000; gaps stay."""
    x = np.arange(100_000, dtype=float)
    y = np.full(100_000, 5.0)
    y[12_345], y[67_890] = 0.0, 99.0
    kept_x, kept_y = keep_extremes(x, y, buckets=100)
    assert len(kept_x) <= 200
    assert (kept_y.min(), kept_y.max()) == (0.0, 99.0)
    assert {12_345.0, 67_890.0} <= set(kept_x)
    assert (np.diff(kept_x) > 0).all()
    x = np.arange(10_000, dtype=float)
    y = np.where((x > 4000) & (x < 6000), np.nan, 1.0)
    kept_x, kept_y = keep_extremes(x, y, buckets=100)
    inside = (kept_x > 4100) & (kept_x < 5900)
    assert inside.any()
    assert np.isnan(kept_y[inside]).all()


@pytest.mark.parametrize("are_categories", [False, True])
def test_rows_are_found_in_the_summary(*, are_categories: bool) -> None:
    """By run, section and direction, as texts and as categories; a missing section is one too."""
    names = ("run", "group", "direction")
    rows = pd.DataFrame(
        [("b", None, "read"), ("a", "x", "read"), ("a", "x", "read")], columns=names
    )
    given = [("a", "x", "read"), ("b", None, "read"), ("a", "x", "write"), ("c", "x", "read")]
    texts = pd.DataFrame(given, columns=names)
    assert list(places_of(texts.astype("category") if are_categories else texts, rows)) == [
        1,
        0,
        -1,
        -1,
    ]
