"""Causes on series of a real NVMe drive: runs in a row over the same range that others published.

Where they are from stands in tests/cases/ssd-series/README.md. Nothing but rates and mean latencies
is known of them, as of many results that are imported.
"""

import csv
from pathlib import Path

import pytest

from tests.analyse.findings.conftest import a_run, a_view, series_rows, summary_row
from volbench.analyse.bottleneck.campaign_context import Context
from volbench.analyse.findings import find
from volbench.analyse.frames.run_view import RunView
from volbench.model.campaign.planned_run import Volume, VolumeKind
from volbench.model.results.finding import Cause, Explanation, Severity

FOLDER = Path(__file__).parents[2] / "cases" / "ssd-series"
NEVER = {Cause.CREDITS, Cause.WARMING, Cause.NEIGHBOUR}
"""Causes that a local drive, written many times over, cannot have."""


def series_of(name: str, place: int, *, jobs: int, depth: int) -> RunView:
    """Return one of the published runs, as an import knows it."""
    with (FOLDER / f"{name}.csv").open(encoding="utf-8", newline="") as stream:
        rows = [{key: float(value) for key, value in row.items()} for row in csv.DictReader(stream)]
    run = a_run(
        {"ioengine": "io_uring", "iodepth": str(depth), "numjobs": str(jobs)},
        name=name,
        id=f"{place:03}-{name}-r1",
        volume=Volume(role="data", kind=VolumeKind.DEVICE, target="/dev/nvme0n1"),
    )
    rates = [row["iops"] for row in rows]
    ios = sum(rates)
    busy_s = sum(row["iops"] * row["lat_mean_s"] for row in rows)
    summary = summary_row(
        run,
        runtime_s=float(len(rows)),
        total_ios=int(ios),
        io_bytes=int(ios) * 4096,
        iops=ios / len(rows),
        bw_bytes_per_s=ios * 4096 / len(rows),
        lat_mean_s=busy_s / ios,
        lat_min_s=5e-6,
    )
    rows_of = {"summary": [summary], "series": series_rows(run, rates)}
    return a_view(run, **rows_of, device=[], percentiles=[], volume=None, host=None)


@pytest.fixture(scope="module")
def context() -> Context:
    """Return the seven runs as one campaign, in their order."""
    return Context(
        (
            series_of("ramp-1job-qd1", 1, jobs=1, depth=1),
            series_of("steady-32jobs-qd1", 6, jobs=32, depth=1),
            series_of("fall-64jobs-qd1", 7, jobs=64, depth=1),
            series_of("after-fall-1job-qd2", 8, jobs=1, depth=2),
            series_of("collapse-32jobs-qd32", 41, jobs=32, depth=32),
            series_of("after-collapse-64jobs-qd32", 42, jobs=64, depth=32),
            series_of("next-1job-qd64", 43, jobs=1, depth=64),
        )
    )


def explained(context: Context, name: str) -> tuple[Explanation, ...]:
    """Return what explains the rates of a run."""
    (view,) = (view for view in context.views if view.run.job == name)
    return context.explanations(view)


def test_no_impossible_cause_is_named(context: Context) -> None:
    """No credits, cold blocks, cache or neighbour on such a drive; nothing in a flat run."""
    for view in context.views:
        assert not {found.cause for found in context.explanations(view)} & NEVER, view.run.job
    causes = {found.cause for found in explained(context, "steady-32jobs-qd1")}
    assert not causes & {Cause.SLOWER, Cause.RAMP_UP, Cause.STALL}


@pytest.mark.parametrize(
    ("name", "at_s"),
    [("fall-64jobs-qd1", 11), ("collapse-32jobs-qd32", 25)],
    ids=["flat", "uneven"],
)
def test_a_drive_is_slower_after_some_bytes(context: Context, name: str, at_s: float) -> None:
    """403k to 314k IOPS, both flat, and 306k to some 25k, uneven: rates do not say why."""
    (fall,) = (found for found in explained(context, name) if found.cause is Cause.SLOWER)
    assert fall.from_s == pytest.approx(at_s, abs=1)
    assert fall.words.startswith("slower after ")
    assert explained(context, name)[0] is fall


def test_the_run_after_a_collapse_ramps_up(context: Context) -> None:
    """50k IOPS become 308k within 9 s on blocks that were written before."""
    found = explained(context, "after-collapse-64jobs-qd32")
    (rise,) = (each for each in found if each.cause is Cause.RAMP_UP)
    assert rise.to_s == pytest.approx(9, abs=2)
    assert not rise.is_certain


def test_changes_of_the_rate_are_warnings(context: Context) -> None:
    """The collapse stands among the warnings with its cause, and no rule tells a false one."""
    found = find(context)
    rules = {entry.rule for entry in found}
    assert not rules & {"credits-ran-out", "cold-blocks", "host-cache", "neighbour"}
    (unsteady,) = (
        entry for entry in found if entry.rule == "not-steady" and "collapse-32" in entry.run
    )
    assert unsteady.severity is Severity.WARNING
    assert "(slower after " in unsteady.message
