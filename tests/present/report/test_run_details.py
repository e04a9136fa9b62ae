"""Details of single runs in a report's page."""

from __future__ import annotations

import base64
import gzip
import json
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from tests.present.report.small_reports import content_of, row_of, run_of
from volbench.model.frames.columns import PERCENTILE_ROWS, SERIES
from volbench.present.report import ReportContent
from volbench.present.report.embedded_runs import BATCH, run_details

SECONDS = 3600
STALL_S = 1234


def content(count: int) -> ReportContent:
    """Return a report on runs, the first with a series of an hour that stalls for one second."""
    runs = tuple(run_of(number, f"job{number}") for number in range(count))
    own = content_of(runs, [row_of(run, rwmixread=None) for run in runs])
    seconds = np.arange(1.0, SECONDS + 1)
    series = pd.DataFrame({"t_s": seconds, "iops": 1000.0, "lat_mean_s": 0.001234567}).assign(
        run=runs[0].id, direction="write"
    )
    series.loc[series["t_s"] == STALL_S, ["iops", "lat_mean_s"]] = [0.0, np.nan]
    rows = [
        {"run": runs[0].id, "direction": "write", "latency": kind, "percentile": 99.0, "value_s": s}
        for kind, s in (("slat", 1.0), ("clat", 2.0), ("lat", 3.0))
    ]
    frames = {
        "series": series.reindex(columns=[column.name for column in SERIES]),
        "percentiles": pd.DataFrame(rows, columns=[column.name for column in PERCENTILE_ROWS]),
    }
    return replace(own, frames={**own.frames, **frames})


def details(count: int) -> list[list[dict[str, Any]]]:
    """Return the batches of a report on so many runs."""
    own = content(count)
    numbers = {f"c1-{run.id}": place for place, run in enumerate(own.campaign.runs)}
    batches = run_details([("c1-", own)], numbers)
    return [json.loads(gzip.decompress(base64.b64decode(batch))) for batch in batches]


def test_a_stall_of_one_second_stays_visible() -> None:
    """An hour is thinned out, and its one second without I/O is still there, as is its end."""
    [[own]] = details(1)
    [series] = own["series"]
    assert len(series["t_s"]) < SECONDS / 2
    assert series["iops"][series["t_s"].index(STALL_S)] == 0
    assert series["lat_mean_s"][series["t_s"].index(STALL_S)] is None
    assert series["t_s"][-1] == SECONDS
    assert series["lat_mean_s"][0] == 0.0012346


def test_unknown_facts_are_left_out() -> None:
    """Columns without a value, and facts that were not reported."""
    [[own]] = details(1)
    assert "lat_max_s" not in own["series"][0]
    assert "rwmixread" not in own["facts"]
    assert own["facts"]["rw"] == "randwrite"
    assert own["device"] == []


def test_percentiles_are_of_total_latency_where_there_is_any() -> None:
    """As in the tables."""
    [[own]] = details(1)
    assert own["percentiles"] == [
        {"direction": "write", "latency": "lat", "percentile": [99], "value_s": [3]}
    ]


def test_runs_are_decoded_in_batches() -> None:
    """A page opens a run without decoding thousands."""
    batches = details(BATCH + 1)
    assert [len(batch) for batch in batches] == [BATCH, 1]
    assert batches[1][0]["job"] == f"[job{BATCH}]\nrw=randwrite\n"
