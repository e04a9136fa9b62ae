"""Chart of arms in blocks over time, and of how closely their ratio is known."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import pandas as pd

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
from volbench.units import counted_noun

_TICKS = (3, 4, 5, 7, 10, 15, 20, 30, 50, 100)
_MAX_WORKLOADS = 4  # Rows of panels that fit two screens
_MAX_MARKED = 40  # Blocks up to which each run has a marker; more would hide the lines


def arm_series(rows: pd.DataFrame) -> tuple[Series, ...]:
    """Return the series of each arm, in the order of their first runs."""
    arms = rows.sort_values("started_utc")["arm"].astype(str).drop_duplicates()
    shapes = ("circle", "square", "up", "diamond", "down")
    return tuple(
        Series(f"arm {arm}", f"arm {arm}", f"palette-{place}", shapes[place % 5])
        for place, arm in enumerate(arms)
    )


def in_blocks(summary: pd.DataFrame) -> pd.DataFrame:
    """Return the measured rows of blocks with IOPS; storage classes or else hosts are arms."""
    rows = measured(summary).dropna(subset=["block", "started_utc", "iops"])
    classes = rows.get("label_storage_class", rows["host"])  # its replicas are one arm
    have_names = len(classes.dropna().unique()) > 1
    return rows.assign(arm=rows["arm"].fillna(classes if have_names else rows["host"]))


def _workloads(summary: pd.DataFrame) -> Iterator[tuple[str, pd.DataFrame]]:
    """Yield the name and the rows of each direction of a workload with arms in blocks."""
    rows = in_blocks(summary)
    names = [
        str(job).removesuffix(f"-{arm}") for job, arm in zip(rows["job"], rows["arm"], strict=True)
    ]
    groups = rows.assign(_workload=names).groupby(["_workload", "direction"], sort=False)
    for key, group in groups:
        yield " ".join(map(str, key)), group.drop(columns="_workload")


@dataclass(frozen=True)
class ArmsInBlocks:
    """One direction of a workload with its arms."""

    name: str
    rows: pd.DataFrame  # of its runs
    widths: pd.DataFrame  # blocks, arm, and half-width of its ratio to the first arm, in percent


def read_blocks(frames: Frames, _: Options) -> list[ArmsInBlocks] | str:
    """Return each workload with arms in at least three blocks, or why there is none."""
    found = [
        ArmsInBlocks(name, rows, widths)
        for name, rows in _workloads(frames["summary"])
        if len(widths := _widths(rows))
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
    arms = arm_series(pd.concat([each.rows for each in found]))
    shown = found[:_MAX_WORKLOADS]
    panels = [
        panel for each in shown for panel in (_runs_panel(each, len(arms)), _ratio_panel(each))
    ]
    return replace(
        grid(panels, height_in=2.4, abreast=2),
        name="blocks",
        width_in=11.0,
        series=arms,
        caption=(not_shown(len(shown), len(found), "workloads"),),
    )


def _runs_panel(workload: ArmsInBlocks, arms: int) -> Panel:
    """Return the runs of each arm over time, with lines between the runs of a block."""
    rows = workload.rows.sort_values("started_utc")
    started = pd.to_datetime(rows["started_utc"])
    rows = rows.assign(
        _x=(started - started.min()).dt.total_seconds(),
        _y=rows["iops"].astype(float),
        _pair=rows["block"].astype(str),
        _arm="arm " + rows["arm"].astype(str),
    )
    end_s = float(rows["_x"].max())
    columns = ["arm", "block", "started_utc", "iops", "_x", "_y", "_pair", "_arm"]
    size = 6.5 if rows["block"].nunique() * arms <= 2 * _MAX_MARKED else 3.5
    return Panel(
        x=Axis("time since the first block", "duration", "time", (-0.02 * end_s, 1.02 * end_s)),
        y=Axis("IOPS", format="count"),
        marks=(
            marks.Lines(rows[columns], series="muted", group="_pair", width=1.0),
            marks.Points(rows[columns], by="_arm", size=size),
        ),
        title=f"{workload.name}: runs of a block are joined",
    )


def _ratio_panel(workload: ArmsInBlocks) -> Panel:
    """Return the interval of the ratio to the first arm against the number of blocks."""
    widths = workload.widths.assign(
        _x=workload.widths["blocks"], _y=workload.widths["half_width_percent"]
    )
    most, base = int(widths["_x"].max()), arm_series(workload.rows)[0].label
    return Panel(
        x=Axis("blocks", ticks=tuple(n for n in _TICKS if n <= most)),
        y=Axis("interval, ±", format="percent", limits=(0.0, 1.05 * widths["_y"].max() or 1.0)),
        marks=(marks.Lines(widths, by="arm", group="arm", has_dots=True),),
        title=f"Confidence interval of the ratio to {base}",
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
)
