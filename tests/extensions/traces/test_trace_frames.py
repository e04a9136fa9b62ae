"""Frames of traces whose I/Os are known, their tables and the chart."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest

from tests.command_line import call
from tests.extensions.traces.made_traces import made_rows, made_trace
from volbench.extensions.traces.trace_frames import FRAMES, LogHistogram, TraceSummary

COUNT = 10_000


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    """Write a trace: every 1 ms a read of 4 KiB, in turn, and every fourth I/O a write of 64 KiB.

    Reads go through the first 16 MiB again and again; writes all go to one place at 512 MiB.
    """
    number = np.arange(COUNT)
    is_write = number % 4 == 3
    offsets = np.where(is_write, 512 << 20, number * 4096 % (16 << 20))
    rows = made_rows(
        number * 1_000_000,
        offset_bytes=offsets,
        size_bytes=np.where(is_write, 65536, 4096),
        kind=is_write.astype(np.uint8),
        latency_ns=np.where(is_write, 2_000_000, 500_000),
    )
    return made_trace(tmp_path / "trace.parquet", rows)


def test_rates_sizes_and_latencies(trace: Path) -> None:
    """Counts and bytes are exact; percentiles of latencies are right within 2 %."""
    read, write = TraceSummary(trace).rows("load")
    assert (read["kind"], read["ios"], read["io_bytes"]) == ("read", 7500, 7500 * 4096)
    assert (write["kind"], write["ios"], write["size_p50_bytes"]) == ("write", 2500, 65536)
    assert read["iops"] == pytest.approx(750, rel=0.01)
    assert read["lat_p99_s"] == pytest.approx(500e-6, rel=0.02)
    assert write["lat_p50_s"] == pytest.approx(2e-3, rel=0.02)
    assert read["sequential_share"] == pytest.approx(2 / 3, rel=0.01)


def test_places_and_their_reuse(trace: Path) -> None:
    """Working set, hot ranges, seeks and reuse follow from the offsets."""
    summary = TraceSummary(trace)
    (used,) = summary.rows("working_set")
    assert used["chunk_bytes"] == 65536
    assert used["working_set_bytes"] == (16 << 20) + 65536
    ranges = summary.rows("hot_ranges")
    assert [row["from_bytes"] for row in ranges] == [0, 512 << 20]
    assert [row["ios"] for row in ranges] == [7500, 2500]
    (seeks,) = summary.rows("seeks")
    assert seeks["sequential_share"] == pytest.approx(0.5, rel=0.01)
    (reuse,) = summary.rows("reuse")
    assert reuse["reused_share"] == pytest.approx(1 - 257 / COUNT)
    assert reuse["after_p50_s"] == pytest.approx(1e-3, rel=0.02)


def test_arrival_and_mix_over_time(trace: Path) -> None:
    """Times between I/Os and the mix of each interval are those of the load."""
    summary = TraceSummary(trace)
    (gaps,) = summary.rows("arrival")
    assert gaps["gap_mean_s"] == pytest.approx(1e-3)
    assert gaps["gap_p99_s"] == pytest.approx(1e-3, rel=0.02)
    mix = summary.rows("mix")
    assert len(mix) == 20
    assert sum(float(str(row["read_iops"])) for row in mix) / 20 == pytest.approx(750, rel=0.01)
    assert {round(float(str(row["read_share"])), 2) for row in mix} == {0.75}
    sizes = summary.rows("sizes")
    assert [(row["size_bytes"], row["share"]) for row in sizes] == [(4096, 0.75), (65536, 0.25)]


def test_percentiles_of_a_log_histogram() -> None:
    """They are right within 2 % over many orders of magnitude, and zeros count."""
    values = np.concatenate([np.zeros(100, np.int64), np.arange(1, 1_000_001)])
    histogram = LogHistogram()
    for part in np.array_split(values, 7):
        histogram.add(part)
    for share in (0.1, 0.5, 0.99):
        assert histogram.percentile(share) == pytest.approx(np.quantile(values, share), rel=0.02)
    assert histogram.percentile(0.00001) == 0


@pytest.mark.parametrize("frame", FRAMES)
def test_tables_fit_a_terminal(trace: Path, frame: str) -> None:
    """Each table fits 80 columns and has all of its columns as JSON."""
    name = frame.replace("_", "-")
    done = call("trace", "show", trace, "--frame", name, columns=80)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert "10,000 I/Os in 10s" in lines[0]
    assert max(map(len, lines)) <= 80
    rows = json.loads(call("trace", "show", trace, "--frame", name, "--json").stdout)
    assert rows == json.loads(json.dumps(TraceSummary(trace).rows(frame)))


def test_the_chart_and_its_numbers(trace: Path, tmp_path: Path) -> None:
    """The chart has a map of offsets, rates and sizes; its numbers are beside it."""
    done = call("trace", "show", trace, "--chart", tmp_path / "t.svg")
    assert done.returncode == 0, done.stderr
    drawn = (tmp_path / "t.svg").read_text(encoding="utf-8")
    for words in ("Offset", "IOPS", "Share of the I/Os", "sda", "64k"):
        assert words in drawn
    with (tmp_path / "t.csv").open(encoding="utf-8") as file:
        assert len(list(csv.DictReader(file))) == 20


def test_a_folder_without_a_trace_is_named(tmp_path: Path) -> None:
    """The error says how to record or import one."""
    done = call("trace", "show", tmp_path)
    assert done.returncode == 2
    assert "watch --trace" in done.stderr


def test_an_io_counts_for_each_chunk_that_it_touches(tmp_path: Path) -> None:
    """The second I/O begins in the middle of a chunk, and touches three old and two new ones."""
    rows = made_rows(
        np.array([0, 1000]),
        offset_bytes=np.array([0, (64 << 10) + 4096]),
        size_bytes=np.array([4 * 65536, 4 * 65536]),
    )
    summary = TraceSummary(made_trace(tmp_path / "trace.parquet", rows))
    (used,) = summary.rows("working_set")
    assert used["working_set_bytes"] == 6 * 65536
    (reuse,) = summary.rows("reuse")
    assert reuse["reused_share"] == pytest.approx(3 / 9)


def test_discards_are_in_the_chart(tmp_path: Path) -> None:
    """They have a line, bars and a column of numbers; without discards there is none of them."""
    for kinds, has_discards in (([0, 1, 2, 3] * 50, True), ([0, 1] * 100, False)):
        rows = made_rows(np.arange(200) * 10**6, kind=kinds)
        trace = made_trace(tmp_path / f"{has_discards}.parquet", rows)
        chart = tmp_path / f"{has_discards}.svg"
        assert call("trace", "show", trace, "--chart", chart).returncode == 0
        assert ("discards" in chart.read_text(encoding="utf-8")) is has_discards
        with chart.with_suffix(".csv").open(encoding="utf-8") as file:
            numbers = [row.get("discard_iops") for row in csv.DictReader(file)]
        assert sum(float(n or 0) for n in numbers) / 20 == pytest.approx(
            251 * has_discards, rel=0.01
        )


def test_the_idle_end_of_a_recording_counts(tmp_path: Path) -> None:
    """Rates are of the whole recording, not of the time up to the last I/O."""
    rows = made_rows(np.arange(100) * 10**7)
    trace = made_trace(tmp_path / "trace.parquet", rows, duration_s=10.0)
    summary = TraceSummary(trace)
    assert summary.duration_s == 10.0
    (load,) = summary.rows("load")
    assert load["iops"] == 10.0


def test_a_trace_at_one_time_has_no_rates(tmp_path: Path) -> None:
    """They were billions a second; everything else is known."""
    trace = made_trace(tmp_path / "trace.parquet", made_rows([0] * 4))
    (row,) = TraceSummary(trace).rows("load")
    assert row["ios"] == 4
    assert (str(row["iops"]), str(row["bw_bytes_per_s"])) == ("nan", "nan")
    (shown,) = json.loads(call("trace", "show", trace, "--json").stdout)
    assert shown["iops"] is None
    done = call("trace", "show", trace, "--chart", tmp_path / "t.svg")
    assert done.returncode == 2
    assert "all I/Os of the trace have the same time" in done.stderr
