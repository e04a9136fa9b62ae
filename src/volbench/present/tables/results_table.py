"""Tables of results: a row for each run, groups of many, the aggregate over clients, and states.

Numbers have three digits and SI units; the exact ones are in the frames, and in JSON and CSV.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from statistics import median
from typing import Protocol

from volbench.analyse.frames.matched_workloads import order_by_workload
from volbench.errors import InputError, did_you_mean
from volbench.model.campaign.planned_run import RunNote, RunState
from volbench.model.frames.columns import LABEL_PREFIX, LAST_BINS_S
from volbench.model.profile.profile_model import Phase
from volbench.present.formatting import (
    MISSING,
    NARROW_STATISTICS,
    STATISTICS,
    Row,
    block_size,
    first_line,
    flag,
    is_merged,
    job_label,
    latency,
    number,
    pattern,
    shown,
    skew,
    text,
    whole,
)
from volbench.present.tables.findings_table import warning_marks
from volbench.present.tables.table import IDENTITY, Column, Table, quantity
from volbench.present.tables.volumes_table import collection_words, ranking_tables, workload_classes
from volbench.units import counted_noun, format_count, format_latency, format_size

STATE_STYLES = {
    RunState.FINISHED.value: "green",
    RunState.FAILED.value: "red",
    RunState.INTERRUPTED.value: "yellow",
}
# Reasons of failed and interrupted runs below a table; `states_table` has all of them
_MAX_REASONS = 6
_LATENCY_PRIORITY = {"p99": 1, "mean": 2, "max": 5, "p50": 6}
# Candidates for columns that identify a row together with the job, in order of preference
_IDENTIFYING = (
    "campaign",
    "host",
    "client",
    "profile",
    "repeat",
    "role",
    "volume",
    "direction",
    "run",
)


class Results(Protocol):
    """Campaigns whose frames can be read as rows."""

    def rows(self, name: str) -> list[dict[str, object]]:
        """Return the rows of a frame."""


def result_tables(
    results: Results,
    states: Mapping[str, RunNote],
    *,
    is_brief: bool = False,
    by: Sequence[str] = (),
) -> list[Table[Row]]:
    """Return the results of campaigns, and the aggregate over clients where there are several.

    Results of one workload follow each other, from campaign to campaign.

    Args:
        by: columns of the summary; results that are equal in them are one row of medians.

    Raises:
        InputError: the summary has no such column.
    """
    marks = warning_marks(results.rows("findings"))
    rows = in_numeric_order(order_by_workload(results.rows("summary")))
    if by:
        return [groups_table(rows, marks, states, by=by)]
    tables = [summary_table(rows, states=states, warnings=marks)]
    if is_brief and len(rows) > MAX_RESULTS:
        tables = [groups_table(rows, marks, states)]
        invalid = [run for run, mark in marks.items() if "!" in mark]
        classes = [] if results.rows("aggregate") else workload_classes(rows, invalid)
        if ranked := ranking_tables(classes, most=MAX_RANKED):
            title = collection_words(rows, classes, invalid)
            tables = [*ranked, replace(tables[0], title=" ".join(title))]
    tables += map(aggregate_table, filter(None, [results.rows("aggregate")]))
    return tables


def in_numeric_order(rows: Sequence[Row]) -> list[Row]:
    """Return results in the order of block size, queue depth and numjobs within each pattern."""
    kinds = [
        tuple(text(row, name) for name in ("host", "profile", "volume", "phase", "rw", "direction"))
        for row in rows
    ]
    first = {kind: at for at, kind in reversed(list(enumerate(kinds)))}

    def key(at: int) -> tuple[float, ...]:
        options = (number(rows[at], name) for name in ("block_bytes", "iodepth", "numjobs"))
        return first[kinds[at]], *(-1.0 if math.isnan(value) else value for value in options)

    return [rows[at] for at in sorted(range(len(rows)), key=key)]


def summary_table(
    rows: Sequence[Row],
    *,
    states: Mapping[str, RunNote] | None = None,
    warnings: Mapping[str, str] | None = None,
) -> Table[Row]:
    """Return the results, a row for each run, group and direction.

    Args:
        states: run id to its state; unfinished runs get a row too, and a note says why.
        warnings: run id to its number of data-quality warnings; no column without any.
    """
    states, warnings = dict(states or {}), dict(warnings or {})
    with_results = {str(row.get("run")) for row in rows}
    shared = {name: value for name in ("campaign", "client") for value in _only(rows, name)}
    unfinished = [
        {**shared, **_unfinished_row(run_id, note)}
        for run_id, note in states.items()
        if run_id not in with_results and not note.state.is_settled
    ]
    known = [*rows, *(row for row in unfinished if "host" in row)]
    identity = _identity(known)
    differing = {*identity, *_differing(rows, ["numjobs"])}
    columns = [*_distinguishing_columns(known, identity), *_result_columns(differing)]
    if warnings:
        columns.append(
            Column("warnings", lambda row: warnings.get(text(row, "run"), ""), is_right=True)
        )
    every = [*rows, *unfinished]
    if any(text(row, "status") != RunState.FINISHED.value for row in every):
        columns.append(_STATUS)
        # An interrupted run has IOPS, too: none is shown without the other.
        kept = {"iops", "status"}
        columns = [replace(c, priority=IDENTITY) if c.name in kept else c for c in columns]
    return Table(
        "summary",
        columns,
        every,
        record=lambda row: {} if _UNFINISHED in row else row,
        notes=_notes(rows, states, warnings),
    )


# Key that marks rows of runs without results, which are not part of the frame
_UNFINISHED = "unfinished"


def _only(rows: Sequence[Row], name: str) -> list[object]:
    """Return the value that all rows have in a column; empty if they differ."""
    values = {row.get(name) for row in rows}
    return list(values) if len(values) == 1 else []


def _unfinished_row(run_id: str, note: RunNote) -> Row:
    row: Row = {"run": run_id, "status": note.state.value, _UNFINISHED: True}
    if (run := note.run) is None:
        return {**row, "job": run_id}
    client = {"client": run.client} if run.client else {}
    target = {"host": run.host, "role": run.volume.role, **client}
    job = {"profile": run.profile, "job": run.job, "phase": run.phase.value, "repeat": run.repeat}
    options = run.effective(run.sections[0])
    names = (("block_bytes", "bs"), ("iodepth", "iodepth"), ("numjobs", "numjobs"))
    planned = {key: int(options[name]) for key, name in names if options.get(name, "").isdecimal()}
    return {**row, **target, **job, "rw": options.get("rw"), **planned}


def _identity(rows: Sequence[Row]) -> set[str]:
    """Return the columns that are needed beside the job to identify each row."""
    keys: list[tuple[object, ...]] = [(job_label(row),) for row in rows]
    needed = set()
    for name in _IDENTIFYING:
        longer = [(*key, row.get(name)) for key, row in zip(keys, rows, strict=True)]
        if len(set(longer)) > len(set(keys)):
            needed.add(name)
            keys = longer
    return needed


def _labels(rows: Sequence[Row]) -> list[str]:
    """Return the labels of hosts that any row has."""
    return list(
        dict.fromkeys(name for row in rows for name in row if name.startswith(LABEL_PREFIX))
    )


def _differing(rows: Sequence[Row], names: Sequence[str]) -> list[str]:
    return [name for name in names if len({str(row.get(name)) for row in rows}) > 1]


def _distinguishing_columns(rows: Sequence[Row], identity: Collection[str]) -> list[Column[Row]]:
    """Return the columns that differ between rows, beside those of the job."""
    names = ["campaign", "host", *_labels(rows), "client", "profile", "role", "volume", "repeat"]
    if len({str(row.get("role")) for row in rows}) == len({str(row.get("volume")) for row in rows}):
        names.remove("volume")  # the role tells the volumes apart
    names += ["run"] if "run" in identity else []
    return [
        replace(_identifying(name), priority=IDENTITY if name in identity else 4)
        for name in _differing(rows, names)
    ]


def _identifying(name: str) -> Column[Row]:
    """Return a column that says which run a row is of."""
    return Column(name, header=name.removeprefix(LABEL_PREFIX))


def _job(row: Row) -> str:
    phase = text(row, "phase", missing=Phase.MEASURED.value)
    return job_label(row) + ("" if phase == Phase.MEASURED.value else f" ({phase})")


_LAST_BIN = re.compile(r"\bc?lat p([\d.]+)( and above)? > ([\d.]+ s) \(the last bin")


def lower_bound(row: Row, statistic: str) -> str:
    """Return ``> 17.1 s`` for a percentile in the last bin of fio; empty for any other."""
    match = _LAST_BIN.search(text(row, "impossible"))
    percentile = STATISTICS[statistic].removeprefix("p")
    if match is None or not percentile[0].isdigit():
        return ""
    is_beyond = bool(match[2]) and float(percentile) > float(match[1])
    return f"> {match[3]}" if is_beyond or percentile == match[1] else ""


def _latency_column(statistic: str) -> Column[Row]:
    """Return a latency; a star marks completion latency in place of total latency."""

    def show(row: Row) -> str:
        statistic_of_row = latency(row, statistic)
        if math.isnan(statistic_of_row.seconds) and (bound := lower_bound(row, statistic)):
            return bound
        return format_latency(statistic_of_row.seconds) + "*" * statistic_of_row.is_completion

    return Column(
        f"lat_{statistic}_s",
        show,
        header=f"lat {statistic}",
        priority=_LATENCY_PRIORITY.get(statistic, 7),
        is_right=True,
    )


_WORKLOAD: tuple[Column[Row], ...] = (
    Column("rw", pattern),
    quantity(
        "block_bytes",
        "bs",
        show=lambda row: text(row, "rw") if is_merged(row) else block_size(row),
        is_right=False,
    ),
    quantity(
        "iodepth",
        show=lambda row: text(row, "rw") if is_merged(row) else whole(row, "iodepth"),
    ),
    Column(
        "direct",
        lambda row: flag(row, "direct"),
        priority=7,
    ),
)
_RATES: tuple[Column[Row], ...] = (
    quantity("iops", "IOPS"),
    quantity(
        "bw_bytes_per_s",
        "bandwidth",
        priority=2,
    ),
)
_STATUS: Column[Row] = Column("status", styles=STATE_STYLES)


def _result_columns(identity: Collection[str]) -> list[Column[Row]]:
    """Return the columns from the job to the status."""
    workload, *others = _WORKLOAD
    return [
        Column("job", _job, priority=6 if "run" in identity else IDENTITY),
        replace(workload, priority=IDENTITY if "direction" in identity else workload.priority),
        *others,
        *(
            [replace(_identifying("numjobs"), priority=3, is_right=True)]
            if "numjobs" in identity
            else []
        ),
        *_RATES,
        *(_latency_column(statistic) for statistic in NARROW_STATISTICS),
        Column("in_flight", _in_flight, header="in flight", priority=8, is_right=True),
        Column("cpu", _cpu, header="CPU", priority=8, is_right=True),
    ]


def _in_flight(row: Row) -> str:
    """Return the mean number of I/Os in flight, by Little's law."""
    mean = number(row, "iops") * latency(row, "mean").seconds
    return MISSING if math.isnan(mean) else f"{mean:.3g}"


