"""Titles of charts: what all drawn runs have in common, what is drawn, and by what it differs.

A title such as ``randwrite 4k: IOPS by queue depth and numjobs, /dev/nvme0n1`` is of the measured
runs; it never says more than all of them have in common, so that it holds for any part of them.
"""

from __future__ import annotations

from typing import Any

import pandas as pd

from volbench.analyse.frames.job_frames import OPTIONS, measured
from volbench.present.formatting import printable
from volbench.present.plots.kind import PER_JOB, Kind
from volbench.present.plots.labels import OPTION_WORDS, option_named, short_target
from volbench.units import format_size

# Characters from which on a title loses its least important parts. volbench's own choice.
MAX_LENGTH = 96
_MOST_OPTIONS = 2


def chart_title(kind: Kind[Any], summary: pd.DataFrame) -> str:
    """Return the title of a chart."""
    rows = measured(summary) if kind.needs_results else summary.iloc[:0]
    rows = rows[rows["direction"] != "sync"]
    quantity = _quantity(kind, rows)
    workload = _workload(rows)
    place = _place(rows)
    shorter = ((workload, place), (workload[:1], place), (workload[:1], ""), ((), place))
    titles = [_joined(words, quantity, where) for words, where in shorter]
    return next((title for title in titles if len(title) <= MAX_LENGTH), quantity)


def _joined(workload: tuple[str, ...], quantity: str, place: str) -> str:
    ending = f"{quantity}, {place}" if place else quantity
    if not workload:
        return ending
    is_word = ending[1:2].islower()
    return f"{', '.join(workload)}: {ending[0].lower() if is_word else ending[0]}{ending[1:]}"


def _quantity(kind: Kind[Any], rows: pd.DataFrame) -> str:
    """Return the quantity, and of a chart of jobs the options that they differ in."""
    if not kind.by_options:
        return kind.title
    options = ("rw", *OPTIONS) if kind.by_options == PER_JOB else OPTIONS
    differing = [OPTION_WORDS[name] for name in options if len(rows[name].unique()) > 1]
    if not 0 < len(differing) <= _MOST_OPTIONS:
        return f"{kind.title} {kind.by_options}"
    return f"{kind.title} by {' and '.join(differing)}"


def _workload(rows: pd.DataFrame) -> tuple[str, ...]:
    """Return the workload that all rows have: pattern and block size, queue depth, jobs."""
    words, block = _text(rows, "rw"), _number(rows, "block_bytes")
    if block:
        words = f"{words} {format_size(block)}" if words else f"{format_size(block)} blocks"
    if not words:
        return ()
    depth, jobs = _number(rows, "iodepth"), _number(rows, "numjobs")
    options = [option_named("iodepth", depth)] if depth else []
    options += [option_named("numjobs", jobs)] if jobs > 1 else []
    return (words, *options)


def _place(rows: pd.DataFrame) -> str:
    """Return the volume that all rows have, and the host if it is another machine."""
    volume, host = _text(rows, "volume"), _text(rows, "host")
    named = "" if volume == "unknown" else short_target(volume)
    away = "" if host in {"local", "unknown"} else host
    return f"{named} on {away}" if named and away else named or away


def _text(rows: pd.DataFrame, column: str) -> str:
    """Return the text that all rows have; empty if they differ or it is unknown."""
    values = rows[column].unique()
    return printable(str(values[0])) if len(values) == 1 and pd.notna(values[0]) else ""


def _number(rows: pd.DataFrame, column: str) -> float:
    """Return the number that all rows have; 0 if they differ or it is unknown."""
    values = rows[column].unique()
    return float(values[0]) if len(values) == 1 and pd.notna(values[0]) else 0.0
