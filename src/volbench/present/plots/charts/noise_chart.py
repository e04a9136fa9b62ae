"""Chart of a noise floor: blocks over time, and the difference that more blocks would detect."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pandas as pd

from volbench.analyse.compare.noise_floor import NoiseFloor
from volbench.present.plots import marks
from volbench.present.plots.description import Axis, Panel, Plot, Series, grid
from volbench.present.tables.compare_table import measure_name

_BLOCKS = (3, 4, 5, 7, 10, 15, 20, 30, 50, 100)
_MAX_MARKED = 40  # Blocks up to which each run has a marker; more would hide the lines


def blocks_panel(rows: pd.DataFrame, *, value: str, y: Axis) -> tuple[Panel, tuple[Series, ...]]:
    """Return the runs of each arm over time, with lines between the runs of a block.

    Args:
        rows: ``arm``, ``block``, ``started_utc`` and the value.
    """
    rows = rows.dropna(subset=["block", "started_utc", value]).sort_values("started_utc")
    started = pd.to_datetime(rows["started_utc"])
    rows = rows.assign(
        _x=(started - started.min()).dt.total_seconds(),
        _y=rows[value].astype(float),
        _pair=rows["block"].astype(str),
        _arm="arm " + rows["arm"].astype(str),
    )
    arms, end_s = sorted(rows["_arm"].unique()), float(rows["_x"].max())
    series = tuple(
        Series(
            arm, arm, f"palette-{place}", ("circle", "square", "up", "diamond", "down")[place % 5]
        )
        for place, arm in enumerate(arms)
    )
    columns = ["arm", "block", "started_utc", value, "_x", "_y", "_pair", "_arm"]
    size = 6.5 if rows["block"].nunique() <= _MAX_MARKED else 3.5
    return Panel(
        x=Axis("time since the first block", "duration", "time", (-0.02 * end_s, 1.02 * end_s)),
        y=y,
        marks=(
            marks.Lines(rows[columns], series="muted", group="_pair", width=1.0),
            marks.Points(rows[columns], by="_arm", size=size),
        ),
        title="Runs of each arm, joined in each block",
    ), series


def noise_plot(floors: Sequence[NoiseFloor], summary: pd.DataFrame, *, title: str = "") -> Plot:
    """Return blocks over time, and the detectable difference against the number of blocks.

    Args:
        floors: at least one.
        summary: rows of the runs.
    """
    left, arms = blocks_panel(summary, value="iops", y=Axis("IOPS", format="count"))
    rows = pd.DataFrame(
        {
            "metric": measure_name(floor.row.measure),
            "blocks": count,
            "detectable_percent": 100 * floor.detectable(count),
        }
        for floor in floors
        for count in _BLOCKS
    ).assign(_x=lambda row: row["blocks"], _y=lambda row: row["detectable_percent"])
    metrics = list(dict.fromkeys(rows["metric"]))
    lines = tuple(
        Series(name, name, f"palette-{len(arms) + place}", dash="dashed" if place else "solid")
        for place, name in enumerate(metrics)
    )
    right = Panel(
        x=Axis("blocks", scale="log", ticks=(3, 5, 10, 20, 50, 100)),
        y=Axis("smallest difference detected", format="percent", scale="log"),
        marks=(marks.Lines(rows, by="metric", group="metric", has_dots=True),),
        title="Noise floor: detected in 80 % of cases",
    )
    return replace(
        grid([left, right], height_in=3.0, abreast=2),
        width_in=11.0,
        series=(*arms, *lines),
        name="noise",
        title=title or "Noise of equal arms",
        caption=(f"{floors[0].blocks} blocks; both arms are the same job",),
    )
