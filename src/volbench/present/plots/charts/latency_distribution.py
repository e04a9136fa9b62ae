"""Distribution of latency: as nines, percentiles (HDR) and cumulative (ECDF), and histograms.

The percentile plot is that of HdrHistogram (Gil Tene): the axis counts nines, so that the slowest
thousandth has as much room as the slowest tenth.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pandas as pd

from volbench.analyse.frames.aggregate import distribution, in_classes, in_steps
from volbench.analyse.frames.job_frames import COLOUR, KEY, key_of
from volbench.present.formatting import printable
from volbench.present.plots import labels, marks
from volbench.present.plots.description import Axis, Panel, Plot, Series, grid
from volbench.present.plots.kinds import Frames, Kind, Options
from volbench.present.plots.metrics import LATENCY_KINDS, log_limits
from volbench.present.plots.selection import REST, largest, rest_series
from volbench.units import counted_noun, format_count, format_latency

_MAX_PANELS = 2
_P99 = 0.99
_MAX_NINES = 8
_SLOWEST_P99 = "those with the slowest p99"
_FASTER = "I/Os that were faster"
# Upper edges of the last bins of fio 3 and fio 2, as `LAST_BINS_S`
_LAST_ENDS_S = (17.179869184, 16.777216)
_CUT = "Curves end at fio's last bin (above 17 s), which has no upper end"
_FROM_BINS = "From fio's bins, accurate to 0.8 %; repeats are added up"
MISSING_BINS = "no histogram: no run reported its latency bins (fio's json+ does)"


@dataclass(frozen=True)
class _Distributions:
    """Bins of each job and direction, pooled over repeats."""

    # a row per bin: identity, ``bin_high_s``, ``count``, ``share`` (0 to 1, of I/Os that were not
    # slower), ``latency``, ``label`` and ``_line`` (0, 1... per job and direction). Texts are
    # categories: there may be a million rows.
    rows: pd.DataFrame
    most: int  # curves of a panel


def read(frames: Frames, chosen: Options) -> _Distributions | str:
    """Return the bins of each job and direction."""
    rows, kind = distribution(frames["histogram"], frames["summary"])
    if rows.empty:
        return MISSING_BINS
    data = labels.identified(rows, ["bin_high_s", "count", "share"])
    latency = np.zeros(len(rows), dtype=np.int8)
    named = data.assign(
        latency=pd.Categorical.from_codes(latency, pd.Index([LATENCY_KINDS[kind]])),
        label=rows["label"],
        _line=rows["line"],
    )
    if labels.PANEL in frames["summary"]:
        named = labels.separated(named.rename(columns={"_line": "line"}), frames["summary"])
        named = named.rename(columns={"line": "_line"}).assign(**{labels.PANEL: ""})
    return _Distributions(named, chosen.lines)


@dataclass(frozen=True)
class _Shown:
    """Curves with a name of their own, and the range over the others."""

    rows: pd.DataFrame  # bins of the named curves, with ``_name``
    # a row for each share of I/Os, ``_slower``, with ``_share`` (faster), ``_inverse`` and the
    # range ``_low`` to ``_high`` of the latency there over the other curves
    rest: pd.DataFrame
    others: int  # number of the other curves
    note: str  # sentence about them; empty for none

    @property
    def notes(self) -> tuple[str, str]:
        """What is left out: of the curves, and of each of them."""
        return self.note, _CUT if _is_last(self.rows["bin_high_s"]).any() else ""

    @property
    def series(self) -> tuple[Series, ...]:
        """Looks of the curves, and of the range over the others."""
        names = list(self.rows.drop_duplicates("_line")["_name"])
        rest = (replace(series, colour="pale") for series in rest_series(self.others, "jobs"))
        return (*labels.line_series(names, columns=28), *rest)

    def band(self, at: str, *, is_upright: bool) -> tuple[marks.AnyMark, ...]:
        """Return the range over the others along a column of `rest`; nothing without others."""
        area = marks.Areas(self.rest, x=at, series=REST, is_upright=is_upright)
        return (area,) if self.others else ()


def _slowest(rows: pd.DataFrame, *, most: int) -> _Shown:
    """Return the curves with the slowest p99, and the range over the others."""
    columns = [name for name in ("_line", "job", "group", "direction") if name in rows]
    ends = rows[rows["share"] >= _P99 - 1e-12].drop_duplicates("_line")[[*columns, "bin_high_s"]]
    kept, note = largest(ends, "bin_high_s", most=most, what="jobs", criterion=_SLOWEST_P99)
    is_shown = rows["_line"].isin(kept["_line"])
    slowest = rows[is_shown]
    slowest = slowest.astype(dict.fromkeys(slowest.select_dtypes("category").columns, str))
    named = slowest.assign(_name=labels.line_names(slowest, "_line"))
    return _Shown(named, _range(rows[~is_shown]), len(ends) - len(kept), note)


def _range(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the range of the latency over all curves, from the share 0 to eight nines."""
    slower = np.concatenate([np.linspace(1.0, 0.01, 100), np.logspace(-2, -_MAX_NINES, 121)[1:]])
    low, high = np.full(len(slower), np.nan), np.full(len(slower), np.nan)
    starts = np.flatnonzero(np.diff(rows["_line"].to_numpy(), prepend=-1))[1:]
    columns = (rows[name].to_numpy(dtype=float) for name in ("share", "bin_high_s", "count"))
    for share, upper_s, count in zip(
        *(np.split(column, starts) for column in columns), strict=True
    ):
        ends_s = np.where(_is_last(upper_s), np.nan, upper_s)
        at = np.searchsorted(share, 1 - slower - 1e-12).clip(max=max(len(share) - 1, 0))
        known = np.where(slower >= 1 / max(count.sum(), 1), ends_s[at] if len(share) else 0, np.nan)
        low, high = np.fmin(low, known), np.fmax(high, known)
    places = {"_slower": slower, "_share": 1 - slower, "_inverse": 1 / slower}
    return pd.DataFrame({**places, "_low": low, "_high": high}).dropna()


