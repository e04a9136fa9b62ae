"""Size and scales that a reader chooses, and the colours of many sets."""

import math
from dataclasses import replace

import numpy as np
import pytest

from tests.present.figure_texts import texts_outside
from tests.present.frames_for_plots import frames, intervals, result, sweep
from tests.present.plots.plot_parts import all_marks, written
from volbench.errors import InputError
from volbench.present.plots.chart import build_plot
from volbench.present.plots.colour_themes import THEMES
from volbench.present.plots.description import numbers
from volbench.present.plots.kinds import AxisEnd, Choice, Options, Picture
from volbench.present.plots.labels import PALETTE_SIZE, line_look
from volbench.present.plots.marks import Bars, Points, Texts
from volbench.present.plots.picture import with_picture
from volbench.present.renderers.matplotlib import draw


def test_the_unit_of_an_axis_limit_selects_the_axes() -> None:
    """10 ms ends the latencies of a chart, and leaves its IOPS as they are."""
    row = result("job", iops=1000.0)
    plot = build_plot("series", frames([row], series=intervals(row, [1000.0, 900.0])))
    ended = with_picture(plot, Picture(y_max=AxisEnd.parse("10ms")))
    before = {panel.y.format: panel.y.limits for panel in plot.panels}
    after = {panel.y.format: panel.y.limits for panel in ended.panels}
    assert after == before | {"latency": (0.0, 0.01)}


@pytest.mark.parametrize(
    ("text", "value", "unit"),
    [("20k", 2e4, ""), ("1.5M", 1.5e6, ""), ("500MB/s", 5e8, "B/s"), ("10ms", 0.01, "s")],
)
def test_axis_limits_are_read_with_their_unit(text: str, value: float, unit: str) -> None:
    """Counts have k, M and G; rates and durations are written as everywhere else."""
    assert AxisEnd.parse(text) == AxisEnd(value, unit)


def test_bars_of_a_logarithmic_axis_are_points_with_the_same_numbers() -> None:
    """The length of a bar that begins anywhere but at zero would mean nothing."""
    plot = build_plot("iops", frames([result("a", iops=10.0), result("b", iops=200.0)]))
    scaled = with_picture(plot, Picture(is_log=True))
    (panel,) = scaled.panels
    assert panel.x.scale == "log"
    assert not all_marks(panel, Bars)
    (points,) = all_marks(panel, Points)
    assert points.data[points.x].tolist() == [10.0, 200.0]
    assert points.data[points.y].tolist() == pytest.approx([0.0, 1.0], abs=0.1)
    ended = with_picture(plot, Picture(is_log=True, y_max=AxisEnd(100.0, "")))
    assert "200 →" in written(ended.panels[0]), "a point beyond the axis is named"
    assert numbers(scaled).equals(numbers(plot))
    joined = replace(plot, panels=(*plot.panels, *scaled.panels))
    assert len(numbers(joined)) == len(numbers(plot))  # Rows that two panels share come once.
    assert with_picture(scaled, Picture(is_log=True)).panels == scaled.panels
    grid = Options(choice=Choice(view="grid"))
    with pytest.raises(InputError, match="no axis of the chart iops can be logarithmic"):
        with_picture(
            build_plot("iops", frames(sweep(blocks=(4096, 65536))), options=grid),
            Picture(is_log=True),
        )


@pytest.mark.slow
def test_bars_that_differ_much_have_a_logarithmic_axis() -> None:
    """On an axis from zero a floppy beside an NVMe has no bar; within a factor of 30 zero stays."""
    for kind in ("iops", "bw"):
        wide, narrow = (
            build_plot(kind, frames([result("a", iops=10.0), result("b", iops=top)])).panels[0].x
            for top in (90000.0, 200.0)
        )
        assert (wide.scale, narrow.scale) == ("log", "linear")
        assert "logarithmic" in wide.label


def test_a_row_without_a_result_stays_on_a_logarithmic_axis() -> None:
    """Its text is at the foot of the axis, where linear axes have zero, and inside the picture."""
    known = [result("a", iops=10.0), result("b", iops=9000.0), result("c", iops=math.nan)]
    scaled = with_picture(build_plot("iops", frames(known)), Picture(is_log=True))
    assert texts_outside(draw(scaled)) == []
    (texts,) = all_marks(scaled.panels[0], Texts)
    assert texts.data[texts.x].min() > 0


def test_colours_of_a_theme_differ() -> None:
    """Of 28 sets no two have one colour; in print colour and hatch together differ."""
    for theme in THEMES.values():
        roles = [line_look(place)[0] for place in range(PALETTE_SIZE)]
        looks = {(theme.colours[role], theme.hatches.get(role)) for role in roles}
        assert len(looks) == PALETTE_SIZE == 28


def test_lines_without_a_name_are_visible_on_every_paper() -> None:
    """They are darker than the grid; on dark paper brighter, with three times its light."""

    def light(colour: str) -> float:
        shares = np.array([int(colour[place : place + 2], 16) for place in (1, 3, 5)]) / 255
        linear = np.where(shares <= 0.04045, shares / 12.92, ((shares + 0.055) / 1.055) ** 2.4)
        return float(linear @ (0.2126, 0.7152, 0.0722)) + 0.05

    for name, theme in THEMES.items():
        paper, grid, rest = (light(theme.colours[role]) for role in ("paper", "pale", "rest"))
        assert max(paper, rest) / min(paper, rest) > max(paper, grid) / min(paper, grid)
        assert name != "dark" or rest / paper > 3


@pytest.mark.slow
def test_bars_beyond_the_axis_limit_show_their_value() -> None:
    """A bar that --y-max cuts has an arrow with its value; the limit keeps its name."""
    rows = [result("a", iops=500.0, limit_iops=9000.0), result("b", iops=4200.0, limit_iops=9000.0)]
    plot = with_picture(build_plot("iops", frames(rows)), Picture(y_max=AxisEnd(1000.0, "")))
    texts = written(plot.panels[0])
    assert "4.2k →" in texts
    assert "500" in texts
    assert "4.2k" not in texts, "it would stand outside the panel"
    assert texts_outside(draw(plot)) == []


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["iops", "series"])
def test_a_picture_is_as_wide_as_its_data_need(kind: str) -> None:
    """Labels and legends never take the room of the bars, nor stand outside the picture."""
    rows = sweep(depths=(1, 4, 16))
    given = frames(rows, series=[own for row in rows for own in intervals(row, [10.0, 20.0])])
    figure = draw(with_picture(build_plot(kind, given), Picture(width_in=2.0)))
    assert texts_outside(figure) == []
    for axes in figure.axes:
        box = axes.get_position()
        assert box.width * figure.get_size_inches()[0] > 0.85
        assert box.x1 <= 1.0
