from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from tests.present.frames_for_figures import frames, intervals, result
from volbench.errors import InputError
from volbench.present.figures import describe, draw_chart
from volbench.present.plots.kind import Options

Frames = dict[str, pd.DataFrame]


@pytest.fixture(name="cold")
def _cold() -> Frames:
    """Return a campaign that climbed from 10 to 480 IOPS and stayed there, then a warm pass."""
    climb = [10 + 470 * min(1.0, second / 60) for second in range(120)]
    first = result("first-pass", iodepth=4, limit_iops=500.0, volume_bytes=1 << 30)
    second = result("second-pass", iodepth=4, limit_iops=500.0, volume_bytes=1 << 30)
    series = [*intervals(first, climb), *intervals(second, [485.0] * 30)]
    return frames([first, second], series=series)


@pytest.fixture(name="filled")
def _filled() -> Frames:
    """Return a warm-up in four extents, the second of them slow."""
    rows = [
        result("warm", bw_bytes_per_s=rate, io_bytes=1 << 28, runtime_s=(1 << 28) / rate)
        | {"run": f"warm-{number}", "phase": "warmup", "rw": "write"}
        for number, rate in enumerate([100e6, 50e6, 100e6, 200e6])
    ]
    return frames(rows)


def test_curve_tells_its_numbers(cold: Frames) -> None:
    """Cold and warm level, penalty and times stand over the curve, the second pass behind it."""
    figure = draw_chart("warmup", cold)
    heading = figure.axes[0].get_title(loc="left")
    assert "warm 485 IOPS" in heading
    assert "penalty 9" in heading
    assert "90 % after 5" in heading
    first, second = figure.axes[0].lines[:2]
    assert float(np.asarray(first.get_xdata())[-1]) == 120
    assert float(np.asarray(second.get_xdata())[0]) == 121
    assert figure.axes[0].get_ylim()[0] == 0


def test_cost_is_told_for_the_size_asked_for(cold: Frames) -> None:
    """The same pace over another size takes in proportion, and money follows the hours."""
    steady_s = 54.0
    options = Options(volume_bytes=100 << 30, price_per_hour=2.0, currency="USD")
    figure = draw_chart("warmup", cold, options=options)
    note = figure.get_supxlabel()
    assert "Warming 100g by writes takes about 1h" in note
    assert "USD" in note
    told = float(note.partition("costs ")[2].partition(" USD")[0])
    assert told == pytest.approx(100 * steady_s / 3600 * 2, rel=0.1)


def test_fill_is_drawn_over_the_volume(filled: Frames) -> None:
    """Each extent is a step at its place, and the slow one is named."""
    figure = draw_chart("warmup", filled)
    (axes,) = figure.axes
    assert axes.get_xlim() == (0, 1 << 30)
    assert "slowest extent 50 MB/s, fastest 200 MB/s" in axes.get_title(loc="left")
    assert "1g in 12s" in describe("warmup", filled)


def test_campaign_that_did_not_warm_up_has_no_such_chart() -> None:
    """A flat first Run is no curve, and the message says what would be one."""
    row = result("job")
    with pytest.raises(InputError, match="no first Run on a fresh volume"):
        draw_chart("warmup", frames([row], series=intervals(row, [500.0] * 30)))
