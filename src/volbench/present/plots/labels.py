"""Names and looks of jobs, options and lines on charts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import pandas as pd

from volbench.analyse.frames.job_frames import COLOUR, COLOUR_PLACE, KEY, key_of, of_measured
from volbench.analyse.frames.job_frames import labels as job_labels
from volbench.analyse.frames.workload_words import PLURALS
from volbench.present.formatting import in_numeric_order, printable
from volbench.present.plots.description import IDENTITY, Series
from volbench.present.plots.marks import Dash

DIRECTIONS = ("read", "write", "trim", "sync", "mixed", "other")
PALETTE_SIZE = 28  # Colours of a theme; no two sets share one
_MAX_STEPS = 100  # In which neighbours move apart
_FIRST_COLOURS = 7  # Colours that are easy to tell apart; lines of further ones are dashed
# Beside the colour, so that charts can be read in grey
MARKERS = ("circle", "square", "up", "diamond", "down", "plus", "cross")
DASHES: tuple[Dash, ...] = ("solid", "dashed", "dotted", "dashdot")
_MAX_NAME = 34  # Characters of a name on one line
TWO_LINES = 20  # Up to how many rows a label takes two lines


def rows_height_in(names: Sequence[str], *, is_tight: bool = False) -> float:
    """Return the height that rows of these names take, so that no two names touch."""
    lines = max((name.count("\n") + 1 for name in names), default=0)
    gap_in = 0.10 if len(names) <= TWO_LINES and not is_tight else 0.03
    return len(names) * (gap_in + 0.16 * lines)


def wrap_name(name: str, *, columns: int = _MAX_NAME) -> str:
    """Return a long name on several lines, broken after its own separators where it has some."""
    if len(name) <= columns:
        return name
    loose = "".join(c + "\u200b" if c in "-_/." else c for c in name)
    lines, line = [], ""
    for piece in loose.replace(" ", " \u200b").split("\u200b"):
        if line and len(line) + len(piece) > columns:
            lines.append(line)
            line = ""
        line += piece
        while len(line) > columns:
            lines.append(line[:columns])
            line = line[columns:]
    return "\n".join(part.strip() for part in [*lines, line] if part)


def brief(names: Sequence[str], *, most: int = _MAX_NAME) -> tuple[str, ...]:
    """Return names of at most some characters, cut in their middle, as long as all stay distinct.

    Most volumes differ in their end, so that two thirds of what is kept are of it.
    """
    first = most // 3
    cut = tuple(
        name if len(name) <= most else f"{name[:first]}\u2026{name[first + 1 - most :]}"
        for name in names
    )
    return cut if len({*cut}) == len({*names}) else brief(names, most=2 * most)


def labelled(frame: pd.DataFrame, summary: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of measured runs with ``label`` and ``line``, the number of their job."""
    rows = of_measured(frame, summary)
    line = rows.groupby(key_of(rows, KEY), sort=False, dropna=False).ngroup()
    heads = rows[~line.duplicated()]  # There may be a million rows
    names = dict(zip(line[heads.index], job_labels(heads), strict=True))
    return rows.assign(label=line.map(names).astype("str"), line=line)


def directed(rows: pd.DataFrame) -> pd.Series[str]:
    """Return the label of each row, with its direction where a label has several."""
    names, ways = rows["label"].astype("str"), rows["direction"].astype("str").fillna("?")
    several = ways.groupby(names).transform("nunique") > 1
    return names.where(~several, names + " " + ways.replace(PLURALS))


def line_names(rows: pd.DataFrame, line: str) -> pd.Series:
    """Return the name of the line of each row."""
    heads = rows.drop_duplicates(line)
    names = dict(zip(heads[line], directed(heads), strict=True))
    return rows[line].map(names).astype("category")


def identified(frame: pd.DataFrame, columns: Sequence[str]) -> pd.DataFrame:
    """Return some columns of a frame after those that identify its rows."""
    return frame[[name for name in dict.fromkeys((*IDENTITY, *columns)) if name in frame]]


def side_by_side(pooled: pd.DataFrame) -> pd.DataFrame:
    """Return pooled rows in numeric order of their names, those that differ in colour together."""
    ordered = pooled.iloc[in_numeric_order(pooled["label"].tolist())].reset_index(drop=True)
    if COLOUR not in ordered:
        return ordered
    order = ordered.groupby(["job", "group", "direction"], sort=False, dropna=False).ngroup()
    return ordered.iloc[order.argsort(kind="stable")].reset_index(drop=True)


def colour_column(frame: pd.DataFrame) -> str:
    """Return the column whose values have a colour each."""
    return COLOUR if COLOUR in frame else "direction"


def colour_series(frame: pd.DataFrame) -> tuple[Series, ...]:
    """Return a series for each value of `colour_column`: directions have colours of their own."""
    if COLOUR not in frame:
        return tuple(
            Series(value, printable(value), value if value in DIRECTIONS else "muted")
            for value in map(str, frame["direction"].unique())
        )
    shown = frame[[COLOUR, COLOUR_PLACE]].drop_duplicates().sort_values(COLOUR_PLACE)
    return tuple(
        Series(str(value), wrap_name(printable(str(value)), columns=30), palette(int(place)))
        for value, place in shown.itertuples(index=False)
    )


def line_series(names: Sequence[str], *, columns: int = 30) -> tuple[Series, ...]:
    """Return a series for each name, distinguished by colour, marker and dash."""
    return tuple(
        Series(name, wrap_name(printable(name), columns=columns), *line_look(index))
        for index, name in enumerate(names)
    )


def lines_of(rows: pd.DataFrame, names: pd.Series[str]) -> tuple[Series, ...]:
    """Return a series for each name, in the colour of what is compared where rows have one."""
    series = line_series([*dict.fromkeys(names)], columns=28)
    if COLOUR not in rows:
        return series
    firsts = rows[[COLOUR, COLOUR_PLACE]].assign(_name=names).drop_duplicates("_name")
    turns = firsts.groupby(COLOUR, observed=True).cumcount()
    return tuple(
        replace(each, colour=palette(int(place)), dash=DASHES[turn % len(DASHES)])
        for each, place, turn in zip(series, firsts[COLOUR_PLACE], turns, strict=True)
    )


def line_look(index: int) -> tuple[str, str, Dash]:
    """Return colour, marker and dash of the line at a place; 28 are distinguishable."""
    dash = DASHES[index // _FIRST_COLOURS % len(DASHES)]
    return palette(index), marker(index), dash


def marker(index: int) -> str:
    """Return the marker at a place; they repeat."""
    return MARKERS[index % len(MARKERS)]


def palette(index: int) -> str:
    """Return the role of the colour at a place of the palette, which repeats."""
    return f"palette-{index % PALETTE_SIZE}"


def moved_apart(places: Sequence[float], heights: Sequence[float]) -> list[float]:
    """Return places as near as possible to others at which texts do not touch."""
    order = sorted(range(len(places)), key=lambda number: places[number])
    apart = list(places)
    for _ in range(_MAX_STEPS):
        for lower, upper in pairwise(order):
            lacking = (heights[lower] + heights[upper]) / 2 - (apart[upper] - apart[lower])
            if lacking > 1e-9:
                apart[lower] -= lacking / 2
                apart[upper] += lacking / 2
    return apart
