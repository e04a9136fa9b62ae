"""The chart of costs: points, intervals and the front stand where the numbers say."""

from __future__ import annotations

import math
from dataclasses import replace
from io import BytesIO

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from volbench.analyse.compare.repeat_statistics import Interval
from volbench.analyse.price.price_performance import Market, Offer
from volbench.errors import InputError
from volbench.present.figures.pareto import pareto_figure
from volbench.present.figures.save import save

UNKNOWN = Interval(math.nan, math.nan, math.nan)


def offer(name: str, monthly: float, iops: float, *, front: bool, job: str = "r") -> Offer:
    """Return an offer with an interval of a tenth to both sides."""
    return Offer(
        name=name,
        values={"flavor": name},
        job=job,
        family=f"family {name}",
        monthly=(monthly, monthly),
        runs=5,
        volumes=1,
        unsteady=0,
        iops=Interval(0.9 * iops, iops, 1.1 * iops),
        bw_bytes_per_s=UNKNOWN,
        burst_iops=math.nan,
        steal_percent=math.nan,
        cpu_models=(),
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


def drawn(market: Market) -> tuple[Figure, list[Axes]]:
    """Return the figure, and the panels that can be seen."""
    figure = pareto_figure(market)
    return figure, [axes for axes in figure.axes if axes.get_visible()]


def test_points_and_front() -> None:
    """Each offer is a point; the front goes up in steps through those that nothing beats."""
    figure, (axes,) = drawn(Market(OFFERS, "EUR", ("a remark",)))
    points = {
        (float(np.ravel(line.get_xdata())[0]), float(np.ravel(line.get_ydata())[0]))
        for line in axes.lines
        if line.get_marker() == "o"
    }
    assert points == {(10, 1000), (40, 3000), (30, 900)}
    (front,) = [line for line in axes.lines if line.get_drawstyle() == "steps-post"]
    assert list(np.ravel(front.get_ydata())) == [1000, 3000, 3000]
    assert list(np.ravel(front.get_xdata()))[:2] == [10, 40]
    assert axes.get_xlabel() == "EUR a month"
    assert axes.get_xlim()[0] == 0
    assert axes.get_ylim()[0] == 0
    assert axes.get_ylim()[1] == pytest.approx(3300 * 1.12)
    assert {text.get_text() for text in axes.texts} == {"cheap", "dear", "beaten"}
    assert "A remark" in figure.get_supxlabel()


def test_what_may_be_no_faster_is_pale_and_beside_the_front() -> None:
    """More money for a difference that was not shown is no step of the line."""
    unsure = replace(offer("dearer", 60, 3010, front=True), no_faster_than=("dear",))
    figure, (axes,) = drawn(Market((*OFFERS, unsure), "EUR"))
    (front,) = [line for line in axes.lines if line.get_drawstyle() == "steps-post"]
    assert list(np.ravel(front.get_ydata())) == [1000, 3000, 3000]
    assert "Pale: not shown to be faster" in " ".join(figure.get_supxlabel().split())


def test_a_panel_for_each_job() -> None:
    """Three jobs have three panels, and the fourth place stays empty."""
    offers = tuple(offer("a", 10, 100, front=True, job=job) for job in ("x", "y", "z"))
    _, panels = drawn(Market(offers, "USD"))
    assert [axes.get_title(loc="left") for axes in panels] == ["x", "y", "z"]


def test_offers_without_a_price_are_told() -> None:
    """What has no cost can't stand in the chart; when nothing has, there is none."""
    unpriced = offer("z", math.nan, 100, front=False)
    figure, (axes,) = drawn(Market((*OFFERS, unpriced), "USD"))
    assert "z" not in {text.get_text() for text in axes.texts}
    assert "Not shown for want of a cost or a rate: 1" in figure.get_supxlabel().replace("\n", " ")
    with pytest.raises(InputError, match="no offer has both a price and steady IOPS"):
        pareto_figure(Market((unpriced,), "USD"))


@pytest.mark.parametrize("theme", ["light", "dark", "print"])
def test_themes_and_names_are_safe(theme: str) -> None:
    """Every theme can be written, and a name is text, never a formula or a command."""
    odd = offer("$\\alpha$ \x1b[31m <b>", 20, 2000, front=True)
    sink = BytesIO()
    save(pareto_figure(Market((odd,), "USD"), title="T", theme=theme), sink, format="svg")
    assert b"\x1b" not in sink.getvalue()
