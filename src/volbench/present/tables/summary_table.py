"""Table of results: a row for each run, group and direction.

Numbers have three digits and SI units; the exact ones are in the frames, and in JSON and CSV.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from volbench.model.campaign.planned_run import RunNote, RunState
from volbench.model.frames.columns import LABEL_PREFIX
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
    text,
    whole,
)
from volbench.present.tables.table import IDENTITY, Column, Table, quantity
from volbench.units import counted_noun, format_latency

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
# Key that marks rows of runs without results, which are not part of the frame
_UNFINISHED = "unfinished"
_LAST_BIN = re.compile(r"\bc?lat p([\d.]+)( and above)? > ([\d.]+ s) \(the last bin")
_WORKLOAD: tuple[Column[Row], ...] = (
    Column("rw", pattern),
    quantity(
        "block_bytes",
        "bs",
        show=lambda row: text(row, "rw") if is_merged(row) else block_size(row),
        is_right=False,
    ),
    quantity(
        "iodepth", show=lambda row: text(row, "rw") if is_merged(row) else whole(row, "iodepth")
    ),
    Column("direct", lambda row: flag(row, "direct"), priority=7),
)
RATES: tuple[Column[Row], ...] = (
    quantity("iops", "IOPS"),
    quantity("bw_bytes_per_s", "bandwidth", priority=2),
)
_STATUS: Column[Row] = Column("status", styles=STATE_STYLES)


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
    shared = {
        name: value for name in ("campaign", "client") for value in _shared_values(rows, name)
    }
    unfinished = [
        {**shared, **_unfinished_row(run_id, note)}
        for run_id, note in states.items()
        if run_id not in with_results and not note.state.is_settled
    ]
    known = [*rows, *(row for row in unfinished if "host" in row)]
    identity = identity_columns(known)
    differing = {*identity, *differing_columns(rows, ["numjobs"])}
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


def lower_bound(row: Row, statistic: str) -> str:
    """Return ``> 17.1 s`` for a percentile in the last bin of fio; empty for any other."""
    match = _LAST_BIN.search(text(row, "impossible"))
    percentile = STATISTICS[statistic].removeprefix("p")
    if match is None or not percentile[0].isdigit():
        return ""
    is_beyond = bool(match[2]) and float(percentile) > float(match[1])
    return f"> {match[3]}" if is_beyond or percentile == match[1] else ""


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


def identity_columns(rows: Sequence[Row]) -> set[str]:
    """Return the columns that are needed beside the job to identify each row."""
    keys: list[tuple[object, ...]] = [(job_label(row),) for row in rows]
    needed = set()
    for name in _IDENTIFYING:
        longer = [(*key, row.get(name)) for key, row in zip(keys, rows, strict=True)]
        if len(set(longer)) > len(set(keys)):
            needed.add(name)
            keys = longer
    return needed


def labels_of(rows: Sequence[Row]) -> list[str]:
    """Return the labels of hosts that any row has."""
    return list(
        dict.fromkeys(name for row in rows for name in row if name.startswith(LABEL_PREFIX))
    )


def differing_columns(rows: Sequence[Row], names: Sequence[str]) -> list[str]:
    """Return the columns in which rows differ."""
    return [name for name in names if len({str(row.get(name)) for row in rows}) > 1]


def identifying_column(name: str) -> Column[Row]:
    """Return a column that says which run a row is of."""
    return Column(name, header=name.removeprefix(LABEL_PREFIX))


def _shared_values(rows: Sequence[Row], name: str) -> list[object]:
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


def _distinguishing_columns(rows: Sequence[Row], identity: Collection[str]) -> list[Column[Row]]:
    """Return the columns that differ between rows, beside those of the job."""
    names = ["campaign", "host", *labels_of(rows), "client", "profile", "role", "volume", "repeat"]
    if len({str(row.get("role")) for row in rows}) == len({str(row.get("volume")) for row in rows}):
        names.remove("volume")  # the role tells the volumes apart
    names += ["run"] if "run" in identity else []
    return [
        replace(identifying_column(name), priority=IDENTITY if name in identity else 4)
        for name in differing_columns(rows, names)
    ]


def _result_columns(identity: Collection[str]) -> list[Column[Row]]:
    """Return the columns from the job to the status."""
    workload, *others = _WORKLOAD
    return [
        Column("job", _job_with_phase, priority=6 if "run" in identity else IDENTITY),
        replace(workload, priority=IDENTITY if "direction" in identity else workload.priority),
        *others,
        *(
            [replace(identifying_column("numjobs"), priority=3, is_right=True)]
            if "numjobs" in identity
            else []
        ),
        *RATES,
        *(_latency_column(statistic) for statistic in NARROW_STATISTICS),
        Column("in_flight", _in_flight, header="in flight", priority=8, is_right=True),
        Column("cpu", _cpu, header="CPU", priority=8, is_right=True),
    ]


def _job_with_phase(row: Row) -> str:
    phase = text(row, "phase", missing=Phase.MEASURED.value)
    return job_label(row) + ("" if phase == Phase.MEASURED.value else f" ({phase})")


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
    notes += _reasons(states)
    for state, ending in ((RunState.NOT_NEEDED, "not needed"), (RunState.LOST, "lost")):
        reasons = Counter(
            first_line(note.reason) for note in states.values() if note.state is state
        )
        for reason, count in reasons.items():
            notes.append(f"{count} {'run was' if count == 1 else 'runs were'} {ending}: {reason}")
    return notes


def _reasons(states: Mapping[str, RunNote]) -> list[str]:
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
