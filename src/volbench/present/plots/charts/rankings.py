"""Volumes of a collection, ranked for each workload: a row a volume on logarithmic axes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import pandas as pd

from volbench.present.formatting import printable, records
from volbench.present.plots import labels, marks
from volbench.present.plots.description import Axis, Panel, Plot, Series, grid
from volbench.present.plots.kinds import Frames, Kind, Options
from volbench.present.plots.metrics import IOPS, log_limits, rows_axis
from volbench.present.plots.selection import not_shown
from volbench.present.tables.volumes_table import MIN_VOLUMES, WorkloadClass, workload_classes
from volbench.units import counted_noun

_MAX_CLASSES = 4  # Panels beside each other
_ROW_IN = 0.17
_CLOSE = 3.0  # Factor within which noise would look like a difference on a logarithmic axis
_SERIES = Series("iops", "", "palette-0", "circle")


@dataclass(frozen=True)
class _Ranked:
    """Volumes under the workloads that most of them ran."""

    classes: Sequence[WorkloadClass]  # with two volumes at least, those of most volumes first
    others: int  # workloads that are not shown
    most: int  # volumes that are shown

    @property
    def rows(self) -> pd.DataFrame:
        """A row a workload and volume."""
        return pd.DataFrame(
            {
                "label": f"{ranking.workload}, {ranking.setting}",
                "volume": volume.volume,
                "rank": volume.rank,
                "iops": volume.iops,
                "lat_p99_s": volume.p99_s,
            }
            for ranking in self.classes
            for volume in ranking.volumes
        )


def read_ranking(frames: Frames, chosen: Options) -> _Ranked | str:
    """Return the workloads that several volumes ran."""
    classes = workload_classes(records(frames["summary"]))
    ranked = [ranking for ranking in classes if len(ranking.volumes) > 1]
    if not ranked:
        return f"no ranking: it needs a workload that several of {MIN_VOLUMES} volumes or more ran"
    return _Ranked(ranked[:_MAX_CLASSES], len(ranked) - _MAX_CLASSES, chosen.volumes)


def build_ranking(ranked: _Ranked) -> Plot:
    """Draw a panel for each workload, and in each the IOPS of a volume on its row."""
    rows = ranked.rows
    order = list(dict.fromkeys(rows["volume"]))  # by their rank in the most common workload
    half = ranked.most // 2
    names = order if len(order) <= ranked.most else [*order[:half], *order[-half:]]
    data = rows[rows["volume"].isin(names)].assign(
        _row=lambda frame: frame["volume"].map(names.index),
        _text=lambda frame: frame["iops"].map(IOPS.text),
    )
    y = rows_axis(labels.brief(labels.shortened([printable(name) for name in names])))
    panels = [
        replace(
            _panel(ranking, data[data["label"] == f"{ranking.workload}, {ranking.setting}"]), y=y
        )
        for ranking in ranked.classes
    ]
    more = f"{counted_noun(ranked.others, 'further workload')}: see the table"
    return replace(
        grid(panels, height_in=max(1.0, _ROW_IN * len(names)), abreast=len(panels)),
        width_in=max(9.0, 3.0 + 2.6 * len(panels)),
        series=(_SERIES,),
        legend="",
        caption=(
            "Medians of repeats; directions of a mixed workload added up; line: median volume",
            not_shown(len(names), len(order), "volumes", "the fastest and the slowest"),
            more * (ranked.others > 0),
        ),
        rows=rows,
        shared_y=True,
    )


def _panel(ranking: WorkloadClass, data: pd.DataFrame) -> Panel:
    """Draw the volumes of one workload: points on a stem, with their rate."""
    slowest, fastest = float(data["iops"].min()), float(data["iops"].max())
    low, high = log_limits([slowest, fastest], room=(0.6, 1.0))
    ends = (low, high * (high / low) ** 0.28)  # With room for the text
    x = Axis("IOPS (logarithmic)", "count", "log", ends)
    if fastest < _CLOSE * slowest:
        x = IOPS.axis(1.3 * fastest)
    return Panel(
        x=x,
        y=Axis(),
        marks=(
            marks.ReferenceLine(ranking.typical_iops, "x", series="muted", width=0.9),
            marks.Whiskers(
                data.assign(_low=ends[0] if x.scale == "log" else 0.0),
                high="iops",
                series="pale",
                has_caps=False,
            ),
            marks.Points(data, x="iops", y="_row", series="iops", size=5),
            marks.Texts(data, x="iops", y="_row", offset_pt=(5, 0), size=7, is_boxed=True),
        ),
        title=f"{ranking.workload}\n{ranking.setting}",
    )


def describe_ranking(ranked: _Ranked) -> str:
    """Return the fastest and the slowest volume of each workload."""
    return " ".join(
        f"{ranking.workload} at {ranking.setting}: {ranking.volumes[0].volume} is the fastest of"
        f" {len(ranking.volumes)} ({IOPS.text(ranking.volumes[0].iops)} IOPS),"
        f" {ranking.volumes[-1].volume} the slowest ({IOPS.text(ranking.volumes[-1].iops)} IOPS)."
        for ranking in ranked.classes
    )


RANKING = Kind(
    name="ranking",
    title="Volumes by workload",
    help="IOPS of each volume for each workload that several ran, the fastest first, on "
    "logarithmic axes.",
    needs="three volumes or more with a workload in common",
    read=read_ranking,
    build=build_ranking,
    describe=describe_ranking,
    is_pooled=True,
    concludes=True,
)
