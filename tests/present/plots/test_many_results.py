"""Charts of more results than can be looked at say what they show, and keep all numbers."""

import pytest

from tests.present.frames_by_kind import Frames
from tests.present.frames_for_plots import bins, frames, intervals, result
from volbench.present.plots.chart import build_plot
from volbench.present.plots.description import numbers

MANY = 130


@pytest.fixture(name="given", scope="module")
def _given() -> Frames:
    """Return many hosts with a job, each at two queue depths, with bins and intervals."""
    rows = [
        result(f"job{n:03}-{depth}", iops=100.0 * n + depth, iodepth=depth, rw="randread")
        | {"host": f"vm{n}"}
        for n in range(MANY)
        for depth in (1, 4)
    ]
    return frames(
        rows,
        series=[point for row in rows for point in intervals(row, [float(str(row["iops"]))] * 2)],
        histogram=[own for row in rows for own in bins(row, {0.001: 90, 0.004: 9})],
    )


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["latency", "ecdf", "series"])
def test_the_caption_says_what_is_shown(kind: str, given: Frames) -> None:
    """The picture stays small, a sentence names --where, and the numbers are complete."""
    plot = build_plot(kind, given)
    [sentence] = [own for own in plot.caption if "--where" in own]
    assert any(letter.isdigit() for letter in sentence)
    assert sum(plot.heights) < 60
    assert len(numbers(plot)) >= 2 * MANY


def test_series_of_many_jobs_are_the_least_steady() -> None:
    """Whoever looks for trouble finds the one job of thirty whose rate collapses."""
    rows = [result(f"job-{n:02}", iops=1000.0, rw="randread") for n in range(30)]
    rates = [[1000.0, 10.0 if n == 27 else 1000.0 + n, 1000.0] for n in range(30)]
    series = [own for each in map(intervals, rows, rates) for own in each]
    plot = build_plot("series", frames(rows, series=series))
    headings = [panel.heading for panel in plot.panels if panel.heading]
    assert len(headings) == 9
    assert any("job-27" in heading for heading in headings)
    assert any("9 of 30 jobs, the least steady" in own for own in plot.caption)
