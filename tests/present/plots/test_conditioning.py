"""Charts of warm-ups, and of rounds until steady."""

import numpy as np
import pandas as pd
import pytest

from tests.present.figure_texts import texts_touching
from tests.present.frames_by_kind import in_rounds, rounds
from tests.present.frames_for_plots import frames, intervals, result, warming
from tests.present.plots.plot_parts import all_marks, caption_of, column, the_mark
from volbench.analyse.time.steady_state import determine
from volbench.errors import InputError
from volbench.model.profile.profile_settings import Metric, Rounds, Track
from volbench.present.plots.chart import build_plot
from volbench.present.plots.description import numbers
from volbench.present.plots.kinds import Options
from volbench.present.plots.marks import Areas, Lines, ReferenceLine, Texts
from volbench.present.renderers.matplotlib import draw

Frames = dict[str, pd.DataFrame]


def _climbing(first_iops: float) -> Frames:
    """Return a campaign that climbed to 480 IOPS and stayed there, then a warm pass."""
    climb = [first_iops + (480 - first_iops) * min(1.0, second / 60) for second in range(120)]
    first = result("first-pass", iodepth=4, limit_iops=500.0, volume_bytes=1 << 30)
    second = result("second-pass", iodepth=4, limit_iops=500.0, volume_bytes=1 << 30)
    series = [*intervals(first, climb), *intervals(second, [485.0] * 30)]
    return frames([first, second], series=series, verdicts=warming([first]))


@pytest.fixture(name="cold")
def _cold() -> Frames:
    """Return a campaign that climbed from 10 IOPS."""
    return _climbing(10)


@pytest.fixture(name="filled")
def _filled() -> Frames:
    rows = [
        result("warm", bw_bytes_per_s=rate, io_bytes=1 << 28, runtime_s=(1 << 28) / rate)
        | {"run": f"warm-{number}", "phase": "warmup", "rw": "write"}
        for number, rate in enumerate([100e6, 50e6, 100e6, 200e6])
    ]
    return frames(rows)


def test_curve_has_its_numbers(cold: Frames) -> None:
    """Cold and warm level, penalty and times stand over the curve, the second pass behind it."""
    plot = build_plot("warmup", cold)
    heading = plot.panels[0].title
    assert "warm 485 IOPS" in heading
    assert "penalty 9" in heading
    assert "90 % and steady after 54s" in heading
    times = all_marks(plot.panels[0], ReferenceLine)
    near, steady = [line.value for line in times if line.axis == "x" and line.dash == "dotted"]
    assert near <= steady
    texts = [mark for panel in plot.panels for mark in all_marks(panel, Texts)]
    names = [mark for mark in texts if {*mark.data["_text"]} & {"fresh blocks", "again, warm"}]
    assert all(mark.is_boxed for mark in names), "a flat curve crosses the names of passes"
    line = the_mark(plot.panels[0], Lines)
    first, second = (part["t_s"].tolist() for _, part in line.data.groupby("pass", sort=False))
    assert (first[-1], second[0]) == (120, 121)
    assert plot.panels[0].y.limits is not None
    assert plot.panels[0].y.limits[0] == 0


@pytest.mark.parametrize("first_iops", [10, 380, 445, 478])
def test_names_of_levels_do_not_touch(first_iops: float) -> None:
    """Cold and warm level are near each other and near the limit, or far from both."""
    assert texts_touching(draw(build_plot("warmup", _climbing(first_iops)))) == []


def test_only_a_pass_says_how_long_a_terabyte_takes(cold: Frames, filled: Frames) -> None:
    """1 GiB in 12 s; random writes of 4 KiB, which climbed for 54 s, are no warm-up."""
    assert "Warming 1t by writes takes about 3h" in build_plot("warmup", filled).description
    assert "Warming" not in build_plot("warmup", cold).description


def test_a_pass_is_drawn_against_the_offset(filled: Frames) -> None:
    """Each extent is a step at its place, and the slow extent is named."""
    [panel] = build_plot("warmup", filled).panels
    assert panel.x.limits == (0, 1 << 30)
    assert "slowest extent 50 MB/s, fastest 200 MB/s" in panel.title
    line = the_mark(panel, Lines)
    assert line.step == "post"
    assert column(line, "bw_bytes_per_s")[:4] == [100e6, 50e6, 100e6, 200e6]
    assert "1g in 12s" in build_plot("warmup", filled).description


def test_a_pass_in_one_extent_has_no_slowest_one(filled: Frames) -> None:
    """Its mean rate says nothing about how the rate changed."""
    [panel] = build_plot("warmup", {**filled, "summary": filled["summary"].head(1)}).panels
    assert "in one extent: how the rate" in panel.title


def test_window_has_mean_band_and_fit() -> None:
    """Mean and fitted line are those of the determination, and the band is 10 % around."""
    track = Track(job="b4096-r0", metric=Metric.IOPS)
    tracked = {"aks-disk": Rounds(max_rounds=25, track=(track,))}
    plot = build_plot("rounds", rounds(), options=Options(rounds=tracked))
    found = determine({track: [900, 980, 1000, 1010, 990, 1000]}, max_rounds=25)
    assert found.window == (1, 5)
    lines = {mark.series: mark for mark in all_marks(plot.panels[0], Lines)}
    assert column(lines["mean"], "mean") == pytest.approx([976.0] * 5)
    fit = np.array(column(lines["fit"], "fit"), dtype=float)
    assert np.diff(fit) == pytest.approx([found.variables[0].slope] * 4)
    band = the_mark(plot.panels[0], Areas)
    assert column(band, "_low") == pytest.approx([976.0 * 0.9] * 5)
    rows = numbers(plot).drop_duplicates(["job", "round"])
    assert rows.loc[rows["in_window"], "fit"].tolist() == pytest.approx(fit.tolist())


def test_rounds_that_drift_are_not_steady() -> None:
    """The chart says that steady state was not achieved; repeats are no rounds."""
    given = rounds(values=(100.0, 200.0, 300.0, 400.0, 500.0, 600.0))
    plot = build_plot("rounds", given, options=in_rounds(given))
    with pytest.raises(InputError, match="no rounds: no profile"):
        build_plot("rounds", given)
    assert "Not steady after 6 of at most 25 rounds" in plot.answer
    assert "range of at most 20 %" in caption_of(plot)
