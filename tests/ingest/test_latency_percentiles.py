"""A Run of ours with ``latency_log`` tells its latencies moment by moment."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

import volbench as api
from tests.command_line import Volbench

PROFILE = """
name: logged
defaults: {ioengine: psync, bs: 4k, size: 2m, time_based: 1, runtime: 2s, numjobs: 2}
sample: 250ms
device_sample: 0
latency_log: true
jobs:
  mix: {rw: randrw}
"""


def test_a_run_of_volbench_has_a_latency_map(
    volbench: Volbench, scratch: Path, tmp_path: Path
) -> None:
    """Percentiles stand in the series, agree with the totals, and the map is drawn."""
    (tmp_path / "logged.yaml").write_text(PROFILE, encoding="utf-8")
    ran = volbench("run", "logged.yaml", "--on", scratch, "--output", "campaign")
    assert ran.returncode == 0, ran.stderr
    opened = api.open_campaigns(tmp_path / "campaign")
    series, summary = opened.frame("series"), opened.frame("summary")
    for direction in ("read", "write"):
        points = series[series["direction"] == direction]
        reported = points[["lat_p50_s", "lat_p99_s", "lat_p999_s"]].dropna()
        # The last interval is lost (fio issue 490), and a busy machine may skip one.
        assert len(reported) >= 4
        assert (reported.diff(axis=1).iloc[:, 1:] >= 0).all(axis=None)
        (total,) = summary[summary["direction"] == direction].to_dict("records")
        assert reported["lat_p50_s"].between(total["clat_min_s"] / 1.01, total["clat_max_s"]).all()
        # Of equal parts; the lost interval may be an odd one.
        assert reported["lat_p50_s"].min() <= total["clat_p50_s"] * 2
        assert reported["lat_p50_s"].max() >= total["clat_p50_s"] / 2
    drawn = volbench("plot", "latency-map", "campaign", "--output", "map.svg", "--csv", "map.csv")
    assert drawn.returncode == 0, drawn.stderr
    assert (tmp_path / "map.svg").read_text(encoding="utf-8").startswith("<?xml")
    cells = pd.read_csv(tmp_path / "map.csv")
    counted = int(cells["count"].sum())
    assert 0.5 < counted / float(summary["total_ios"].sum()) <= 1
