from __future__ import annotations

import io
import xml.etree.ElementTree as ET
from itertools import pairwise
from pathlib import Path

import matplotlib as mpl
import pandas as pd
import pytest
from matplotlib.figure import Figure

from tests.present.frames_for_figures import (
    aks,
    bins,
    dd,
    frames,
    intervals,
    result,
    samples,
    sweep,
)
from tests.present.storm_frames import both, storm
from volbench.errors import InputError, VolbenchError
from volbench.present.figures import DEFAULT_CHARTS, KINDS, applicable, describe, draw_chart
from volbench.present.figures.save import FORMATS, save, svg_text

Frames = dict[str, pd.DataFrame]

CLIMB = [10.0, 50.0, 80.0, 0.0, 100.0, 100.0, 100.0, 100.0, 100.0, 100.0, 100.0]


@pytest.fixture(name="everything")
def _everything() -> Frames:
    """Return frames that have something for every kind of a report."""
    rows = sweep(depths=(1, 4), blocks=(4096, 65536))
    alone = frames(
        [row | {"limit_iops": 300.0} for row in rows],
        series=[point for row in rows for point in intervals(row, CLIMB)],
        histogram=[told for row in rows for told in bins(row, {0.001: 90, 0.01: 10})],
        device=[told for row in rows for told in samples(row, CLIMB, ended_s=9)],
    )
    return both(alone, storm(clients=2, stagger_s=5, campaign="trial"))


def texts_outside(figure: Figure) -> list[str]:
    """Return the texts that reach beyond the figure."""
    figure.draw_without_rendering()
    renderer = figure.canvas.get_renderer()  # type: ignore[attr-defined]  # of FigureCanvasAgg
    width, height = figure.bbox.size
    found = []
    for axes in figure.axes:
        ticks = [*axes.get_xticklabels(), *axes.get_yticklabels()]
        for text in [*axes.texts, axes.title, axes.xaxis.label, axes.yaxis.label, *ticks]:
            box = text.get_window_extent(renderer)
            outside = box.x0 < -1 or box.y0 < -1 or box.x1 > width + 1 or box.y1 > height + 1
            if text.get_text() and text.get_visible() and outside and text not in ticks:
                found.append(text.get_text())
        found += [
            label.get_text()
            for label in axes.get_yticklabels()
            if label.get_window_extent(renderer).x0 < -1
        ]
    return found


def test_every_kind_applies_where_there_is_something(everything: Frames) -> None:
    """A campaign that measured all has all charts of a report, in the order of the kinds."""
    assert applicable(everything) == DEFAULT_CHARTS


@pytest.mark.parametrize("kind", DEFAULT_CHARTS)
def test_axes_are_named_and_nothing_is_cut_off(kind: str, everything: Frames) -> None:
    """Every chart has a title, an axis label with what it shows, and no text beyond its edge."""
    figure = draw_chart(kind, everything)
    assert figure.get_suptitle() == KINDS[kind].title
    assert all(axes.get_xlabel() or axes.get_ylabel() for axes in figure.axes)
    assert figure.axes[-1].get_xlabel()
    assert texts_outside(figure) == []


@pytest.mark.parametrize("kind", DEFAULT_CHARTS)
def test_every_chart_can_be_told(kind: str, everything: Frames) -> None:
    """The alternative text is one sentence with a number in it."""
    sentence = describe(kind, everything)
    assert sentence.endswith(".")
    assert "\n" not in sentence
    assert any(letter.isdigit() for letter in sentence)
    assert "nan" not in sentence


def test_title_can_be_given(everything: Frames) -> None:
    """A title of one's own replaces the chart's."""
    assert draw_chart("iops", everything, title="Disk $5$").get_suptitle() == "Disk $5$"


def test_unknown_kind_is_corrected(everything: Frames) -> None:
    """A misspelt kind gives the nearest one."""
    with pytest.raises(InputError, match="no chart 'latncy'") as caught:
        draw_chart("latncy", everything)
    assert caught.value.hint == "did you mean latency?"


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        ("series", "sample 0"),
        ("device", "nobody sampled"),
        ("distribution", "no histogram"),
        ("sweep", "nothing is swept"),
        ("heatmap", "no grid"),
    ],
)
def test_what_is_missing_is_said(kind: str, reason: str) -> None:
    """A chart that has nothing to show says why, and which charts would work."""
    given = frames(aks())
    with pytest.raises(InputError, match=reason) as caught:
        draw_chart(kind, given)
    assert "iops, bandwidth, latency" in caught.value.hint
    assert applicable(given) == ("iops", "bandwidth", "latency")


