"""Table of groups of many results: medians and ranges."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from statistics import median

from volbench.errors import InputError, did_you_mean
from volbench.model.campaign.planned_run import RunNote, RunState
from volbench.model.frames.columns import LABEL_PREFIX
from volbench.present.formatting import (
    MISSING,
    Row,
    block_size,
    job_label,
    latency,
    number,
    pattern,
    text,
)
from volbench.present.tables.summary_table import (
    damage_notes,
    labels_of,
)
from volbench.present.tables.table import IDENTITY, Column, Table, quantity
from volbench.units import counted_noun, format_count, format_size

MAX_RESULTS = 60  # More do not fit two screens. Noticed by: test_groups_table.py
MAX_GROUPS = 20  # Number of rows that fit a screen of 24 lines with heading and prompt
# Grouping keys in the order in which they are added, while there are few enough groups
_KEYS: Mapping[str, Callable[[Row], str]] = {
    "campaign": lambda row: text(row, "campaign"),
    "rw": pattern,
    "bs": block_size,
    "host": lambda row: text(row, "host"),
    "volume": lambda row: text(row, "volume"),
    "profile": lambda row: text(row, "profile"),
    "job": job_label,
    "iodepth": lambda row: text(row, "iodepth"),
    "numjobs": lambda row: text(row, "numjobs"),
}
_UNLIKE = ("rw", "bs", "iodepth", "numjobs")  # Keys whose values make different workloads
# Columns with a range where they are no key: column of the summary, and format
_RANGES: Mapping[str, tuple[str, Callable[[float], str]]] = {
    "bs": ("block_bytes", format_size),
    "iodepth": ("iodepth", "{:.0f}".format),
    "numjobs": ("numjobs", "{:.0f}".format),
    "repeat": ("repeat", "{:.0f}".format),
}


def groups_table(
    rows: Sequence[Row],
    warnings: Mapping[str, str],
    states: Mapping[str, RunNote],
    *,
    by: Sequence[str] = (),
) -> Table[Row]:
    """Return a row for each group of results: size, medians and range.

    Args:
        by: columns that separate groups; without them, those that give few groups.
    """
    keys = _named_keys(rows, by) if by else _chosen_keys(rows)
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
    named = [_group(keys, key, members, warnings) for key, members in groups.items()]
    results = counted_noun(sum(map(_is_finished, rows)), "result")
    size_words = f"{results} in {counted_noun(len(groups), 'group')}"
    notes = [
        f"{size_words}, medians; range: smallest to largest IOPS",
        "volbench show --each lists every result; --where 'rw==randread and bs==4k' selects some",
    ]
    counts = Counter(note.state.value for note in states.values() if not note.state.is_settled)
    without = ", ".join(f"{count} {state}" for state, count in counts.items())
    more = [f"not finished: {without}; see volbench show --runs"] if without else []
    more += damage_notes({text(row, "run"): text(row, "damage") for row in rows})
    if warnings:
        more.append(_affected(rows, warnings))
    unlike = [
        name
        for name, show in _KEYS.items()
        if name in _UNLIKE and any(len(set(map(show, members))) > 1 for members in groups.values())
    ]
    if by and unlike:
        more.append(
            f"caution: results in one row differ in {', '.join(unlike)}, so their median describes"
            f" no workload; add --by {','.join([*by, *unlike])}"
        )
    return Table("groups", columns, named, notes=[*notes, *more])


def _affected(rows: Sequence[Row], warnings: Mapping[str, str]) -> str:
    """Return how many results have warnings and how many are invalid, in a sentence."""
    marks = [warnings[run] for row in rows if (run := text(row, "run")) in warnings]
    invalid = sum("!" in mark for mark in marks)
    also = f", {invalid} (!) invalid and left out of medians and ranges" if invalid else ""
    count = counted_noun(sum(map(_is_finished, rows)), "result")
    have = "has" if len(marks) == 1 else "have"
    return f"{len(marks):,} of {count} {have} data-quality warnings{also}; see volbench check"


def _named_keys(rows: Sequence[Row], by: Sequence[str]) -> dict[str, Callable[[Row], str]]:
    """Return the grouping keys that a user named: columns, and labels without their prefix."""
    labels = {name.removeprefix(LABEL_PREFIX): name for name in labels_of(rows)}
    columns = {*_KEYS, *labels, *(name for row in rows for name in row)}
    for name in by:
        if name not in columns:
            raise InputError(
                f"--by names {name}, which is not a column of the summary",
                hint=did_you_mean(name, columns) or "see volbench export --columns",
            )
    return {name: _KEYS.get(name) or _text_of(labels.get(name, name)) for name in by}


def _text_of(column: str) -> Callable[[Row], str]:
    return lambda row: text(row, column)


def _chosen_keys(rows: Sequence[Row]) -> dict[str, Callable[[Row], str]]:
    """Return the grouping keys, without those that are equal in all rows."""
    candidates = {**_KEYS, **{name: _text_of(name) for name in labels_of(rows)}}
    chosen: dict[str, Callable[[Row], str]] = {}
    parts: list[tuple[str, ...]] = [() for _ in rows]
    for name, show in candidates.items():
        longer = [(*part, show(row)) for part, row in zip(parts, rows, strict=True)]
        if len(set(parts)) < len(set(longer)) <= MAX_GROUPS:
            chosen[name], parts = show, longer
    return chosen or {"rw": pattern}


def _group(
    keys: Mapping[str, object], key: Sequence[str], rows: Sequence[Row], warnings: Mapping[str, str]
) -> dict[str, object]:
    marks = [warnings[run] for row in rows if (run := text(row, "run")) in warnings]
    finished = [row for row in rows if _is_finished(row)]
    valid = [row for row in finished if "!" not in warnings.get(text(row, "run"), "")]
    iops = _numbers_known(number(row, "iops") for row in valid)
    tails = _numbers_known(latency(row, "p99").seconds for row in valid)
    ends = dict.fromkeys(format_count(value) for value in (min(iops), max(iops))) if iops else ()
    return {
        **{name.removeprefix(LABEL_PREFIX): value for name, value in zip(keys, key, strict=True)},
        "results": len(finished),
        **{
            name: _range_words(_numbers_known(number(row, column) for row in rows), format_value)
            for name, (column, format_value) in _RANGES.items()
            if name not in keys
        },
        "iops": median(iops) if iops else None,
        "range": " to ".join(ends) or MISSING,
        "bw_bytes_per_s": _median_or_none(number(row, "bw_bytes_per_s") for row in valid),
        # A percentile of some of the results does not belong beside the IOPS of all
        "lat_p99_s": median(tails) if len(tails) == len(iops) and tails else None,
        "warnings": f"{len(marks)}{'!' if any('!' in mark for mark in marks) else ''}"
        if marks
        else "",
    }


def _is_finished(row: Row) -> bool:
    ended = RunState.FINISHED.value
    return text(row, "status", missing=ended) == ended


def _numbers_known(values: Iterable[float]) -> list[float]:
    return [value for value in values if not math.isnan(value)]


def _median_or_none(values: Iterable[float]) -> float | None:
    known = _numbers_known(values)
    return median(known) if known else None


def _range_words(values: Sequence[float], format_value: Callable[[float], str]) -> str:
    """Return values as ``1 to 64``; empty where none is known."""
    ends = dict.fromkeys(map(format_value, (min(values), max(values)))) if values else ()
    return " to ".join(ends)
