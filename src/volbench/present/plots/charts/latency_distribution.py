"""Latency distributions: cumulative curves (ECDF) and histograms."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pandas as pd

from volbench.analyse.frames.aggregate import distribution, in_classes
from volbench.analyse.frames.design import design_of
from volbench.analyse.frames.job_frames import (
    BY,
    COLOUR,
    COLOUR_PLACE,
    KEY,
    key_of,
    measured,
    plain_rows,
)
from volbench.analyse.frames.workload_words import PLURALS
from volbench.present.formatting import printable
from volbench.present.plots import labels, marks
from volbench.present.plots.description import Axis, Panel, Plot, Series, grid
from volbench.present.plots.grammar import MAX_COLOURS, MAX_PANELS
from volbench.present.plots.kinds import Frames, Kind, Options, Room
from volbench.present.plots.metrics import LATENCY_KINDS, log_limits
from volbench.units import counted_noun, format_count, format_latency

# Upper edges of the last bins of fio 3 and fio 2, as `LAST_BINS_S`
_LAST_ENDS_S = (17.179869184, 16.777216)
_CUT = "Curves end at fio's last bin (above 17 s), which has no upper end"
_FROM_BINS = "From fio's bins, accurate to 0.8 %; repeats are added up"
MISSING_BINS = "no histogram: no run reported its latency bins (fio's json+ does)"
# Steps for each tenfold latency: fio's own bins, some 150, are finer than an eye can use
_STEPS_PER_DECADE = 20
_PANEL_IN = 1.4
_WHOLE_IN, _CURVES_IN = 3.8, 1.6  # Height of a single panel of curves, and of several
_ABREAST = 3
_STEP_ENDS = (
    Series("median", "median", "ink", dash="dashed"),
    Series("p99", "p99", "ink", dash="dotted"),
)
_CLASSES = "No run has latency bins (json+): shown are fio's coarse classes, of unequal width"


def read(frames: Frames, options: Options) -> pd.DataFrame | str:
    """Return the bins of each job and direction, pooled over repeats.

    Returns:
        A row for each bin: identity, ``bin_high_s``, ``count``, ``share`` (0 to 1, of I/Os that
        were not slower), ``latency``, ``label`` and ``_line`` (0, 1... per job and direction).
    """
    rows, kind = distribution(frames["histogram"], frames["summary"])
    if rows.empty:
        return MISSING_BINS
    data = labels.identified(rows, ["bin_high_s", "count", "share", COLOUR, COLOUR_PLACE])
    data = data.assign(latency=LATENCY_KINDS[kind], label=rows["label"], _line=rows["line"])
    if COLOUR in data or options.every is None:
        return data
    return _as_among_all(data, measured(frames["summary"]), measured(options.every()))


def _as_among_all(data: pd.DataFrame, shown: pd.DataFrame, every: pd.DataFrame) -> pd.DataFrame:
    """Give each line the colour that it has among all results, if their colours are few."""
    cells = design_of(plain_rows(every)).cell_of_rows
    order = [*dict.fromkeys(cells)]
    if len(order) > MAX_COLOURS:
        return data
    cell_of = dict(zip(zip(every["run"], every["direction"], strict=True), cells, strict=True))
    ids = zip(shown["job"], shown["direction"], shown["run"], strict=True)
    places = {(job, way): order.index(cell_of[run, way]) for job, way, run in ids}
    data[COLOUR] = data["_line"].astype(str)
    data[COLOUR_PLACE] = [places[line] for line in zip(data["job"], data["direction"], strict=True)]
    return data


def _is_last(ends_s: pd.Series[float]) -> npt.NDArray[np.bool_]:
    """Return which upper edges are those of fio's last bin, which has none."""
    return np.isin(np.asarray(ends_s, dtype=float).round(9), _LAST_ENDS_S)


def _curves(rows: pd.DataFrame) -> pd.DataFrame:
    """Return each curve from its beginning, the first bin's end, up to fio's last bin."""
    curves = []
    for _, line in rows.groupby("_line", sort=True):
        first = line.head(1).assign(count=0, share=0.0)
        curves += [first, line[~_is_last(line["bin_high_s"])]]
    return pd.concat(curves, ignore_index=True)


