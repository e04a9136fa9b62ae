"""Table of runs: a row for each run, group and direction, with its state and the reason.

Numbers have three digits and SI units; the exact ones are in the frames, and in JSON and CSV.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

from volbench.model.campaign.planned_run import RunNote, RunState
from volbench.model.frames.columns import LABEL_PREFIX
from volbench.model.profile.profile_model import Phase
from volbench.present.formatting import (
    NARROW_STATISTICS,
    STATISTICS,
    Row,
    block_size,
    first_line,
    flag,
    is_merged,
    job_label,
    latency,
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


def summary_table(
    rows: Sequence[Row],
    *,
    states: Mapping[str, RunNote] | None = None,
    warnings: Mapping[str, str] | None = None,
) -> Table[Row]:
    """Return the runs, a row for each run, group and direction."""
    states, warnings = dict(states or {}), dict(warnings or {})
    with_results = {str(row.get("run")) for row in rows}
    unfinished = [
        _unfinished_row(run_id, note)
        for run_id, note in states.items()
        if run_id not in with_results and note.state is not RunState.FINISHED
    ]
    order = {run: place for place, run in enumerate(states)}
    every = sorted([*rows, *unfinished], key=lambda row: order.get(text(row, "run"), -1))
    reasons = {run: note.reason.strip() for run, note in states.items()}
    columns = [
        Column("run", priority=IDENTITY),
        *_distinguishing_columns(every),
        *_WORKLOAD,
        replace(RATES[0], priority=IDENTITY),
        *RATES[1:],
        *(_latency_column(statistic) for statistic in NARROW_STATISTICS),
    ]
    if warnings:
        columns.append(
            Column("warnings", lambda row: warnings.get(text(row, "run"), ""), is_right=True)
        )
    columns.append(Column("status", header="state", styles=STATE_STYLES, priority=IDENTITY))
    if any(reasons.values()):
        columns.append(
            Column("reason", lambda row: reasons.get(text(row, "run"), ""), is_folded=True)
        )

    def record(row: Row) -> Row:
        told = {"state": row.get("status"), "reason": reasons.get(text(row, "run"), "")}
        return {name: value for name, value in row.items() if name != _UNFINISHED} | told

    notes = [*_marks_notes(rows, warnings), *damage_notes(damages(rows))]
    return Table("summary", columns, every, record=record, notes=notes)


def lower_bound(row: Row, statistic: str) -> str:
    """Return ``> 17.1 s`` for a percentile in the last bin of fio; empty for any other."""
    match = _LAST_BIN.search(text(row, "impossible"))
    percentile = STATISTICS[statistic].removeprefix("p")
    if match is None or not percentile[0].isdigit():
        return ""
    is_beyond = bool(match[2]) and float(percentile) > float(match[1])
    return f"> {match[3]}" if is_beyond or percentile == match[1] else ""


def damage_notes(damaged: Mapping[str, str]) -> list[str]:
    """Return a line for the runs whose files are damaged."""
    runs = [run for run in damaged if damaged[run]]
    if not runs:
        return []
    count = f"{counted_noun(len(runs), 'run')} {'has' if len(runs) == 1 else 'have'}"
    return [f"{count} damaged files ({runs[0]}: {damaged[runs[0]]}); see volbench check --files"]


def damages(rows: Sequence[Row]) -> dict[str, str]:
    """Return run id to what is damaged, for `damage_notes`."""
    return {text(row, "run"): text(row, "damage") for row in rows}


def labels_of(rows: Sequence[Row]) -> list[str]:
    """Return the labels of hosts that any row has."""
    return list(dict.fromkeys(key for row in rows for key in row if key.startswith(LABEL_PREFIX)))


def differing_columns(rows: Sequence[Row], names: Sequence[str]) -> list[str]:
    """Return the columns in which rows differ."""
    return [name for name in names if len({str(row.get(name)) for row in rows}) > 1]


def identifying_column(name: str) -> Column[Row]:
    """Return a column that says which run a row is of."""
    return Column(name, header=name.removeprefix(LABEL_PREFIX))


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


def _distinguishing_columns(rows: Sequence[Row]) -> list[Column[Row]]:
    """Return the columns that differ between runs, and the section where a run has several."""
    sections = {(row.get("run"), row.get("direction")) for row in rows}
    is_several = len(sections) < len(rows)
    names = differing_columns(rows, ["host", *labels_of(rows), "volume"])
    return [
        *([Column("job", job_label, priority=IDENTITY)] if is_several else []),
        *(replace(identifying_column(name), priority=4) for name in names),
        *([Column("phase", priority=5)] if differing_columns(rows, ["phase"]) else []),
    ]


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


def _marks_notes(rows: Sequence[Row], warnings: Mapping[str, str]) -> list[str]:
    notes = []
    if warnings:
        is_any_invalid = any("!" in mark for mark in warnings.values())
        worst = ", ! the result is invalid" if is_any_invalid else ""
        notes.append(f"warnings: number of data-quality warnings{worst}; see volbench check")
    if any(latency(row, each).is_completion for row in rows for each in NARROW_STATISTICS):
        notes.append("* completion latency, where that of the whole I/O was not reported")
    return notes


def state_notes(rows: Sequence[Row], states: Mapping[str, RunNote]) -> list[str]:
    """Return what became of runs that a table of results leaves out, and damaged files."""
    counts = Counter(note.state.value for note in states.values() if not note.state.is_settled)
    waiting = {state: n for state, n in counts.items() if state != RunState.FINISHED.value}
    without = ", ".join(f"{count} {state}" for state, count in waiting.items())
    notes = [f"not finished: {without}; see volbench show --runs"] if without else []
    phases = Counter(note.run.phase.value for note in states.values() if note.run is not None)
    phases.pop(Phase.MEASURED.value, 0)
    others = ", ".join(f"{counted_noun(count, 'run')} of {name}" for name, count in phases.items())
    notes += [f"not in the table: {others}; see volbench show --runs"] if others else []
    notes += damage_notes(damages(rows))
    notes += _reasons(states)
    for state, ending in ((RunState.NOT_NEEDED, "not needed"), (RunState.LOST, "lost")):
        ended = [note.reason for note in states.values() if note.state is state and note.reason]
        reasons = Counter(map(first_line, ended))
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
