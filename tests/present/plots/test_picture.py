"""Size that a reader chooses, scales, and the colours of many sets."""

from dataclasses import replace

import numpy as np
import pytest

from tests.present.figure_texts import texts_outside, texts_touching
from tests.present.frames_for_plots import frames, intervals, result, sweep
from tests.present.plots.plot_parts import all_marks
from volbench.present.plots.chart import build_plot
from volbench.present.plots.colour_themes import THEMES
from volbench.present.plots.labels import PALETTE_SIZE, line_look
from volbench.present.plots.marks import Bars, Points
from volbench.present.renderers.matplotlib import draw


def test_bars_of_a_logarithmic_axis_are_points_with_the_same_numbers() -> None:
    """The length of a bar that begins anywhere but at zero would mean nothing."""
    plot = build_plot("iops", frames([result("a", iops=10.0), result("b", iops=20000.0)]))
    (panel,) = plot.panels
    assert panel.x.scale == "log"
    assert not all_marks(panel, Bars)
    (points,) = all_marks(panel, Points)
    assert points.data[points.x].tolist() == [10.0, 20000.0]
    assert points.data[points.y].tolist() == list(panel.y.ticks)


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


def test_a_legend_is_below_the_answer_where_it_has_no_room_beside_the_title() -> None:
    """Four campaigns of long names: neither text is written over the other."""
    rows = [
        result("job", iops=100.0 * 4**n, campaign=f"a-campaign-of-a-long-name-{n}", run=f"{n}")
        for n in range(4)
    ]
    figure = draw(build_plot("iops", frames(rows)))
    renderer = figure.canvas.get_renderer()  # type: ignore[attr-defined]  # of FigureCanvasAgg
    [legend] = figure.legends
    above = legend.get_window_extent(renderer).y1
    answers = [text for text in figure.texts if "times as fast" in text.get_text()]
    assert all(text.get_window_extent(renderer).y0 >= above for text in answers)
    assert answers


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
@pytest.mark.parametrize("kind", ["iops", "series"])
def test_a_picture_is_as_wide_as_its_data_need(kind: str) -> None:
    """Labels and legends never take the room of the bars, nor stand outside the picture."""
    rows = sweep(depths=(1, 4, 16))
    given = frames(rows, series=[own for row in rows for own in intervals(row, [10.0, 20.0])])
    figure = draw(replace(build_plot(kind, given), width_in=2.0))
    assert texts_outside(figure) == []
    assert texts_touching(figure) == []
    for axes in figure.axes:
        box = axes.get_position()
        assert box.width * figure.get_size_inches()[0] > 0.85
        assert box.x1 <= 1.0
