"""Results of several sets job by job, as grouped bars of four metrics."""

from __future__ import annotations

import pandas as pd

from volbench.analyse.frames.job_frames import COLOUR, per_job, with_latencies
from volbench.present.formatting import records, text
from volbench.present.plots.captions import pooled
from volbench.present.plots.description import Axis, Bars, Panel, Plot, Texts, Whiskers
from volbench.present.plots.kind import Frames, Kind, Options, missing_runs
from volbench.present.plots.labels import (
    colour_series,
    identified,
    shape,
    side_by_side,
    wrap_name,
)
from volbench.present.plots.metrics import BANDWIDTH, IOPS, LATENCY_KINDS, Metric

_MEAN = Metric("lat_mean_s", "Mean latency", "latency")
_P99 = Metric("lat_p99_s", "p99 latency", "latency")
_METRICS = (IOPS, BANDWIDTH, _MEAN, _P99)
_BAR_IN = 0.17
_JOB = ["job", "group", "direction"]
_ENDS = ("", "_low", "_high")
_RENAMED = {f"{name}{end}": f"lat_{name}{end}_s" for name in ("mean", "p99") for end in _ENDS}


def set_rows(frames: Frames) -> tuple[pd.DataFrame, str]:
    """Return a row for each job, direction and set, those of a job together.

    Returns:
        Rows with ``_row``, the place of their bar; and the name of the latency's kind.
    """
    summary, kind = with_latencies(frames["summary"], ("mean", "p99"))
    rated = summary[summary["direction"] != "sync"]
    rows = side_by_side(per_job(rated, [IOPS.column, BANDWIDTH.column, "mean", "p99"]))
    job = rows.groupby(_JOB, sort=False, dropna=False).ngroup()
    placed = rows.assign(_row=rows.index + job, latency=LATENCY_KINDS[kind])
    return placed.rename(columns=_RENAMED), LATENCY_KINDS[kind]


def _ends(metric: Metric) -> tuple[str, str, str]:
    """Return the columns of a metric's median, min and max."""
    stem, unit = (
        (metric.column[:-2], "_s") if metric.column.startswith("lat") else (metric.column, "")
    )
    low, high = (f"{stem}{end}{unit}" for end in _ENDS[1:])
    return metric.column, low, high


def build(frames: Frames, _: Options) -> Plot:
    """Draw a panel for each metric that has values, a group of bars for each job."""
    rows, kind = set_rows(frames)
    metrics = [metric for metric in _METRICS if rows[metric.column].notna().any()]
    names = _names(rows)
    columns = [COLOUR, *(end for metric in _METRICS for end in _ends(metric)), "latency"]
    data = identified(rows, columns).assign(
        _row=rows["_row"],
        **{f"_{m.column}": [m.text(value) for value in rows[m.column]] for m in metrics},
    )
    last = float(rows["_row"].max())
    y = Axis(
        scale="category",
        limits=(-1.0, last + 1),
        ticks=tuple(names),
        categories=tuple(names.values()),
        inverted=True,
    )
    repeated = bool((rows["repeats"] > 1).any())
    return Plot(
        panels=tuple(_panel(data, metric, y, place) for place, metric in enumerate(metrics)),
        heights=(max(_BAR_IN * (last + 2), 0.5 * len(names)),),
        widths=(1.0,) * len(metrics),
        width_in=max(9.0, 2.4 + 2.7 * len(metrics)),
        series=colour_series(rows),
        caption=(
            pooled(frames["summary"]),
            "Bars: medians; whiskers: min to max" * repeated,
            f"Latency is {kind}",
        ),
        shared_y=True,
    )


def _names(rows: pd.DataFrame) -> dict[float, str]:
    """Return the name of each group of bars at its middle."""
    names = {}
    for _, group in rows.groupby(_JOB, sort=False, dropna=False):
        head = records(group.head(1))[0]
        middle = float(group["_row"].iloc[0] + group["_row"].iloc[-1]) / 2
        names[middle] = f"{wrap_name(text(head, 'job'))}\n{shape(head)}"
    return names


def _panel(data: pd.DataFrame, metric: Metric, y: Axis, column: int) -> Panel:
    """Draw the bars of one metric with their ranges and numbers."""
    value, low, high = _ends(metric)
    better = "lower is better" if metric in (_MEAN, _P99) else "higher is better"
    most = float(data[high].max())
    return Panel(
        x=Axis(better, metric.format, limits=(0, 1.3 * most or 1.0)),
        y=y,
        marks=(
            Bars(data=data, by=COLOUR, at="_row", value=value, thickness=0.9),
            Whiskers(data=data, at="_row", low=low, high=high, has_caps=False),
            Texts(data=data, x=high, y="_row", text=f"_{value}", offset_pt=(3, 0), size=7),
        ),
        title=metric.label,
        column=column,
    )


def missing(frames: Frames) -> str:
    """Return why there is nothing to draw."""
    if reason := missing_runs(frames):
        return reason
    summary = frames["summary"]
    if COLOUR not in summary or summary[COLOUR].nunique() < 2:
        return "one set of results: name several folders, or a column of two values with --by"
    return ""


def describe(frames: Frames) -> str:
    """Return the number of sets and the max of IOPS in one sentence."""
    rows, _ = set_rows(frames)
    sets = [str(name) for name in dict.fromkeys(rows[COLOUR])]
    sentence = f"{len(sets)} sets side by side, {', '.join(sets)}"
    if rows["iops"].notna().any():
        best = rows.nlargest(1, "iops").iloc[0]
        sentence += f": max {IOPS.text(float(best['iops']))} IOPS ({best['label']})"
    return sentence + "."


SETS = Kind(
    name="sets",
    title="Result sets side by side",
    frame_names=("summary",),
    help="IOPS, bandwidth, mean and p99 latency of several sets of results, job by job.",
    needs="several folders, or --by",
    missing=missing,
    build=build,
    describe=describe,
)
