"""Rounds until steady: Runs by round enter, convergence and measurement window plots leave.

They are the plots that SNIA's Performance Test Specification asks for: every cell over the rounds,
and the tracking variables within the window with their mean, a band of 10 % around it and the line
that fits them best. The repeat of a Run is its round.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator
from matplotlib.transforms import Bbox

from volbench.analyse.frames.job_frames import measured
from volbench.analyse.time.round_convergence import (
    Determination,
    Variable,
    determination,
    window_matrix,
)
from volbench.analyse.time.snia import MOST_RANGE, MOST_SLOPE, ROUNDS
from volbench.model.profile.profile_settings import Metric, Rounds, Track
from volbench.present.figures.chart import Chart, Frames, caption, lack_of_runs, new_figure
from volbench.present.figures.colours import line_legend
from volbench.present.figures.series import LATENCY
from volbench.present.figures.sweep import BANDWIDTH, IOPS
from volbench.present.figures.sweep import Metric as Panel
from volbench.present.formatting import printable
from volbench.present.style import GREY, MARKERS, PALETTE, count_axis
from volbench.units import format_size

PANELS: Mapping[Metric, Panel] = {
    Metric.IOPS: IOPS,
    Metric.BW: BANDWIDTH,
    Metric.LAT_MEAN: LATENCY,
}
FEWEST = 2
MOST_VARIABLES = 6
BAND = 0.10
SHADE = "#eeeeee"


@dataclass(frozen=True)
class Told:
    """What the rounds of one profile tell.

    Attributes:
        found: the determination of the tracking variables.
        cells: every job over the rounds, as variables of their own.
        names: job to its mix and block, such as ``65/35 4k``.
        matrix: as `window_matrix` gives it, over the window, else over all rounds.
    """

    found: Determination
    cells: tuple[Variable, ...]
    names: Mapping[str, str]
    matrix: pd.DataFrame


def read_rounds(frames: Frames, tracked: Mapping[str, Rounds]) -> Told:
    """Judge the rounds; without tracking variables every job's IOPS is one."""
    rows = measured(frames["summary"])
    rows = rows[rows["direction"] != "sync"]
    profile = str(rows["profile"].iloc[0])
    jobs = [str(job) for job in rows["job"].unique()]
    count = int(rows["repeat"].max())
    every = Rounds(
        max_rounds=count, track=tuple(Track(job=job, metric=Metric.IOPS) for job in jobs)
    )
    cells = determination(rows, every, profile=profile)
    found = determination(rows, tracked.get(profile, every), profile=profile)
    whole = found if found.window else replace(found, window=(1, count))
    matrix = window_matrix(rows, whole, profile=profile)
    names = {str(row["job"]): _name(row) for _, row in matrix.iterrows()}
    return Told(found, cells.variables, names, matrix)


def _name(row: pd.Series) -> str:
    """Return mix and block of a job, or its name where it has several of them."""
    if not row["mix"] or pd.isna(row["block_bytes"]):
        return str(row["job"])
    return f"{row['mix']} {format_size(float(row['block_bytes']))}"


