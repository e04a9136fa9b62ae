"""Heat map of the ratios of sets of results: pattern and block size by load."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from volbench.analyse.compare.comparison import Comparison
from volbench.analyse.compare.comparison_result import Verdict
from volbench.analyse.frames.job_frames import BY, COLOUR, OPTIONS, per_job, with_latencies
from volbench.present.formatting import MISSING, Row, pattern, printable, records
from volbench.present.plots import labels, marks
from volbench.present.plots.charts.comparison_charts import MAX_FOREST_ROWS, forest_plot
from volbench.present.plots.description import Panel, Plot
from volbench.present.plots.kinds import Frames, Kind, Options
from volbench.present.plots.metrics import LATENCY_KINDS, category_axis
from volbench.present.plots.selection import largest
from volbench.present.tables.compare_table import measure_name, notes

_ROW_IN = 0.24
_MAX_ROWS = 60
_MAX_PANELS = 12
# Ratios at which colours end, the first beyond all: 5 % of noise stays next to neutral
_ENDS = (1.5, 2.0, 3.0, 5.0, 10.0)
# Columns that tell workloads of one pattern and block size apart, where they differ
_FURTHER = ("host", "volume", "rwmixread", "direct", BY)
_NUMBERS = ["candidate", "metric", "ratio", "is_shown"]


@dataclass(frozen=True)
class Ratios:
    """Ratios of one or several candidates to a base."""

    # a row per candidate, metric and workload: ``ratio`` (above 0), ``better`` (the ratio, or its
    # inverse where less is better), ``is_shown`` (by its interval), ``rw``, `OPTIONS`,
    # ``direction``, ``label`` and what else tells workloads apart
    rows: pd.DataFrame
    base: str
    remarks: Sequence[str] = ()

    @property
    def options(self) -> list[str]:
        """Options that the workloads differ in, that of the x axis first."""
        order = ("iodepth", "numjobs", "block_bytes")
        return [name for name in order if _differs(self.rows, name)]

    @property
    def is_map(self) -> bool:
        """Whether the workloads differ in two of pattern, block size and load."""
        return bool(self.options) and len(self.options) + _differs(self.rows, "rw") > 1

    @property
    def title(self) -> str:
        """Names of the sets."""
        candidates = list(dict.fromkeys(self.rows["candidate"]))
        named = candidates[0] if len(candidates) == 1 else f"{len(candidates)} candidates"
        return f"{named} against {self.base}"


def _differs(rows: pd.DataFrame, column: str) -> bool:
    return column in rows and len(rows[column].dropna().unique()) > 1


def comparison_plot(comparison: Comparison, *, title: str = "") -> Plot:
    """Return the chart of a comparison: intervals of few workloads, or a map of ratios.

    Without repeats there are no intervals, and nobody looks at hundreds of them.
    """
    workloads = {(row.label, row.direction, *row.by.values()) for row in comparison.rows}
    has_intervals = any(row.interval for row in comparison.rows)
    ratios = _ratios_of(comparison)
    if not ratios.is_map or (has_intervals and len(workloads) <= MAX_FOREST_ROWS):
        return forest_plot(comparison, title=title)
    plot = build_ratios(ratios)
    return replace(
        plot, name="compare", title=title or ratios.title, description=describe_ratios(ratios)
    )


def _ratios_of(comparison: Comparison) -> Ratios:
    rows = [
        {
            "candidate": row.candidate,
            "metric": measure_name(row.measure),
            "ratio": row.ratio,
            "better": row.ratio if row.measure.more_is_better else 1 / row.ratio,
            "is_shown": row.verdict in {Verdict.FASTER, Verdict.SLOWER},
            "label": row.label,
            "direction": row.direction,
            BY: ", ".join(row.by.values()),
            **row.workload,
        }
        for row in comparison.rows
        if row.ratio > 0
    ]
    columns = [*_NUMBERS, "better", "label", "direction", "rw", *OPTIONS]
    frame = pd.DataFrame(rows, columns=None if rows else columns)
    remarks = [*notes(comparison)[1:3], *comparison.remarks[:3]]
    return Ratios(frame, comparison.rows[0].base, remarks)


def read_ratios(frames: Frames, _: Options) -> Ratios | str:
    """Return the ratios of the medians of each set to those of the first."""
    summary, kind = with_latencies(frames["summary"], ("p99",))
    sets = [*summary[COLOUR].dropna().unique()] if COLOUR in summary else []
    if len(sets) < 2:
        return "only one set of results: name two folders, or a column of two values (--by)"
    rated = summary[summary["direction"] != "sync"]
    rows = per_job(rated, ["iops", "p99"])
    base = str(sets[0])
    by_set = {str(name): set_rows for name, set_rows in rows.groupby(COLOUR, sort=False)}
    shared = [name for name in ("host", "volume") if name in rows and _is_shared(by_set, name)]
    key = ["job", "group", "direction", *shared]
    parts = [
        _divided(by_set[base], set_rows, key, column, metric, candidate)
        for candidate, set_rows in by_set.items()
        if candidate != base
        for column, metric in (("iops", "IOPS"), ("p99", f"p99 of {LATENCY_KINDS[kind]}"))
    ]
    ratios = Ratios(pd.concat(parts, ignore_index=True), base)
    if ratios.rows.empty:
        return f"no workload was measured in {base} and in another set"
    if not ratios.is_map:
        return "no map: it needs jobs that differ in two of pattern, block size, depth and numjobs"
    return ratios


def _is_shared(by_set: dict[str, pd.DataFrame], column: str) -> bool:
    first, *others = (set(rows[column].dropna()) for rows in by_set.values())
    return bool(first) and all(other == first for other in others)


def _divided(
    base: pd.DataFrame,
    candidate_rows: pd.DataFrame,
    key: list[str],
    column: str,
    metric: str,
    candidate: str,
) -> pd.DataFrame:
    """Return the ratio of a metric for each workload that both sets have."""
    first = base.groupby(key, dropna=False, sort=False)[column].median()
    second = candidate_rows.groupby(key, dropna=False, sort=False)[column].median()
    ratio = (second / first).replace([np.inf, 0.0], np.nan).dropna().rename("ratio").reset_index()
    known = candidate_rows.drop_duplicates(key)[[*key, "rw", "direct", *OPTIONS]]
    return ratio.merge(known, on=key).assign(
        candidate=str(candidate),
        metric=metric,
        better=lambda rows: rows["ratio"] if column == "iops" else 1 / rows["ratio"],
        is_shown=False,
        label=lambda rows: rows["job"],
    )


@dataclass(frozen=True)
class _Grid:
    """Axes and colours that all panels of a map share."""

    across: str  # option of the x axis
    values: list[float]  # of that option
    names: list[str]  # of the rows
    end: float  # ratio at which colours end
    apart: str  # option with a row of panels for each value; may be empty

    def part_name(self, key: tuple[Any, ...], base: str) -> str:
        """Return the name of a candidate's panels, with the value that they are of."""
        named = [f"{key[0]} / {base}"]
        if self.apart:
            named.append(labels.option_named(self.apart, key[1]))
        return ", ".join(named)

    def panel(self, part: pd.DataFrame, *, title: str, is_last: bool) -> Panel:
        """Draw the ratios of one metric; the last row of panels names the x axis."""
        cells = _cells(part, self.across, self.values, self.names)
        ticks = [labels.option_text(self.across, float(value)) for value in self.values]
        drawn = marks.Cells(
            cells,
            value="better",
            text="_text",
            ramp="diverging",
            limits=(1 / self.end, self.end),
            format="ratio",
        )
        return Panel(
            x=category_axis(labels.OPTION_NAMES[self.across] if is_last else "", ticks),
            y=replace(category_axis("", [*map(labels.wrap_name, self.names)]), inverted=True),
            marks=(drawn,) if len(cells) else (),
            title=printable(title),
            background="hatched",
        )


