"""Frames as Markdown and LaTeX tables, rounded and with units."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pandas as pd

from volbench.model.frames.columns import FRAMES, LABEL_PREFIX, SUMMARY, Column, described
from volbench.present.formatting import (
    MISSING,
    Row,
    flag,
    number,
    printable,
    records,
    text,
    unit_words,
)
from volbench.present.tables.render_table import markdown_text

TEXT_FORMATS = ("markdown", "latex")

# Headings that people say otherwise than the column is called
_WORDS = {
    "block_bytes": "bs",
    "bw_bytes_per_s": "bandwidth",
    "iops": "IOPS",
    "iodepth": "depth",
    "numjobs": "jobs",
}

_RESULTS = ("rw", "block_bytes", "iodepth", "iops", "bw_bytes_per_s")
_STATISTICS = ("mean", "p50", "p99")
# Shown where they differ, before the job, and labels with them
_TELLING = ("campaign", "host", "client", "profile", "role", "repeat")

_LATEX = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "$": r"\$",
    "&": r"\&",
    "#": r"\#",
    "^": r"\textasciicircum{}",
    "_": r"\_",
    "~": r"\textasciitilde{}",
    "%": r"\%",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    "-": "{-}",  # two in a row would become a dash
    "[": "{[}",  # behind the end of a row it would be an argument
    "]": "{]}",
}


def default_columns(frame: pd.DataFrame, *, frame_name: str) -> list[str]:
    """Return the columns that a table for people shows when none are named.

    Args:
        frame: of a summary the identifying columns, the workload and the results;
            every column of any other frame.
        frame_name: such as ``summary``.
    """
    if frame_name != "summary" or not {column.name for column in SUMMARY} <= set(frame.columns):
        return [str(name) for name in frame.columns]
    labels = [str(name) for name in frame.columns if str(name).startswith(LABEL_PREFIX)]
    rows = records(frame)
    telling = [
        name
        for name in (*_TELLING[:2], *labels, *_TELLING[2:])
        if len({str(row[name]) for row in rows}) > 1
    ]
    kind = (
        "clat" if frame["lat_p99_s"].isna().all() and frame["clat_p99_s"].notna().any() else "lat"
    )
    mixed = frame.groupby(["run", "group"], dropna=False)["direction"].nunique().gt(1).any()
    results = [_RESULTS[0], *(["direction"] if mixed else []), *_RESULTS[1:]]
    return [*telling, "job", *results, *(f"{kind}_{name}_s" for name in _STATISTICS)]


def render_text(frame: pd.DataFrame, *, frame_name: str, format_name: str) -> str:
    """Return a table for people: three digits and units that suit each number.

    Args:
        frame: the columns that are to be shown, in their order.
        frame_name: gives the columns' units.
        format_name: ``markdown`` (pipes, as GitHub reads it) or ``latex`` (a ``tabular`` for the
            package booktabs).
    """
    columns = [_known(str(name), frame_name=frame_name) for name in frame.columns]
    right = [
        pd.api.types.is_numeric_dtype(dtype) and not pd.api.types.is_bool_dtype(dtype)
        for dtype in frame.dtypes
    ]
    headings = [_heading(column) for column in columns]
    rows = [[_cell(row, column) for column in columns] for row in records(frame)]
    draw = markdown_text if format_name == "markdown" else _latex
    return draw(headings, rows, right)


def _known(name: str, *, frame_name: str) -> Column:
    """Return a column's description; that of a frame that has it, where its own does not."""
    for frame in (frame_name, *FRAMES):
        if any(column.name == name for column in FRAMES.get(frame, ())):
            return described(name, frame_name=frame)
    return described(name)


def _heading(column: Column) -> str:
    """Return a column's name without unit, as a person would write it."""
    if column.name in _WORDS:
        return _WORDS[column.name]
    name = column.name.removeprefix(LABEL_PREFIX)
    ending = {"s": "_s", "bytes": "_bytes", "bytes/s": "_bytes_per_s", "%": "_percent"}
    name = name.removesuffix(ending.get(column.unit, "")) if column.unit else name
    return name.replace("_", " ")


def _cell(row: Row, column: Column) -> str:
    """Return one cell in words for people."""
    value = row.get(column.name)
    if isinstance(value, bool):
        return flag(row, column.name)
    amount = number(row, column.name)
    if math.isnan(amount):
        return text(row, column.name, missing=MISSING) if isinstance(value, str) else MISSING
    if column.unit == "%":
        return f"{amount:.3g} %"
    if column.unit in {"s", "bytes", "bytes/s", "1/s"}:
        return unit_words(column.name, column.unit)(amount)
    return f"{amount:.0f}" if amount.is_integer() else f"{amount:.4g}"


def _latex(headings: Sequence[str], rows: Sequence[Sequence[str]], right: Sequence[bool]) -> str:
    """Return a tabular; the comment says what its document needs."""
    alignment = "".join("r" if is_right else "l" for is_right in right)
    lines = [" & ".join(_latex_text(cell) for cell in row) + r" \\" for row in (headings, *rows)]
    body = [rf"\begin{{tabular}}{{{alignment}}}", r"\toprule", lines[0], r"\midrule", *lines[1:]]
    body += [r"\bottomrule", r"\end{tabular}"]
    return "% needs \\usepackage{booktabs}\n" + "\n".join(body) + "\n"


def _latex_text(cell: str) -> str:
    """Return a text that LaTeX prints as it is."""
    words = " ".join(printable(cell).split())
    return "".join(_LATEX.get(char, char) for char in words)
