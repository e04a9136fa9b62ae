"""Result sets side by side: rows with a colour each enter, grouped bars of four metrics leave."""

from __future__ import annotations

import math

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from volbench.analyse.frames.job_frames import COLOUR, per_job, with_latencies
from volbench.present.figures.arrange import side_by_side
from volbench.present.figures.captions import pooled
from volbench.present.figures.chart import (
    Chart,
    Frames,
    caption,
    lack_of_runs,
    new_figure,
    shape,
    table,
    wrap_name,
)
from volbench.present.figures.colours import colour_map, colour_of, legend_above
from volbench.present.figures.latency import KINDS
from volbench.present.figures.series import LATENCY
from volbench.present.figures.sweep import BANDWIDTH, IOPS, P99, Metric
from volbench.present.formatting import number, records, text
from volbench.present.style import BLACK

MEAN = Metric("mean", "Mean latency", LATENCY.format_axis, LATENCY.format_value)
METRICS = (IOPS, BANDWIDTH, MEAN, P99)
BAR_IN = 0.17
_JOB = ("job", "group", "direction")


def set_rows(frames: Frames) -> tuple[pd.DataFrame, str]:
    """Return a row for each job, direction and set, those of a job beside each other."""
    summary, kind = with_latencies(frames["summary"], ("mean", "p99"))
    rated = summary[summary["direction"] != "sync"]
    rows = per_job(rated, [metric.column for metric in METRICS])
    return side_by_side(rows), KINDS[kind]


def draw(frames: Frames, title: str) -> Figure:
    """Draw a panel for each metric that was told, a group of bars for each job."""
    pooled_rows, kind = set_rows(frames)
    rows = list(records(pooled_rows))
    metrics = [m for m in METRICS if any(not math.isnan(number(row, m.column)) for row in rows)]
    places, names = _layout(pooled_rows)
    figure = new_figure(
        title=title,
        note=caption(
            frames["summary"],
            pooled(frames["summary"]),
            "Bars: medians; whiskers: least to greatest" * _repeated(pooled_rows),
            f"Latency is {kind}",
        ),
        height_in=1.6 + max(BAR_IN * (places[-1] + 2), 0.5 * len(names)),
        width_in=max(9.0, 2.4 + 2.7 * len(metrics)),
    )
    panels = figure.subplots(1, len(metrics), squeeze=False, sharey=True)[0]
    colours = colour_map(rows)
    for axes, metric in zip(panels, metrics, strict=True):
        for place, row in zip(places, rows, strict=True):
            _bar(
                axes,
                place,
                (
                    number(row, metric.column),
                    number(row, f"{metric.column}_low"),
                    number(row, f"{metric.column}_high"),
                ),
                metric,
                colour_of(row, colours),
            )
        axes.set_xlim(0, axes.get_xlim()[1] * 1.25)
        axes.set_title(metric.name)
        metric.format_axis(axes.xaxis)
        axes.tick_params(axis="x", labelrotation=30)
        axes.grid(visible=False, axis="y")
        axes.tick_params(axis="y", length=0)
        axes.set_xlabel("less is better" if metric in (MEAN, P99) else "more is better")
    panels[0].set_ylim(places[-1] + 1, -1)
    panels[0].set_yticks(list(names), list(names.values()))
    legend_above(panels[-1], colours, y_in=0.3, columns=4)
    return figure


def _layout(rows: pd.DataFrame) -> tuple[list[float], dict[float, str]]:
    """Return the place of each bar, and the name of each group at its middle."""
    places: list[float] = []
    names: dict[float, str] = {}
    at = 0.0
    for _, group in rows.groupby(list(_JOB), sort=False, dropna=False):
        own = [at + n for n in range(len(group))]
        head = records(group.head(1))[0]
        names[(own[0] + own[-1]) / 2] = f"{wrap_name(text(head, 'job'))}\n{shape(head)}"
        places += own
        at = own[-1] + 2
    return places, names


def _repeated(rows: pd.DataFrame) -> bool:
    return bool((rows["repeats"] > 1).any())


def _bar(
    axes: Axes, place: float, value: tuple[float, float, float], metric: Metric, colour: str
) -> None:
    """Draw one bar with its range, and its number at the end."""
    middle, low, high = value
    if math.isnan(middle):
        return
    axes.barh(place, middle, height=0.9, color=colour, zorder=2)
    if high > low:
        axes.plot([low, high], [place, place], color=BLACK, linewidth=1, zorder=3)
    axes.annotate(
        metric.format_value(middle),
        (high, place),
        xytext=(3, 0),
        textcoords="offset points",
        va="center",
        fontsize=7,
    )


def lack(frames: Frames) -> str:
    """Return why there is nothing to draw."""
    if reason := lack_of_runs(frames):
        return reason
    summary = frames["summary"]
    if COLOUR not in summary or summary[COLOUR].nunique() < 2:
        return "one set of results: name several folders, or a column that tells apart with --by"
    return ""


def describe(frames: Frames) -> str:
    """Return the number of sets and the extremes of IOPS in one sentence."""
    rows, _ = set_rows(frames)
    sets = ", ".join(str(name) for name in dict.fromkeys(rows[COLOUR]))
    best = rows.nlargest(1, "iops").iloc[0] if rows["iops"].notna().any() else None
    told = (
        ""
        if best is None
        else (f": the most is {IOPS.format_value(float(best['iops']))} IOPS ({best['label']})")
    )
    return f"{rows[COLOUR].nunique()} sets side by side, {sets}{told}."


def numbers(frames: Frames) -> pd.DataFrame:
    """Return the bars with their ranges; latencies in seconds."""
    rows, kind = set_rows(frames)
    ends = [f"{m.column}{end}" for m in METRICS for end in ("", "_low", "_high")]
    renamed = {
        f"{name}{end}": f"lat_{name}{end}_s"
        for name in ("mean", "p99")
        for end in ("", "_low", "_high")
    }
    return table(rows, [COLOUR, *ends]).rename(columns=renamed).assign(latency=kind)


SETS = Chart(
    name="sets",
    title="Result sets side by side",
    frame_names=("summary",),
    draw=draw,
    help="IOPS, bandwidth, mean and p99 latency of several sets of results, job by job.",
    lack=lack,
    describe=describe,
    needs="several folders, or --by",
    numbers=numbers,
)
