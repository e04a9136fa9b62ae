from __future__ import annotations

import pandas as pd
import pytest
from matplotlib.figure import Figure

from tests.present.frames_for_figures import (
    aks,
    bins,
    frames,
    intervals,
    samples,
    sweep,
)
from tests.present.storm_frames import both, storm
from volbench.errors import InputError
from volbench.present.figures import DEFAULT_CHARTS, KINDS, applicable, describe, draw_chart

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


def test_failed_campaign_has_no_chart() -> None:
    """When every Run failed the reason is that, with their number."""
    given = frames(aks(status="failed"))
    assert applicable(given) == ()
    with pytest.raises(InputError, match="finished: 9 failed"):
        draw_chart("iops", given)


def test_frames_may_be_missing() -> None:
    """A summary alone is enough for the charts that need no more."""
    assert applicable({"summary": frames(aks())["summary"]}) == ("iops", "bandwidth", "latency")
    assert applicable({}) == ()
