"""Latency percentiles: a row of points for each workload."""

from __future__ import annotations

import pandas as pd

from volbench.analyse.frames.job_frames import per_job, with_latencies
from volbench.analyse.significance import MIN_SAMPLES_ABOVE
from volbench.present.formatting import number, printable, records, text
from volbench.present.plots import labels, marks
from volbench.present.plots.description import Axis, Panel, Plot, Series
from volbench.present.plots.kinds import Frames, Kind, Options, Room
from volbench.present.plots.metrics import LATENCY_KINDS, rows_axis
from volbench.present.plots.selection import is_rough
from volbench.units import counted_noun, format_latency

_MAX_NAMED = 3  # Jobs of which a caption has the names
_ROOM = 1.14  # The axis ends this far beyond the longest bar, for its text
# From fast to slow; the key is the statistic
_PERCENTILES = (
    Series("p50", "median", "muted", "circle"),
    Series("p90", "p90", "muted", "square"),
    Series("p99", "p99", "muted", "diamond"),
    Series("p999", "p99.9", "muted", "up"),
    Series("max", "max", "muted", "cross"),
)
_STATISTICS = tuple(series.key for series in _PERCENTILES)


def read_latency(frames: Frames, _: Options) -> pd.DataFrame | str:
    """Return a row per job and direction with each percentile and ``latency``, the kind's name."""
    summary, kind = with_latencies(frames["summary"], _STATISTICS)
    other = "lat" if kind == "clat" else "clat"
    theirs = [f"{other}_{name}_s" for name in _STATISTICS]
    is_other = summary[list(_STATISTICS[:-1])].isna().all(axis=1)
    is_other &= summary[theirs[:-1]].notna().any(axis=1)
    summary.loc[is_other, list(_STATISTICS)] = summary.loc[is_other, theirs].to_numpy(float)
    rows = labels.side_by_side(per_job(summary, (*_STATISTICS, "total_ios")))
    known = rows[rows[list(_STATISTICS)].notna().any(axis=1)].reset_index(drop=True)
    if not (known[list(_STATISTICS)] > 0).any(axis=None):
        return "no latency: no run reported any"
    note = (
        f"{_some(summary.loc[is_other, 'job'])}: {LATENCY_KINDS[other]}, as fio reported no other"
    )
    return known.assign(
        latency=LATENCY_KINDS[kind], note=(f"{note} percentiles" if any(is_other) else "")
    )


def _some(jobs: pd.Series[str]) -> str:
    names = dict.fromkeys(map(str, jobs))
    return ", ".join(names) if len(names) <= _MAX_NAMED else f"{len(names)} jobs"


def build_latency(rows: pd.DataFrame) -> Plot:
    """Draw the percentiles of each job along a logarithmic axis."""
    columns = {name: f"{name}_s" for name in _STATISTICS}
    values = rows[list(_STATISTICS)]
    data = labels.identified(rows, [*_STATISTICS, "latency"]).rename(columns=columns)
    data = data.assign(
        _row=range(len(rows)),
        _series=rows[labels.colour_column(rows)],
        **{f"_{key}": key for key in _STATISTICS},
        _low=values.min(axis=1),
        _high=values.max(axis=1),
        _text=[format_latency(value) for value in rows["max"]],
    )
    rough = pd.DataFrame({k: [is_rough(k, n) for n in rows["total_ios"]] for k in _STATISTICS})
    parts = (
        marks.Whiskers(data, series="pale", width=5, has_caps=False),
        marks.Texts(data, x="max_s", y="_row", offset_pt=(8, 0), series="muted"),
        *(
            marks.Points(own, by="_series", marker_of=f"_{k}", x=x, y="_row", is_hollow=bool(few))
            for k, x in columns.items()
            for few, own in data.groupby(rough[k])
        ),
    )
    positive = values.where(values > 0)
    low, high = float(positive.min().min()), float(positive.max().max())
    span = max(high / low, 3.0)
    ends = (low / span**0.04, low * span**1.14)  # with room for the text at the right
    x = Axis(f"{rows['latency'].iloc[0].capitalize()} (logarithmic)", "latency", "log", ends)
    is_repeated = bool((rows["repeats"] > 1).any())
    note = "Points: medians of the repeats' percentiles; of max the largest" if is_repeated else ""
    names = [labels.wrap_name(printable(name), columns=60) for name in labels.directed(rows)]
    few = f"Hollow: fewer than {MIN_SAMPLES_ABOVE} I/Os above the percentile"
    hollow = few if rough.any(axis=None) else ""
    bare = rows.loc[rows[list(_STATISTICS[:-1])].isna().all(axis=1), "label"]
    only_max = f"{_some(bare)}: max only, as fio reported none of these percentiles"
    return Plot(
        panels=(Panel(x=x, y=rows_axis(names), marks=parts),),
        heights=(labels.rows_height_in(names),),
        series=(*labels.colour_series(rows), *_PERCENTILES),
        caption=(note, hollow, str(rows["note"].iloc[0]), only_max if len(bare) else ""),
    )


def describe_latency(rows: pd.DataFrame) -> str:
    """Return the lowest and the highest p99 in one sentence."""
    kind = rows["latency"].iloc[0]
    rows = rows.assign(label=labels.directed(rows))
    known = records(rows.dropna(subset=["p99"]).sort_values("p99"))
    if not known:
        worst = records(rows.nlargest(1, "max"))[0]
        value = format_latency(number(worst, "max"))
        return (
            f"Max {kind} of {counted_noun(len(rows), 'result')}: {value} ({text(worst, 'label')})."
        )
    low, high = (
        f"{format_latency(number(row, 'p99'))} ({text(row, 'label')})"
        for row in (known[0], known[-1])
    )
    return (
        f"Percentiles of {kind} for {counted_noun(len(known), 'result')}: p99 from {low} to {high}."
    )


LATENCY = Kind(
    name="latency",
    across=(),
    title="Latency percentiles",
    help="Median, p90, p99, p99.9 and max latency of each job and direction.",
    needs="latencies of fio",
    read=read_latency,
    build=build_latency,
    describe=describe_latency,
    room=Room(60, "results"),
)
