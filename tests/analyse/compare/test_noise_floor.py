"""Noise floors of equal arms whose noise, drift and host are known."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from tests.analyse.compared_rows import compared
from tests.analyse.equal_arms import BLOCKS, arms, device_of, floor_of
from tests.present.frames_by_kind import arms_in_blocks
from tests.present.frames_for_plots import frames
from volbench.analyse.compare.noise_floor import noise_floors
from volbench.present.plots.chart import build_plot
from volbench.present.plots.description import numbers
from volbench.present.tables.noise_table import noise_table
from volbench.present.tables.render_table import render_table


def test_the_scatter_is_that_of_two_runs() -> None:
    """2 % noise of a run gives a ratio with 2.8 %; more blocks detect less."""
    rows = arms(drift=0.3)
    found = floor_of(rows, device_of(rows))
    assert found.blocks == BLOCKS
    assert found.scatter == pytest.approx(0.02 * math.sqrt(2), rel=0.4)
    assert found.drift == pytest.approx(0.3, abs=0.05)
    assert found.block_s == pytest.approx(60, abs=1)
    floors = [found.detectable(count) for count in (3, 5, 10, 30)]
    assert floors == sorted(floors, reverse=True)
    assert found.detectable(BLOCKS) == pytest.approx(found.row.detectable)


def test_blocks_for_a_difference() -> None:
    """The number is the least that detects it; what no number detects is reported."""
    rows = arms()
    found = floor_of(rows, device_of(rows))
    count = found.blocks_for(0.01)
    assert count is not None
    assert found.detectable(count) <= 0.01 < found.detectable(count - 1)
    assert found.blocks_for(0.9) == 3
    assert found.blocks_for(1e-9) is None
    (note,) = noise_table([found], detect=1e-9).notes[-1:]
    assert note == "iops: even 10,000 blocks would not detect 1e-07 %."
    assert f"(--repeat {count})" in noise_table([found], detect=0.01).notes[-1]


def test_reads_and_writes_are_told_apart() -> None:
    """A mixed job has a row and a note for each direction, with its name."""
    rows = arms()
    read = floor_of(rows, device_of(rows))
    write = replace(read, row=replace(read.row, direction="write"))
    text = render_table(noise_table([read, write], detect=0.01), "table", width=80)
    assert [line.split()[1] for line in text.splitlines()[3:5]] == ["read", "write"]
    assert "\nread iops: 1 % needs" in text
    assert "\nwrite iops: 1 % needs" in text
    assert "direction" not in render_table(noise_table([read]), "table", width=80)


def test_steady_noise_has_no_drift_and_no_cause() -> None:
    """Chance is not reported as a drift or as the host's part."""
    rows = arms()
    found = floor_of(rows, device_of(rows))
    assert (found.drift, found.cause, found.host_share) == (0.0, "", 0.0)


@pytest.mark.parametrize(
    ("column", "cause"),
    [("steal_percent", "CPU steal"), ("other_disks_iops", "IOPS of other disks")],
)
def test_the_host_is_named_with_its_share(column: str, cause: str) -> None:
    """What takes up to a third of the rate explains most of the scatter."""
    steal = np.random.default_rng(5).uniform(0, 30, (BLOCKS, 2))
    rows = arms(steal=steal).replace({"arm": {"a": "A", "b": "B"}})
    sides = [rows[rows["arm"] == arm] for arm in ("A", "B")]
    comparison = compared(*sides, metrics=("iops",))
    device = device_of(rows, steal)
    device[column] = device["steal_percent"]
    device.loc[:, device.columns.difference(["run", column])] = 0.0
    (found,) = noise_floors(comparison, rows, device)
    assert found.cause == cause
    assert found.host_share > 0.8


@pytest.mark.parametrize("repeats", [3, 20])
def test_the_chart_joins_the_runs_of_each_block(repeats: int) -> None:
    """Left each run, right the floor of each metric."""
    every = arms()
    rows, device = every[every["block"] <= repeats], device_of(every)
    named = rows.assign(job="reads-" + rows["arm"])
    plot = build_plot("noise", {**frames([]), "summary": named, "device": device})
    left, right = plot.panels
    assert len(left.marks) == 2
    drawn = numbers(plot)
    assert drawn["arm"].notna().sum() == 2 * repeats
    of_iops = drawn[drawn["metric"] == "iops"]
    floor = floor_of(rows, device)
    assert of_iops["detectable_percent"].tolist() == pytest.approx(
        [100 * floor.detectable(int(count)) for count in of_iops["blocks"]]
    )
    assert right.y.format == "percent"


def test_hosts_in_turns_are_arms_of_the_charts() -> None:
    """Storage classes have hosts of their own and no arms, but blocks."""
    named = arms_in_blocks()["summary"]
    rows = named.assign(host=named["arm"], arm=None, job="reads", group="reads")
    for kind in ("blocks", "noise"):
        plot = build_plot(kind, {**frames([]), "summary": rows})
        assert [series.label for series in plot.series][:2] == ["arm a", "arm b"]
        assert plot.description.startswith("reads write: ")


def test_blocks_of_one_ratio_have_an_axis() -> None:
    """Its interval has no width, and an axis from 0 to 0 cannot be drawn."""
    rows = arms_in_blocks()["summary"].assign(iops=500.0)
    _, right = build_plot("blocks", {**frames([]), "summary": rows}).panels
    assert right.y.limits == (0.0, 1.0)


def test_the_noise_of_several_arms_is_one_line() -> None:
    """The arm that shows least counts; a line for each would run back from 100 blocks to three."""
    rows = arms_in_blocks(arms=5)["summary"]
    drawn = numbers(build_plot("noise", {**frames([]), "summary": rows}))
    of_iops = drawn[drawn["metric"] == "iops"]
    assert of_iops["blocks"].is_unique
    assert of_iops["detectable_percent"].is_monotonic_decreasing
