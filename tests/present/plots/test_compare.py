"""Charts of comparisons and prices: ratios, intervals and the frontier stand where they belong."""

import math
from dataclasses import replace

import pytest

from tests.analyse.compared_rows import candidates_of_three_jobs
from tests.present.figure_texts import texts_outside
from tests.present.plots.plot_parts import all_marks, caption_of, column, the_mark, written
from volbench.analyse.compare.comparison import Comparison
from volbench.analyse.compare.repeat_statistics import Group, Interval
from volbench.errors import InputError
from volbench.extensions.catalogue.catalogue_tables import market_table
from volbench.extensions.catalogue.pareto import pareto_plot
from volbench.extensions.catalogue.price_performance import Market, Offer
from volbench.present.plots.charts.comparison_charts import forest_plot
from volbench.present.plots.marks import Lines, Points, ReferenceLine, Span, Texts, Whiskers
from volbench.present.renderers.matplotlib import draw

UNKNOWN = Interval(math.nan, math.nan, math.nan)


@pytest.fixture(name="comparison", scope="module")
def _comparison() -> Comparison:
    return candidates_of_three_jobs()


def test_every_interval_is_drawn(comparison: Comparison) -> None:
    """A panel a metric and candidate, a row a cell, ranges from end to end, and 1 as reference."""
    plot = forest_plot(comparison)
    titles = ["iops, new", "iops, newer", "p99, new", "p99, newer"]
    assert [panel.title for panel in plot.panels] == titles
    assert plot.panels[0].x == plot.panels[1].x  # one quantity has one scale
    for panel in plot.panels:
        metric, _, candidate = panel.title.partition(", ")
        of_metric = [row for row in comparison.rows if row.measure.name == metric]
        rows = [row for row in of_metric if row.candidate == candidate]
        intervals = [row.interval for row in rows if row.interval]
        whiskers = the_mark(panel, Whiskers)
        assert column(whiskers, whiskers.low) == [interval.low for interval in intervals]
        assert column(whiskers, whiskers.high) == [interval.high for interval in intervals]
        assert column(the_mark(panel, Points), "ratio") == [row.ratio for row in rows]
        assert panel.x.scale == "log"
        assert panel.x.limits is not None
        low, high = panel.x.limits
        assert low < min(interval.low for interval in intervals)
        assert max(interval.high for interval in intervals) < high
        assert the_mark(panel, ReferenceLine).value == 1
        span = the_mark(panel, Span)
        assert (span.low, span.high) == (0.999, 1.001)
        assert len(panel.x.ticks) >= 3
    names = plot.panels[0].y.categories
    assert len(names) == 4
    assert "randread 4k, queue depth 1, fast" in names
    half_row_pt = 72 * plot.heights[0] / len(names) / 2
    for panel in plot.panels:
        ratios = next(mark for mark in all_marks(panel, Texts) if not mark.is_italic)
        assert ratios.offset_pt[1] + 1.3 * ratios.size <= half_row_pt  # a page cuts at the frame
    assert texts_outside(draw(plot)) == []


def test_results_at_an_asked_rate_are_drawn(comparison: Comparison) -> None:
    """Their verdict is in the legend, and no ratio of theirs stands for the volume."""
    held = tuple(replace(row, candidate_asked="rate_iops=300") for row in comparison.rows)
    plot = forest_plot(replace(comparison, rows=held))
    assert "as asked of fio" in {series.label for series in plot.series}
    assert texts_outside(draw(plot)) == []


def test_a_forest_of_hundreds_of_workloads_shows_the_surest_differences(
    comparison: Comparison,
) -> None:
    """A chart of 291 workloads would be 40,000 px high; the caption counts what is left out."""
    first = comparison.rows[0]
    single = replace(first, base_group=Group((100.0,)), contrast=None)
    rows = [replace(single, label=f"w{n}", candidate_group=Group((100.0 + n,))) for n in range(100)]
    plot = forest_plot(replace(comparison, rows=tuple(rows)))
    [categories] = {panel.y.categories for panel in plot.panels}
    assert len(categories) == 30
    assert plot.caption[0] == "Shown: the 30 surest differences of 100 workloads"
    assert "w99" in " ".join(categories)
    assert "w1 " not in " ".join(categories)