def test_dd_has_bandwidth_alone() -> None:
    """A campaign of dd has one chart, and the others say that dd does not tell."""
    given = frames([dd("copy")])
    assert applicable(given) == ("bandwidth",)
    with pytest.raises(InputError, match="dd tells bandwidth alone"):
        draw_chart("iops", given)
    with pytest.raises(InputError, match="dd does not measure it"):
        draw_chart("latency", given)


def test_failed_campaign_has_no_chart() -> None:
    """When every Run failed the reason is that, with their number."""
    given = frames(aks(status="failed"))
    assert applicable(given) == ()
    with pytest.raises(InputError, match="no measured Run finished: 9 failed"):
        draw_chart("iops", given)


def test_frames_may_be_missing() -> None:
    """A summary alone is enough for the charts that need no more."""
    assert applicable({"summary": frames(aks())["summary"]}) == ("iops", "bandwidth", "latency")
    assert applicable({}) == ()


def test_drawing_leaves_no_trace(everything: Frames) -> None:
    """The settings of matplotlib are the same after drawing and saving as before."""
    before = dict(mpl.rcParams)
    svg_text(draw_chart("iops", everything))
    assert dict(mpl.rcParams) == before


@pytest.mark.parametrize("format_name", FORMATS)
def test_files_are_reproducible(format_name: str, everything: Frames, tmp_path: Path) -> None:
    """The same frames give the same bytes, by path or to an open file."""
    path, sink = tmp_path / "chart", io.BytesIO()
    save(draw_chart("latency", everything), path, format=format_name)
    save(draw_chart("latency", everything), sink, format=format_name)
    assert path.read_bytes() == sink.getvalue()
    magic = {"svg": b"<?xml", "png": b"\x89PNG", "pdf": b"%PDF"}
    assert sink.getvalue().startswith(magic[format_name])


def test_unknown_format_and_place_are_refused(everything: Frames, tmp_path: Path) -> None:
    """A format nobody knows and a folder that is not there are told, not raised by a library."""
    figure = draw_chart("iops", everything)
    with pytest.raises(InputError, match="'gif'"):
        save(figure, tmp_path / "x.gif", format="gif")
    with pytest.raises(VolbenchError, match="can't be written"):
        save(figure, tmp_path / "missing" / "x.svg", format="svg")


def test_svg_stands_in_a_page_beside_others(everything: Frames) -> None:
    """An SVG element is whole, needs nothing from outside, and shares no id with another."""
    first, second = (svg_text(draw_chart(kind, everything)) for kind in ("iops", "bandwidth"))
    ids = []
    for text in (first, second):
        root = ET.fromstring(text)  # noqa: S314 - it was written a line above
        found = {e.get("id") for e in root.iter() if e.get("id")}
        links = {v for e in root.iter() for k, v in e.items() if k.endswith("href")}
        assert links <= {f"#{name}" for name in found}
        assert not list(root.iter("{http://www.w3.org/2000/svg}text"))
        ids.append(found)
    assert not ids[0] & ids[1]


def test_strange_names_are_drawn_as_they_are(tmp_path: Path) -> None:
    """Dollars are no formula, control characters are spelled out, long names are wrapped."""
    rows = [result("$a_1$"), result("bad\x1b[31m"), result("long-" * 40)]
    figure = draw_chart("iops", frames(rows))
    names = [label.get_text() for label in figure.axes[0].get_yticklabels()]
    assert names[0].startswith("$a_1$\n")
    assert names[1].startswith("bad\\x1b[31m")
    assert max(len(line) for line in names[2].splitlines()) <= 40
    assert texts_outside(figure) == []
    save(figure, tmp_path / "x.svg", format="svg")


def test_sixty_jobs_stay_apart() -> None:
    """The names of many jobs do not touch each other, even when they are long."""
    rows = [result(f"quite-a-long-name-of-a-job-number-{n}") for n in range(60)]
    for kind in ("iops", "latency"):
        figure = draw_chart(kind, frames(rows))
        figure.draw_without_rendering()
        boxes = [label.get_window_extent() for label in figure.axes[0].get_yticklabels()]
        assert len(boxes) == 60
        assert all(a.y0 >= b.y1 for a, b in pairwise(boxes))
