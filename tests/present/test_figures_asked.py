from __future__ import annotations

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle

from tests.present.frames_by_kind import (
    FOR_KIND,
    fleet,
    mapped,
    repeats,
    rounds,
)
from tests.present.frames_for_figures import frames, result
from tests.present.test_figures import texts_outside
from volbench.analyse.time.round_convergence import determine
from volbench.errors import InputError
from volbench.model.profile.profile_settings import Metric, Rounds, Track
from volbench.present.figures import (
    DEFAULT_CHARTS,
    KINDS,
    chart_numbers,
    describe,
    draw_chart,
)
from volbench.present.plots.kind import Options

ASKED = [name for name in KINDS if name not in DEFAULT_CHARTS]


def upright(axes: Axes) -> list[float]:
    """Return the heights of upright bars, all of which begin at zero."""
    bars = [patch for patch in axes.patches if isinstance(patch, Rectangle)]
    assert all(bar.get_y() == 0 for bar in bars)
    return [float(bar.get_height()) for bar in bars]


@pytest.mark.parametrize("kind", ASKED)
def test_axes_are_named_and_nothing_is_cut_off(kind: str) -> None:
    """Every chart has its title, named axes and no text beyond its edge."""
    figure = draw_chart(kind, FOR_KIND[kind]())
    assert figure.get_suptitle() == KINDS[kind].title
    shown = [axes for axes in figure.axes if axes.get_visible() and not axes.tables]
    assert shown
    assert all(axes.get_xlabel() or axes.get_ylabel() for axes in shown)
    assert any(axes.get_xlabel() for axes in shown)
    assert texts_outside(figure) == []


@pytest.mark.parametrize("kind", ASKED)
def test_every_chart_can_be_told_and_has_its_numbers(kind: str) -> None:
    """The sentence has a number in it, and the table has rows and no column of index."""
    given = FOR_KIND[kind]()
    sentence = describe(kind, given)
    assert sentence.endswith(".")
    assert any(letter.isdigit() for letter in sentence)
    assert "nan" not in sentence
    told = chart_numbers(kind, given)
    assert len(told)
    assert all(isinstance(name, str) for name in told.columns)


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_says_what_it_shows_and_needs(kind: str) -> None:
    """The list of kinds has a sentence and a need for each."""
    assert KINDS[kind].help.endswith(".")
    assert KINDS[kind].needs


@pytest.mark.parametrize("kind", [name for name in KINDS if name != "warmup"])
def test_failed_runs_give_no_chart(kind: str) -> None:
    """Without a finished Run every kind says that, with the number of those that failed."""
    given = frames([result("a", status="failed"), result("b", status="failed")])
    with pytest.raises(InputError, match="finished: 2 failed"):
        draw_chart(kind, given)


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        ("histogram", "no histogram"),
        ("hdr", "no histogram"),
        ("lines", "no series"),
        ("violin", "no series"),
        ("fleet", "one host"),
        ("convergence", "no rounds"),
        ("window", "no rounds"),
        ("mixes", "no rounds"),
        ("latency-map", "no latencies over time"),
    ],
)
def test_what_is_missing_is_said(kind: str, reason: str) -> None:
    """A chart that has nothing to show says why and names those that can be drawn."""
    with pytest.raises(InputError, match=reason) as caught:
        draw_chart(kind, frames([result("alone")]))
    assert "iops" in caught.value.hint


def test_histogram_shares_add_up() -> None:
    """The bars of a job are shares of its I/Os, repeats added up, on a logarithmic axis."""
    given = repeats()
    told = chart_numbers("histogram", given)
    assert told.groupby("job")["share"].sum().round(9).tolist() == [1.0, 1.0]
    assert told.groupby("job")["count"].sum().tolist() == [300, 300]
    axes = draw_chart("histogram", given).axes[0]
    assert axes.get_xscale() == "log"
    assert upright(axes) == told.loc[told["job"] == "small", "share"].tolist()


