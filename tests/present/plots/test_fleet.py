"""Charts of fleets and boot storms: panels, marks, texts, columns side by side."""

import numpy as np
import pandas as pd
import pytest

from tests.present.figure_texts import texts_outside
from tests.present.frames_for_plots import frames, intervals, result
from tests.present.plots.plot_parts import all_marks, caption_of, column, the_mark, written
from tests.present.storm_frames import START_S, both, client, series, storm
from volbench.errors import InputError
from volbench.present.plots.chart import build_plot
from volbench.present.plots.description import Panel, Plot, numbers
from volbench.present.plots.marks import Areas, Cells, Lines, Points, ReferenceLine
from volbench.present.renderers.matplotlib import draw

Frames = dict[str, pd.DataFrame]


@pytest.fixture(name="fast", scope="module")
def _fast() -> Frames:
    """Return a storm of thirty clients, 20 s apart, on a volume with a limit of 7,200 IOPS."""
    return storm()


@pytest.fixture(name="slow", scope="module")
def _slow() -> Frames:
    return storm(clients=5, stagger_s=240, campaign="slow")


def texts(panel: Panel) -> str:
    """Return all that is written on a panel."""
    return "\n".join([panel.heading, panel.title, *written(panel)])


def stacks(plot: Plot) -> list[Panel]:
    """Return the upper panel of each storm."""
    return [panel for panel in plot.panels if panel.row == 0]


def test_panels_have_peak_starts_and_time(fast: Frames) -> None:
    """The peak has its number, each start a mark, and writes stand on reads from 0 to the end."""
    plot = build_plot("storm", fast)
    stack, strips = plot.panels
    assert "peak 7.2k" in texts(stack)
    assert plot.answer.startswith("30 clients, started 20s apart; max 18 at once; peak 7.2k IOPS")
    assert "finishes booting after 6m 00s" in plot.answer
    assert not stack.title
    starts = next(mark for mark in all_marks(stack, Points) if mark.series == "start")
    assert column(starts, "_x") == [20.0 * n for n in range(30)]
    assert stack.x.limits == strips.x.limits == (0, 940)
    low, high = stack.y.limits or (1, 0)
    assert (low, high > 7200) == (0, True)
    reads, writes = all_marks(stack, Areas)
    assert (reads.low, reads.high, writes.low) == ("_zero", "read_iops", "read_iops")
    rows = numbers(plot)
    assert rows["read_iops"].max() + rows["write_iops"].max() >= 7200


@pytest.mark.slow
def test_strips_are_in_start_order_and_empty_outside_their_runs(fast: Frames) -> None:
    """The first client stands on top; before it starts and after it ends nothing is drawn."""
    strips = build_plot("storm", fast).panels[1]
    assert strips.y.categories == tuple(f"c{number:02d}" for number in range(1, 31))
    assert strips.y.inverted
    rates = np.array(column(the_mark(strips, Cells), "iops"), dtype=float).reshape(30, -1)
    assert np.isnan(rates[29, :116]).all()
    assert not np.isnan(rates[29, 116:]).any()
    assert np.isnan(rates[0, 72:]).all()


def test_long_names_of_clients_leave_room_for_the_strips(slow: Frames) -> None:
    """They are cut in their middle, and stay distinct."""
    host = "-db-primary.eu-central-1.compute.internal-c0"
    for name in ("summary", "series", "device"):
        named = slow[name]["run"].str.replace("-c0", host)
        slow = slow | {name: slow[name].assign(run=named)}
    names = build_plot("storm", slow).panels[1].y.categories
    assert len({*names}) == 5
    assert max(map(len, names)) == 24


@pytest.mark.slow
def test_storms_are_drawn_side_by_side_on_one_scale(slow: Frames, fast: Frames) -> None:
    """What is higher is more, whatever the lengths of the two."""
    first, second = stacks(build_plot("storm", both(slow, fast)))
    assert first.y.limits == second.y.limits
    assert first.x.limits != second.x.limits
    assert "5 clients" in texts(first)
    assert "30 clients" in texts(second)
    assert [first.heading, second.heading] == ["slow, vm", "fast, vm"]


@pytest.mark.slow
def test_device_is_drawn_where_it_was_watched(fast: Frames) -> None:
    """Without samples there is no line of zeros, and no entry in the legend."""
    unwatched = fast | {"device": frames([])["device"]}
    with_device, without = build_plot("storm", fast), build_plot("storm", unwatched)
    labels = [{series.label for series in plot.series} for plot in (with_device, without)]
    assert "the device itself" in labels[0]
    assert "the device itself" not in labels[1]
    assert len(all_marks(with_device.panels[0], Lines)) == 1
    assert all_marks(without.panels[0], Lines) == []