def _cpu(row: Row) -> str:
    """Return the CPU time of each process of the job, user and system, of one CPU."""
    percent = number(row, "cpu_usr") + number(row, "cpu_sys")
    return MISSING if math.isnan(percent) else f"{percent:.3g} %"


def _notes(
    rows: Sequence[Row], states: Mapping[str, RunNote], warnings: Mapping[str, str]
) -> list[str]:
    """Return the notes: substitutes, warnings, and reasons of failed runs."""
    notes = []
    if warnings:
        is_any_invalid = any("!" in mark for mark in warnings.values())
        worst = ", ! the result is invalid" if is_any_invalid else ""
        notes.append(f"warnings: number of data-quality warnings{worst}; see volbench check")
    if any(
        latency(row, statistic).is_completion for row in rows for statistic in NARROW_STATISTICS
    ):
        notes.append("* completion latency, where that of the whole I/O was not reported")
    notes += damage_notes({text(row, "run"): text(row, "damage") for row in rows})
    notes += _unfinished(states)
    for state, ending in ((RunState.NOT_NEEDED, "not needed"), (RunState.LOST, "lost")):
        reasons = Counter(
            first_line(note.reason) for note in states.values() if note.state is state
        )
        for reason, count in reasons.items():
            notes.append(f"{count} {'run was' if count == 1 else 'runs were'} {ending}: {reason}")
    return notes