def test_percentiles_stand_on_an_axis_of_nines() -> None:
    """A tenth of the way is 90 %, and half of the I/Os were at most as slow as the first bin."""
    axes = draw_chart("hdr", repeats()).axes[0]
    form = axes.xaxis.get_major_formatter()
    assert [form(value) for value in (2, 10, 100, 1000)] == ["50 %", "90 %", "99 %", "99.9 %"]
    x, y = (np.asarray(value, dtype=float) for value in axes.lines[0].get_data())
    assert y[x <= 9.9].max() == pytest.approx(0.001)
    assert x.max() == pytest.approx(300)
    assert y.max() == pytest.approx(0.02)


def test_ecdf_goes_from_nothing_to_all() -> None:
    """The line begins at 0, ends at 1 and never falls."""
    axes = draw_chart("ecdf", repeats()).axes[0]
    shares = np.asarray(axes.lines[0].get_ydata(), dtype=float)
    assert (shares[0], shares[-1]) == (0.0, 1.0)
    assert (np.diff(shares) >= 0).all()


def test_all_runs_stand_on_one_axis() -> None:
    """There is a line for each Run with the values of the series."""
    given = repeats()
    axes = draw_chart("lines", given).axes[0]
    assert len(axes.lines) == 6
    run = given["series"][given["series"]["run"] == "small-1"]
    assert np.asarray(axes.lines[0].get_ydata()).tolist() == run["iops"].tolist()
    assert axes.get_ylim()[0] == 0


def test_a_hundred_lines_are_counted_in_the_legend() -> None:
    """The legend names twenty lines and counts the rest."""
    rows = [result(f"job-{n:03}", iops=100.0 + n, iodepth=n + 1) for n in range(100)]
    waves = [1.0, 2.0, 3.0]
    series = [
        {name: row[name] for name in ("campaign", "run", "host", "profile", "job", "group")}
        | {"volume": "/data", "repeat": 1, "phase": "measured", "direction": "write"}
        | {"t_s": float(at), "iops": value * n}
        for n, row in enumerate(rows)
        for at, value in enumerate(waves, start=1)
    ]
    figure = draw_chart("lines", frames(rows, series=series))
    legend = figure.axes[0].get_legend()
    assert legend is not None
    names = [text.get_text() for text in legend.get_texts()]
    assert len(names) == 21
    assert names[-1] == "and 80 more"
    assert texts_outside(figure) == []


def test_violins_have_the_median_of_each_run() -> None:
    """The bar in a violin is the median of the Run's intervals."""
    given = repeats()
    axes = draw_chart("violin", given).axes[0]
    bars = [line for line in axes.lines if line.get_label() == "median"]
    assert [float(np.asarray(bar.get_ydata())[0]) for bar in bars] == [110.5] * 3
    assert set(chart_numbers("violin", given)["median_iops"]) == {110.5}


def test_a_constant_run_is_dots_not_an_error() -> None:
    """A Run whose intervals are all equal has no density: its dots are drawn."""
    given = repeats()
    given["series"]["iops"] = 70.0
    axes = draw_chart("violin", given).axes[0]
    assert not axes.collections
    assert len([line for line in axes.lines if line.get_marker() == "o"]) == 3


def test_ridges_stand_in_the_order_of_repeats() -> None:
    """There is a ridge for each repeat, the first on top."""
    given = repeats()
    axes = draw_chart("ridgeline", given).axes[0]
    names = {label.get_text(): label.get_position()[1] for label in axes.get_yticklabels()}
    assert names["repeat 1"] > names["repeat 2"] > names["repeat 3"]
    told = chart_numbers("ridgeline", given)
    assert told.groupby("run")["share"].sum().round(9).eq(1).all()


