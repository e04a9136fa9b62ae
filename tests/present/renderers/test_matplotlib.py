import io
import xml.etree.ElementTree as ET
from dataclasses import replace
from itertools import combinations, pairwise
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.colors import to_hex, to_rgb

from tests.present.figure_texts import texts_outside
from tests.present.frames_for_plots import aks, bins, frames, intervals, result, sweep
from volbench.errors import InputError, VolbenchError
from volbench.present.plots.chart import build_plot
from volbench.present.plots.colour_themes import theme_of
from volbench.present.plots.kinds import Choice, Options
from volbench.present.renderers import PICTURE_FORMATS
from volbench.present.renderers.matplotlib import draw, save, svg_text


def test_bars_whiskers_and_limits_are_drawn_at_their_values() -> None:
    """A figure holds the lengths, the ranges, the limit and the names of the description."""
    rows = [
        result("a", repeat=n, iops=iops, limit_iops=400.0)
        for n, iops in ((1, 90.0), (2, 300.0), (3, 100.0))
    ]
    figure = draw(build_plot("iops", frames(rows), title="Disk $5$"))
    [axes] = figure.axes
    assert figure.get_label() == "iops"
    assert figure.get_suptitle() == "Disk $5$"
    bars, whiskers = axes.collections
    corners = np.asarray(bars.get_paths()[0].vertices)
    assert (corners[:, 0].min(), corners[:, 0].max()) == (0.0, 100.0)
    (ends,) = whiskers.get_segments()  # type: ignore[attr-defined]  # LineCollection
    assert [float(end[0]) for end in ends] == [90.0, 300.0]
    limits = [float(np.asarray(line.get_xdata())[0]) for line in axes.lines]
    assert limits == [400.0]
    assert axes.xaxis.get_major_formatter()(1500.0) == "1.5k"
    assert axes.yaxis_inverted()


def test_cells_hold_their_values_and_gaps() -> None:
    """Unmeasured cells of a heat map stay empty."""
    rows = [r for r in sweep(depths=(1, 4), blocks=(4096, 65536)) if r["job"] != "randread-4-65536"]
    axes = draw(build_plot("iops", frames(rows), options=Options(choice=Choice(view="grid")))).axes[
        0
    ]
    array = axes.images[0].get_array()
    assert array is not None
    image = np.ma.filled(array, np.nan)
    assert list(image[0]) == [100.0, 400.0]
    assert image[1][0] == 100.0
    assert np.isnan(image[1][1])


@pytest.mark.slow
def test_panels_end_where_the_description_says() -> None:
    """Every panel of small multiples has its limits, and nothing is cut off or overlaps."""
    plot = build_plot("iops", frames(sweep(depths=(1, 4), blocks=(4096,))))
    figure = draw(plot)
    assert [axes.get_xlim() for axes in figure.axes] == [panel.x.limits for panel in plot.panels]
    assert texts_outside(figure) == []
    figure.draw_without_rendering()
    boxes = [box for axes in figure.axes if (box := axes.get_tightbbox())]
    for place, box in enumerate(boxes):
        assert not any(box.overlaps(other) for other in boxes[place + 1 :])


@pytest.mark.slow
def test_labels_of_sixty_jobs_do_not_overlap() -> None:
    """The names of many jobs do not touch each other, even when they are long."""
    rows = [result(f"quite-a-long-name-of-a-job-number-{n}") for n in range(60)]
    for kind in ("iops", "latency"):
        figure = draw(build_plot(kind, frames(rows)))
        figure.draw_without_rendering()
        boxes = [label.get_window_extent() for label in figure.axes[0].get_yticklabels()]
        assert len(boxes) == 60
        assert all(a.y0 >= b.y1 for a, b in pairwise(boxes))


def test_strange_names_are_drawn_as_they_are(tmp_path: Path) -> None:
    """Dollars are no formula, control characters are spelled out, long names are wrapped."""
    rows = [result("$a_1$"), result("bad\x1b[31m"), result("long-" * 40)]
    figure = draw(build_plot("iops", frames(rows)))
    names = [label.get_text() for label in figure.axes[0].get_yticklabels()]
    assert names[:2] == ["$a_1$", "bad\\x1b[31m"]
    assert max(len(line) for line in names[2].splitlines()) <= 60
    assert texts_outside(figure) == []
    save(figure, tmp_path / "x.svg", format="svg")


@pytest.mark.slow
def test_long_lines_keep_their_extremes() -> None:
    """A long line is drawn with two thousand points, among them its one spike and its one stall."""
    row = result("long")
    values = np.full(50_000, 500.0)
    values[12_345], values[40_001] = 9_000.0, 0.0
    given = frames([row], series=intervals(row, [500.0]))
    entry = given["series"]
    given["series"] = entry.loc[entry.index.repeat(len(values))].reset_index(drop=True)
    given["series"]["iops"] = values
    given["series"]["t_s"] = np.arange(len(values), dtype=float)
    line = draw(build_plot("series", given)).axes[0].lines[0]
    drawn = np.asarray(line.get_ydata(), dtype=float)
    assert len(drawn) <= 2000
    assert (drawn.min(), drawn.max()) == (0.0, 9000.0)