def damage_notes(damaged: Mapping[str, str]) -> list[str]:
    """Return a line for the runs whose files are damaged.

    Args:
        damaged: run id to what is damaged; empty for nothing.
    """
    runs = [run for run in damaged if damaged[run]]
    if not runs:
        return []
    count = f"{counted_noun(len(runs), 'run')} {'has' if len(runs) == 1 else 'have'}"
    return [f"{count} damaged files ({runs[0]}: {damaged[runs[0]]}); see volbench check --files"]


def _unfinished(states: Mapping[str, RunNote]) -> list[str]:
    """Return each reason of failed and interrupted runs once, the first few reasons only."""
    runs: dict[tuple[str, str], list[str]] = {}
    for run_id, note in states.items():
        if note.reason and note.state in (RunState.FAILED, RunState.INTERRUPTED):
            runs.setdefault((note.state.value, first_line(note.reason)), []).append(run_id)
    notes = [
        f"{first}{f' and {len(others):,} more' if others else ''} {state}: {reason}"
        for (state, reason), (first, *others) in runs.items()
    ]
    if len(notes) <= _MAX_REASONS:
        return notes
    left_out = sum(map(len, list(runs.values())[_MAX_REASONS:]))
    rest = f"{counted_noun(left_out, 'more run')} did not finish: see volbench show --runs"
    return [*notes[:_MAX_REASONS], rest]


def _clients(row: Row) -> str:
    clients, planned = row.get("clients"), row.get("clients_planned")
    return f"{clients}" if clients == planned else f"only {clients} of {planned}"