def test_outliers_of_a_fleet_are_named() -> None:
    """The host that is far below the others is named, and only that one."""
    given = fleet()
    figure = draw_chart("fleet", given)
    assert [text.get_text() for text in figure.axes[0].texts] == ["vm12"]
    told = chart_numbers("fleet", given).set_index("member")
    assert told.index[told["outlier_iops"]].tolist() == ["vm12"]
    assert told.loc["vm3", "iops"] == 1003.0
    dots = [line for line in figure.axes[0].lines if line.get_marker() == "o"]
    assert sorted(float(np.asarray(dot.get_xdata())[0]) for dot in dots) == sorted(told["iops"])


def test_few_hosts_have_no_outliers() -> None:
    """Of four hosts nobody can tell who is out of line."""
    assert not chart_numbers("fleet", fleet(hosts=4))["outlier_iops"].any()


def test_convergence_adds_reads_and_writes() -> None:
    """A line of a mix is reads and writes together, round by round."""
    given = rounds()
    figure = draw_chart("convergence", given)
    titles = [axes.get_title(loc="left") for axes in figure.axes if axes.get_visible()]
    assert titles == ["Mix 100/0", "Mix 65/35", "Mix 0/100"]
    line = figure.axes[1].lines[0]
    assert np.asarray(line.get_ydata(), dtype=float) == pytest.approx(
        [900, 980, 1000, 1010, 990, 1000]
    )
    told = chart_numbers("convergence", given)
    assert len(told) == 6 * 6
    assert set(told["cell"]) == {
        f"{m} {b}" for m in ("100/0", "65/35", "0/100") for b in ("4k", "64k")
    }


def test_window_has_mean_band_and_fit() -> None:
    """Mean and fitted line are those of the determination, and the band is 10 % around."""
    given = rounds()
    tracked = {"aks-disk": Rounds(most=25, track=(Track(job="b4096-r0", metric=Metric.IOPS),))}
    options = Options(rounds=tracked)
    axes = draw_chart("window", given, options=options).axes[0]
    found = determine(
        {Track(job="b4096-r0", metric=Metric.IOPS): [900, 980, 1000, 1010, 990, 1000]}, most=25
    )
    assert found.window == (1, 5)
    lines = {
        str(line.get_label()): np.asarray(line.get_ydata(), dtype=float) for line in axes.lines
    }
    assert lines["mean"] == pytest.approx([976.0] * 5)
    assert np.diff(lines["linear fit"]) == pytest.approx([found.variables[0].slope] * 4)
    told = chart_numbers("window", given, options=options)
    assert told.loc[told["in_window"], "fit"].tolist() == pytest.approx(
        lines["linear fit"].tolist()
    )


def test_rounds_that_drift_are_not_steady() -> None:
    """The note says that steady state was not achieved."""
    given = rounds(values=(100.0, 200.0, 300.0, 400.0, 500.0, 600.0))
    assert "teady state not achieved in 6 rounds" in draw_chart("window", given).get_supxlabel()


def test_mixes_table_has_means_of_the_window() -> None:
    """Each cell is the mean over the window's rounds, most reads at the left."""
    given = rounds()
    axes = draw_chart("mixes", given).axes[0]
    assert [label.get_text() for label in axes.get_xticklabels()] == ["100/0", "65/35", "0/100"]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["64k", "4k"]
    assert {text.get_text() for text in axes.texts} == {"976\n900 to 1.01k"}
    assert chart_numbers("mixes", given)["iops_mean"].round(9).eq(976.0).all()


def test_latency_map_keeps_gaps() -> None:
    """Cells without I/Os stay empty, and the others have their counts."""
    axes = draw_chart("latency-map", mapped()).axes[0]
    (mesh,) = axes.collections
    drawn = np.ma.MaskedArray(mesh.get_array(), dtype=float)
    cells: list[float] = drawn.filled(-1).ravel().tolist()
    assert sorted(cells) == [-1, -1, -1, 3, 40, 50]
    assert axes.get_yscale() == "log"
