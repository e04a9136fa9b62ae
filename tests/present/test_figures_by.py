"""Any chart can be told apart by columns, in any theme, and comes with its numbers."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_hex

from tests.present.frames_by_kind import (
    FOR_KIND,
)
from tests.present.frames_for_figures import frames, result
from volbench.present.figures import chart_numbers, draw_chart
from volbench.present.figures.traced import traced
from volbench.present.themes import THEMES


@pytest.mark.parametrize("kind", sorted(FOR_KIND))
def test_every_kind_takes_a_column(kind: str) -> None:
    """Small multiples work for every kind, also where its frames have no such column."""
    figure = draw_chart(
        kind, FOR_KIND[kind](), by=["campaign", "profile"] if kind in SINGLE else ["campaign"]
    )
    assert figure.axes
    assert len(chart_numbers(kind, FOR_KIND[kind](), by=["campaign"]))


SINGLE = ("convergence", "mixes", "hdr", "knee", "lines")


@pytest.mark.parametrize("theme", [name for name in THEMES if name != "light"])
@pytest.mark.parametrize("kind", sorted(FOR_KIND))
def test_themes_exchange_colours_alone(kind: str, theme: str) -> None:
    """A theme changes no number, and leaves no dark text on a dark page."""
    given = FOR_KIND[kind]()
    figure = draw_chart(kind, given, theme=theme)
    light = draw_chart(kind, given)
    assert traced(figure).equals(traced(light))
    page = to_hex(figure.get_facecolor())
    assert page == ("#15181d" if theme == "dark" else "#ffffff")
    colours = {to_hex(text.get_color()) for axes in figure.axes for text in axes.texts}
    assert theme != "dark" or "#222222" not in colours


def test_long_lines_keep_their_extremes() -> None:
    """A long line is drawn with two thousand points, among them its one spike and its one stall."""
    given = frames([result("long")])
    count = 200_000
    values = np.full(count, 500.0)
    values[12_345], values[150_001] = 9_000.0, 0.0
    row = result("long")
    known = ("campaign", "run", "host", "profile", "job", "group", "volume", "repeat", "phase")
    given["series"] = pd.DataFrame(
        {name: [row[name]] * count for name in known}
        | {"direction": ["write"] * count, "t_s": np.arange(count, dtype=float), "iops": values}
        | {"bw_bytes_per_s": values * 4096, "lat_mean_s": np.full(count, np.nan)}
    )
    line = draw_chart("lines", given).axes[0].lines[0]
    drawn = np.asarray(line.get_ydata(), dtype=float)
    assert len(drawn) <= 2000
    assert (drawn.min(), drawn.max()) == (0.0, 9000.0)