def _end_of_colours(drawn: pd.DataFrame) -> float:
    farthest = math.exp(float(np.log(drawn["ratio"]).abs().max()))
    return next((end for end in _ENDS if farthest <= end), _ENDS[-1])


def build_ratios(ratios: Ratios) -> Plot:
    """Draw a panel for each metric, and a row of them for each candidate and third option."""
    across, *others = ratios.options
    apart = "numjobs" if "numjobs" in others else ""
    rows = ratios.rows.assign(_name=_row_names(ratios, [o for o in others if o != apart]))
    worst = rows.assign(_far=np.log(rows["ratio"]).abs()).groupby("_name", sort=False)["_far"]
    kept, fewer = largest(
        worst.max().reset_index(),
        "_far",
        most=_MAX_ROWS,
        what="rows",
        criterion="those with the largest differences",
    )
    drawn = rows[rows["_name"].isin(kept["_name"])]
    names = list(drawn.sort_values(["rw", "block_bytes"], kind="stable")["_name"].unique())
    values = sorted(drawn[across].dropna().unique())
    grid = _Grid(across, values, names, _end_of_colours(drawn), apart)
    metrics = list(dict.fromkeys(drawn["metric"]))
    groups = ["candidate", *([apart] if apart else [])]
    parts = [*drawn.groupby(groups, sort=False)][:_MAX_PANELS]
    panels = [
        replace(
            grid.panel(
                part[part["metric"] == metric],
                title=f"{metric}, {grid.part_name(key, ratios.base)}",
                is_last=row == len(parts) - 1,
            ),
            row=row,
            column=column,
        )
        for row, (key, part) in enumerate(parts)
        for column, metric in enumerate(metrics)
    ]
    cell_in = 0.62 if len(values) > 1 else 1.5
    has_verdicts = bool(drawn["is_shown"].any())
    return Plot(
        panels=tuple(panels),
        heights=(_ROW_IN * len(names),) * (panels[-1].row + 1),
        widths=(1.0,) * len(metrics),
        width_in=max(9.0, 3.0 + cell_in * len(values) * len(metrics)),
        legend="",
        caption=(
            f"Blue (dark in print): better than {printable(ratios.base)}",
            f"Orange (light in print): worse; colours end at {grid.end:g}x",
            "*: significant" * has_verdicts,
            "Hatched: not measured in both sets",
            fewer,
            *(text.rstrip(".") for text in ratios.remarks),
        ),
        rows=labels.identified(ratios.rows, [*_NUMBERS]),
        shared_y=True,
    )


