"""Doubts about runs and jobs that belong together: starts apart, ends apart, clients missing."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pytest

from tests.analyse.findings.conftest import a_run, a_view, found, series_rows, summary_row
from tests.planned import planned_campaign
from volbench.analyse.bottleneck.campaign_context import Context
from volbench.analyse.findings import find
from volbench.analyse.frames.run_view import RunView
from volbench.fio.logs.direction_series import DirectionSeries
from volbench.ingest.series_rows import while_all_ran
from volbench.model.results.result import Direction


@pytest.mark.slow
@pytest.mark.parametrize(
    ("starts_s", "bounds_s", "named"),
    [
        ((100.0, 100.012, 100.03), (0.004, 0.004, 0.004), []),
        ((100.0, 100.0, 108.64), (0.002, 0.002, 0.002), ["vm2"]),
        ((206.0, 100.0, 206.1), (0.002, 0.002, 0.002), ["vm0 and vm2"]),
        ((100.0, 100.6, 100.0), (0.15, 0.15, 0.15), []),
        ((None, 100.0, None), (None, 0.001, None), []),
    ],
)
def test_a_slow_client_is_compared_with_the_others(
    starts_s: tuple[float | None, ...], bounds_s: tuple[float | None, ...], named: list[str]
) -> None:
    """A retry alone, and a controller that was killed between two starts, are both seen."""
    columns: list[dict[str, object]] = [
        {"step_start_s": start_s, "clock_bound_s": bound_s}
        for start_s, bound_s in zip(starts_s, bounds_s, strict=True)
    ]
    first, *others = a_step(*["finished"] * 3, columns=columns)
    messages = [finding.message for finding in found(*others, first, rule="start-skew")]
    assert len(messages) == len(named)
    for message, names in zip(messages, named, strict=True):
        assert f"apart: {names} started after the others" in message
        assert " ± 4 ms" in message


def a_step(*states: str, columns: Sequence[Mapping[str, object]] = ()) -> list[RunView]:
    """Return the views of clients that did one step, with some columns of each one's summary."""
    more = columns or [{}] * len(states)
    runs = [
        a_run(name=f"vm{number}").model_copy(update={"host": f"vm{number}", "step": 1})
        for number in range(len(states))
    ]
    campaign = planned_campaign(*runs)
    return [
        a_view(run, summary=[summary_row(run, status=state, **own)], campaign=campaign)
        for run, state, own in zip(runs, states, more, strict=True)
    ]


def test_clients_that_are_missing_are_named_once() -> None:
    """The first that did finish tells who did not; with all there, nobody is missing."""
    first, second, lost = a_step("finished", "finished", "failed")
    (entry,) = found(second, lost, first, rule="missing-clients")
    assert "Only 2 of 3 clients" in entry.message
    assert "vm2 did not" in entry.message
    assert found(first, lost, second, rule="missing-clients") == []
    whole = a_step("finished", "finished")
    assert found(*whole, rule="missing-clients") == []


@pytest.mark.parametrize(("iops", "count"), [(20.0, 1), (60.0, 0)])
def test_a_client_far_slower_than_its_peers_is_named(iops: float, count: int) -> None:
    """A host ten times slower, with its rate and that of the others."""
    views = a_step(*["finished"] * 3, columns=[{"iops": 200.0}, {"iops": iops}, {"iops": 200.0}])
    entries = found(views[0], views[2], views[1], rule="uneven-repeats")
    assert [entry.run for entry in entries] == [views[1].run.id] * count


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
