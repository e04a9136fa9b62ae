"""Where a chart has no room for all, it holds factors at their middle, and says so."""

from itertools import product

import pytest

from tests.present.frames_by_kind import Frames, in_rounds
from tests.present.frames_for_plots import bins, frames, intervals, result, sweep
from tests.present.plots.plot_parts import caption_of
from volbench.errors import InputError
from volbench.present.plots.chart import build_plot
from volbench.present.plots.kinds import Options, Room
from volbench.present.plots.room import fit


def given(*, slow: int = 0, volumes: int = 2, repeats: int = 1) -> Frames:
    """Return eighteen settings of some volumes, of which one has a tail at one queue depth."""
    rows = [
        result(f"{bs}-{depth}", iops=100.0 * depth, iodepth=depth, repeat=repeat)
        | {
            "volume": f"/dev/vd{volume}",
            "block_bytes": bs,
            "run": f"{bs}-{depth}-{volume}-{repeat}",
        }
        for bs, depth, volume, repeat in product(
            (4096, 16384, 65536), (1, 2, 4, 8, 16, 32), range(volumes), range(1, repeats + 1)
        )
    ]
    reported = [
        bins(row, {0.001: 80, 0.5 if row["iodepth"] == slow else 0.004: 20}) for row in rows
    ]
    series = [own for row in rows for own in intervals(row, [1.0, 900.0])]
    return frames(rows, histogram=[own for each in reported for own in each], series=series)


@pytest.mark.parametrize("kind", ["histogram", "ecdf", "series"])
def test_what_is_shown_follows_from_the_design_alone(kind: str) -> None:
    """Nothing is chosen by its result: whichever depth is slow, panels and caption are the same."""
    plots = [build_plot(kind, given(slow=slow)) for slow in (0, 32)]
    titles = [[panel.title or panel.heading for panel in plot.panels] for plot in plots]
    assert titles[0] == titles[1]
    shown = {"histogram": "12 of 36 results", "ecdf": "12 of 18 jobs", "series": "9 of 18 jobs"}
    held = {"series": "2, 4, 8 (3", "ecdf": "2, 4, 8, 16 (4"}.get(kind, "4, 8 (2")
    caption = caption_of(plots[1])
    words = f"queue depth {held} of 6 values): --where 'iodepth==1' draws another"
    assert f"Showing {shown[kind]}, {words}" in caption


def test_what_is_compared_stays_together() -> None:
    """Of values of a factor, those that were measured for all volumes are drawn."""
    frames_of_all = given()
    summary = frames_of_all["summary"]
    lacking = (summary["volume"] == "/dev/vd1") & (summary["iodepth"] > 1)
    plot = build_plot("histogram", {**frames_of_all, "summary": summary[~lacking]})
    assert sum("vd1" in panel.title for panel in plot.panels) == len(plot.panels) / 2


def test_a_value_has_one_colour_in_all_charts() -> None:
    """Its place in the design decides, for campaigns the time, whatever row comes first."""
    rows = [
        result("reads", run=name) | {"campaign": name, "started_utc": f"2026-01-0{day}T00:00:00Z"}
        for day, name in ((2, "second"), (1, "first"))
    ]
    for kind in ("iops", "latency"):
        colours = {each.label: each.colour for each in build_plot(kind, frames(rows)).series}
        assert (colours["first"], colours["second"]) == ("palette-0", "palette-1"), colours


@pytest.mark.parametrize("kind", ["iops", "latency", "ecdf", "histogram"])
def test_a_condition_leaves_the_colours(kind: str) -> None:
    """What is left of three volumes looks as it does beside the others, also one alone."""
    every = given(volumes=3)
    summary = every["summary"]
    for left, expected in (((1, 2), ["palette-1", "palette-2"]), ((2,), ["palette-2"])):
        kept = summary[summary["volume"].isin([f"/dev/vd{n}" for n in left])]
        plot = build_plot(kind, {**every, "summary": kept}, options=Options(every=lambda: summary))
        drawn = [getattr(mark, "series", "") for panel in plot.panels for mark in panel.marks]
        roles = [name for name in drawn + [s.colour for s in plot.series] if "palette" in name]
        is_grid = kind == "iops" and len(left) == 1  # nothing is compared
        assert sorted({*roles}) == ([] if is_grid else expected)


def test_a_condition_leaves_the_colours_of_curves() -> None:
    """A workload of one volume keeps its colour where others are left out."""
    summary = (every := given(volumes=1))["summary"].drop_duplicates("iodepth")
    left = {**every, "summary": summary[summary["iodepth"] > 4]}
    plot = build_plot("ecdf", left, options=Options(every=lambda: summary))
    assert [series.colour for series in plot.series] == ["palette-3", "palette-4", "palette-5"]


def test_many_curves_have_panels() -> None:
    """More lines than an eye can tell apart have a panel for each workload, in equal colours."""
    plot = build_plot("ecdf", given())
    assert len(plot.panels) == len({panel.title for panel in plot.panels}) > 1
    assert [series.label for series in plot.series] == ["vd0 writes", "vd1 writes"]
    assert len(build_plot("ecdf", given(volumes=1)).panels) == 12


def test_of_runs_the_repeats_are_left_out_first() -> None:
    """Eighteen settings of one volume are drawn, once each."""
    rows = given(volumes=1, repeats=3)
    caption = caption_of(build_plot("series", rows))
    assert "repeat" not in caption.partition("Showing")[2].partition("draws")[0]
    fitted, [sentence] = fit(rows, Room(18, "runs"), None)
    words = "repeat 2 (1 of 3 values): --where 'repeat==1' draws another"
    assert sentence == f"Showing 18 of 54 runs, {words}"
    assert len(fitted["summary"]) == 18
    assert set(fitted["series"]["run"]) == set(fitted["summary"]["run"])


def at_depths(*, hosts: int = 1) -> Frames:
    """Return two rounds of jobs that share mix and block size, on some hosts."""
    rows = [
        result(f"qd{depth}", iops=100.0 * depth, repeat=repeat, iodepth=depth, rw="randread")
        | {"direction": "read", "host": f"h{host}", "run": f"{depth}-{repeat}-{host}"}
        for depth, repeat, host in product((1, 4, 16), (1, 2), range(hosts))
    ]
    return frames(rows)


def test_rounds_of_several_hosts_are_labelled_as_sums() -> None:
    """The caption says that three hosts are added up, and a host without a round is no drop."""
    given = at_depths(hosts=3)
    options = in_rounds(given)
    assert "Rates are sums over 3 hosts" in caption_of(build_plot("rounds", given, options=options))
    summary = given["summary"]
    lacking = (summary["host"] == "h2") & (summary["repeat"] == 2)
    with pytest.raises(InputError, match=r"not every host has every round.*--where 'host=="):
        build_plot("rounds", {**given, "summary": summary[~lacking]}, options=options)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["latency", "p99"])
def test_a_caption_counts_percentiles_in_the_last_bin(kind: str) -> None:
    """A percentile that fio cannot tell has no point, and the caption says why."""
    rows = sweep()
    rows[0] |= {"lat_p99_s": None, "impossible": "lat p99 and above > 17.1 s (the last bin of fio)"}
    sentence = "No exact value to draw: percentiles in fio's last bin (> 17.1 s) of 1 result"
    assert sentence in caption_of(build_plot(kind, frames(rows)))
    assert "last bin" not in caption_of(build_plot(kind, frames(sweep())))
