"""A fleet at a glance: a strip of dots per job, with a dot for each host.

Outliers are those beyond 1.5 interquartile ranges of the quartiles (J. W. Tukey, "Exploratory Data
Analysis", 1977); they are named.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from volbench.analyse.frames.job_frames import BY, COLOUR, measured, pool, with_latencies
from volbench.analyse.frames.job_frames import labels as job_labels
from volbench.present.formatting import printable
from volbench.present.plots import labels, marks
from volbench.present.plots.description import Axis, Panel, Plot, grid
from volbench.present.plots.kinds import Frames, Kind, Options, Room
from volbench.present.plots.metrics import IOPS, LATENCY_KINDS, P99_LATENCY, Metric, rows_axis
from volbench.present.plots.selection import apart

FENCE = 1.5  # Tukey's fence (1977), in interquartile ranges. Noticed by: test_outliers.py
# Minimum distance of an outlier from the middle half, as a share of the median: hosts that agree to
# 1 % have a middle half of nothing. Noticed by: tests/present/plots/test_outliers.py
_NEAR = 0.05
_MIN_MEMBERS = 5  # Quartiles of four values are these values. Noticed by: test_fleet.py
_MAX_NAMED = 6  # Maximum number of named outliers of a job; the others are counted
_ROW_IN = 0.62
_NAME_SHARE, _NAME_ROWS = 0.11, 0.5  # Room of a name: share of the panel's width, and rows


def member_column(summary: pd.DataFrame) -> str:
    """Return the column whose values are dots: host, client or volume; empty if none varies."""
    rows = measured(summary)
    for column in ("host", "client", "volume"):
        if len(rows[column].dropna().unique()) > 1:
            return column
    return ""


@dataclass(frozen=True)
class _Fleet:
    """Data of the chart."""

    # a row per job, direction and member: median of its repeats (``iops``), percentile 99 of all
    # their I/Os (``lat_p99_s``), ``latency``, ``outlier_iops`` and ``outlier_p99`` (bool), in the
    # order of the jobs
    dots: pd.DataFrame
    member: str  # kind of a dot, such as ``host``


def read(frames: Frames, _: Options) -> _Fleet | str:
    """Return the medians of every member, and the outliers."""
    summary, kind = with_latencies(frames["summary"], ("p99",))
    member = member_column(summary)
    if not member:
        return "only one host, client and volume: run on several hosts (--inventory)"
    rows = measured(summary)
    rows = rows[rows["direction"] != "sync"]
    if rows["iops"].isna().all():
        return "no IOPS: not reported by any run"
    before = "" if member == "host" else f"{member} "
    rows = rows.assign(member=before + rows[member].astype(str), label=_job_names(rows))
    extra = [COLOUR] if COLOUR in rows else []
    key = ["label", "job", "direction", *extra, "member"]
    pooled = pool(rows, key, ["iops", "p99"])
    pooled = pooled.reset_index()[[*key, "iops", "p99"]].rename(columns={"p99": "lat_p99_s"})
    dots = pooled[pooled["iops"].notna()].groupby(["label", "direction"], sort=False)["member"]
    pooled = pooled[dots.transform("nunique").reindex(pooled.index) > 1].reset_index(drop=True)
    if pooled.empty:
        return f"no job ran on several {member}s"
    for metric, name in zip(("iops", "lat_p99_s"), ("outlier_iops", "outlier_p99"), strict=True):
        groups = pooled.groupby(["label", "direction"], sort=False)[metric]
        pooled[name] = groups.transform(_outliers).astype(bool)
    return _Fleet(pooled.assign(latency=LATENCY_KINDS[kind]), member)


def _job_names(rows: pd.DataFrame) -> pd.Series[str]:
    """Return names of jobs that ignore host, volume and campaign."""
    same = rows.assign(host="", volume="", campaign="")
    return job_labels(same.drop(columns=BY) if BY in same else same)


def _outliers(values: pd.Series[float]) -> pd.Series[bool]:
    known = values.dropna()
    if len(known) < _MIN_MEMBERS:
        return pd.Series(data=False, index=values.index)
    first, third = np.percentile(known, [25, 75])
    reach = max(FENCE * (third - first), _NEAR * abs(float(known.median())))
    return values.lt(first - reach) | values.gt(third + reach)


def _named(strips: Sequence[pd.DataFrame], member: str) -> tuple[str, ...]:
    """Return which dots have their name."""
    if max(len(strip) for strip in strips) < _MIN_MEMBERS:
        return (f"Outliers are named from {_MIN_MEMBERS} {member}s on",)
    return (
        f"Named: outliers, beyond {FENCE:g} interquartile ranges of the quartiles (Tukey)",
        "Names that would overlap are omitted",
    )


def build(fleet: _Fleet) -> Plot:
    """Draw a strip of dots for each job, over the box between the quartiles."""
    rows = fleet.dots
    strips = [strip for _, strip in rows.groupby(["label", "direction"], sort=False)]
    data = pd.concat([_placed(strip, row) for row, strip in enumerate(strips)], ignore_index=True)
    metrics = [m for m in (IOPS, P99_LATENCY) if rows[m.column].notna().any()]
    names = [f"{strip['label'].iloc[0]}, {strip['direction'].iloc[0]}" for strip in strips]
    y = rows_axis([labels.wrap_name(printable(name)) for name in names])
    panels = [replace(_strip_panel(data, metric, len(strips)), y=y) for metric in metrics]
    return replace(
        grid(panels, height_in=_ROW_IN * len(strips), abreast=2),
        width_in=12,
        series=labels.colour_series(rows),
        caption=(
            f"Dots: the median of a {fleet.member}'s repeats",
            "Grey: interquartile range; bar: median",
            *_named(strips, fleet.member),
        ),
        shared_y=True,
    )


def _placed(strip: pd.DataFrame, row: int) -> pd.DataFrame:
    """Return a job's dots spread by a fixed pattern, so that equal ones stay visible."""
    lift = 0.22 * np.sin(np.arange(len(strip)) * 2.4)  # the golden angle: no two beside each other
    return strip.assign(_row=float(row), _y=row + lift, _series=strip[labels.colour_column(strip)])


