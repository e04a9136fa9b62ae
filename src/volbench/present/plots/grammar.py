"""Grammar of charts: which factor of a design is the x axis, a colour, a panel, or held.

Position is read best, then colour, then panels (W. S. Cleveland and R. McGill, "Graphical
Perception", 1984): the ordered factor with most values is the x axis, what is compared has colours,
and what is left has panels.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median_low
from types import MappingProxyType

from volbench.analyse.frames.design import NAME, Design, Factor
from volbench.analyse.frames.workload_words import factor_name
from volbench.errors import InputError
from volbench.model.frames.columns import LABEL_PREFIX
from volbench.model.frames.metadata import NOT_SET
from volbench.present.factor_words import shown_value
from volbench.present.plots.kinds import Choice, View

RESULT = "result"  # Stands for all factors together, where each result has a row
MAX_COLOURS = 7  # Colours that an eye can tell apart
MAX_PANELS = 12
MAX_ROWS = 60  # Bars that one panel has room for
_SPARSE = 2.5  # Places for bars to results, from which results have a list instead of panels
MIN_LINE = 3  # Values from which an ordered factor has lines
_MAX_ABREAST = 4
_PLACES = frozenset({"host", "volume", "client"})
# What is compared before all else, beside campaigns and labels
_COMPARED = ("volume", "host", "client", "ioengine", "scheduler", "direct", NAME, "fio_version")
_ORDERED = ("iodepth", "numjobs", "block_bytes", "rwmixread")  # Of equals, the first is the x axis
_PATTERN = ("rw", "direction")
_BASELINES = frozenset({0, NOT_SET, "none"})  # Values that others are read against


@dataclass(frozen=True)
class Layout:
    """What each factor of a design is in a chart."""

    view: View
    x: str  # factor along the x axis of lines, and beside bars; empty for a single value
    by: tuple[str, ...] = ()  # factors with a colour for each combination of their values
    y: str = ""  # second axis of a grid
    rows: tuple[str, ...] = ()  # factors whose values are rows of panels
    columns: tuple[str, ...] = ()  # factors whose values are columns of panels
    pooled: tuple[str, ...] = ()  # places within a value of `by`: hosts of a volume type
    # factor to the values that are drawn where there are too many
    held: Mapping[str, tuple[object, ...]] = field(default_factory=dict)

    @property
    def panels(self) -> tuple[str, ...]:
        """Factors that panels differ in."""
        return (*self.rows, *self.columns)


def layout_of(design: Design, choice: Choice) -> Layout:
    """Return what each factor of a design is, which has the columns of the choice first."""
    left = [factor for factor in design.factors if len(factor.values) > 1]
    by = [name for name in choice.by if name in design.by_column]
    for name in choice.columns:
        left = [factor for factor in left if factor.column != name]
    if not choice.by and choice.view not in {"grid", "towers"}:
        by = _compared(design, left, has_x=bool(choice.x))
        left = [factor for factor in left if factor.column not in by]
    pooled = [factor.column for factor in left if _is_within(design, factor.column, by)]
    left = [factor for factor in left if factor.column not in pooled]
    x = choice.x or _x_axis(left)
    left = [factor for factor in left if factor.column != x]
    y = ""
    if not by and not choice.panels and choice.view in {"", "grid", "towers"}:
        y = _grid_axis(design, x, left, is_asked=bool(choice.view))
        left = [factor for factor in left if factor.column != y]
    if not by and not y and not choice.panels:
        by = [name for name in _PATTERN if any(factor.column == name for factor in left)][:1]
        left = [factor for factor in left if factor.column not in by]
    if not x and by:
        x = by[0]
    rows, columns = _panels(left, choice.panels)
    view = choice.view or _view(design, x, y, [*by, *rows, *columns])
    # Where most panels would have one result, or most bars were not measured, each has a row.
    most = max(len(design.cells), 2) / 2
    panels = len(_present(design, [*rows, *columns]))
    bars = panels * len(_present(design, [n for n in by if n != x])) * len(_levels_of(design, x))
    is_sparse = view == "bars" and panels > 1 and bars > _SPARSE * len(design.cells)
    is_scattered = len(design.cells) <= MAX_ROWS and (panels > most or is_sparse)
    if is_scattered and not choice.columns and not choice.view:
        return Layout("bars", RESULT, tuple(by))
    if view in {"grid", "towers"} and not y:
        raise InputError(
            f"--as {view} needs two factors with several values beside those with colours",
            hint="name them with --x and --panels, or draw --as lines",
        )
    wide = view == "bars" and len(_levels_of(design, x)) > MAX_PANELS
    held = _held(design, rows, columns, most=_MAX_ABREAST if wide else MAX_PANELS)
    return Layout(view, x, tuple(by), y, tuple(rows), tuple(columns), tuple(pooled), held)


def _levels_of(design: Design, column: str) -> tuple[object, ...]:
    factor = design.by_column.get(column)
    return factor.values if factor else ()


def _compared(design: Design, left: Sequence[Factor], *, has_x: bool) -> list[str]:
    """Return what has colours: what people compare, as long as an eye can tell the values apart."""
    names = {factor.column: len(factor.known) for factor in left}
    labels = [name for name in names if name.startswith(LABEL_PREFIX)]
    chosen: list[str] = []
    for name in ("campaign", "arm", *labels, *_COMPARED):
        if names.get(name, 0) < 2 or _is_within(design, name, chosen):
            continue
        if len(_present(design, [*chosen, name])) <= MAX_COLOURS:
            chosen.append(name)
        elif not chosen and not has_x:
            return []  # so many that they are the x axis
    return chosen


def _is_within(design: Design, column: str, by: Sequence[str]) -> bool:
    """Return whether a place belongs to one value of what is compared, and has no other role."""
    if column not in _PLACES or not by:
        return False
    owners: dict[object, set[tuple[object, ...]]] = {}
    for cell in design.cells:
        owners.setdefault(cell.values[column], set()).add(tuple(cell.values[name] for name in by))
    return all(len(values) == 1 for values in owners.values())


def _x_axis(left: Sequence[Factor]) -> str:
    """Return the factor along the x axis: many places first, then the ordered with most values."""
    crowds = [f for f in left if len(f.values) > MAX_COLOURS and not f.is_ordered]
    if crowds:
        return max(crowds, key=lambda factor: len(factor.values)).column
    ordered = [factor for factor in left if factor.is_ordered and len(factor.known) > 1]
    if ordered:
        return max(ordered, key=lambda factor: (len(factor.known), -_preference(factor))).column
    others = [factor for factor in left if factor.column not in _PATTERN] or list(left)
    return max(others, key=lambda factor: len(factor.values)).column if others else ""


def _preference(factor: Factor) -> int:
    return _ORDERED.index(factor.column) if factor.column in _ORDERED else len(_ORDERED)


def _grid_axis(design: Design, x: str, left: Sequence[Factor], *, is_asked: bool) -> str:
    """Return the second axis of a grid; empty where there is none, or lines say as much."""
    least = 2 if is_asked else MIN_LINE
    if not x or not design.by_column[x].is_ordered or len(_levels_of(design, x)) < least:
        return ""
    ordered = [factor for factor in left if factor.is_ordered and len(factor.known) >= least]
    return min(ordered, key=_preference).column if ordered else ""


def _panels(left: Sequence[Factor], chosen: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the factors of rows and columns: patterns are rows, as are many of one kind."""
    names = [*chosen, *(factor.column for factor in left if factor.column not in chosen)]
    rows = [name for name in names if name in _PATTERN][:1] or names[1:2]
    return rows, [name for name in names if name not in rows]