def build_ecdf(bins: pd.DataFrame) -> Plot:
    """Draw a line for each job and direction; more lines than an eye can tell apart in panels."""
    one = bins.astype({"_line": int})
    is_wide = one["_line"].nunique() > MAX_COLOURS
    names = labels.line_names(one, "_line").astype(str)
    titles = one["job"].astype(str) if is_wide else pd.Series("", index=one.index)
    if is_wide:
        ways = one["direction"].astype(str).replace(PLURALS)
        names = one[BY].astype(str) + " " + ways if BY in one else ways
    edges = bins["bin_high_s"]
    label = f"{bins['latency'].iloc[0].capitalize()} (logarithmic)"
    ends = log_limits([float(edges.min()), float(edges.max())], room=(0.9, 1.1))
    y = Axis("I/Os that were faster", "share", limits=(0.0, 1.02))
    panels = [
        Panel(
            x=Axis(label, "latency", "log", ends),
            y=y if place % _ABREAST == 0 else replace(y, label=""),
            marks=(
                marks.Lines(
                    _curves(rows.assign(_name=names[rows.index])),
                    by="_name",
                    x="bin_high_s",
                    y="share",
                    step="post",
                ),
            ),
            title=labels.wrap_name(printable(str(title)), columns=48),
        )
        for place, (title, rows) in enumerate(one.groupby(titles, sort=False))
    ]
    abreast = min(_ABREAST, len(panels))
    return replace(
        grid(panels, height_in=_CURVES_IN if is_wide else _WHOLE_IN, abreast=abreast),
        width_in=10,
        series=labels.lines_of(one, names),
        caption=(_FROM_BINS, _CUT if _is_last(edges).any() else ""),
        rows=bins.drop(columns=[COLOUR, COLOUR_PLACE], errors="ignore"),
        shared_x=True,
    )


def describe(rows: pd.DataFrame) -> str:
    """Return the number of I/Os and the range of the medians in one sentence."""
    halves = rows[rows["share"] >= 0.5].drop_duplicates("_line").sort_values("bin_high_s")
    fast, slow = (format_latency(float(halves["bin_high_s"].iloc[at])) for at in (0, -1))
    total = format_count(float(rows["count"].sum()))
    sentence = (
        f"Distribution of {rows['latency'].iloc[0]} over {total} I/Os: half were faster than {fast}"
    )
    names = labels.directed(halves)
    first, last = names.iloc[0], names.iloc[-1]
    if len(halves) == 1:
        return f"{sentence} ({first})."
    return f"{sentence} in the fastest job ({first}) and {slow} in the slowest ({last})."


ECDF = Kind(
    name="ecdf",
    across=(),
    title="Latency distribution",
    frame_names=("summary", "histogram"),
    help="Share of the I/Os that were faster than each latency, from fio's bins.",
    needs="latency bins (fio's json+)",
    read=read,
    build=build_ecdf,
    describe=describe,
    room=Room(MAX_PANELS, "jobs", "histogram"),
)


def read_histogram(frames: Frames, _: Options) -> pd.DataFrame | str:
    """Return the steps of each job and direction; fio's own classes where no run has bins.

    Returns:
        A row for each step that holds an I/O: identity of the job, ``order`` (number of the job),
        ``step``, ``low_s`` and ``high_s`` (its ends), ``count``, ``share`` (of the I/Os of the job,
        0 to 1) and ``latency``, the name of the kind.
    """
    bins, kind = distribution(frames["histogram"], frames["summary"])
    if len(bins):
        end = np.log10(bins["bin_high_s"].clip(lower=1e-9).to_numpy(dtype=float))
        step = np.ceil(end * _STEPS_PER_DECADE - 1e-6) - 1  # The step that holds the end of a bin
        low_s, high_s = (10.0 ** ((step + end) / _STEPS_PER_DECADE) for end in (0, 1))
        bins = bins.assign(step=step, low_s=low_s, high_s=high_s)
        for end_of, share in zip(_STEP_ENDS, (0.5, 0.99), strict=True):
            reached = bins[bins["share"] >= share].groupby("line")["bin_high_s"].min()
            bins[end_of.key] = bins["line"].map(reached)
        return _shares(bins, kind)
    classes = in_classes(frames["shares"], frames["summary"], "clat")
    if classes.empty:
        return MISSING_BINS
    low_s = classes["low"].where(classes["low"] > 0, classes["high"] / 2)
    ends = {"low_s": low_s, "high_s": classes["high"].fillna(2 * low_s), "step": low_s.rank()}
    return _shares(classes.assign(**ends), "clat").assign(is_class=True)


