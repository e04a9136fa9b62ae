from __future__ import annotations

import numpy as np
import pytest

from tests.present.frames_for_figures import bins, frames, result
from volbench.present.figures import draw_chart


def test_distribution_is_of_the_bins() -> None:
    """The line shows which share was slower than each bin's upper edge."""
    row = result("a")
    given = frames([row], histogram=bins(row, {0.001: 90, 0.01: 9, 0.1: 1}))
    axes = draw_chart("distribution", given).axes[0]
    x, y = (np.asarray(values) for values in axes.lines[0].get_data())
    assert list(x) == [0.001, 0.001, 0.01, 0.1]
    assert list(y[:3]) == pytest.approx([1.0, 0.1, 0.01])
    assert y[3] < 0.01
    low, high = axes.get_ylim()
    assert low == 1.0
    assert high < 0.01
    assert axes.yaxis.get_major_formatter()(0.001) == "99.9 %"
    assert axes.get_xscale() == "log"


def test_many_distributions_have_several_panels() -> None:
    """No panel holds more lines than eyes can tell apart."""
    rows = [result(f"job{n}") for n in range(9)]
    given = frames(rows, histogram=[b for row in rows for b in bins(row, {0.001: 9, 0.01: 1})])
    assert [len(axes.lines) for axes in draw_chart("distribution", given).axes] == [6, 3]