def _view(design: Design, x: str, y: str, others: Sequence[str]) -> View:
    """Return the marks: lines where most have several points, else bars."""
    if y:
        return "grid"
    factor = design.by_column.get(x)
    if factor is None or not factor.is_ordered:
        return "bars"
    lines = len(_present(design, others))
    is_line = len(factor.known) >= MIN_LINE and len(_present(design, [*others, x])) >= 2 * lines
    return "lines" if is_line else "bars"


def _held(
    design: Design, rows: Sequence[str], columns: Sequence[str], *, most: int
) -> dict[str, tuple[object, ...]]:
    """Return the values around the median of the factors that would have too many panels."""
    panels = [*rows, *columns]
    levels = {name: _levels_of(design, name) for name in panels}
    held: dict[str, tuple[object, ...]] = {}
    for name in reversed(panels):
        count = len(_present(design, panels, levels))
        if count <= most:
            break
        others = math.ceil(count / len(levels[name]))
        kept = max(1, most // others)
        if kept < len(levels[name]):
            held[name] = levels[name] = around_median(levels[name], kept)
    return held


def _present(
    design: Design,
    names: Sequence[str],
    levels: Mapping[str, Sequence[object]] = MappingProxyType({}),
) -> set[tuple[object, ...]]:
    """Return the combinations of values that were measured, of some levels alone where named."""
    keys = (tuple(cell.values[name] for name in names) for cell in design.cells)
    return {
        key
        for key in keys
        if all(value in levels.get(name, (value,)) for name, value in zip(names, key, strict=True))
    }


def around_median(values: Sequence[object], count: int) -> tuple[object, ...]:
    """Return as many values as fit from the middle of ordered values, and an option's absence."""
    middle = median_low(range(len(values)))
    first = min(max(0, middle - (count - 1) // 2), len(values) - count)
    kept = tuple(values[first : first + count])
    baseline = next((value for value in values if value in _BASELINES), None)
    if baseline is None or baseline in kept or count == 1:
        return kept
    return (baseline, *kept[1:]) if values.index(baseline) < first else (*kept[:-1], baseline)


def held_words(column: str, kept: Sequence[object], every: Sequence[object]) -> str:
    """Return which values of a factor are drawn, and how to see the others."""
    other = next(value for value in every if value not in kept)
    shown = ", ".join(shown_value(column, value) for value in kept)
    count = f"{len(kept)} of {len(every)} values"
    few = f"{shown} ({count})" if len(kept) <= MAX_COLOURS else f"({count})"
    return (
        f"{factor_name(column)} {few}: --where"
        f" '{column.removeprefix(LABEL_PREFIX)}=={shown_value(column, other)}' draws another"
    )
