"""Table of groups of results, for campaigns with more results than a screen can show."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from statistics import median

from volbench.model.frames.columns import LABEL_PREFIX
from volbench.present.formatting import (
    MISSING,
    Row,
    job_label,
    latency,
    number,
    pattern,
    size,
    text,
)
from volbench.present.tables.table import IDENTITY, Column, Table, quantity
from volbench.present.terminal.campaign_text import RunNote
from volbench.units import format_count, format_size

MOST_RESULTS = 60  # More results than these are shown by group
_MOST_GROUPS = 20  # Number of rows that fit a screen of 24 lines with heading and prompt

# Grouping keys in the order in which they are added, while there are few enough groups
_KEYS: Mapping[str, Callable[[Row], str]] = {
    "campaign": lambda row: text(row, "campaign"),
    "rw": pattern,
    "bs": lambda row: size(row, "block_bytes"),
    "host": lambda row: text(row, "host"),
    "profile": lambda row: text(row, "profile"),
    "job": job_label,
    "iodepth": lambda row: text(row, "iodepth"),
    "numjobs": lambda row: text(row, "numjobs"),
}
# Columns with a range where they are no key: column of the summary, and format
_RANGES: Mapping[str, tuple[str, Callable[[float], str]]] = {
    "bs": ("block_bytes", format_size),
    "iodepth": ("iodepth", "{:.0f}".format),
    "numjobs": ("numjobs", "{:.0f}".format),
    "repeat": ("repeat", "{:.0f}".format),
}


def groups_table(
    rows: Sequence[Row], warnings: Mapping[str, str], states: Mapping[str, RunNote]
) -> Table[Row]:
    """Return a row for each group of results: size, medians and range."""
    keys = _chosen_keys(rows)
    groups: dict[tuple[str, ...], list[Row]] = {}
    for row in rows:
        groups.setdefault(tuple(show(row) for show in keys.values()), []).append(row)
    columns: list[Column[Row]] = [
        *(Column(name.removeprefix(LABEL_PREFIX), priority=IDENTITY) for name in keys),
        Column("results", is_right=True),
        *(
            Column(name, priority=5, is_right=True, is_optional=True)
            for name in _RANGES
            if name not in keys
        ),
        quantity("iops", "median IOPS"),
        Column("range", priority=2, is_right=True),
        quantity("bw_bytes_per_s", "bandwidth", priority=3),
        quantity("lat_p99_s", "lat p99", priority=2),
        Column(
            "warnings",
            lambda row: text(row, "warnings"),
            priority=3,
            is_right=True,
            is_optional=True,
        ),
    ]
    named = [_group(keys, key, own, warnings) for key, own in groups.items()]
    notes = [
        f"{len(rows)} results in {len(groups)} groups, medians; range: smallest to largest IOPS",
        "volbench show --each shows every result, --where 'rw==randread and bs==4k' some of them",
    ]
    counts = Counter(note.state.value for note in states.values() if not note.state.is_settled)
    without = ", ".join(f"{count} {state}" for state, count in counts.items())
    more = [f"not finished: {without}; see volbench show --runs"] if without else []
    if warnings:
        more.append(_affected(rows, warnings))
    return Table("groups", columns, named, notes=[*notes, *more])


def _affected(rows: Sequence[Row], warnings: Mapping[str, str]) -> str:
    """Return how many results have warnings and how many are invalid, in a sentence."""
    marks = [warnings[run] for row in rows if (run := text(row, "run")) in warnings]
    invalid = sum("!" in mark for mark in marks)
    also = f", {invalid} (!) are invalid" if invalid else ""
    return (
        f"{len(marks)} of {len(rows)} results have data-quality warnings{also}; see volbench check"
    )


def _chosen_keys(rows: Sequence[Row]) -> dict[str, Callable[[Row], str]]:
    """Return the grouping keys, without those that are equal in all rows."""
    labels = dict.fromkeys(name for row in rows for name in row if name.startswith(LABEL_PREFIX))
    candidates = dict(_KEYS)
    for name in labels:
        candidates[name] = lambda row, name=name: text(row, name)  # type: ignore[misc]  # the default binds the loop's value
    chosen: dict[str, Callable[[Row], str]] = {}
    parts: list[tuple[str, ...]] = [() for _ in rows]
    for name, show in candidates.items():
        longer = [(*part, show(row)) for part, row in zip(parts, rows, strict=True)]
        if len(set(parts)) < len(set(longer)) <= _MOST_GROUPS:
            chosen[name], parts = show, longer
    return chosen or {"rw": pattern}


def _group(
    keys: Mapping[str, object], key: Sequence[str], rows: Sequence[Row], warnings: Mapping[str, str]
) -> dict[str, object]:
    marks = [warnings[run] for row in rows if (run := text(row, "run")) in warnings]
    iops = _known(number(row, "iops") for row in rows)
    ends = dict.fromkeys(format_count(value) for value in (min(iops), max(iops))) if iops else ()
    return {
        **{name.removeprefix(LABEL_PREFIX): value for name, value in zip(keys, key, strict=True)},
        "results": len(rows),
        **{
            name: _range(_known(number(row, column) for row in rows), format_value)
            for name, (column, format_value) in _RANGES.items()
            if name not in keys
        },
        "iops": median(iops) if iops else None,
        "range": " to ".join(ends) or MISSING,
        "bw_bytes_per_s": _median(number(row, "bw_bytes_per_s") for row in rows),
        "lat_p99_s": _median(latency(row, "p99").seconds for row in rows),
        "warnings": f"{len(marks)}{'!' if any('!' in mark for mark in marks) else ''}"
        if marks
        else "",
    }


def _known(values: Iterable[float]) -> list[float]:
    return [value for value in values if not math.isnan(value)]


def _median(values: Iterable[float]) -> float | None:
    known = _known(values)
    return median(known) if known else None


def _range(values: Sequence[float], format_value: Callable[[float], str]) -> str:
    """Return values as ``1 to 64``; empty where none is known."""
    ends = dict.fromkeys(map(format_value, (min(values), max(values)))) if values else ()
    return " to ".join(ends)
