"""CPU time of fio: the summary enters, stacked bars of user and system time per job leave."""

from __future__ import annotations

import math

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.ticker import FuncFormatter

from volbench.analyse.frames.job_frames import measured, per_job
from volbench.present.figures.arrange import side_by_side
from volbench.present.figures.captions import pooled
from volbench.present.figures.chart import (
    Chart,
    Frames,
    beside,
    caption,
    job_names,
    lack_of_runs,
    new_figure,
    rows_height_in,
    table,
)
from volbench.present.formatting import Row, number, records
from volbench.present.style import BLACK, PALETTE

PARTS = {"cpu_usr": ("user", PALETTE[5]), "cpu_sys": ("system", PALETTE[0])}
FULL = 100.0


def cpu_rows(frames: Frames) -> pd.DataFrame:
    """Return a row per job with the medians of user and system time, and of their sum."""
    summary = frames["summary"]
    rated = summary[(summary["direction"] != "sync") & summary["cpu_usr"].notna()]
    # fio tells it once for a job, and both directions of a mixed job repeat it.
    once = rated.drop_duplicates(["run", "group"])
    once = once.assign(cpu=once["cpu_usr"] + once["cpu_sys"])
    return side_by_side(per_job(once, [*PARTS, "cpu"]))


def draw(frames: Frames, title: str) -> Figure:
    """Draw a bar for each job; the whisker is the range of the sum over the repeats."""
    rows: list[Row] = list(records(cpu_rows(frames)))
    names = job_names(rows)
    figure = new_figure(
        title=title,
        note=caption(
            frames["summary"],
            pooled(frames["summary"]),
            "Share of one CPU that each clone of the job used; medians, whiskers: least to "
            "greatest of the sum",
        ),
        height_in=1.7 + rows_height_in(names),
    )
    axes = figure.add_subplot()
    for place, row in enumerate(rows):
        _bar(axes, place, row)
    most = max(max(number(row, "cpu_high"), _sum(row)) for row in rows)
    axes.set_xlim(0, max(most * 1.15, 1))
    axes.set_ylim(len(rows) - 0.4, -0.6)
    axes.set_yticks(range(len(rows)), names)
    axes.tick_params(axis="y", length=0)
    axes.grid(visible=False, axis="y")
    axes.set_xlabel("CPU time, of one CPU")
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g} %"))
    if most > FULL * 0.8:
        axes.axvline(FULL, color=BLACK, linestyle=(0, (5, 3)), linewidth=1.2)
    axes.legend(
        handles=[Patch(color=colour, label=name) for name, colour in PARTS.values()],
        loc="lower right",
        bbox_to_anchor=(1, 1),
        bbox_transform=beside(axes, y_in=0.1),
        ncols=2,
        borderaxespad=0,
    )
    return figure


def _sum(row: Row) -> float:
    return sum(number(row, name) for name in PARTS)


def _bar(axes: Axes, place: int, row: Row) -> None:
    """Draw system time on user time, with the number at the end."""
    left = 0.0
    for column, (_, colour) in PARTS.items():
        value = number(row, column)
        axes.barh(place, value, left=left, height=0.62, color=colour, zorder=2)
        left += value
    high = max(left, number(row, "cpu_high"))
    if number(row, "repeats") > 1:
        ends = [number(row, "cpu_low"), number(row, "cpu_high")]
        axes.plot(ends, [place, place], color=BLACK, linewidth=1, marker="|", zorder=4)
    axes.annotate(
        f"{left:.3g} %", (high, place), xytext=(6, 0), textcoords="offset points", va="center"
    )


def lack(frames: Frames) -> str:
    """Return why there is nothing to draw."""
    if reason := lack_of_runs(frames):
        return reason
    if measured(frames["summary"])["cpu_usr"].isna().all():
        return "no CPU time: no Run told any (dd tells none; a Run of fio does)"
    return ""


def describe(frames: Frames) -> str:
    """Return the busiest job in one sentence."""
    rows = cpu_rows(frames)
    busiest = rows.nlargest(1, "cpu").iloc[0]
    value = float(busiest["cpu_usr"]) + float(busiest["cpu_sys"])
    shown = "n/a" if math.isnan(value) else f"{value:.3g} %"
    return f"CPU time of {len(rows)} jobs: the most is {shown} of one CPU ({busiest['label']})."


def numbers(frames: Frames) -> pd.DataFrame:
    """Return the bars and the range of their sum, in per cent of one CPU."""
    return table(cpu_rows(frames), [*PARTS, "cpu_low", "cpu_high"])


CPU = Chart(
    name="cpu",
    title="CPU time of the jobs",
    frame_names=("summary",),
    draw=draw,
    help="User and system time that each job's processes used.",
    lack=lack,
    describe=describe,
    needs="a finished Run of fio",
    numbers=numbers,
)