def offer(name: str, monthly: float, iops: float, *, front: bool, workload: str = "r") -> Offer:
    """Return an offer with an interval of a tenth to both sides."""
    return Offer(
        name=name,
        values={"flavor": name},
        workload=workload,
        asked="",
        family=f"family {name}",
        monthly=(monthly, monthly),
        runs=5,
        volumes=1,
        unsteady=0,
        unjudged=0,
        iops=Interval(0.9 * iops, iops, 1.1 * iops),
        bw_bytes_per_s=UNKNOWN,
        cost_per_1000_iops=UNKNOWN,
        cost_per_100_mb_per_s=UNKNOWN,
        cost_per_gib=UNKNOWN,
        is_on_front=front,
    )


OFFERS = (
    offer("cheap", 10, 1000, front=True),
    offer("dear", 40, 3000, front=True),
    offer("beaten", 30, 900, front=False),
)


def test_points_and_frontier() -> None:
    """Each configuration is a point; the frontier steps up through those that nothing beats."""
    plot = pareto_plot(Market(OFFERS, "EUR", ("a remark",)))
    [panel] = plot.panels
    [points] = [mark for mark in all_marks(panel, Points) if mark.by == "family"]
    places = zip(column(points, points.x), column(points, points.y), strict=True)
    assert set(places) == {(10, 1000), (40, 3000), (30, 900)}
    frontier = the_mark(panel, Lines)
    assert frontier.step == "post"
    assert column(frontier, frontier.y) == [1000, 3000, 3000]
    assert column(frontier, frontier.x)[:2] == [10, 40]
    assert panel.x.label == "EUR a month"
    assert list(panel.x.limits or ()) == pytest.approx([0, 40 * 1.12])
    assert list(panel.y.limits or ()) == pytest.approx([0, 3300 * 1.12])
    assert set(written(panel)) == {"cheap", "dear", "beaten"}
    whiskers = the_mark(panel, Whiskers)
    assert column(whiskers, whiskers.low) == pytest.approx([900, 2700, 810])
    assert "A remark" in plot.caption


def test_a_configuration_that_may_be_no_faster_is_off_the_frontier() -> None:
    """More money for a difference that was not shown is no step of the line."""
    unsure = replace(offer("dearer", 60, 3010, front=True), no_faster_than=("dear",))
    plot = pareto_plot(Market((*OFFERS, unsure), "EUR"))
    frontier = the_mark(plot.panels[0], Lines)
    assert column(frontier, frontier.y) == [1000, 3000, 3000]
    [pale] = [mark for mark in all_marks(plot.panels[0], Points) if mark.series == "pale"]
    assert column(pale, pale.x) == [60]
    assert "Pale: on the frontier by the point estimate only" in caption_of(plot)
    sizes = [mark.size for mark in all_marks(plot.panels[0], Points)]
    assert sizes == [7, 5, 7]  # the pale dot is within the ring, which would cover it


def test_a_panel_for_each_job() -> None:
    """Three jobs have three panels, two abreast."""
    offers = tuple(offer("a", 10, 100, front=True, workload=job) for job in ("x", "y", "z"))
    first, *firsts = (replace(o, rank=1, cost_per_1000_iops=Interval(8, 9, 10)) for o in offers)
    dear = replace(first, name="b", rank=2, cost_per_1000_iops=Interval(10, 12, 15))
    markets = ((first, dear, *firsts), (replace(first, beyond=1), replace(dear, rank=1)))
    plain, doubtful = [market_table(Market(some, "USD")).title for some in markets]
    assert plain == pareto_plot(Market(markets[0], "USD")).answer
    assert plain.endswith(": a for x (25 % less than the next).")
    assert doubtful.endswith(", but no significant difference, at rates beyond the declared IOPS).")
    panels = pareto_plot(Market(offers, "USD")).panels
    assert [panel.title for panel in panels] == ["x", "y", "z"]
    assert [(panel.row, panel.column) for panel in panels] == [(0, 0), (0, 1), (1, 0)]


def test_configurations_without_a_price_are_counted() -> None:
    """What has no cost can't stand in the chart; when nothing has, there is none."""
    unpriced = offer("z", math.nan, 100, front=False)
    plot = pareto_plot(Market((*OFFERS, unpriced), "USD"))
    assert "z" not in written(plot.panels[0])
    assert plot.answer.endswith("Not shown, because cost or rate is unknown: z.")
    with pytest.raises(InputError, match="both a price and steady IOPS"):
        pareto_plot(Market((unpriced,), "USD"))
