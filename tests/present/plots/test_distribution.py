import numpy as np
import pytest

from tests.present.frames_by_kind import mapped, repeats
from tests.present.frames_for_plots import bins, frames, result
from tests.present.plots.plot_parts import all_marks, caption_of, column, the_mark
from volbench.present.plots.chart import build_plot
from volbench.present.plots.description import numbers
from volbench.present.plots.marks import Bars, Cells, Lines, ReferenceLine, series_of


def test_histogram_shares_add_up() -> None:
    """The bars are shares of a job's I/Os on a logarithmic axis; lines stand at its percentiles."""
    plot = build_plot("histogram", repeats())
    rows = numbers(plot)
    assert rows.groupby("job")["share"].sum().round(9).tolist() == [1.0, 1.0]
    assert rows.groupby("job")["count"].sum().tolist() == [300, 300]
    first = plot.panels[0]
    bars = the_mark(first, Bars)
    assert first.x.scale == "log"
    assert column(bars, "share") == rows.loc[rows["job"] == "small", "share"].tolist()
    lines = {line.value for line in all_marks(first, ReferenceLine)}
    assert lines <= {*repeats()["histogram"]["bin_high_s"]}


def test_ecdf_goes_from_0_to_100_percent() -> None:
    """The line begins at 0, ends at 1 and never falls."""
    [panel] = build_plot("ecdf", repeats()).panels
    _, line = series_of(the_mark(panel, Lines))[0]
    shares = line["share"].to_numpy(dtype=float)
    assert (shares[0], shares[-1]) == (0.0, 1.0)
    assert (np.diff(shares) >= 0).all()
    rows = numbers(build_plot("ecdf", repeats()))
    assert rows.groupby("job")["count"].sum().tolist() == [300, 300], "drawing adds points"


def test_curves_end_at_the_last_bin_of_fio() -> None:
    """Its edge is no latency; 90 % of the I/Os are known, and a sentence says where curves end."""
    row = result("a")
    plot = build_plot("ecdf", frames([row], histogram=bins(row, {1.0: 90, 17.179869184: 10})))
    [(_, line)] = series_of(the_mark(plot.panels[0], Lines))
    assert line["bin_high_s"].max() == 1.0
    assert line["share"].max() == pytest.approx(0.9)
    assert "Curves end at fio's last bin" in caption_of(plot)
    whole = build_plot("ecdf", frames([row], histogram=bins(row, {1.0: 90, 2.0: 10})))
    assert "last bin" not in caption_of(whole)


def test_latency_map_keeps_gaps() -> None:
    """Cells without I/Os are left out, and the others have their counts."""
    panel = build_plot("latency-map", mapped()).panels[0]
    cells = the_mark(panel, Cells)
    assert sorted(float(str(count)) for count in column(cells, "count")) == [3, 40, 50]
    assert panel.y.scale == "log"