def draw_convergence(frames: Frames, title: str, *, tracked: Mapping[str, Rounds]) -> Figure:
    """Draw a panel per mix of reads and writes, a line per block size over the rounds."""
    told = read_rounds(frames, tracked)
    sized = told.matrix.dropna(subset=["block_bytes"])
    blocks = {
        str(job): int(block) for job, block in zip(sized["job"], sized["block_bytes"], strict=True)
    }
    mixes: dict[str, list[Variable]] = {}
    mix_of = dict(zip(told.matrix["job"], told.matrix["mix"], strict=True))
    for cell in told.cells:
        mixes.setdefault(str(mix_of.get(cell.track.job, "")), []).append(cell)
    sizes = sorted(set(blocks.values()))
    columns = min(2, len(mixes))
    rows = -(-len(mixes) // columns)
    figure = new_figure(
        title=title,
        note=caption(frames["summary"], *_words(told, colour="Grey"), "Mixes are reads/writes"),
        height_in=1.4 + 2.5 * rows,
        width_in=11,
    )
    panels = figure.subplots(rows, columns, squeeze=False, sharex=True).ravel()
    for axes, (mix, cells) in zip(panels, mixes.items(), strict=False):
        for place, cell in enumerate(cells):
            block = blocks.get(cell.track.job)
            turn = place if block is None else sizes.index(block)
            axes.plot(
                range(1, len(cell.by_round) + 1),
                cell.by_round,
                color=PALETTE[turn % len(PALETTE)],
                marker=MARKERS[turn % len(MARKERS)],
                markersize=4,
                label=told.names.get(cell.track.job, cell.track.job),
            )
        if told.found.window:
            axes.axvspan(
                told.found.window[0] - 0.3, told.found.window[1] + 0.3, color=SHADE, zorder=0
            )
        axes.set_title(printable(f"Mix {mix}" if mix else "Other jobs"))
        axes.set_ylim(0, axes.get_ylim()[1] * 1.06)
        axes.set_ylabel("IOPS")
        count_axis(axes.yaxis)
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes.tick_params(labelbottom=True)
        axes.set_xlabel("Round")
    for axes in panels[len(mixes) :]:
        axes.set_visible(False)
    handles = [
        Line2D(
            [],
            [],
            color=PALETTE[n % len(PALETTE)],
            marker=MARKERS[n % len(MARKERS)],
            markersize=4,
            label=format_size(size),
        )
        for n, size in enumerate(sizes)
    ]
    line_legend(panels[columns - 1], handles)
    return figure


def _outcome(told: Told) -> str:
    words = told.found.words
    return words[:1].upper() + words[1:]


def _words(told: Told, *, colour: str) -> tuple[str, ...]:
    shade = f"{colour}: the window that was judged" if told.found.window else ""
    return _outcome(told), shade


def draw_window(frames: Frames, title: str, *, tracked: Mapping[str, Rounds]) -> Figure:
    """Draw each tracking variable with mean, band and fitted line, and the table beneath."""
    told = read_rounds(frames, tracked)
    shown = told.found.variables[:MOST_VARIABLES]
    more = len(told.found.variables) - len(shown)
    columns = min(2, len(shown))
    rows = -(-len(shown) // columns)
    figure = new_figure(
        title=title,
        note=caption(
            frames["summary"],
            *_words(told, colour="Blue"),
            f"Band: {100 * BAND:g} % around the window's mean. Line: least squares",
            f"{more} further variables are not shown: choose with --where" * (more > 0),
        ),
        height_in=1.6 + 2.5 * rows + 0.24 * (len(shown) + 2),
        width_in=11,
    )
    grid = figure.add_gridspec(
        rows + 1, columns, height_ratios=[*([2.5] * rows), 0.24 * (len(shown) + 2)]
    )
    for place, variable in enumerate(shown):
        axes = figure.add_subplot(grid[place // columns, place % columns])
        _window(axes, variable, told)
    beneath = figure.add_subplot(grid[rows, :])
    _determination_table(beneath, shown, told)
    return figure


def _window(axes: Axes, variable: Variable, told: Told) -> None:
    """Draw one variable over all rounds; the window is marked."""
    panel = PANELS[variable.track.metric]
    values = variable.by_round
    axes.plot(
        range(1, len(values) + 1),
        values,
        color=GREY,
        marker="o",
        markersize=4,
        linewidth=0.9,
        label="rounds",
    )
    if told.found.window:
        first, last = told.found.window
        mean = variable.judged.mean
        inside = range(first, last + 1)
        axes.fill_between(
            inside, mean * (1 - BAND), mean * (1 + BAND), color=PALETTE[5], alpha=0.3, linewidth=0
        )
        axes.plot(inside, [mean] * ROUNDS, color=PALETTE[0], linestyle="--", label="mean")
        middle = (first + last) / 2
        fit = [mean + variable.slope * (round_ - middle) for round_ in inside]
        axes.plot(inside, fit, color=PALETTE[1], label="linear fit")
        axes.plot(
            inside,
            values[first - 1 : last],
            color=PALETTE[0],
            marker="o",
            markersize=6,
            linestyle="none",
            label="window",
        )
        axes.legend(loc="best", ncols=2, fontsize=7.5)
    axes.set_ylim(0, max([v for v in values if not math.isnan(v)], default=1.0) * 1.2)
    panel.format_axis(axes.yaxis)
    axes.set_ylabel(panel.name)
    axes.set_xlabel("Round")
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    job = variable.track.job
    name = told.names.get(job, job)
    axes.set_title(printable(job if name == job else f"{job} ({name})"))


def _determination_table(axes: Axes, shown: Sequence[Variable], told: Told) -> None:
    """Write the determination: what each variable measured, and whether it passes."""
    axes.set_axis_off()
    cells = []
    for variable in shown:
        judged = variable.judged
        form = PANELS[variable.track.metric].format_value
        cells.append(
            [
                printable(variable.track.job),
                PANELS[variable.track.metric].name,
                form(judged.mean),
                _percent(judged.range_ratio),
                _percent(judged.slope_ratio),
                "n/a" if math.isnan(judged.range_ratio) else ("yes" if judged.steady else "no"),
            ]
        )
    heads = [
        "tracking variable",
        "metric",
        "mean of the window",
        f"range (at most {100 * MOST_RANGE:g} %)",
        f"slope (at most {100 * MOST_SLOPE:g} %)",
        "passes",
    ]
    drawn = axes.table(cellText=cells, colLabels=heads, cellLoc="center", bbox=Bbox.unit())
    drawn.auto_set_font_size(False)
    drawn.set_fontsize(8)
    for (row, _), cell in drawn.get_celld().items():
        cell.set_linewidth(0)
        if row == 0:
            cell.get_text().set_color(GREY)
    axes.set_title(printable(_outcome(told)), fontsize=8.5)


def _percent(ratio: float) -> str:
    return "n/a" if math.isnan(ratio) else f"{100 * ratio:.1f} %"


def lack(frames: Frames) -> str:
    """Return why there is nothing to draw."""
    if reason := lack_of_runs(frames):
        return reason
    rows = measured(frames["summary"])
    rows = rows[rows["direction"] != "sync"]
    for column in ("campaign", "profile"):
        if len(rows[column].unique()) > 1:
            return f"several {column}s: choose one with --where '{column}==...'"
    if rows.empty or rows["iops"].isna().all():
        return "no IOPS: no Run told them (dd tells bandwidth alone)"
    if int(rows["repeat"].max()) < FEWEST:
        return "no rounds: it takes repeats of the profile (repeat, or rounds until steady)"
    return ""


def describe(frames: Frames, *, tracked: Mapping[str, Rounds]) -> str:
    """Return the determination in one sentence."""
    told = read_rounds(frames, tracked)
    first = told.found.variables[0]
    form = PANELS[first.track.metric].format_value
    return (
        f"{told.found.rounds} rounds of {len(told.cells)} jobs: {told.found.words}; "
        f"{first.track.job} has a mean of {form(first.judged.mean)} over the last rounds judged."
    )


def convergence_numbers(frames: Frames, *, tracked: Mapping[str, Rounds]) -> pd.DataFrame:
    """Return IOPS of every job and round."""
    told = read_rounds(frames, tracked)
    rows = [
        {"job": cell.track.job, "cell": told.names.get(cell.track.job, ""), "round": n, "iops": v}
        for cell in told.cells
        for n, v in enumerate(cell.by_round, start=1)
    ]
    return pd.DataFrame(rows)


def window_numbers(frames: Frames, *, tracked: Mapping[str, Rounds]) -> pd.DataFrame:
    """Return every tracking variable and round with the window's mean, band and fitted line."""
    found = read_rounds(frames, tracked).found
    rows = []
    for variable in found.variables[:MOST_VARIABLES]:
        mean = variable.judged.mean
        for number, value in enumerate(variable.by_round, start=1):
            inside = found.window is not None and found.window[0] <= number <= found.window[1]
            middle = sum(found.window) / 2 if found.window else math.nan
            fit = mean + variable.slope * (number - middle) if inside else math.nan
            rows.append(
                {
                    "job": variable.track.job,
                    "metric": variable.track.metric.value,
                    "round": number,
                    "value": value,
                    "in_window": inside,
                    "mean": mean if inside else math.nan,
                    "fit": fit,
                    "range_ratio": variable.judged.range_ratio,
                    "slope_ratio": variable.judged.slope_ratio,
                    "passes": variable.judged.steady,
                }
            )
    return pd.DataFrame(rows)


def rounds_charts(tracked: Mapping[str, Rounds]) -> tuple[Chart, Chart]:
    """Return the convergence and the window plot for the tracking variables of profiles.

    Args:
        tracked: profile to its rounds; where a profile is missing every job's IOPS is tracked.
    """
    needs = "repeats of the profile: its rounds"
    convergence = Chart(
        name="convergence",
        title="Steady-state convergence",
        frame_names=("summary",),
        draw=partial(draw_convergence, tracked=tracked),
        help="IOPS of every job from round to round, a panel per mix, a line per block size.",
        lack=lack,
        describe=partial(describe, tracked=tracked),
        needs=needs,
        numbers=partial(convergence_numbers, tracked=tracked),
    )
    window = Chart(
        name="window",
        title="Steady-state measurement window",
        frame_names=("summary",),
        draw=partial(draw_window, tracked=tracked),
        help="The tracking variables with the window's mean, band and fitted line, and a table of "
        "the determination.",
        lack=lack,
        describe=partial(describe, tracked=tracked),
        needs=needs,
        numbers=partial(window_numbers, tracked=tracked),
    )
    return convergence, window


CONVERGENCE, WINDOW = rounds_charts({})
