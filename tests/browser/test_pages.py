"""Pages in a real browser: every kind of chart as its description says, and the report."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from benchmarks.made_up_campaign import Size, make_campaign
from click.testing import CliRunner
from playwright.sync_api import Browser

from tests.browser.watched import Watched, axe
from tests.present.frames_by_kind import FOR_KIND, in_rounds, ladder
from volbench.cli.main import cli
from volbench.errors import InputError
from volbench.present.plots import chart
from volbench.present.plots.colour_themes import THEMES
from volbench.present.plots.description import FORMATS, Axis, Panel, Plot, Series, data_marks
from volbench.present.plots.kinds import KINDS, Options
from volbench.present.plots.marks import (
    Areas,
    Bars,
    Bars3D,
    Cells,
    Lines,
    Mark,
    Points,
    Texts,
    Whiskers,
)
from volbench.present.renderers.interactive import chart_page

EVIL = "<img src=x onerror=\"document.title='evil'\"> $$x^2$$"
DRAWN = (Path(__file__).parent / "drawn.js").read_text(encoding="utf-8")
Drawn = list[list[dict[str, Any]]]


def hostile() -> Plot:
    """Return a plot whose names are markup, and two of whose series have one label."""
    rows = pd.DataFrame({"_at": [0, 1, 2], "iops": [10.0, 50.0, 1000.0]})
    rows = rows.assign(series=["s1", "s2", "s1"], _text=["x", EVIL, "z"])
    series = (
        Series("s1", "first", "read", "circle"),
        Series("s2", EVIL, "write", "left", "dashed"),
        Series("s3", "first", "trim", "cross", "dotted"),
    )
    panel = Panel(
        Axis("Jobs", scale="category", categories=("a", EVIL, "c")),
        Axis("IOPS", "count"),
        (
            Bars(data=rows, at="_at", value="iops", is_horizontal=False, by="series"),
            Lines(data=rows, x="_at", y="iops", series="s3"),
            Texts(data=rows, x="_at", y="iops", text="_text"),
        ),
        heading=EVIL,
    )
    return Plot((panel,), (1.5,), series=series, name="marks", title=EVIL)


def plots_of_kinds() -> dict[str, Plot]:
    """Return a plot of each kind that a page can draw, of made-up frames."""
    given = {name: make() for name, make in FOR_KIND.items()}
    options = {"rounds": in_rounds(given["rounds"])}
    plots = [
        chart.build_plot(name, given[name], options=options.get(name, Options())) for name in KINDS
    ]
    return {plot.name: plot for plot in [chart.build_plot("iops", ladder()), *plots]}


@pytest.fixture(scope="module", name="plots")
def _plots() -> Mapping[str, Plot]:
    return {"marks": hostile(), **plots_of_kinds()}


@pytest.fixture(scope="module", name="page")
def _page(tmp_path_factory: pytest.TempPathFactory, plots: Mapping[str, Plot]) -> Path:
    path = tmp_path_factory.mktemp("charts") / "charts.html"
    path.write_text(chart_page(list(plots.values()), title="Every kind"), encoding="utf-8")
    return path


@pytest.fixture(scope="module", name="watched")
def _watched(browser: Browser, page: Path) -> Iterator[Watched]:
    """Return the page of all kinds; what it may not do fails the last test of the module."""
    watched = Watched(browser, page)
    yield watched
    watched.close()
    assert watched.faults == []


@pytest.fixture(scope="module", name="drawn")
def _drawn(watched: Watched) -> Drawn:
    found: Drawn = watched.page.evaluate(DRAWN)
    return found


def test_all_kinds_are_drawn(plots: Mapping[str, Plot]) -> None:
    """The made-up frames have something for every kind."""
    assert set(KINDS) <= set(plots)


def test_numbers_are_formatted_as_in_tables(watched: Watched) -> None:
    """Each format gives the same text in the page as in Python, halves and extremes included."""
    chance = np.random.default_rng(7)
    values = [0.0, 1.0, 0.5, 2.5, 12.25, 1.125, 59.5, 3599.5, 9.95, 999.5, 0.0009995, 1e-9, 86399.6]
    values += [float(value) for value in 10 ** chance.uniform(-9, 14, 800)]
    values += [float(round(value, 3)) for value in chance.uniform(0, 2000, 400)]
    found = watched.page.evaluate(
        "values => Object.fromEntries(Object.entries(FORMATS).map(([name, write]) =>"
        " [name, values.map(write)]))",
        values,
    )
    assert set(found) == set(FORMATS)
    for name, own in FORMATS.items():
        pairs = [pair for pair in zip(values, found[name], strict=True) if any(pair[:1])]
        assert [(v, text) for v, text in pairs if text != own.write(v)] == [], name


def expected(mark: Mark) -> list[tuple[set[str], set[str], pd.Series]]:
    """Return types of glyphs, their columns and the values that they must hold."""
    data, found = mark.data, []
    match mark:
        case Lines():
            found = [({"Line", "Step"}, {way}, data[getattr(mark, way)]) for way in "xy"]
        case Points():
            found = [({"Scatter"}, {way}, data[getattr(mark, way)]) for way in "xy"]
        case Bars():
            ends = data[mark.value]
            found = [({"Quad"}, {"right" if mark.is_horizontal else "top"}, ends)]
        case Whiskers():
            rows = data[data[mark.high] > data[mark.low]]
            sides = ((f"{mark.along}0", mark.low), (f"{mark.along}1", mark.high))
            found = [({"Segment"}, {name}, rows[column]) for name, column in sides]
        case Areas():
            known = data.dropna(subset=[mark.x, mark.low, mark.high])
            types = {f"{way}Area{step}" for way in "VH" for step in ("", "Step")}
            found = [(types, {"x2", "y2"}, known[mark.high])]
        case Cells():
            found = [({"Quad"}, {"value"}, data[mark.value].dropna())]
    return found


def test_the_page_draws_the_numbers_of_the_description(
    drawn: Drawn, plots: Mapping[str, Plot]
) -> None:
    """Ends of bars, points, lines, ranges and cells have the values of the frames."""
    compared = 0
    for plot, panels in zip(plots.values(), drawn, strict=True):
        for own in panels:
            panel = plot.panels[own["place"]]
            for place, mark in enumerate(panel.marks):
                if not isinstance(mark, Mark):
                    continue
                for types, names, values in expected(mark):
                    found = [
                        value
                        for renderer in own["renderers"]
                        if renderer["mark"] == place and renderer["type"] in types
                        for name in names
                        for value in renderer["data"].get(name, [])
                    ]
                    wanted = np.sort(values.to_numpy(dtype=float))
                    assert np.sort(np.array(found, dtype=float)) == pytest.approx(
                        wanted, rel=1e-5, nan_ok=True
                    ), (plot.name, place, names)
                    compared += len(wanted)
    assert compared > 300


def test_axes_have_labels_units_and_limits(drawn: Drawn, plots: Mapping[str, Plot]) -> None:
    """Labels are those of the description, and ticks are written in the format of the axis."""
    for plot, panels in zip(plots.values(), drawn, strict=True):
        for own in panels:
            panel = plot.panels[own["place"]]
            described = (panel.x, panel.y)
            for axis, shown, ends in zip(described, own["axes"], own["ends"], strict=True):
                assert shown["label"] == axis.label
                if axis.scale != "category":
                    # BokehJS omits labels that overlap the one before, in ascending order.
                    assert shown["places"] == sorted(shown["places"])
                if axis.scale not in {"category", "symlog"}:
                    assert shown["ticks"] == [
                        FORMATS[axis.format].write(value) for value in (1.0, 2500.0)
                    ]
                if axis.limits and axis.scale != "symlog":
                    low, high = sorted(axis.limits)
                    if axis is panel.x and panel.y.scale == "category":
                        # Bars leave room for the value at their right.
                        assert high * (1 - 1e-9) <= max(ends) < 2.5 * high
                        high = max(ends)
                    assert sorted(ends) == pytest.approx([low, high])
                assert (ends[0] > ends[1]) == axis.inverted


def test_pointing_shows_identity_first(drawn: Drawn, plots: Mapping[str, Plot]) -> None:
    """Hover texts of results begin with the job or direction, and hold no column of the drawing."""
    for plot, panels in zip(plots.values(), drawn, strict=True):
        marks = {id(mark): mark for mark in data_marks(plot)}
        assert marks
        for own in panels:
            for renderer in own["renderers"]:
                assert not any(name.startswith("_") for name in renderer["hover"])
    cells = drawn[list(plots).index("iops")][0]["renderers"][0]
    assert cells["hover"][0] == "label"
    assert {"iops", "iops_low", "iops_high"} <= set(cells["hover"])


def test_legends_toggle_what_has_the_same_label(watched: Watched, drawn: Drawn) -> None:
    """Two series with one label have one entry; off means off in every panel."""
    assert drawn
    first = watched.page.locator(".chart").first
    buttons = first.locator(".toggles button")
    assert buttons.count() == 2
    hidden = (
        "() => charts[0].drawn.get(0).drawing.renderers"
        ".filter(own => !own.renderer.visible).map(own => own.key)"
    )
    buttons.first.click()
    assert set(watched.page.evaluate(hidden)) == {"s1", "s3"}
    buttons.first.click()
    assert watched.page.evaluate(hidden) == []


def test_hostile_names_stay_texts(watched: Watched, drawn: Drawn) -> None:
    """Markup and mathematics in a name are shown as they are written."""
    assert drawn
    assert watched.page.title() == "Every kind"
    assert watched.page.locator("img[src=x]").count() == 0
    assert EVIL in watched.page.locator(".panel-heading").first.inner_text()


def test_charts_are_zoomed_by_keyboard(watched: Watched, drawn: Drawn) -> None:
    """Plus halves the axis, and the whole of it comes back."""
    assert drawn
    ends = (
        "() => { const r = charts[0].drawn.get(0).drawing.figure.x_range; return r.end - r.start }"
    )
    whole = watched.page.evaluate(ends)
    zoom = watched.page.locator(".chart").first.locator(".zoom button")
    zoom.first.press("Enter")
    assert watched.page.evaluate(ends) < whole
    zoom.last.press("Enter")
    assert watched.page.evaluate(ends) == pytest.approx(whole)


def test_every_chart_is_printed(watched: Watched, drawn: Drawn) -> None:
    """On paper each panel has a copy that can be scaled."""
    watched.page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert watched.page.locator("canvas.paper").count() == sum(map(len, drawn))
    watched.page.evaluate("dispatchEvent(new Event('afterprint'))")


def test_charts_have_no_accessibility_violations(watched: Watched, drawn: Drawn) -> None:
    """axe-core finds nothing wrong with a page of charts in either theme."""
    assert drawn
    for scheme in ("dark", "light"):
        watched.page.emulate_media(color_scheme=scheme)
        watched.page.wait_for_function(
            "ink => charts[0].drawn.get(0).drawing.figure.below[0].major_label_text_color === ink",
            arg=THEMES[scheme].colours["ink"],
        )
        assert axe(watched.page) == []


@pytest.fixture(scope="module", name="report")
def _report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("a b & c")
    root = make_campaign(folder, size=Size(jobs=3, repeats=3, seconds=8), note=EVIL).root
    page = folder / "re port #1.html"
    done = CliRunner().invoke(cli, ["report", str(root), "--output", str(page)])
    assert done.exit_code == 0, done.output
    return page


def test_the_report_of_nine_runs_is_three_screens(browser: Browser, report: Path) -> None:
    """No script runs and nothing is fetched; a phone scrolls nothing but tables sideways."""
    for size, most_px in (((1280, 720), 3 * 720), ((390, 844), 12 * 844)):
        viewport = dict(zip(("width", "height"), size, strict=True))
        for scheme in ("light", "dark"):
            opened = Watched(browser, report, viewport=viewport, color_scheme=scheme)
            box = opened.page.evaluate(
                "[document.documentElement.scrollWidth, document.documentElement.scrollHeight]"
            )
            assert box[0] <= size[0]
            assert box[1] <= most_px
            assert 1 <= opened.page.locator("figure img").count() <= 6
            assert opened.page.evaluate("[...document.images].every(own => own.naturalWidth > 0)")
            assert opened.page.locator("img[src=x]").count() == 0
            opened.page.evaluate(
                "document.querySelectorAll('details').forEach(own => own.open = true)"
            )
            assert axe(opened.page) == []
            opened.close()
            assert opened.faults == []


def test_towers_are_shown_as_a_picture() -> None:
    """A chart that the page can't draw is refused with the formats that can."""
    towers = Bars3D(pd.DataFrame({"_x": [0], "_y": [0], "v": [1.0]}), value="v")
    plot = Plot((Panel(Axis(), Axis(), (towers,), Axis()),), (2.0,), name="towers")
    with pytest.raises(InputError) as refused:
        chart_page([plot], title="t")
    assert "svg" in refused.value.hint
