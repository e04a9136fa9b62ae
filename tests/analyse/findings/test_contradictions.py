"""Numbers of recorded results that contradict each other: none, in any column or sentence."""

import json
import re
from collections.abc import Iterator, Mapping
from itertools import combinations
from pathlib import Path

import pandas as pd
import pytest

from volbench.extensions.importer.import_campaign import import_results

CASES = Path(__file__).parents[2] / "cases"
FOLDERS = (
    *("fio-2.2.10", "fio-2.21", "fio-3.1", "fio-3.16", "fio-3.28", "fio-3.33", "fio-3.36"),
    *("fio-3.42", "client-server", "field", "text-output"),
)
PERCENTILES = ("p50", "p90", "p95", "p99", "p999", "p9999")
ROUNDING = 1.011
"""Bins of fio are 0.8 % wide, and windows count whole I/Os."""
NONSENSE = re.compile(r"-0(?![.\d])|from -|\b(nan|inf|None)\b|\d\.\d{7,}")
"""Signs of zero, times before the begin, missing values and digits of rounding errors."""

Frames = Mapping[str, pd.DataFrame]


@pytest.fixture(scope="module", params=FOLDERS, name="frames")
def _frames(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Frames:
    """Return the frames of the results of a folder."""
    place = tmp_path_factory.mktemp("import") / "campaign"
    data = import_results(CASES / request.param, output=place, on_note=lambda _: None)
    return {name: data.frame(name) for name in ("summary", "series", "findings", "verdicts")}


def ordered(latency: str) -> Iterator[tuple[str, str]]:
    """Yield pairs of columns of which the first is never the larger one."""
    names = [f"{latency}_{name}_s" for name in ("min", *PERCENTILES, "max")]
    yield from combinations(names, 2)
    yield f"{latency}_min_s", f"{latency}_mean_s"
    yield f"{latency}_mean_s", f"{latency}_max_s"


def larger(frame: pd.DataFrame, low: str, high: str) -> list[str]:
    """Return the rows in which the value that cannot be larger is."""
    if not {low, high} <= {*frame.columns}:
        return []
    first, second = (frame[name].astype("float64") for name in (low, high))
    rows = frame[first > ROUNDING * second]
    return [
        f"{row.run}: {low} {getattr(row, low)} > {high} {getattr(row, high)}"
        for row in rows.itertuples()
    ]


@pytest.mark.slow
def test_columns_do_not_contradict_each_other(frames: Frames) -> None:
    """No percentile is above the maximum, no rate outside of its range, no part above the whole."""
    pairs = [
        *(pair for latency in ("lat", "clat", "slat") for pair in ordered(latency)),
        *(("slat_mean_s", "lat_mean_s"), ("clat_mean_s", "lat_mean_s")),
        *(("iops_min", "iops"), ("iops", "iops_max"), ("parallel_s", "runtime_s")),
    ]
    assert [found for pair in pairs for found in larger(frames["summary"], *pair)] == []
    pairs = [*ordered("lat"), *ordered("clat")]
    assert [found for pair in pairs for found in larger(frames["series"], *pair)] == []
    summary = frames["summary"]
    for latency in ("lat", "clat", "slat"):
        for name in PERCENTILES:
            column, limit = f"{latency}_{name}_s", f"{latency}_max_s"
            if {column, limit} <= {*summary.columns}:
                assert not (summary[column] > summary[limit] * (1 + 1e-9)).any()


@pytest.mark.slow
def test_bandwidth_equals_iops_times_block_size(frames: Frames) -> None:
    """16.4 GB/s do not stand beside 1.69: bytes are I/Os times their size, where that is known."""
    summary = frames["summary"].dropna(subset=["iops", "bw_bytes_per_s", "block_bytes"])
    summary = summary[summary["iops"] > 0]
    is_whole = summary["io_bytes"] == summary["total_ios"] * summary["block_bytes"]
    summary = summary[is_whole.fillna(value=False)]
    derived = summary["iops"] * summary["block_bytes"]
    off = (summary["bw_bytes_per_s"] - derived).abs()
    assert (off <= (ROUNDING - 1) * derived + 1024).all()  # old versions print whole KiB/s


def test_times_are_within_the_run(frames: Frames) -> None:
    """No finding or verdict begins before its run or ends before it begins."""
    assert not (frames["series"]["t_s"] < 0).any()
    for name in ("findings", "verdicts"):
        times = [column for column in frames[name].columns if column.endswith(("from_s", "to_s"))]
        for column in times:
            assert not (frames[name][column].astype("float64") < 0).any()
    windows = frames["findings"].dropna(subset=["from_s", "to_s"])
    assert (windows["from_s"] <= windows["to_s"]).all()


@pytest.mark.slow
def test_sentences_and_evidence_hold_no_invalid_numbers(frames: Frames) -> None:
    """No "-0 %", no "from -1s", and no 99999.99999989998."""
    found = frames["findings"]
    for message, evidence in zip(found["message"], found["evidence"], strict=True):
        assert not NONSENSE.search(message), message
        for value in json.loads(evidence).values():
            assert not isinstance(value, float) or value == float(f"{value:.12g}"), evidence


@pytest.mark.parametrize("frames", FOLDERS[-1:], indirect=True)
def test_contradictions_are_detected(frames: Frames) -> None:
    """A rate outside of its range and a percentile above the maximum are contradictions."""
    summary = frames["summary"].assign(iops_min=1.0, lat_max_s=1.0)
    assert larger(summary.assign(iops=0.5), "iops_min", "iops")
    assert larger(summary.assign(lat_p99_s=1.1), "lat_p99_s", "lat_max_s")
