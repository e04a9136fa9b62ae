"""Points of a chart of responses: pooled repeats at their places in a layout."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from statistics import median

import pandas as pd

from volbench.analyse.frames.design import NAME, Cell, Design, Row, asked_rate, design_of
from volbench.analyse.frames.job_frames import latency_column, measured, plain_rows
from volbench.analyse.frames.run_options import BESIDE, with_sums
from volbench.analyse.frames.workload_words import factor_name
from volbench.analyse.significance import MIN_SAMPLES_ABOVE
from volbench.errors import InputError, did_you_mean
from volbench.model.frames.column_names import find_column, meaning_of
from volbench.model.results.steadiness import State
from volbench.present.answer import answer
from volbench.present.cell_results import SYNC_CALLS, SYNC_P99
from volbench.present.factor_words import (
    constants_words,
    level_words,
    short_values,
    shown_value,
    value_words,
    with_aliases,
    words_of,
)
from volbench.present.formatting import latency
from volbench.present.plots.description import COLUMN_FORMATS
from volbench.present.plots.grammar import MAX_COLOURS, RESULT, Layout, held_words, layout_of
from volbench.present.plots.kinds import KINDS, RESPONSES, Frames, Options
from volbench.present.plots.labels import palette
from volbench.present.plots.metrics import BANDWIDTH, IOPS, LATENCY_KINDS, Metric
from volbench.present.plots.selection import is_rough
from volbench.units import counted_noun

_Values = tuple[object, ...]
_MAX_REMARKS = 3
_FEW_SAMPLES = "few samples"  # Remark about a percentile
_FEW_WORDS = 230  # Letters up to which the answer has two sentences
_UNSTEADY = frozenset({State.STEPPED, State.DRIFTING, State.NOISY})
_PERCENT = frozenset({"cpu_usr", "cpu_sys"})


@dataclass(frozen=True)
class Point:
    """Results that share a place in a chart."""

    colour: str  # text of what is compared; empty for nothing
    compared: tuple[object, ...]  # its values
    x: object
    y: object
    panel: tuple[object, ...]
    values: tuple[float, ...]  # of its runs
    base: float = 1.0  # what they are divided by
    limit: float = math.nan  # declared
    remark: str = ""  # why it is hollow: ``unsteady``, ``few samples``, or the rate asked for

    @property
    def middle(self) -> float:
        """Median of its runs."""
        return median(self.values) / self.base

    @property
    def ends(self) -> tuple[float, float]:
        """The least and the most of its runs."""
        return min(self.values) / self.base, max(self.values) / self.base


@dataclass(frozen=True)
class Drawing:
    """What a chart of a design shows."""

    design: Design
    layout: Layout
    responses: tuple[Metric, ...]
    points: tuple[tuple[Point, ...], ...]  # of each response
    notes: tuple[str, ...]  # sentences of the caption
    base: str = ""  # what values are divided by; empty for nothing
    whole: Drawing | None = None  # that of all results, where a condition left some of them

    @property
    def places(self) -> Mapping[str, int]:
        """What is compared to the place of its colour."""
        names = {**(self.whole.names if self.whole else {}), **self.names}
        return {text: place for place, text in enumerate(filter(None, names))}

    @property
    def plain(self) -> str:
        """Colour where nothing is compared: that of its value among all results."""
        by = self.whole.layout.by if self.whole else ()
        values = (_value_words(name, self.design.constants.get(name)) for name in by)
        return palette(self.places.get(", ".join(filter(None, values)), 0))

    @property
    def answer(self) -> str:
        """What follows, as tables and comparisons say it; of rates alone."""
        said = answer(self.design)[1:3] if self.responses[0] == IOPS else []
        return " ".join(said if len("".join(said)) < _FEW_WORDS else said[:1])

    @cached_property
    def panels(self) -> tuple[tuple[object, ...], ...]:
        """Values of the factors of each panel, in order."""
        present = {point.panel for points in self.points for point in points}
        places = [
            {value: n for n, value in enumerate(self.design.by_column[name].values)}
            for name in self.layout.panels
        ]
        return tuple(
            sorted(present, key=lambda key: [p[v] for p, v in zip(places, key, strict=True)])
        )

    @cached_property
    def colours(self) -> tuple[str, ...]:
        """Texts of what is compared and drawn, in order."""
        present = {point.colour for points in self.points for point in points}
        return tuple(text for text in self.names if text in present)

    @cached_property
    def names(self) -> Mapping[str, str]:
        """What is compared to its name, without the folders that all volumes have in common."""
        by = self.layout.by
        words = {name: words_of(name, self.design.by_column[name].values) for name in by}
        names: dict[str, str] = {}
        for cell in self._ordered_cells:
            known = [name for name in by if name != NAME or cell.values[name] is not None]
            texts = (words[name][cell.values[name]] for name in known)
            names[colour_text(self.layout, cell)] = ", ".join(texts)
        return names

    @property
    def _ordered_cells(self) -> list[Cell]:
        def place(cell: Cell) -> list[int]:
            return [
                self.design.by_column[name].values.index(cell.values[name])
                for name in self.layout.by
            ]

        return sorted(self.design.cells, key=place)

    def values_along(self, column: str) -> list[object]:
        """Return the values of a factor that have a point, in order."""
        every = self.points[0] if self.points else ()
        attribute = "y" if column == self.layout.y and column else "x"
        present = {getattr(point, attribute) for points in self.points for point in points}
        if column == RESULT:
            return list(dict.fromkeys(point.x for point in every))
        factor = self.design.by_column.get(column)
        if factor is None:
            return [None]
        values = [value for value in factor.values if value in present]
        if self.layout.view != "bars" or factor.is_ordered or len(values) <= MAX_COLOURS:
            return values
        middles = {value: [p.middle for p in every if p.x == value] for value in values}
        ranked = sorted(values, key=lambda value: -median(middles[value] or [0.0]))
        return ranked[::-1] if self.responses[0].is_latency else ranked


def colour_text(layout: Layout, cell: Cell) -> str:
    """Return what is compared of a cell, such as ``premium`` or ``before, nvme0n1``."""
    texts = (_value_words(name, cell.values[name]) for name in layout.by)
    return ", ".join(filter(None, texts))


def _value_words(column: str, value: object) -> str:
    """Return the words of a value; none for a result that has no name of its own."""
    return "" if column == NAME and value is None else value_words(column, value)


def metric_of(name: str, rows: pd.DataFrame) -> Metric:
    """Return the response that a name means; percentiles are of the latency that all rows have."""
    columns = list(rows.columns)
    if not meaning_of(name, columns):
        raise InputError(
            f"there is neither a chart nor a column {name!r}",
            hint=did_you_mean(name, [*KINDS, *RESPONSES])
            or f"draw {', '.join(RESPONSES)} or a kind: volbench plot --list",
        )
    column = find_column(name, columns)
    for known in (IOPS, BANDWIDTH):
        if column == known.column:
            return known
    if column.startswith("lat_"):
        column = latency_column(measured(rows), column.removeprefix("lat_").removesuffix("_s"))
    kind, _, statistic = column.removesuffix("_s").partition("_")
    if kind in LATENCY_KINDS:
        of = "latency" if kind == "lat" else LATENCY_KINDS[kind]
        return Metric(column, f"{statistic.replace('p999', 'p99.9')} {of}", "latency")
    if not pd.api.types.is_numeric_dtype(rows[column]):
        raise InputError(
            f"{name} is no number that a chart could show",
            hint="draw iops, bw, p99, mean or another numeric column; compare texts with --by",
        )
    form = next((form for ending, form in COLUMN_FORMATS if column.endswith(ending)), "count")
    return Metric(column, column, "percent" if column in _PERCENT else form)


def read_drawing(frames: Frames, options: Options, names: Sequence[str]) -> Drawing | str:
    """Return what a chart of some responses shows, or why there is nothing."""
    summary = frames["summary"]
    rated = measured(summary)
    rated = rated[rated["direction"] != "sync"]
    responses = tuple(metric_of(name, summary) for name in names)
    summed = [*with_sums(plain_rows(rated), lambda row: row.get(BESIDE))]
    rows, responses, syncs = _with_syncs(summed, summary, responses)
    design = design_of(rows, first=options.choice.columns)
    layout = layout_of(design, options.choice)
    verdicts = frames.get("verdicts", pd.DataFrame(columns=["verdict", "run"]))
    unsteady = {*verdicts.loc[verdicts["verdict"].isin(_UNSTEADY), "run"]}
    drawn = [cell for cell in design.cells if _is_drawn(cell, layout)]
    points, notes, shown, base = [], [syncs], [], options.choice.relative_to
    for metric in responses:
        own, note = _points(drawn, design, layout, metric, unsteady)
        own = _relative(own, design, layout, base) if base else own
        notes.append(note if own else f"Not shown: {metric.label}, which no run reported")
        if own:
            points.append(own)
            shown.append(metric)
    if not points:
        return f"no {responses[0].label}: no run reported it"
    whole = None
    if options.every is not None:
        every = measured(options.every())
        rows = plain_rows(every[every["direction"] != "sync"])
        all_ = design_of(rows, first=options.choice.columns)
        whole = Drawing(all_, layout_of(all_, options.choice), (), (), ())
    drawing = Drawing(design, layout, tuple(shown), tuple(points), (), base, whole)
    return replace(drawing, notes=(*_notes(drawing), *filter(None, notes)))


def _with_syncs(
    rows: Sequence[Row], summary: pd.DataFrame, responses: tuple[Metric, ...]
) -> tuple[Sequence[Row], tuple[Metric, ...], str]:
    """Give buffered writes the latency of their syncs, as the answer does; and say so.

    Where all rows are such writes, the name of the response says it, else a sentence.
    """
    syncs = {
        (row["run"], row["group"]): row
        for row in plain_rows(summary[summary["direction"] == "sync"])
    }
    columns = [metric.column for metric in responses if metric.is_latency]
    calls: list[str] = []
    made: list[Row] = []
    for row in rows:
        sync = syncs.get((row["run"], row["group"]))
        if sync is not None and row.get("direct") is False:
            values = {name: sync.get(f"lat_{name.partition('_')[2]}") for name in columns}
            calls.append(str(sync.get("sync_calls") or "sync"))
            values |= {SYNC_P99: latency(sync, "p99").seconds, SYNC_CALLS: calls[-1]}
            made.append({**row, **values})
        else:
            made.append(row)
    if not calls or not columns:
        return made, responses, ""
    if len(calls) < len(rows):
        return made, responses, f"Latency of buffered writes is that of their {calls[0]}"
    named = (
        replace(metric, label=f"{calls[0]} {metric.label}") if metric.is_latency else metric
        for metric in responses
    )
    return made, tuple(named), ""


def _is_drawn(cell: Cell, layout: Layout) -> bool:
    if layout.view in {"lines", "grid", "towers"} and cell.values.get(layout.x) is None:
        return False
    return all(cell.values[name] in kept for name, kept in layout.held.items())


def _points(
    cells: Sequence[Cell], design: Design, layout: Layout, metric: Metric, unsteady: set[object]
) -> tuple[tuple[Point, ...], str]:
    members: dict[tuple[_Values, object, object, _Values], list[Row]] = {}
    colours: dict[_Values, str] = {}
    lacking = 0
    for cell in cells:
        x = _result_text(design, layout, cell) if layout.x == RESULT else cell.values.get(layout.x)
        panel = tuple(cell.values[name] for name in layout.panels)
        compared = tuple(cell.values[name] for name in layout.by)
        place = (compared, x, cell.values.get(layout.y), panel)
        colours[compared] = colour_text(layout, cell)
        for row in (design.rows[index] for index in cell.places):
            value = row.get(metric.column)
            if isinstance(value, int | float) and not math.isnan(value):
                members.setdefault(place, []).append(row)
            else:
                lacking += 1
    points = tuple(
        Point(
            colours[compared],
            compared,
            x,
            y,
            panel,
            tuple(float(str(row[metric.column])) for row in rows),
            limit=float(str(*limits)) if metric.limit and len(limits) == 1 else math.nan,
            remark=_remark(rows, unsteady, metric),
        )
        for (compared, x, y, panel), rows in members.items()
        for limits in [{row.get(metric.limit) for row in rows} - {None}]
    )
    note = f"{counted_noun(lacking, 'result')} without {metric.label}" if lacking else ""
    return points, note


def _remark(rows: Sequence[Row], unsteady: set[object], metric: Metric) -> str:
    asked = next(filter(None, map(asked_rate, rows)), "")
    if asked:
        return f"asked: {asked}"
    statistic = metric.column.removesuffix("_s").rpartition("_")[2]
    if any(is_rough(statistic, row.get("total_ios")) for row in rows):
        return _FEW_SAMPLES
    return "unsteady" if any(row["run"] in unsteady for row in rows) else ""


def _result_text(design: Design, layout: Layout, cell: Cell) -> str:
    names = [factor.column for factor in design.factors if factor.column not in layout.by]
    known = {n: cell.values[n] for n in names if n != NAME or cell.values[n] is not None}
    return level_words(with_aliases(design, cell, known)) or "result"


def _relative(
    points: Sequence[Point], design: Design, layout: Layout, base: str
) -> tuple[Point, ...]:
    """Return points divided by that of a value of what is compared, where it was measured."""
    wanted = {
        colour_text(layout, cell)
        for cell in design.cells
        for name in layout.by
        for value in (cell.values[name],)
        for short in (short_values(name, design.by_column[name].values),)
        if base in (str(value), shown_value(name, value), short.get(value, ""))
    }
    if len(wanted) != 1:
        known = dict.fromkeys(colour_text(layout, cell) for cell in design.cells)
        raise InputError(
            f"--relative-to {base} names no value of what is compared",
            hint=f"choose one of {', '.join(known)}, or say with --by what is compared",
        )
    bases = {(p.x, p.y, p.panel): p.middle for p in points if p.colour in wanted}
    return tuple(
        replace(point, base=bases[place])
        for point in points
        if bases.get(place := (point.x, point.y, point.panel))
    )


def _notes(drawing: Drawing) -> Iterator[str]:
    """Yield the sentences of the caption: repeats, what is pooled, held, unsteady, constant."""
    layout, design = drawing.layout, drawing.design
    runs = [len(point.values) for points in drawing.points for point in points]
    low, high = min(runs), max(runs)
    several = f"{low} to {high}" if low < high else str(high)
    pooled = " and ".join(f"{factor_name(name)}s" for name in layout.pooled)
    if high == 1:
        yield "One run each"
    else:
        of = f"repeats on all {pooled}" if pooled else "repeats"
        is_ranged = layout.view not in {"grid", "towers"}
        yield f"Median of {several} {of}" + ("; whiskers from min to max" if is_ranged else "")
    yield constants_words(design)
    for name, kept in layout.held.items():
        yield held_words(name, kept, design.by_column[name].values)
    places = {(p.compared, p.x, p.y, p.panel, p.remark) for own in drawing.points for p in own}
    remarks = Counter(remark for *_, remark in places if remark)
    if remarks and layout.view not in {"grid", "towers", "bars"}:  # bars have it beside them
        counts = (f"{remark} ({count})" for remark, count in remarks.most_common(_MAX_REMARKS))
        yield f"Hollow: {', '.join(counts)}"
    if rough := remarks[_FEW_SAMPLES]:
        count = counted_noun(rough, "percentile")
        yield f"Few samples: {count} with fewer than {MIN_SAMPLES_ABOVE} I/Os above"
    left_out = [
        cell
        for cell in design.cells
        if cell.values.get(layout.x) is None and layout.x not in {"", RESULT}
    ]
    if left_out and layout.view != "bars":
        results = sum(len(cell.places) for cell in left_out)
        name = factor_name(layout.x)
        yield f"Not drawn: {counted_noun(results, 'result')} of unknown {name}"
