"""Charts of arms in blocks over time, of their ratio, and of the noise floor of equal arms."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import pandas as pd

from volbench.analyse.compare.comparison import Question, compare
from volbench.analyse.compare.comparison_groups import ARM
from volbench.analyse.compare.noise_floor import noise_floors
from volbench.analyse.compare.repeat_statistics import (
    MIN_PAIRS,
    Group,
    are_blocked,
    contrast,
    shortage,
)
from volbench.analyse.frames.job_frames import measured
from volbench.analyse.frames.run_facts import STEP, VOLUME_KEY, with_facts
from volbench.errors import ComparisonError
from volbench.present.plots import marks
from volbench.present.plots.description import Axis, Panel, Plot, Series, grid
from volbench.present.plots.kinds import Frames, Kind, Options
from volbench.present.plots.selection import not_shown
from volbench.present.tables.compare_table import measure_name
from volbench.units import counted_noun, percent

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
    curve: pd.DataFrame  # blocks, name of a line, and in the last column what they show, in percent


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
    panels = []
    for each in found:
        widths = _placed(each)
        most, base = int(widths["_x"].max()), arm_series(each.rows)[0].label
        panels.append(
            Panel(
                x=Axis("blocks", ticks=tuple(n for n in _BLOCKS if n <= most)),
                y=Axis(
                    "interval, ±", format="percent", limits=(0.0, 1.05 * widths["_y"].max() or 1.0)
                ),
                marks=(marks.Lines(widths, by="arm", group="arm", has_dots=True),),
                title=f"Confidence interval of the ratio to {base}",
            )
        )
    return replace(_beside_runs(found, panels), name="blocks")


def _placed(each: ArmsInBlocks) -> pd.DataFrame:
    return each.curve.assign(_x=each.curve["blocks"], _y=each.curve.iloc[:, -1])


def _beside_runs(found: Sequence[ArmsInBlocks], panels: Sequence[Panel]) -> Plot:
    """Return the runs of each workload over time, each with a panel beside it."""
    arms = arm_series(pd.concat([each.rows for each in found]))
    axis = Axis("IOPS", format="count")
    pairs = [
        panel
        for each, right in list(zip(found, panels, strict=True))[:_MAX_WORKLOADS]
        for panel in (
            replace(
                blocks_panel(each.rows, arms, value="iops", y=axis),
                title=f"{each.name}: runs of a block are joined",
            ),
            right,
        )
    ]
    return replace(
        grid(pairs, height_in=2.4, abreast=2),
        width_in=11.0,
        series=arms,
        caption=(not_shown(len(pairs) // 2, len(found), "workloads", "the first ones"),),
    )


def describe_blocks(found: Sequence[ArmsInBlocks]) -> str:
    """Return how closely the last ratio of each workload is known."""
    return " ".join(
        f"{each.name}: {counted_noun(each.rows['block'].nunique(), 'block')} of"
        f" {', '.join(series.key.removeprefix('arm ') for series in arm_series(each.rows))}; ratio"
        f" known to ± {each.curve['half_width_percent'].iloc[-1]:.2g} %."
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


def read_noise(frames: Frames, _: Options) -> list[ArmsInBlocks] | str:
    """Return each workload with arms in at least three blocks, or why there is none."""
    findings, bins = {"": frames["findings"]}, frames["histogram"]
    question = Question(between=ARM, keep_invalid=True)  # the frames have no others
    found, reason = [], "no job has arms in three blocks or more"
    for name, rows in _workloads(frames["summary"]):
        keys = {  # by which `compare` knows volumes, and what ran at one time
            VOLUME_KEY: rows["host"] + "|" + rows["volume"],
            STEP: rows["job"] + "/" + rows["repeat"].astype(str),
        }
        facts = with_facts(rows.assign(**keys), (), volbench_version="")
        try:
            compared = compare({"": facts}, findings, question, bins=lambda _: bins)
        except ComparisonError as error:
            reason = error.message
            continue
        records = [
            {
                "metric": measure_name(floor.row.measure),
                "blocks": count,
                "detectable_percent": 100 * floor.detectable(count),
            }
            for floor in noise_floors(compared, rows, frames["device"])
            for count in _BLOCKS
        ]
        if records:
            curve = pd.DataFrame(records).groupby(["metric", "blocks"], sort=False).max()  # of arms
            found.append(ArmsInBlocks(name, rows, curve.reset_index()))
    return found or reason


def build_noise(found: Sequence[ArmsInBlocks]) -> Plot:
    """Draw blocks over time, and the detectable difference against the number of blocks."""
    panels = [
        Panel(
            x=Axis("blocks", scale="log", ticks=(3, 5, 10, 20, 50, 100)),
            y=Axis("smallest difference detected", format="percent", scale="log"),
            marks=(marks.Lines(_placed(each), by="metric", group="metric", has_dots=True),),
            title="Noise floor: detected in 80 % of cases",
        )
        for each in found
    ]
    plot = _beside_runs(found, panels)
    lines = tuple(
        Series(
            name, name, f"palette-{len(plot.series) + place}", dash="dashed" if place else "solid"
        )
        for place, name in enumerate(found[0].curve["metric"].unique())
    )
    return replace(plot, series=(*plot.series, *lines), name="noise")


def describe_noise(found: Sequence[ArmsInBlocks]) -> str:
    """Return what ten blocks of each workload detect."""
    return " ".join(
        f"{each.name}: ten blocks detect a difference of {percent(share / 100)} % in {metric}."
        for each in found[:_MAX_WORKLOADS]
        for metric, count, share in each.curve.itertuples(index=False)
        if count == 10
    )


NOISE = Kind(
    name="noise",
    title="Noise floor",
    help="IOPS of arms over time with lines between the runs of a block, and the smallest"
    " difference that so many blocks detect.",
    needs="jobs with arms, in three blocks or more",
    read=read_noise,
    build=build_noise,
    describe=describe_noise,
    frame_names=("summary", "device", "histogram"),
)
