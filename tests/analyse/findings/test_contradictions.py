"""Numbers of recorded results: none contradicts another, and no finding about them is false."""

import json
import re
from collections.abc import Iterator, Mapping
from itertools import combinations
from pathlib import Path

import pandas as pd
import pytest
from benchmarks.field import LABELS, Judged, judge, read_labels

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


FIELD = LABELS.parent


@pytest.fixture(scope="module", name="judged")
def _judged() -> list[Judged]:
    return list(judge(FIELD, read_labels(LABELS)))


def test_no_finding_is_false_or_missed(judged: list[Judged]) -> None:
    """Each claim about these results is true, and what is true of them is said."""
    assert [each for each in judged if each.outcome in {"false", "missed"}] == []
    true = {(each.rule, each.source.split("/")[-2]) for each in judged if each.outcome == "true"}
    assert true >= {
        ("stall", "raid-hang"),
        ("not-steady", "alternating"),
        ("impossible-values", "rbd-lost-samples"),
        ("contradicting-latency", "zns-contradiction"),
        ("not-steady", "alternate-randwrite-8"),
        ("two-latencies", "tiers-randread-4"),
    }


def test_periodic_stalls_are_named(judged: list[Judged]) -> None:
    """Seconds in which nothing completed for 0.6 s show in the series and in the slowest I/O."""
    (found,) = (each for each in judged if each.rule == "not-steady" and "stalls" in each.source)
    assert "as if nothing completed for 0.58s each time" in found.message


def test_false_and_missed_findings_are_counted(tmp_path: Path) -> None:
    """The first entry that says something about a rule decides; notes are no claim of others."""
    labels = tmp_path / "labels.yaml"
    labels.write_text(
        "- {files: 'raid-hang/*', wrong: [stall], expect: [cpu-throttled]}\n"
        "- {files: '*', right: [stall]}\n"
    )
    found = {each.rule: each.outcome for each in judge(FIELD / "raid-hang", read_labels(labels))}
    assert found["stall"] == "false"
    assert found["cpu-throttled"] == "missed"
    assert found["not-steady"] == "unlabelled"


@pytest.mark.parametrize(
    "entry", ["{files: '*', wrong: [stal]}", "{wrong: [stall]}", "{file: '*'}"]
)
def test_labels_of_field_cases_are_valid(tmp_path: Path, entry: str) -> None:
    """A name that is misspelt would make a rule look better than it is."""
    labels = tmp_path / "labels.yaml"
    labels.write_text(f"- {entry}\n")
    with pytest.raises(SystemExit, match="entry 1"):
        read_labels(labels)
