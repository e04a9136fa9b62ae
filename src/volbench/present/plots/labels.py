"""Names and looks of jobs, options and lines on charts."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from itertools import takewhile

import pandas as pd

from volbench.analyse.frames.job_frames import COLOUR, KEY, OPTIONS, key_of, of_measured
from volbench.analyse.frames.job_frames import labels as job_labels
from volbench.analyse.frames.workload_words import FACTOR_NAMES
from volbench.present.formatting import (
    Row,
    block_size,
    flag,
    in_numeric_order,
    number,
    pattern,
    printable,
    records,
    text,
)
from volbench.present.plots.description import IDENTITY, Series
from volbench.present.plots.marks import Dash
from volbench.present.plots.selection import workloads
from volbench.units import format_size

PANEL = "panel"  # Column that says in which panel a row is shown
DIRECTIONS = ("read", "write", "trim", "sync", "mixed")
PALETTE_SIZE = 28  # Colours of a theme; no two sets share one
_FIRST_COLOURS = 7  # Colours that are easy to tell apart; lines of further ones are dashed
# Beside the colour, so that charts can be read in grey
MARKERS = ("circle", "square", "up", "diamond", "down", "plus", "cross")
DASHES: tuple[Dash, ...] = ("solid", "dashed", "dotted", "dashdot")
_PART = re.compile(r"[^-_/., ]+[-_/., ]*|[-_/., ]+")  # Of a name, with its separator
_WORD = re.compile(r"[^\W\d]")
_MIN_CUT = 6  # Characters below which cutting a part makes no name easier to read
_MAX_NAME = 34  # Characters of a name on one line
TWO_LINES = 20  # Up to how many rows a label takes two lines


def option_text(option: str, value: float) -> str:
    """Return a value of an option: ``4k`` for a block size, ``16`` for a queue depth."""
    return format_size(value) if option == "block_bytes" else f"{value:.0f}"


def option_named(option: str, value: float) -> str:
    """Return a value with its option, such as ``queue depth 16``."""
    return f"{FACTOR_NAMES[option]} {option_text(option, value)}"


def shape(row: Row) -> str:
    """Return the workload of a job, such as ``randwrite 4k, queue depth 16, buffered``."""
    parts = [pattern(row)]
    if (block := block_size(row)) != "n/a":
        parts[0] += f" {block}"
    several = [option for option in ("iodepth", "numjobs") if number(row, option) > 1]
    parts += [f"{FACTOR_NAMES[option]} {number(row, option):.0f}" for option in several]
    if flag(row, "direct") == "no" and not text(row, "volume").startswith("nbd"):
        parts.append("buffered")
    return ", ".join(parts)


def job_names(rows: Sequence[Row]) -> tuple[str, ...]:
    """Return a label for each row: job and workload, on one line if there are many rows."""
    names = [text(row, "label") for row in rows]
    if max(map(len, names), default=0) > _MAX_NAME:
        names = [*shortened(names)]
    if len(rows) <= TWO_LINES:
        return tuple(map(wrap_name, names))
    return tuple(wrap_name(name, columns=60) for name in names)


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


def shortened(names: Sequence[str]) -> tuple[str, ...]:
    """Return names without the parts at their ends that all of them have in common."""
    parts = [_PART.findall(name) for name in names]
    if len({*names}) < 2 or not all(parts):
        return tuple(names)
    room = min(map(len, parts)) - 1
    first = min(_common(parts), room)
    last = min(_common([each[::-1] for each in parts]), room - first)
    last *= len("".join(parts[0][len(parts[0]) - last :])) >= _MIN_CUT
    while (
        not all(_WORD.search("".join(each[first : len(each) - last])) for each in parts) and first
    ):
        first -= 1  # A number alone is no name
    first *= len("".join(parts[0][:first])) >= _MIN_CUT
    cut = ("".join(each[first : len(each) - last]) for each in parts)
    return tuple(name.rstrip("-_/., ") if last else name for name in cut)


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


def _common(parts: Sequence[Sequence[str]]) -> int:
    """Return the number of parts that all names begin with."""
    places = zip(*parts, strict=False)
    return sum(1 for _ in takewhile(lambda place: len({*place}) == 1, places))


def separating_names(heads: Sequence[Row], *, without: str = "") -> list[str]:
    """Return a name for each line: its pattern and other attributes, as far as they differ.

    Args:
        heads: a row of each line.
        without: option that the lines run along.
    """
    options = [name for name in OPTIONS if name != without]
    places = ["by"] if heads and "by" in heads[0] else ["campaign", "profile", "host", "volume"]
    columns = [[pattern(row) for row in heads]]
    for name in (*places, "rwmixread", "tool", "direct", "ioengine", *options):
        texts = [_separating_text(row, name) for row in heads]
        columns.append([*brief(shortened(texts))] if name in places else texts)
    columns = [texts for texts in columns if len({*texts}) > 1] or columns[:1]
    folders = [_separating_text(row, "import_folder") for row in heads]
    parts = [folder.split("/") for folder in folders]
    sizes = [_separating_text(row, "size_bytes") for row in heads]
    for more in (*zip(*parts, strict=False), folders, sizes):
        if len({*zip(*columns, strict=True)}) == len(heads):
            break
        if len({*zip(*columns, more, strict=True)}) == len(heads) or more is folders:
            columns.insert(1, [*more])
    return [", ".join(dict.fromkeys(filter(None, part))) for part in zip(*columns, strict=True)]


def _separating_text(row: Row, name: str) -> str:
    value = row.get(name)
    if name == "direct":
        return "direct" if value else "buffered"
    if isinstance(value, (int, float)) and not math.isnan(value):
        if name in OPTIONS:
            return option_named(name, value)
        if name == "size_bytes":
            return f"size {format_size(value)}"
        if name == "rwmixread":
            return f"{value:.0f} % reads"
    return text(row, name)


def labelled(frame: pd.DataFrame, summary: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of measured runs with ``label`` and ``line``, the number of their job."""
    rows = of_measured(frame, summary)
    line = rows.groupby(key_of(rows, KEY), sort=False, dropna=False).ngroup()
    heads = rows[~line.duplicated()]  # There may be a million rows
    names = dict(zip(line[heads.index], job_labels(heads), strict=True))
    named = rows.assign(label=line.map(names).astype("str"), line=line)
    return named if PANEL not in rows else separated(named, summary)