def _row_names(ratios: Ratios, options: Sequence[str]) -> list[str]:
    """Return pattern and block size of each workload, and what else tells two of a cell apart."""
    rows = ratios.rows
    parts = [[_pattern(row, options)] for row in records(rows)]
    cell = [name for name in ("candidate", "metric", *ratios.options) if name in rows]
    for name in (*_FURTHER, "label"):
        named = rows[cell].assign(_name=[", ".join(names_of_row) for names_of_row in parts])
        clashes = named.duplicated(keep=False)
        if not clashes.any():
            break
        if _differs(rows, name):
            for names_of_row, value in zip(parts, rows[name], strict=True):
                names_of_row.append(_text(name, value))
    return [", ".join(filter(None, names_of_row)) for names_of_row in parts]


def _pattern(row: Row, options: Sequence[str]) -> str:
    texts = [labels.option_text(name, float(str(row[name]))) for name in options if row[name]]
    return " ".join([pattern(row), *texts])


def _text(column: str, value: object) -> str:
    if pd.isna(value):  # type: ignore[call-overload]  # a single value, no array
        return MISSING
    if column == "direct":
        return "direct" if value else "buffered"
    return f"{value:g} % reads" if column == "rwmixread" else str(value)


def _cells(
    panel_rows: pd.DataFrame, across: str, values: Sequence[float], names: Sequence[str]
) -> pd.DataFrame:
    """Return a row for each cell; workloads that share one have their geometric mean."""
    logs = panel_rows.assign(ratio=np.log(panel_rows["ratio"]), better=np.log(panel_rows["better"]))
    cells = logs.groupby(["_name", across, "candidate", "metric"], sort=False).agg(
        ratio=("ratio", "mean"), better=("better", "mean"), is_shown=("is_shown", "all")
    )
    cells[["ratio", "better"]] = np.exp(cells[["ratio", "better"]])
    cells = cells.reset_index()
    return cells.rename(columns={"_name": "label"}).assign(
        _x=[values.index(value) for value in cells[across]],
        _y=[names.index(name) for name in cells["_name"]],
        _text=[
            (f"{ratio:.3g}" if ratio < 100 else f"{ratio:.0f}") + " *" * is_shown
            for ratio, is_shown in zip(cells["ratio"], cells["is_shown"], strict=True)
        ],
    )


def describe_ratios(ratios: Ratios) -> str:
    """Return the number of better and worse workloads, and the most different one."""
    sentences = []
    for metric, rows in ratios.rows.groupby("metric", sort=False):
        mean = math.exp(float(np.log(rows["ratio"]).mean()))
        far = rows.loc[np.log(rows["ratio"]).abs().idxmax()]
        better, worse = (int((own > 1).sum()) for own in (rows["better"], 1 / rows["better"]))
        sentences.append(
            f"{metric}: geometric mean {mean:.3g}x, {better} of {len(rows)} workloads better and"
            f" {worse} worse, most different {far['label']} ({far['ratio']:.3g}x)"
        )
    return ". ".join(sentences) + "."


RATIOS = Kind(
    name="ratios",
    title="Ratios to the first set",
    help="Ratios of IOPS and p99 latency to those of the first set, as a heat map of pattern and "
    "block size by queue depth and numjobs.",
    needs="two sets (several folders, or --by) of jobs that differ in two options",
    read=read_ratios,
    build=build_ratios,
    describe=describe_ratios,
    is_pooled=True,
)