@pytest.mark.slow
@pytest.mark.parametrize(("theme", "page"), [("dark", "#15181d"), ("print", "#ffffff")])
def test_themes_change_only_colours(theme: str, page: str) -> None:
    """A theme changes no place, and leaves no dark text on a dark page."""
    rows = [result("a", volume=f"/dev/{n}", run=str(n), iops=100.0 + n) for n in range(2)]
    plot = build_plot("iops", frames(rows))
    light, other = draw(plot), draw(plot, theme=theme)
    corners = [own.axes[0].collections[0].get_paths()[0].vertices for own in (light, other)]
    assert np.array_equal(np.asarray(corners[0]), np.asarray(corners[1]))
    assert to_hex(other.get_facecolor()) == page
    texts = [*other.axes[0].texts, *other.axes[0].get_yticklabels(), *other.texts]
    assert theme != "dark" or all(to_hex(text.get_color()) > "#888888" for text in texts)
    hatches = {bars.get_hatch() for bars in other.axes[0].collections}
    assert bool(hatches - {None}) == (theme == "print")


def test_unknown_theme_is_refused() -> None:
    """An unknown theme is refused with those there are."""
    with pytest.raises(InputError, match="no theme 'sepia'") as caught:
        draw(build_plot("iops", frames(aks())), theme="sepia")
    assert "light, dark, print" in caught.value.hint


def test_drawing_leaves_no_figures_and_settings_behind() -> None:
    """The settings of matplotlib are the same after drawing and saving as before."""
    before = dict(mpl.rcParams)
    svg_text(draw(build_plot("iops", frames(aks()))))
    assert dict(mpl.rcParams) == before


@pytest.mark.slow
@pytest.mark.parametrize("format_name", PICTURE_FORMATS)
def test_files_are_reproducible(format_name: str, tmp_path: Path) -> None:
    """The same frames give the same bytes, by path or to an open file."""
    given = frames(aks())
    path, sink = tmp_path / "chart", io.BytesIO()
    save(draw(build_plot("latency", given)), path, format=format_name)
    save(draw(build_plot("latency", given)), sink, format=format_name)
    assert path.read_bytes() == sink.getvalue()
    magic = {"svg": b"<?xml", "png": b"\x89PNG", "pdf": b"%PDF"}
    assert sink.getvalue().startswith(magic[format_name])


def test_unknown_formats_and_folders_are_refused(tmp_path: Path) -> None:
    """An unknown format and a folder that is not there are our errors, not a library's."""
    figure = draw(build_plot("iops", frames(aks())))
    with pytest.raises(InputError, match="'gif'"):
        save(figure, tmp_path / "x.gif", format="gif")
    with pytest.raises(VolbenchError, match="cannot be written"):
        save(figure, tmp_path / "missing" / "x.svg", format="svg")


def test_svg_ids_are_unique_within_a_page() -> None:
    """An SVG element is whole, needs nothing from outside, and shares no id with another."""
    given = frames(aks())
    texts = [svg_text(draw(build_plot(kind, given))) for kind in ("iops", "bw")]
    ids = []
    for text in texts:
        root = ET.fromstring(text)  # noqa: S314 - it was written a line above
        found = {e.get("id") for e in root.iter() if e.get("id")}
        links = {v for e in root.iter() for k, v in e.items() if k.endswith("href")}
        assert links <= {f"#{name}" for name in found}
        fonts = {e.get("style") for e in root.iter("{http://www.w3.org/2000/svg}text")}
        assert fonts
        assert all("Verdana, sans-serif" in str(font) for font in fonts)
        ids.append(found)
    assert not ids[0] & ids[1]


@pytest.mark.filterwarnings("error")
def test_letters_without_a_font_are_said_once_in_the_caption() -> None:
    """No library warning for each of them, and none where all letters are known."""
    figure = draw(build_plot("iops", frames([result("\U00013000"), result("b")])))
    save(figure, io.BytesIO(), format="png")
    assert any("no font here has" in text.get_text() for text in figure.texts)
    known = draw(
        build_plot("iops", frames([result("\u0434\u0430\u043d\u043d\u044b\u0435"), result("b")]))
    )
    assert not any("no font here has" in text.get_text() for text in known.texts)


def test_a_legend_below_the_title_does_not_touch_it() -> None:
    """A title that leaves no room beside it has the legend below, with a gap."""
    rows = [
        result("a", volume=volume, iodepth=depth, run=f"{volume}{depth}")
        for volume in ("/dev/a", "/dev/b")
        for depth in (1, 2)
    ]
    title = "IOPS of the volume of the orders database " * 2
    figure = draw(build_plot("iops", frames(rows), title=title))
    figure.draw_without_rendering()
    (legend,) = figure.legends
    (head,) = [text for text in figure.texts if text.get_text().startswith("IOPS of")]
    gap_px = head.get_window_extent().y0 - legend.get_window_extent().y1
    assert gap_px > 0.03 * figure.dpi


def test_ticks_do_not_touch_beside_a_legend() -> None:
    """A legend makes panels narrower than they were when their ticks were chosen."""
    row = result("read-of-a-volume-with-quite-a-long-name")
    counts = {1e-3 * n: 10 ** (9 - n) for n in range(1, 9)}
    plot = build_plot("ecdf", frames([row], histogram=bins(row, counts)))
    figure = draw(replace(plot, width_in=5.0))
    figure.draw_without_rendering()
    [axes] = figure.axes
    boxes = [label.get_window_extent() for label in axes.get_xticklabels()]
    assert len(boxes) > 2
    assert all(left.x1 <= right.x0 for left, right in pairwise(boxes))


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_first_colours_of_a_theme_are_far_apart(theme: str) -> None:
    """Two lines of one chart never look alike: no pair of the first seven is nearly equal."""
    colours = [np.array(to_rgb(theme_of(theme).colours[f"palette-{n}"])) for n in range(7)]
    distances = [np.abs(a - b).max() for a, b in combinations(colours, 2)]
    assert min(distances) > 0.2