def _is_last(ends_s: pd.Series[float] | npt.NDArray[np.float64]) -> npt.NDArray[np.bool_]:
    """Return which upper edges are those of fio's last bin, which has none."""
    return np.isin(np.asarray(ends_s, dtype=float).round(9), _LAST_ENDS_S)


def _curves(rows: pd.DataFrame) -> list[pd.DataFrame]:
    """Return each curve from its beginning, the first bin's end, up to fio's last bin."""
    curves = []
    for _, line in rows.groupby("_line", sort=True):
        first = line.head(1).assign(count=0, share=0.0)
        ended = line[~_is_last(line["bin_high_s"])]
        curve = pd.concat([first, ended], ignore_index=True)
        slower = 1 - curve["share"].to_numpy(dtype=float)
        if len(ended) == len(line):  # no I/O is slower: the last bin ends at a single one
            slower[-1] = 1 / _total(line)
        curves.append(curve.assign(_slower=slower))
    return curves


def _total(line: pd.DataFrame) -> float:
    return float(line["count"].sum())


def _latency_axis(drawn: _Shown, *, room: tuple[float, float]) -> Axis:
    edges = drawn.rows["bin_high_s"]
    ends = [float(edges.min()), float(edges.max()), *drawn.rest["_low"], *drawn.rest["_high"]]
    label = f"{drawn.rows['latency'].iloc[0].capitalize()} (logarithmic)"
    return Axis(label, "latency", "log", log_limits(ends, room=room))


def build_distribution(bins: _Distributions) -> Plot:
    """Draw which share of the I/Os was faster than each latency, nines on the upright axis."""
    is_part = labels.PANEL in bins.rows  # It has a panel beside others
    most = bins.most if is_part else _MAX_PANELS * max(1, bins.most - 1)
    drawn = _slowest(bins.rows, most=most)
    curves = _curves(drawn.rows)
    x = _latency_axis(drawn, room=(0.9, 1.1))
    band = drawn.band("_slower", is_upright=True)
    if is_part:
        return _plot(bins.rows, drawn, replace(_nines_panel(curves, x, band), legend=""))
    per_panel = math.ceil(len(curves) / _MAX_PANELS) if len(curves) >= bins.most else bins.most
    starts = range(0, len(curves), per_panel)
    panels = [_nines_panel(curves[first : first + per_panel], x, band) for first in starts]
    return replace(
        grid(panels, height_in=2.9),
        series=drawn.series,
        legend="",
        caption=(_FROM_BINS, *drawn.notes),
        rows=bins.rows,
        shared_x=True,
    )


def _nines_panel(curves: list[pd.DataFrame], x: Axis, band: tuple[marks.AnyMark, ...]) -> Panel:
    data = pd.concat(curves, ignore_index=True)
    lines = marks.Lines(data, by="_name", x="bin_high_s", y="_slower", step="post")
    y = _nines_axis(max(_total(curve) for curve in curves))
    return Panel(x=x, y=y, marks=(*band, lines), legend="right")


