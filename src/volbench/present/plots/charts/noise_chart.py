"""Charts of arms in blocks over time, of their ratio, and of the noise floor of equal arms."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import pandas as pd

from volbench.analyse.compare.noise_floor import NoiseFloor
from volbench.analyse.compare.repeat_statistics import (
    MIN_PAIRS,
    Group,
    are_blocked,
    contrast,
    shortage,
)
from volbench.analyse.frames.job_frames import measured
from volbench.present.plots import marks
from volbench.present.plots.description import Axis, Panel, Plot, Series, grid
from volbench.present.plots.kinds import Frames, Kind, Options
from volbench.present.plots.selection import not_shown
from volbench.present.tables.compare_table import measure_name
from volbench.units import counted_noun

_BLOCKS = (3, 4, 5, 7, 10, 15, 20, 30, 50, 100)
_MAX_WORKLOADS = 4  # Rows of panels that fit two screens
_MAX_MARKED = 40  # Blocks up to which each run has a marker; more would hide the lines


def blocks_panel(rows: pd.DataFrame, arms: Sequence[Series], *, value: str, y: Axis) -> Panel:
    """Return the runs of each arm over time, with lines between the runs of a block.

    Args:
        rows: ``arm``, ``block``, ``started_utc`` and the value, none of them missing.
        arms: as `arm_series` returns them.
    """
    rows = rows.sort_values("started_utc")
    started = pd.to_datetime(rows["started_utc"])
    rows = rows.assign(
        _x=(started - started.min()).dt.total_seconds(),
        _y=rows[value].astype(float),
        _pair=rows["block"].astype(str),
        _arm="arm " + rows["arm"].astype(str),
    )
    end_s = float(rows["_x"].max())
    columns = ["arm", "block", "started_utc", value, "_x", "_y", "_pair", "_arm"]
    size = 6.5 if rows["block"].nunique() * len(arms) <= 2 * _MAX_MARKED else 3.5
    return Panel(
        x=Axis("time since the first block", "duration", "time", (-0.02 * end_s, 1.02 * end_s)),
        y=y,
        marks=(
            marks.Lines(rows[columns], series="muted", group="_pair", width=1.0),
            marks.Points(rows[columns], by="_arm", size=size),
        ),
        title="Runs of each arm, joined in each block",
    )


def arm_series(rows: pd.DataFrame) -> tuple[Series, ...]:
    """Return the series of each arm, in the order of their first runs."""
    arms = rows.sort_values("started_utc")["arm"].astype(str).drop_duplicates()
    shapes = ("circle", "square", "up", "diamond", "down")
    return tuple(
        Series(f"arm {arm}", f"arm {arm}", f"palette-{place}", shapes[place % 5])
        for place, arm in enumerate(arms)
    )


def in_blocks(summary: pd.DataFrame) -> pd.DataFrame:
    """Return the measured rows of arms in blocks with IOPS."""
    return measured(summary).dropna(subset=["arm", "block", "started_utc", "iops"])


@dataclass(frozen=True)
class ArmsInBlocks:
    """One direction of a workload with its arms."""

    name: str
    rows: pd.DataFrame  # of its runs
    widths: pd.DataFrame  # blocks, arm, and half-width of the interval of its ratio, in percent


def read_blocks(frames: Frames, _: Options) -> list[ArmsInBlocks] | str:
    """Return each workload with arms in at least three blocks, or why there is none."""
    rows = in_blocks(frames["summary"])
    names = [
        str(job).removesuffix(f"-{arm}") for job, arm in zip(rows["job"], rows["arm"], strict=True)
    ]
    found = [
        ArmsInBlocks(" ".join(map(str, key)), group, widths)
        for key, group in rows.assign(_workload=names).groupby(
            ["_workload", "direction"], sort=False
        )
        if len(widths := _widths(group))
    ]
    return found or "no job has arms in three blocks or more"


def _widths(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the half-width of each ratio to the first arm after each block from the third on."""
    base, *others = (series.key.removeprefix("arm ") for series in arm_series(rows))
    blocks = sorted(rows["block"].unique())
    records = []
    for count in range(MIN_PAIRS, len(blocks) + 1):
        part = rows[rows["block"].isin(blocks[:count])]
        for arm in others:
            pair = [_group(part[part["arm"] == name]) for name in (base, arm)]
            if are_blocked(*pair) and not shortage(*pair):
                interval = contrast(*pair).interval()
                half = 100 * (math.sqrt(interval.high / interval.low) - 1)
                records.append({"blocks": count, "arm": f"arm {arm}", "half_width_percent": half})
    return pd.DataFrame(records)


def _group(rows: pd.DataFrame) -> Group:
    return Group(
        rows["iops"].to_numpy(dtype=float),
        blocks=rows["block"].tolist(),
        starts=rows["started_utc"].tolist(),
    )


def build_blocks(found: Sequence[ArmsInBlocks]) -> Plot:
    """Draw blocks over time, and the interval of the ratios against the number of blocks."""
    drawn = found[:_MAX_WORKLOADS]
    arms = arm_series(pd.concat([each.rows for each in found]))
    panels = []
    for each in drawn:
        left = blocks_panel(each.rows, arms, value="iops", y=Axis("IOPS", format="count"))
        widths = each.widths.assign(_x=each.widths["blocks"], _y=each.widths["half_width_percent"])
        right = Panel(
            x=Axis("blocks", ticks=tuple(n for n in _BLOCKS if n <= int(widths["_x"].max()))),
            y=Axis("interval, ±", format="percent", limits=(0.0, 1.05 * widths["_y"].max())),
            marks=(marks.Lines(widths, by="arm", group="arm", has_dots=True),),
            title=f"Ratio to {arms[0].label}: how closely it is known",
        )
        panels += [replace(left, title=f"{each.name}: runs, joined in each block"), right]
    return replace(
        grid(panels, height_in=2.4, abreast=2),
        width_in=11.0,
        series=arms,
        name="blocks",
        caption=(not_shown(len(drawn), len(found), "workloads", "the first ones"),),
    )


def describe_blocks(found: Sequence[ArmsInBlocks]) -> str:
    """Return how closely the last ratio of each workload is known."""
    return " ".join(
        f"{each.name}: {counted_noun(each.rows['block'].nunique(), 'block')} of"
        f" {', '.join(series.key.removeprefix('arm ') for series in arm_series(each.rows))}; ratio"
        f" known to ± {each.widths['half_width_percent'].iloc[-1]:.2g} %."
        for each in found[:_MAX_WORKLOADS]
    )


BLOCKS = Kind(
    name="blocks",
    title="Arms in blocks",
    help="IOPS of arms over time with lines between the runs of a block, and the interval of their"
    " ratio against the number of blocks.",
    needs="jobs with arms, in three blocks or more",
    read=read_blocks,
    build=build_blocks,
    describe=describe_blocks,
    in_report=True,
)


def noise_plot(floors: Sequence[NoiseFloor], summary: pd.DataFrame, *, title: str = "") -> Plot:
    """Return blocks over time, and the detectable difference against the number of blocks.

    Args:
        floors: at least one.
        summary: rows of the runs.
    """
    known = in_blocks(summary)
    arms = arm_series(known)
    left = blocks_panel(known, arms, value="iops", y=Axis("IOPS", format="count"))
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