def _merged_p99(row: Row) -> str:
    """Return the p99 of all clients' bins: with a median alone, it is in the last bin."""
    if math.isnan(number(row, "lat_p99_s")) and not math.isnan(number(row, "lat_p50_s")):
        return f"> {max(LAST_BINS_S):.1f} s"
    return shown(row, "lat_p99_s", format_latency)


AGGREGATE_COLUMNS: tuple[Column[Row], ...] = (
    Column("campaign", priority=IDENTITY, is_optional=True),
    Column("profile", priority=IDENTITY, is_optional=True),
    Column("repeat", priority=IDENTITY, is_optional=True),
    Column("job", job_label, priority=IDENTITY),
    Column("direction", priority=IDENTITY),
    Column(
        "clients",
        _clients,
        is_right=True,
    ),
    quantity("overlap_s", "overlap", priority=4),
    *(replace(column) for column in _RATES),
    Column(
        "fairness",
        lambda row: shown(row, "fairness", "{:.2f}".format),
        is_right=True,
        priority=3,
    ),
    quantity("lat_mean_s", "lat mean", priority=4),
    quantity("lat_p99_s", "lat p99", show=_merged_p99, priority=2),
    quantity("lat_max_s", "lat max", priority=5),
    quantity(
        "start_skew_s",
        "start skew",
        priority=3,
        show=skew,
    ),
)


def _label_columns(rows: Sequence[Row]) -> list[Column[Row]]:
    """Return the labels of hosts that differ between steps; one of them tells steps apart."""
    return [
        replace(_identifying(name), priority=4 if place else IDENTITY)
        for place, name in enumerate(_differing(rows, _labels(rows)))
    ]


def aggregate_table(rows: Sequence[Row]) -> Table[Row]:
    """Return the aggregate over clients, a row for each job, repeat and direction."""
    visible = {name for name in ("campaign", "profile") if len({row.get(name) for row in rows}) > 1}
    visible |= _identity(rows)
    columns = [own for own in AGGREGATE_COLUMNS if own.name in visible or not own.is_optional]
    return Table(
        "aggregate",
        [*_label_columns(rows), *columns],
        rows,
        title="aggregate over clients",
        notes=[_sums_note(rows)],
    )


def _sums_note(rows: Sequence[Row]) -> str:
    """Return what the rates of the aggregate are, and why some are missing; syncs have none."""
    note = "sums over the time in which all clients ran; latencies of all their I/Os"
    rates = [number(row, "iops") for row in rows if row.get("direction") != "sync"]
    if not any(map(math.isnan, rates)):
        return note
    return (
        f"{note}; n/a: runs too short for a common interval, not at the same time, or with an"
        " invalid result"
    )


MAX_RANKED = 3  # Volumes of a workload that are ranked on a screen; the report ranks all
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
    labels = {name.removeprefix(LABEL_PREFIX): name for name in _labels(rows)}
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
    candidates = {**_KEYS, **{name: _text_of(name) for name in _labels(rows)}}
    chosen: dict[str, Callable[[Row], str]] = {}
    parts: list[tuple[str, ...]] = [() for _ in rows]
    for name, show in candidates.items():
        longer = [(*part, show(row)) for part, row in zip(parts, rows, strict=True)]
        if len(set(parts)) < len(set(longer)) <= MAX_GROUPS:
            chosen[name], parts = show, longer
    return chosen or {"rw": pattern}


def _is_finished(row: Row) -> bool:
    ended = RunState.FINISHED.value
    return text(row, "status", missing=ended) == ended


def _group(
    keys: Mapping[str, object], key: Sequence[str], rows: Sequence[Row], warnings: Mapping[str, str]
) -> dict[str, object]:
    marks = [warnings[run] for row in rows if (run := text(row, "run")) in warnings]
    finished = [row for row in rows if _is_finished(row)]
    valid = [row for row in finished if "!" not in warnings.get(text(row, "run"), "")]
    iops = _known(number(row, "iops") for row in valid)
    tails = _known(latency(row, "p99").seconds for row in valid)
    ends = dict.fromkeys(format_count(value) for value in (min(iops), max(iops))) if iops else ()
    return {
        **{name.removeprefix(LABEL_PREFIX): value for name, value in zip(keys, key, strict=True)},
        "results": len(finished),
        **{
            name: _range(_known(number(row, column) for row in rows), format_value)
            for name, (column, format_value) in _RANGES.items()
            if name not in keys
        },
        "iops": median(iops) if iops else None,
        "range": " to ".join(ends) or MISSING,
        "bw_bytes_per_s": _median(number(row, "bw_bytes_per_s") for row in valid),
        # A percentile of some of the results does not belong beside the IOPS of all
        "lat_p99_s": median(tails) if len(tails) == len(iops) and tails else None,
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