def _nines_axis(total: float) -> Axis:
    """Return an axis of the share that was slower: 0 %, 50 %, 90 %, 99 % were faster."""
    nines = [1.0, 0.5]
    while nines[-1] > 1 / total and len(nines) < 9:
        nines.append(0.1 ** (len(nines) - 1))
    ends = (min(nines[-1], 1 / total) * 0.5, 1.0)
    return Axis(_FASTER, "nines", "log", ends, ticks=tuple(nines), inverted=True)


def build_ecdf(bins: _Distributions) -> Plot:
    """Draw the share that was faster, from 0 to 1."""
    drawn = _slowest(bins.rows, most=bins.most)
    data = pd.concat(_curves(drawn.rows), ignore_index=True)
    lines = marks.Lines(data, by="_name", x="bin_high_s", y="share", step="post")
    y = Axis(_FASTER, "share", limits=(0.0, 1.02))
    parts = (*drawn.band("_share", is_upright=True), lines)
    return _plot(bins.rows, drawn, Panel(x=_latency_axis(drawn, room=(0.9, 1.1)), y=y, marks=parts))


def build_hdr(bins: _Distributions) -> Plot:
    """Draw latency over 1 / (share that was slower)."""
    drawn = _slowest(bins.rows, most=bins.most)
    curves = _curves(drawn.rows)
    most = max(map(_total, curves))
    decades = range(1, min(_MAX_NINES, math.ceil(math.log10(max(most, 10.0)))) + 1)
    ticks = (1.0, 2.0, *(10.0**n for n in decades))
    data = pd.concat([_percentile_steps(curve) for curve in curves], ignore_index=True)
    x = Axis(
        "Percentile (each step is one nine more)",
        "percentile",
        "log",
        (1.0, max(ticks[-1], most) * 1.05),
        ticks=ticks,
    )
    lines = marks.Lines(data, by="_name", x="_inverse", y="bin_high_s")
    parts = (*drawn.band("_inverse", is_upright=False), lines)
    panel = Panel(x=x, y=_latency_axis(drawn, room=(0.8, 1.25)), marks=parts)
    return _plot(bins.rows, drawn, panel, "The last step of a line is its slowest I/O")


def _percentile_steps(curve: pd.DataFrame) -> pd.DataFrame:
    """Return both ends of the stretch of percentiles that each bin covers."""
    slower = curve["_slower"].to_numpy(dtype=float)
    steps = curve.iloc[1:].loc[lambda bins: bins.index.repeat(2)].reset_index(drop=True)
    return steps.assign(_inverse=1 / np.column_stack([slower[:-1], slower[1:]]).ravel())


def _plot(rows: pd.DataFrame, drawn: _Shown, panel: Panel, *sentences: str) -> Plot:
    """Return a plot of one panel with a line for each job and direction that is shown."""
    return Plot(
        panels=(panel,),
        heights=(3.8,),
        width_in=10,
        series=drawn.series,
        legend="right",
        caption=(_FROM_BINS, *sentences, *drawn.notes),
        rows=rows,
    )


def describe(bins: _Distributions) -> str:
    """Return the number of I/Os and the range of the medians in one sentence."""
    rows = bins.rows
    halves = rows[rows["share"] >= 0.5].drop_duplicates("_line").sort_values("bin_high_s")
    fast, slow = (
        f"{format_latency(float(half['bin_high_s']))}" for half in (halves.iloc[0], halves.iloc[-1])
    )
    sentence = (
        f"Distribution of {rows['latency'].iloc[0]} over {format_count(_total(rows))} I/Os: half "
        f"were faster than {fast}"
    )
    names = halves["label"].astype(str) + ", " + halves["direction"].astype(str)
    first, last = names.iloc[0], names.iloc[-1]
    if len(halves) == 1:
        return f"{sentence} ({first})."
    return f"{sentence} in the fastest job ({first}) and {slow} in the slowest ({last})."


DISTRIBUTION = Kind(
    name="distribution",
    title="Latency distribution",
    frame_names=("summary", "histogram"),
    help="Share of the I/Os that were faster than each latency, from fio's bins.",
    needs="latency bins (fio's json+)",
    read=read,
    build=build_distribution,
    describe=describe,
    is_pooled=True,
    splits=("volume", "host", "rw"),
    in_report=True,
)
HDR = replace(
    DISTRIBUTION,
    name="hdr",
    title="Latency by percentile",
    help="Latency at each percentile, on an axis of nines: 50 %, 90 %, 99 %, 99.9 % and on.",
    build=build_hdr,
    in_report=False,
)
ECDF = replace(
    HDR,
    name="ecdf",
    title="Cumulative latency",
    help="Share of the I/Os that were faster than each latency, on a linear axis.",
    build=build_ecdf,
)


