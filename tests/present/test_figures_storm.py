"""The chart of storms: its panels, marks, words, and columns side by side."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from matplotlib.axes import Axes

from tests.present.frames_for_figures import frames, intervals, result
from tests.present.storm_frames import START_S, both, client, series, storm
from tests.present.test_figures import texts_outside
from volbench.errors import InputError
from volbench.present.figures import describe, draw_chart

Frames = dict[str, pd.DataFrame]


@pytest.fixture(name="fast", scope="module")
def _fast() -> Frames:
    """Return a storm of thirty clients, 20 s apart, on a volume with a cap of 7,200 IOPS."""
    return storm()


@pytest.fixture(name="slow", scope="module")
def _slow() -> Frames:
    """Return five clients, 240 s apart."""
    return storm(clients=5, stagger_s=240, campaign="slow")


def texts(axes: Axes) -> str:
    """Return all that is written in a panel."""
    return "\n".join([axes.get_title(loc="left"), *(text.get_text() for text in axes.texts)])


def test_panels_tell_peak_starts_and_time(fast: Frames) -> None:
    """The peak has its number, each start a mark, and all stands from 0 to the end."""
    figure = draw_chart("storm", fast)
    stack, apart, strips = figure.axes[:3]
    assert "peak 7.2k" in texts(stack)
    assert "30 clients, started 20s apart; at most 18 at once" in texts(stack)
    assert "a client settles after 6m 00s" in texts(stack)
    (starts,) = [line for line in stack.lines if line.get_label() == "starts"]
    assert np.asarray(starts.get_xdata()).tolist() == [20.0 * n for n in range(30)]
    assert stack.get_xlim() == apart.get_xlim() == strips.get_xlim() == (0, 940)
    assert stack.get_ylim()[0] == 0
    assert stack.get_ylim()[1] > 7200
    assert apart.get_ylim()[0] < -4000


def test_strips_are_in_the_order_of_starts_and_empty_outside(fast: Frames) -> None:
    """The first client stands on top; before it starts and after it ends nothing is drawn."""
    strips = draw_chart("storm", fast).axes[2]
    names = [label.get_text() for label in strips.get_yticklabels()]
    assert names == [f"c{number:02d}" for number in range(1, 31)]
    assert strips.get_ylim()[0] > strips.get_ylim()[1]
    mesh = strips.collections[0].get_array()
    assert mesh is not None
    rates = np.ma.filled(mesh, np.nan).reshape(30, -1)
    assert np.isnan(rates[29, :116]).all()
    assert not np.isnan(rates[29, 116:]).any()
    assert np.isnan(rates[0, 72:]).all()


def test_storms_stand_side_by_side_with_one_scale(slow: Frames, fast: Frames) -> None:
    """What is higher is more, whatever the lengths of the two."""
    figure = draw_chart("storm", both(slow, fast))
    first, second = figure.axes[:2]
    assert first.get_ylim() == second.get_ylim()
    assert first.get_xlim() != second.get_xlim()
    assert "5 clients" in texts(first)
    assert "30 clients" in texts(second)
    assert {"slow", "fast"} <= {text.get_text() for axes in (first, second) for text in axes.texts}
    assert texts_outside(figure) == []


@pytest.mark.parametrize("count", [2, 100])
def test_few_and_many_clients_fit(count: int) -> None:
    """Names of strips are thinned out, and nothing is cut off."""
    figure = draw_chart("storm", storm(clients=count, stagger_s=5))
    names = [label.get_text() for label in figure.axes[2].get_yticklabels()]
    assert len(names) == min(count, 50)
    assert texts_outside(figure) == []


def test_device_is_drawn_where_one_was_watched(fast: Frames) -> None:
    """Without samples there is no line of zeros, and no entry in the legend."""
    with_device, without = draw_chart("storm", fast), draw_chart("storm", fast | none_watched())
    words = [
        {text.get_text() for text in figure.legends[0].get_texts()}
        for figure in (with_device, without)
    ]
    assert "the device itself" in words[0]
    assert "the device itself" not in words[1]
    assert len(with_device.axes[0].patches) == len(without.axes[0].patches) + 1


def test_a_device_far_above_its_clients_does_not_flatten_them(fast: Frames) -> None:
    """What somebody else did there is told, and the clients keep their scale."""
    reads = fast["device"]["read_iops"].where(fast["device"].index != 3, 50_000.0)
    busy = fast | {"device": fast["device"].assign(read_iops=reads)}
    stack = draw_chart("storm", busy).axes[0]
    assert stack.get_ylim()[1] < 2 * 7200
    assert "device up to 50" in texts(stack)
    assert "device up to" not in texts(draw_chart("storm", fast).axes[0])


def none_watched() -> Frames:
    """Return an empty device frame."""
    return {"device": frames([])["device"]}


def test_limit_is_drawn_where_it_fits(fast: Frames) -> None:
    """A declared limit of the one volume is a line with its name."""
    limited = fast | {"summary": fast["summary"].assign(limit_iops=7000.0)}
    assert "limit: 7k" in texts(draw_chart("storm", limited).axes[0])
    far = fast | {"summary": fast["summary"].assign(limit_iops=1e6)}
    assert "limit" not in texts(draw_chart("storm", far).axes[0])


def test_missing_clients_are_told(slow: Frames) -> None:
    """Four of five never looks like five."""
    status = slow["summary"]["status"].where(slow["summary"]["run"] != "001-vm-r1-c03", "failed")
    partly = slow | {"summary": slow["summary"].assign(status=status)}
    figure = draw_chart("storm", partly)
    assert "4 of 5 clients" in texts(figure.axes[0])
    assert "1 client left no series" in figure.get_supxlabel().replace("\n", " ")


def test_words_for_people_who_can_not_see_it(slow: Frames) -> None:
    """Clients, pace, peak and its time, and how long clients took."""
    words = describe("storm", slow)
    assert "Storm of slow: 5 clients, started 4m 00s apart" in words
    assert "the last start" in words
    assert "settled after 6m 00s" in words


@pytest.mark.parametrize(
    ("busy_at_s", "words"),
    [(11, "at the last start"), (21, "10s after the last start"), (1, "10s before the last start")],
)
def test_when_the_peak_came_is_told_as_exactly_as_it_is_known(busy_at_s: int, words: str) -> None:
    """Means of 5 s can't tell which of two things in one interval was first."""
    rows = [client("c01"), client("c02")]
    reads = [100.0 if busy_at_s <= second < busy_at_s + 4 else 10.0 for second in range(40)]
    told = [
        *series(rows[0], "read", reads, start_s=START_S),
        *series(rows[1], "read", [1.0] * 29, start_s=START_S + 12),
    ]
    shown = frames([result("vm", direction="read") | row for row in rows], series=told)
    assert f"IOPS came {words}" in describe("storm", shown)


def test_at_most_four_storms_are_drawn() -> None:
    """More are counted in the note."""
    told = both(*(storm(clients=2, stagger_s=5, campaign=f"s{n}") for n in range(6)))
    figure = draw_chart("storm", told)
    assert len(figure.axes) == 3 * 4 + 1
    assert "2 further storms are not shown" in figure.get_supxlabel().replace("\n", " ")


def test_a_campaign_of_one_client_has_no_such_chart() -> None:
    """The message says what would be one."""
    row = result("job")
    with pytest.raises(InputError, match="several clients"):
        draw_chart("storm", frames([row], series=intervals(row, [500.0] * 30)))
