"""Results of several sets job by job, as grouped bars of four metrics."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd

from volbench.analyse.frames.job_frames import COLOUR, per_job, with_latencies
from volbench.present.formatting import records, text
from volbench.present.plots import labels, marks
from volbench.present.plots.description import Axis, Panel, Plot, grid
from volbench.present.plots.kinds import Frames, Kind, Options
from volbench.present.plots.metrics import (
    BANDWIDTH,
    IOPS,
    LATENCY_KINDS,
    MEAN_LATENCY,
    P99_LATENCY,
    Metric,
    is_wide,
)
from volbench.present.plots.picture import logarithmic
from volbench.present.plots.selection import largest

_METRICS = (IOPS, BANDWIDTH, MEAN_LATENCY, P99_LATENCY)
_BAR_IN = 0.17
_MAX_BARS = 64  # Bars of a metric above each other, and the gaps between jobs
_MAX_SETS = labels.PALETTE_SIZE
_JOB = ["job", "group", "direction"]
_RENAMED = {
    f"{name}{end}": f"lat_{name}{end}_s"
    for name in ("mean", "p99")
    for end in ("", "_low", "_high")
}


def read(frames: Frames, _: Options) -> pd.DataFrame | str:
    """Return a row for each job, direction and set, those of a job together.

    Returns:
        Rows with ``_row``, the place of their bar, and ``latency``, the name of the kind.
    """
    summary, kind = with_latencies(frames["summary"], ("mean", "p99"))
    sets = summary[COLOUR].nunique() if COLOUR in summary else 0
    if sets < 2:
        return "only one set of results: name several folders, or a column of several values (--by)"
    if sets > _MAX_SETS:
        return f"{sets} sets are too many to compare (at most {_MAX_SETS}): choose with --where"
    rated = summary[summary["direction"] != "sync"]
    rows = labels.side_by_side(per_job(rated, [IOPS.column, BANDWIDTH.column, "mean", "p99"]))
    return _placed(rows.assign(latency=LATENCY_KINDS[kind]).rename(columns=_RENAMED))


def _placed(rows: pd.DataFrame) -> pd.DataFrame:
    """Return rows with the place of their bar; between two jobs one is free."""
    numbered = rows.reset_index(drop=True)
    job = numbered.groupby(_JOB, sort=False, dropna=False).ngroup()
    return numbered.assign(_row=numbered.index + job)


def _most_different(rows: pd.DataFrame) -> tuple[pd.DataFrame, str]:
    """Return the jobs whose sets differ most, in their order, and a sentence on the others."""
    groups = rows.groupby(_JOB, sort=False, dropna=False)
    values = [metric.column for metric in _METRICS]
    ratios = (groups[values].max() / groups[values].min()).replace(np.inf, np.nan).max(axis=1)
    job = groups.ngroup()
    differences = pd.DataFrame({"place": range(len(ratios)), "ratio": ratios.to_numpy()})
    most = max(1, _MAX_BARS // (int(groups.size().max()) + 1))
    criterion = "those with the largest difference between the sets"
    kept, fewer = largest(differences, "ratio", most=most, what="jobs", criterion=criterion)
    return _placed(rows[job.isin(kept["place"])]), fewer


def _ends(metric: Metric) -> tuple[str, str, str]:
    """Return the columns of a metric's median, min and max."""
    stem = metric.column.removesuffix("_s") if metric.is_latency else metric.column
    unit = "_s" * metric.is_latency
    return metric.column, f"{stem}_low{unit}", f"{stem}_high{unit}"


def build(rows: pd.DataFrame) -> Plot:
    """Draw a panel for each metric that has values, a group of bars for each job."""
    columns = [COLOUR, *(end for metric in _METRICS for end in _ends(metric)), "latency"]
    every = labels.identified(rows, columns)
    rows, fewer = _most_different(rows)
    metrics = [metric for metric in _METRICS if rows[metric.column].notna().any()]
    names = _names(rows)
    texts = {f"_{m.column}": [m.text(value) for value in rows[m.column]] for m in metrics}
    data = labels.identified(rows, columns).assign(_row=rows["_row"], **texts)
    last = float(rows["_row"].max())
    y = Axis(
        scale="category",
        limits=(-1.0, last + 1),
        ticks=tuple(names),
        categories=tuple(names.values()),
        inverted=True,
    )
    height_in = max(_BAR_IN * (last + 2), 0.5 * len(names))
    repeated = bool((rows["repeats"] > 1).any())
    return replace(
        grid(
            [_scaled(_panel(data, m, y), data[m.column]) for m in metrics],
            height_in=height_in,
            abreast=len(metrics),
        ),
        width_in=max(9.0, 2.4 + 2.7 * len(metrics)),
        series=labels.colour_series(rows),
        caption=(
            "Medians; whiskers: min to max" * repeated,
            f"Latency is {rows['latency'].iloc[0]}",
            fewer,
        ),
        rows=every if fewer else None,
        shared_y=True,
    )


def _names(rows: pd.DataFrame) -> dict[float, str]:
    """Return the name of each group of bars at its middle."""
    names = {}
    for _, group in rows.groupby(_JOB, sort=False, dropna=False):
        head = records(group.head(1))[0]
        middle = float(group["_row"].iloc[0] + group["_row"].iloc[-1]) / 2
        names[middle] = f"{labels.wrap_name(text(head, 'job'))}\n{labels.shape(head)}"
    return names


def _scaled(panel: Panel, values: pd.Series[float]) -> Panel:
    """Return a panel with a logarithmic axis where values differ much."""
    return logarithmic(panel) if is_wide(values) else panel


def _panel(data: pd.DataFrame, metric: Metric, y: Axis) -> Panel:
    """Draw the bars of one metric with their ranges and numbers."""
    value, low, high = _ends(metric)
    better = "lower is better" if metric.is_latency else "higher is better"
    return Panel(
        x=metric.axis(1.3 * float(data[high].max()), label=better),
        y=y,
        marks=(
            marks.Bars(data, by=COLOUR, value=value, thickness=0.9),
            marks.Whiskers(data, low=low, high=high, has_caps=False),
            marks.Texts(data, x=high, y="_row", text=f"_{value}", offset_pt=(3, 0), size=7),
        ),
        title=metric.label,
    )


def describe(rows: pd.DataFrame) -> str:
    """Return the number of sets and the max of IOPS in one sentence."""
    sets = [str(name) for name in dict.fromkeys(rows[COLOUR])]
    sentence = f"{len(sets)} sets side by side, {', '.join(sets)}"
    if rows["iops"].notna().any():
        best = rows.nlargest(1, "iops").iloc[0]
        sentence += f": max {IOPS.text(float(best['iops']))} IOPS ({best['label']})"
    return sentence + "."


SETS = Kind(
    name="sets",
    title="Result sets side by side",
    help="IOPS, bandwidth, mean and p99 latency of several sets of results, job by job.",
    needs="several folders, or --by",
    read=read,
    build=build,
    describe=describe,
    is_pooled=True,
)