# Steps for each tenfold latency: fio's own bins, some 150, are finer than an eye can use
_STEPS_PER_DECADE = 20
_MAX_HISTOGRAMS = 14
_PANEL_IN = 1.4
_CLASSES = "No run has latency bins (json+): shown are fio's coarse classes, of unequal width"


def read_histogram(frames: Frames, _: Options) -> pd.DataFrame | str:
    """Return the steps of each job and direction; fio's own classes where no run has bins.

    Returns:
        A row for each step that holds an I/O: identity of the job, ``order`` (number of the job),
        ``step``, ``low_s`` and ``high_s`` (its ends), ``count``, ``share`` (of the I/Os of the job,
        0 to 1) and ``latency``, the name of the kind.
    """
    rows, kind = in_steps(frames["histogram"], frames["summary"], per_decade=_STEPS_PER_DECADE)
    if len(rows):
        low_s, high_s = (10.0 ** ((rows["step"] + end) / _STEPS_PER_DECADE) for end in (0, 1))
        return _shares(rows.assign(low_s=low_s, high_s=high_s), kind)
    classes = in_classes(frames["shares"], frames["summary"], "clat")
    if classes.empty:
        return MISSING_BINS
    low_s = classes["low"].where(classes["low"] > 0, classes["high"] / 2)
    ends = {"low_s": low_s, "high_s": classes["high"].fillna(2 * low_s), "step": low_s.rank()}
    return _shares(classes.assign(**ends), "clat").assign(is_class=True)


def _shares(rows: pd.DataFrame, kind: str) -> pd.DataFrame:
    """Add up the I/Os in each step of a job's repeats."""
    key = [*key_of(rows, KEY), "label", *([COLOUR] if COLOUR in rows else [])]
    order = rows.groupby(key, sort=False, dropna=False).ngroup()
    by = ["order", *key, "step", "low_s", "high_s"]
    steps = rows.assign(order=order).groupby(by, dropna=False)["count"].sum().reset_index()
    whole = steps.groupby("order")["count"].transform("sum")
    return steps.assign(share=steps["count"] / whole, latency=LATENCY_KINDS[kind])


def build_histogram(rows: pd.DataFrame) -> Plot:
    """Draw a panel of bars for each job and direction, all on one scale of latency."""
    limits = log_limits([float(rows["low_s"].min()), float(rows["high_s"].max())], room=(0.9, 1.1))
    label = f"{rows['latency'].iloc[0].capitalize()} (logarithmic)"
    x = Axis(label, "latency", "log", limits)
    running = rows.groupby("order")["share"].cumsum()
    tails = rows[running >= _P99 - 1e-12].drop_duplicates("order")
    kept, fewer = largest(
        tails, "high_s", most=_MAX_HISTOGRAMS, what="jobs", criterion=_SLOWEST_P99
    )
    jobs = rows[rows["order"].isin(kept["order"])].groupby("order", sort=True)
    return replace(
        grid([_bars(job, x) for _, job in jobs], height_in=_PANEL_IN, abreast=2),
        width_in=11,
        legend="",
        caption=(
            "Share of I/Os in each step, repeats added up",
            "Dashed: ends of the steps of median and p99",
            _CLASSES if "is_class" in rows else "",
            fewer,
        ),
        shared_x=True,
    )


def _bars(job: pd.DataFrame, x: Axis) -> Panel:
    """Draw the bars of one job, with its median and p99 to the step."""
    head = job.iloc[0]
    data = labels.identified(job, ["low_s", "high_s", "count", "share", "latency"])
    running = job["share"].cumsum()
    reached = [float(job.loc[running >= share - 1e-12, "high_s"].iloc[0]) for share in (0.5, 0.99)]
    lines = [
        marks.ReferenceLine(value, "x", series="muted", dash="dashed", width=0.9)
        for value in reached
    ]
    bars = marks.Bars(
        data,
        at="low_s",
        at_end="high_s",
        value="share",
        is_horizontal=False,
        series=head["direction"] if head["direction"] in labels.DIRECTIONS else "muted",
    )
    y = Axis("I/Os", "share", limits=(0.0, float(job["share"].max()) * 1.1))
    name = printable(f"{head['label']}, {head['direction']}")
    return Panel(x=x, y=y, marks=(bars, *lines), title=labels.wrap_name(name, columns=48))


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
    title="Latency histogram",
    frame_names=("summary", "histogram", "shares"),
    help="Latency histogram of each job, on a logarithmic scale.",
    needs="a finished run of fio; with latency bins (json+) it is finer",
    read=read_histogram,
    build=build_histogram,
    describe=describe_histogram,
    is_pooled=True,
)
