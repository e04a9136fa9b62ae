"""Charts of more results than can be looked at say what they show, and keep all numbers."""

import pytest

from tests.present.frames_by_kind import Frames
from tests.present.frames_for_plots import bins, frames, intervals, result
from volbench.present.plots.chart import build_plot

MANY = 130


@pytest.fixture(name="given", scope="module")
def _given() -> Frames:
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
    """The picture stays small, and a sentence counts what is left out and names --where."""
    plot = build_plot(kind, given)
    [sentence] = [own for own in plot.caption if "--where" in own]
    assert any(letter.isdigit() for letter in sentence)
    assert sum(plot.heights) < 60


@pytest.mark.slow
def test_results_without_logs_take_no_room(given: Frames) -> None:
    """The middle of all results has no logs here; those that have some are drawn."""
    plot = build_plot("series", {**given, "series": given["series"].query("run == 'job001-4-1'")})
    assert (len(plot.panels), any("--where" in own for own in plot.caption)) == (2, False)