def _shares(rows: pd.DataFrame, kind: str) -> pd.DataFrame:
    key = [*key_of(rows, KEY), "label"]
    order = rows.groupby(key, sort=False, dropna=False, observed=True).ngroup()
    by = ["order", *key, "step", "low_s", "high_s"]
    further = (*(end.key for end in _STEP_ENDS), COLOUR, COLOUR_PLACE)
    by += [name for name in further if name in rows]
    placed = rows.assign(order=order).groupby(by, dropna=False, observed=True)
    steps = placed["count"].sum().reset_index()
    whole = steps.groupby("order")["count"].transform("sum")
    return steps.assign(share=steps["count"] / whole, latency=LATENCY_KINDS[kind])


def build_histogram(rows: pd.DataFrame) -> Plot:
    """Draw a panel of bars for each job and direction, all on one scale of latency."""
    limits = log_limits([float(rows["low_s"].min()), float(rows["high_s"].max())], room=(0.9, 1.1))
    label = f"{rows['latency'].iloc[0].capitalize()} (logarithmic)"
    x = Axis(label, "latency", "log", limits)
    rows = rows.assign(_title=labels.directed(rows))
    panels = [_bars(job, x) for _, job in rows.groupby("order", sort=True)]
    return replace(
        grid(panels, height_in=_PANEL_IN, abreast=2),
        width_in=11,
        series=() if "is_class" in rows else _STEP_ENDS,
        caption=(
            "Share of I/Os in each step, repeats added up",
            _CLASSES if "is_class" in rows else "",
        ),
        shared_x=True,
    )


def _bars(job: pd.DataFrame, x: Axis) -> Panel:
    head = job.iloc[0]
    data = labels.identified(job, ["low_s", "high_s", "count", "share", "latency"])
    lines = [
        marks.ReferenceLine(float(head[end.key]), "x", series=end.key, dash=end.dash, width=1.1)
        for end in _STEP_ENDS
        if end.key in job
    ]
    colour = head["direction"] if head["direction"] in labels.DIRECTIONS else "muted"
    if COLOUR_PLACE in job:
        colour = labels.palette(int(head[COLOUR_PLACE]))
    bars = marks.Bars(
        data, at="low_s", at_end="high_s", value="share", is_horizontal=False, series=colour
    )
    y = Axis("I/Os", "share", limits=(0.0, float(job["share"].max()) * 1.1))
    title = labels.wrap_name(printable(str(head["_title"])), columns=48)
    return Panel(x=x, y=y, marks=(bars, *lines), title=title)


def describe_histogram(rows: pd.DataFrame) -> str:
    """Return the most common step of the fastest job in one sentence."""
    tops = rows.loc[rows.groupby("order")["share"].idxmax()].sort_values("low_s")
    first = tops.iloc[0]
    return (
        f"Histograms of {first['latency']} for {counted_noun(len(tops), 'job')}: the fastest job "
        f"({first['label']}) has the most I/Os between {format_latency(float(first['low_s']))} and "
        f"{format_latency(float(first['high_s']))}."
    )


HISTOGRAM = Kind(
    name="histogram",
    across=(),
    title="Latency histogram",
    frame_names=("summary", "histogram", "shares"),
    help="Latency histogram of each job, on a logarithmic scale.",
    needs="a finished run of fio; with latency bins (json+) it is finer",
    read=read_histogram,
    build=build_histogram,
    describe=describe_histogram,
    room=Room(14, "results", "histogram"),
)
