from __future__ import annotations

import numpy as np
import pytest

from tests.present.frames_for_figures import bins, frames, result, sweep
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


def test_sweep_has_a_line_per_pattern() -> None:
    """IOPS and p99 stand over the depth with a tick at each value."""
    figure = draw_chart("sweep", frames(sweep(depths=(1, 4, 16))))
    iops, latency = figure.axes
    names = [str(line.get_label()) for line in iops.lines]
    assert names == ["randread", "randwrite"]
    assert list(np.asarray(iops.lines[0].get_xdata(), dtype=float)) == [1, 4, 16]
    assert list(np.asarray(iops.lines[0].get_ydata())) == [100.0, 400.0, 1600.0]
    assert list(np.asarray(latency.lines[0].get_ydata())) == pytest.approx([0.06, 0.015, 0.00375])
    assert list(iops.get_xticks()) == [1, 4, 16]
    assert iops.get_ylim()[0] == 0
    assert latency.get_ylabel() == "p99 of total latency"
    assert latency.get_xlabel() == "I/O depth of each clone"


def test_sweep_over_blocks_shows_bandwidth() -> None:
    """Over the block size there is a panel of bandwidth, and ticks read as sizes."""
    figure = draw_chart("sweep", frames(sweep(depths=(1,), blocks=(4096, 65536, 1 << 20))))
    assert [axes.get_ylabel() for axes in figure.axes][:2] == ["IOPS", "Bandwidth"]
    axes = figure.axes[-1]
    assert [axes.xaxis.get_major_formatter()(tick) for tick in axes.get_xticks()] == [
        "4k",
        "64k",
        "1m",
    ]
