"""Jobs in parallel that end at different times are no behaviour of the volume."""

from dataclasses import replace

import numpy as np
import pytest

from tests.analyse.findings.conftest import a_run, a_view, series_rows, summary_row
from volbench.analyse.bottleneck.campaign_context import Context
from volbench.analyse.findings import find
from volbench.analyse.frames.run_view import RunView
from volbench.fio.logs.direction_series import DirectionSeries
from volbench.ingest.series_rows import while_all_ran
from volbench.model.results.result import Direction

LATENCIES = (
    "lat_mean_s",
    "lat_p50_s",
    "lat_p99_s",
    "lat_p999_s",
    "lat_max_s",
    "clat_mean_s",
    "slat_mean_s",
)


def one_of_four_runs_on() -> RunView:
    """Return a run of 60 s whose four jobs ran together for 20 s only, at 4,000 IOPS."""
    run = a_run({"numjobs": "4", "iodepth": "4"})
    rates = [4000.0] * 20 + [1000.0] * 40
    series = series_rows(run, rates)
    for second, row in enumerate(series):
        row["jobs_running"] = 4 if second < 20 else 1
    columns = {"iops": 4000.0, "iops_overall": 1000.0, "parallel_s": 20.0}
    return a_view(run, summary=[summary_row(run, **columns)], series=series, device=[])


def test_the_drop_in_the_sum_is_not_explained_by_the_volume() -> None:
    """The step from 4,000 to 1,000 IOPS is the end of three jobs: no credits, no neighbour."""
    view = one_of_four_runs_on()
    context = Context((view,))
    assert not {entry.rule for entry in find(context)} & {"inconsistent-result"}
    assert not any(cause.from_s > 0 for cause in context.explanations(view))
    assert context.steadiness(view, "write").median == pytest.approx(4000)


def test_the_rate_is_taken_while_all_jobs_ran() -> None:
    """IOPS and bandwidth are means over the intervals in which all jobs ran."""
    together = np.repeat([True, False], [5, 15])
    unknown = np.full(20, np.nan)
    series = DirectionSeries(
        direction=Direction.READ,
        t_s=np.arange(1.0, 21.0),
        utc_s=None,
        iops=np.where(together, 400.0, 100.0),
        bw_bytes_per_s=np.where(together, 4000.0, 1000.0),
        **dict.fromkeys(LATENCIES, unknown),
        jobs_running=np.where(together, 4.0, 1.0),
    )
    columns = while_all_ran(series)
    assert columns == {
        "parallel_s": 5.0,
        "iops": 400.0,
        "bw_bytes_per_s": 4000.0,
        "iops_min": 400.0,
        "iops_max": 400.0,
        "iops_stddev": 0.0,
    }
    assert "iops" not in while_all_ran(replace(series, jobs_running=np.full(20, 4.0)))