def _strip_panel(data: pd.DataFrame, metric: Metric, strips: int) -> Panel:
    boxes = _boxes(data, metric)
    label = metric.label if metric is IOPS else f"p99 of {data['latency'].iloc[0]}"
    x = metric.wide_axis(data[metric.column].dropna(), label=label, room=1.05, log_room=1.4)
    return Panel(
        x=x,
        y=Axis(),
        marks=(
            marks.Bars(boxes, value="_width", base="_first", thickness=0.5, series="pale"),
            marks.Whiskers(boxes, at="_middle", along="y", width=1.6, has_caps=False),
            marks.Points(data, x=metric.column, by="_series", size=4.5),
            *_outlier_names(data, metric, x, Axis(limits=(0.0, float(strips)))),
        ),
    )


def _boxes(data: pd.DataFrame, metric: Metric) -> pd.DataFrame:
    """Return quartiles of each job."""
    rates = data[data[metric.column].notna()].groupby("_row")[metric.column]
    known = pd.DataFrame({share: rates.quantile(share) for share in (0.25, 0.5, 0.75)})
    rows = known.index.to_numpy(dtype=float)
    return pd.DataFrame(
        {
            "_row": rows,
            "_first": known[0.25].to_numpy(),
            "_width": (known[0.75] - known[0.25]).to_numpy(),
            "_middle": known[0.5].to_numpy(),
            "_low": rows - 0.3,
            "_high": rows + 0.3,
        }
    )


def _outlier_names(data: pd.DataFrame, metric: Metric, x: Axis, y: Axis) -> list[marks.AnyMark]:
    """Name outliers where there is room, above and below; count those beyond the first few."""
    room = (_NAME_SHARE, _NAME_ROWS / (y.limits or (0.0, 1.0))[1])
    out = data[data["outlier_iops" if metric is IOPS else "outlier_p99"]]
    turn = out.groupby("_row").cumcount()
    places = pd.DataFrame({"_x": out[metric.column], "_y": out["_y"], "_text": out["member"]})
    named = places[turn < _MAX_NAMED]
    is_above = turn[turn < _MAX_NAMED] % 2 == 0
    first_beyond = turn == _MAX_NAMED
    count = out.groupby("_row")["_row"].transform("size") - _MAX_NAMED
    rest = places.assign(_text="and " + count.astype(str) + " more")[first_beyond]
    below = apart(pd.concat([named[~is_above], rest]), x, y, room=room)
    above = apart(named[is_above], x, y, room=room)
    return [
        marks.Texts(above, offset_pt=(0, 5), align="center", valign="bottom", size=7.5),
        marks.Texts(below, offset_pt=(0, -5), align="center", valign="top", size=7.5),
    ]


def describe(fleet: _Fleet) -> str:
    """Return the number of members and the outliers in one sentence."""
    rows = fleet.dots
    outlying = rows.loc[rows["outlier_iops"] | rows["outlier_p99"], "member"]
    names = [str(name) for name in outlying.value_counts().index[:_MAX_NAMED]]
    named = f"outliers: {', '.join(names)}" if names else "no outliers"
    low, high = IOPS.text(float(rows["iops"].min())), IOPS.text(float(rows["iops"].max()))
    return f"{rows['member'].nunique()} {fleet.member}s with {low} to {high} IOPS; {named}."


FLEET = Kind(
    name="fleet",
    across=("host", "client", "volume"),
    title="Spread over the fleet",
    help="IOPS and p99 latency of every host as a strip of dots per job, outliers named.",
    needs="jobs that several hosts, clients or volumes ran",
    read=read,
    build=build,
    describe=describe,
    room=Room(18, "jobs"),
)