def separated(rows: pd.DataFrame, summary: pd.DataFrame) -> pd.DataFrame:
    """Return labelled rows of a panel with what separates its lines as their label.

    Names of jobs stay where that does not tell lines apart.
    """
    known = [name for name in key_of(rows, KEY) if name in rows and name in summary]
    texts = dict.fromkeys(known, "str")
    firsts = rows.drop_duplicates("line")[["line", "label", *known]].astype(texts)
    facts = summary.drop(columns="label", errors="ignore").astype(texts)
    heads = firsts.merge(facts.drop_duplicates(known), on=known, how="left")
    names = separating_names(records(heads))
    if len({*names}) < len(names):
        whole = (heads["label"].astype(str) + ", " + heads["direction"].fillna("?")).tolist()
        names = [*shortened(whole)]
    return rows.assign(label=rows["line"].map(dict(zip(heads["line"], names, strict=True))))


def line_names(rows: pd.DataFrame, line: str) -> pd.Series:
    """Return the name of the line of each row; in a panel of several it is the label.

    Args:
        line: column with the number of the line.
    """
    heads = rows.drop_duplicates(line)
    names = heads["label"].astype("str")
    if PANEL not in rows:
        names += ", " + heads["direction"].astype("str").fillna("?")
    return rows[line].map(dict(zip(heads[line], names, strict=True))).astype("category")


def identified(frame: pd.DataFrame, columns: Sequence[str]) -> pd.DataFrame:
    """Return some columns of a frame after those that identify its rows."""
    return frame[[name for name in dict.fromkeys((*IDENTITY, *columns)) if name in frame]]


def side_by_side(pooled: pd.DataFrame) -> pd.DataFrame:
    """Return pooled rows in numeric order of their names, those that differ in colour together."""
    ordered = pooled.iloc[in_numeric_order(pooled["label"].tolist())].reset_index(drop=True)
    if COLOUR not in ordered:
        return ordered
    order = workloads(ordered)
    return ordered.iloc[order.argsort(kind="stable")].reset_index(drop=True)


def colour_column(frame: pd.DataFrame) -> str:
    """Return the column whose values have a colour each."""
    return COLOUR if COLOUR in frame else "direction"


def colour_series(frame: pd.DataFrame) -> tuple[Series, ...]:
    """Return a series for each value of `colour_column`: directions have colours of their own."""
    column = colour_column(frame)
    values = [str(value) for value in frame[column].unique()]
    if column == "direction":
        return tuple(
            Series(value, printable(value), value if value in DIRECTIONS else "muted")
            for value in values
        )
    return tuple(
        Series(value, wrap_name(printable(value), columns=30), palette(index))
        for index, value in enumerate(values)
    )


def line_series(names: Sequence[str], *, columns: int = 30) -> tuple[Series, ...]:
    """Return a series for each name, distinguished by colour, marker and dash."""
    return tuple(
        Series(name, wrap_name(printable(name), columns=columns), *line_look(index))
        for index, name in enumerate(names)
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