@pytest.mark.slow
def test_a_device_far_above_its_clients_does_not_flatten_them(fast: Frames) -> None:
    """What another process did there is written, and the clients keep their scale."""
    reads = fast["device"]["read_iops"].where(fast["device"].index != 3, 50_000.0)
    busy = fast | {"device": fast["device"].assign(read_iops=reads)}
    stack = build_plot("storm", busy).panels[0]
    assert stack.y.limits is not None
    assert stack.y.limits[1] < 2 * 7200
    assert "device up to 50" in texts(stack)
    assert "device up to" not in texts(build_plot("storm", fast).panels[0])


@pytest.mark.slow
def test_limit_is_drawn_where_it_fits(fast: Frames) -> None:
    """A declared limit of the one volume is a line with its name."""
    limited = fast | {"summary": fast["summary"].assign(limit_iops=7000.0)}
    lines = all_marks(build_plot("storm", limited).panels[0], ReferenceLine)
    assert [line.value for line in lines if line.name == "limit: 7k"] == [7000.0]
    far = fast | {"summary": fast["summary"].assign(limit_iops=1e6)}
    assert "limit" not in texts(build_plot("storm", far).panels[0])


def test_missing_clients_are_counted(slow: Frames) -> None:
    """Four of five never looks like five."""
    status = slow["summary"]["status"].where(slow["summary"]["run"] != "001-vm-r1-c03", "failed")
    plot = build_plot("storm", slow | {"summary": slow["summary"].assign(status=status)})
    assert plot.answer.startswith("4 of 5 clients")
    assert "1 client without a series, not drawn" in caption_of(plot)


def test_the_storm_is_described(slow: Frames) -> None:
    """Clients, pace, peak and its time, and how long clients took."""
    sentence = build_plot("storm", slow).description
    assert "5 clients, started 4m 00s apart" in sentence
    assert "the last start" in sentence
    assert "finishes booting after 6m 00s" in sentence


@pytest.mark.parametrize(
    ("busy_at_s", "when"),
    [
        (11, "at the last start"),
        (21, "8s to 13s after the last start"),
        (1, "7s to 12s before the last start"),
    ],
)
def test_the_time_of_the_peak_has_the_precision_of_the_samples(busy_at_s: int, when: str) -> None:
    """Means of 5 s can't show which of two things in one interval was first."""
    rows = [client("c01"), client("c02")]
    reads = [100.0 if busy_at_s <= second < busy_at_s + 4 else 10.0 for second in range(40)]
    points = [
        *series(rows[0], "read", reads, start_s=START_S),
        *series(rows[1], "read", [1.0] * 29, start_s=START_S + 12),
    ]
    shown = frames([result("vm", direction="read") | row for row in rows], series=points)
    plot = build_plot("storm", shown)
    assert f"IOPS {when}" in plot.answer
    assert {"Means of 5 s, the last of 6 s", "Grey: the client did not run"} <= {*plot.caption}


@pytest.mark.slow
def test_the_storms_with_the_most_clients_are_drawn() -> None:
    """Three columns fit a page; the caption says which they are, and how many there are."""
    sizes = [2, 5, 2, 4, 2, 3]
    storms = [storm(clients=n, stagger_s=5, campaign=f"s{i}") for i, n in enumerate(sizes)]
    plot = build_plot("storm", both(*storms))
    assert [panel.heading.partition(",")[0] for panel in stacks(plot)] == ["s1", "s3", "s5"]
    assert "Showing 3 of 6 storms, those with the most clients" in caption_of(plot)


@pytest.mark.slow
def test_the_headline_of_a_storm_stays_in_its_column() -> None:
    """Three storms beside each other have lines no longer than their columns are wide."""
    given = both(*(storm(clients=20, stagger_s=7, campaign=f"night-{n}") for n in range(3)))
    for panel in stacks(build_plot("storm", given)):
        assert max(map(len, panel.title.splitlines())) <= 48
        assert "of all I/Os after the last start" in panel.title


@pytest.mark.slow
def test_long_headings_of_storms_stay_in_the_picture() -> None:
    """Three long names of jobs, beside long names of clients, end before the right edge."""
    host = "db-primary.eu-central-1.compute.internal-"
    given = both(*(storm(clients=5, stagger_s=7, campaign=f"night-{n}") for n in range(3)))
    for name, rows in given.items():
        if {"run", "job"} <= {*rows}:
            given[name] = rows.assign(job="ordersdatabase" * 6, host=host + rows["run"].str[-2:])
    assert texts_outside(draw(build_plot("storm", given))) == []


def test_a_campaign_of_one_client_has_no_fleet_chart() -> None:
    """The message says what would be a storm."""
    row = result("job")
    with pytest.raises(InputError, match="several clients"):
        build_plot("storm", frames([row], series=intervals(row, [500.0] * 30)))
