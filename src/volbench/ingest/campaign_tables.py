"""Rows of every frame for one run, from the raw files in its folder."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, fields, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import TypeVar

import pyarrow as pa

from volbench.errors import ArchiveError, OutputError
from volbench.fio.logs.direction_series import DirectionSeries
from volbench.fio.logs.section_logs import read_latency_map
from volbench.fio.results.merge_jobs import merge_jobs
from volbench.ingest.run_files import Start, Status, read_facts, read_run_output, read_status
from volbench.ingest.run_summary import (
    Outcome,
    histogram_block,
    keep_latencies_of_rate,
    keep_range_of_rate,
    latencies,
    lost_columns,
    measured_columns,
    percentile_rows,
    planned_columns,
    share_rows,
    without_impossible,
)
from volbench.ingest.series_rows import (
    COMMON_MEAN,
    Samples,
    SectionSeries,
    begun_utc_s,
    device_rows,
    is_false,
    log_share,
    max_sample_bytes,
    read_samples,
    read_section_series,
    section_logs,
    series_block,
    while_all_ran,
    without_impossible_latencies,
)
from volbench.ingest.watched_load import Watched, mark_rows, read_watched, watched_series
from volbench.ingest.watched_processes import Interval, process_rows, read_intervals
from volbench.model.campaign.planned_run import Campaign, Run, RunState
from volbench.model.frames.columns import CALIBRATION, DAMAGED, RAMP_LINES, Row
from volbench.model.profile.profile_model import Tool
from volbench.model.results.provenance import VolumeFacts
from volbench.model.results.result import RunOutput
from volbench.store.journal import History, utc_at
from volbench.store.layout import Layout, RunFolder
from volbench.store.parquet_tables import Block, table_of, table_of_blocks
from volbench.store.worker_processes import NOBODY, Tell, in_processes
from volbench.units import format_percent

# Frames whose rows are made in blocks, because a run has hundreds of them
BLOCK_FRAMES = frozenset({"series", "histogram"})
_T = TypeVar("_T")
# Rows that are kept as Python objects before they become a table: these need 20 times less
_BATCH_ROWS = 20_000


@dataclass
class RunRows:
    """Rows of runs in every frame that is read from raw files."""

    summary: list[Row] = field(default_factory=list)
    series: list[Block] = field(default_factory=list)
    device: list[Row] = field(default_factory=list)
    marks: list[Row] = field(default_factory=list)
    processes: list[Row] = field(default_factory=list)
    percentiles: list[Row] = field(default_factory=list)
    histogram: list[Block] = field(default_factory=list)
    shares: list[Row] = field(default_factory=list)

    def extend(self, other: RunRows) -> None:
        """Add the rows of another run."""
        for frame in fields(self):
            getattr(self, frame.name).extend(getattr(other, frame.name))

    def count(self, frame_name: str) -> int:
        """Return the number of rows of one frame."""
        rows = getattr(self, frame_name)
        return sum(map(len, rows)) if frame_name in BLOCK_FRAMES else len(rows)


@dataclass
class Damage:
    """Files of a run that cannot be read, with the message of each error."""

    folder: RunFolder
    found: list[str] = field(default_factory=list)

    @contextmanager
    def noted(self) -> Iterator[None]:
        """Note a file that cannot be used and go on: the others still count."""
        try:
            yield
        except (ArchiveError, OutputError) as error:
            name = Path(error.path).name
            message = error.message.replace(f"{self.folder.path}/", "")
            self.found.append(message if name in message else f"{name}: {message}")

    @property
    def text(self) -> str:
        """All messages; "" for none."""
        return "; ".join(self.found)


def read_run(campaign: Campaign, run: Run, state: RunState, folder: RunFolder) -> RunRows:
    """Read the files of a run that has ended.

    A run without readable output keeps a row in the summary, with its state and no numbers. The
    column `damage` of the row names files that were damaged later.
    """
    rows, damage = RunRows(), Damage(folder)
    status = Status()
    with damage.noted():
        status = read_status(folder) or status
    outcome = Outcome(run, state.value, status.started_utc)
    start, elapsed_s = status.start or Start(), status.elapsed_s
    ahead_s = start.clock_offset_s or 0.0
    output, watched = None, None
    # Where the tool failed, the journal holds why, and there need be no output.
    with damage.noted() if state is RunState.FINISHED else suppress(OutputError):
        if run.tool is Tool.WATCH:
            watched = read_watched(run, folder, elapsed_s=elapsed_s)
        output = watched.output if watched else read_run_output(run, folder)
    if output is not None:
        _add_output(rows, campaign, outcome, output)
    else:
        lost = replace(outcome, status=DAMAGED) if damage.text else outcome
        rows.summary.append(lost_columns(campaign, lost))
    if output is not None and state is RunState.FINISHED:
        with damage.noted():
            _add_series(rows, campaign, run, folder, output)
            _add_times(rows, output, outcome)
        if watched is not None:
            identity = campaign.identity_of(run, run.sections[0].name)
            _add_watched(rows, identity, watched)
            with damage.noted():
                max_bytes = max_sample_bytes(run, elapsed_s=elapsed_s)
                _add_processes(rows, identity, watched, read_intervals(folder, max_bytes=max_bytes))
        if run.imported is not None and run.imported.read_as:
            _replace_row_by_directions(rows)
    with damage.noted():
        on_host = replace(outcome, started_utc=shifted_utc(outcome.started_utc, by_s=ahead_s))
        if watched is not None:
            samples = watched.samples
        else:
            jobs = output.jobs if output else ()
            runtimes = [direction.runtime_s for job in jobs for direction in job.directions]
            max_bytes = max_sample_bytes(run, elapsed_s=max([elapsed_s, *runtimes]))
            samples = read_samples(folder, max_bytes=max_bytes)
        _add_device(rows, campaign, on_host, samples, output, facts=read_facts(folder))
    # Until here all times are by the host's own clock, as fio and the samples recorded them.
    for utc in (block.columns["utc"] for block in rows.series if ahead_s):
        utc[:] = [shifted_utc(text, by_s=-ahead_s) for text in utc]
    for row in (*rows.device, *rows.marks, *rows.processes):
        row["utc"] = shifted_utc(row["utc"], by_s=-ahead_s)
    for row in rows.summary:
        keep_latencies_of_rate(row, row.pop(COMMON_MEAN, None))
        keep_range_of_rate(row)
        row |= {"damage": damage.text or None, **start_columns(start)}
    return rows


def _add_output(rows: RunRows, campaign: Campaign, outcome: Outcome, output: RunOutput) -> None:
    run = outcome.run
    by_name = {section.name: section for section in run.sections}
    for job in merge_jobs(output.jobs):
        section = by_name.get(job.name, run.sections[0])
        for reported in job.directions:
            direction, remarks = without_impossible(reported, job)
            if direction.clat is None:
                job = replace(job, clat_shares={})  # noqa: PLW2901 - wrong as the latencies are
            rows.summary.append(
                planned_columns(campaign, outcome, section)
                | measured_columns(section, run, job, direction)
                | {"fio_version": output.tool_version or None}
                | {"impossible": "; ".join(remarks) or None}
            )
            identity = campaign.identity_of(run, section.name)
            identity["direction"] = direction.direction.value
            for name, latency in latencies(direction):
                rows.percentiles.extend(percentile_rows(identity, name, latency))
                if latency.bins:
                    rows.histogram.append(histogram_block(identity, name, latency))
        rows.shares.extend(share_rows(campaign.identity_of(run, section.name), job))
    if not rows.summary:
        rows.summary.append(lost_columns(campaign, outcome))


def _add_series(
    rows: RunRows, campaign: Campaign, run: Run, folder: RunFolder, output: RunOutput
) -> None:
    # All sections first: a damaged log leaves the whole run without a series.
    for logs in list(read_section_series(run, folder, output)):
        identity = campaign.identity_of(run, logs.section.name)
        longest_s = max([0.0, *(job.elapsed_s or 0.0 for job in output.jobs)])
        checked = [without_impossible_latencies(series, longest_s) for series in logs.directions]
        remarks = {series.direction.value: remark for series, remark in checked}
        true = {series.direction.value: series for series, _ in checked}
        for row in rows.summary:
            if row["group"] == identity["group"]:
                row["bad_log_rows"] = sum(log.bad_rows for log in logs.bad_rows)
                row["empty_logs"] = len(logs.empty)
                if lines := logs.ramp_lines:
                    _add_remark(
                        row, f"{lines} lines of logs {RAMP_LINES}: a ramp, or an earlier run"
                    )
                if series := true.get(direction := str(row.get("direction"))):
                    _add_remark(row, remarks[direction])
                    _add_log_columns(row, logs, series, true)
        rows.series.extend(series_block(identity, series) for series in true.values())


def _add_watched(rows: RunRows, identity: Row, watched: Watched) -> None:
    rows.series.extend(series_block(identity, series) for series in watched_series(watched))
    if taken := watched.samples.taken:
        found = mark_rows(watched.samples.marks, begun_s=taken[0].utc_s)
        rows.marks.extend({**identity, **row} for row in found)


def _add_times(rows: RunRows, output: RunOutput, outcome: Outcome) -> None:
    """Give imported logs without an epoch the time of day, from the start of their result's I/O.

    It is exact to a second or two, as results have whole seconds: too coarse for a sum of processes
    at the same time.
    """
    imported = outcome.run.imported
    if imported is None or imported.beside or outcome.run.client:
        return
    begun = begun_utc_s(output, rows.series, started_utc=outcome.started_utc)
    for block in rows.series if begun is not None else ():
        utc = block.columns["utc"]
        known = [
            text or utc_at(begun + t_s)
            for text, t_s in zip(utc, block.columns["t_s"].tolist(), strict=True)
        ]
        utc[:] = known


def _add_processes(
    rows: RunRows, identity: Row, watched: Watched, intervals: Sequence[Interval]
) -> None:
    if taken := watched.samples.taken:
        shared = {name: identity[name] for name in ("campaign", "run", "host", "job")}
        found = process_rows(intervals, begun_utc_s=taken[0].utc_s)
        rows.processes.extend({**shared, **row} for row in found)


def _add_log_columns(
    row: Row, logs: SectionSeries, series: DirectionSeries, true: dict[str, DirectionSeries]
) -> None:
    """Add the columns of a series to its summary row; remove a false series from `true`."""
    share = row["log_share"] = log_share(series, row.get("total_ios"))
    if share is not None and is_false(logs, series, share):
        del true[series.direction.value]
        _add_remark(row, f"logs with {format_percent(share)} of the I/Os of the result")
    elif logs.jobs > 1:
        row |= while_all_ran(series)


def _add_remark(row: Row, remark: str) -> None:
    row["impossible"] = (
        "; ".join(str(text) for text in (row.get("impossible"), remark) if text) or None
    )


def _replace_row_by_directions(rows: RunRows) -> None:
    if logged := list(dict.fromkeys(block.shared["direction"] for block in rows.series)):
        row = rows.summary.pop()
        rows.summary.extend({**row, "direction": direction} for direction in logged)


def _add_device(
    rows: RunRows,
    campaign: Campaign,
    outcome: Outcome,
    samples: Samples,
    output: RunOutput | None,
    *,
    facts: VolumeFacts | None,
) -> None:
    run = outcome.run
    if not samples.taken:
        return
    identity = campaign.identity_of(run, run.sections[0].name)
    begun = begun_utc_s(output, rows.series, started_utc=outcome.started_utc)
    device = device_rows(samples, facts, begun_utc_s=begun)
    rows.device.extend({**identity, **row} for row in device)


def start_columns(start: Start) -> dict[str, float | None]:
    """Return the summary columns of a synchronised start; empty for a run that started alone."""
    step_start_s = None
    if start.start_s is not None and start.late_s is not None:
        step_start_s = start.start_s + start.late_s
    columns = {
        "step_start_s": step_start_s,
        "start_late_s": start.late_s,
        "clock_offset_s": start.clock_offset_s,
        "clock_bound_s": start.clock_bound_s,
        "clock_moved_s": start.clock_moved_s,
    }
    return {name: value for name, value in columns.items() if value is not None}


def shifted_utc(utc: _T, *, by_s: float) -> _T | str:
    """Return an instant in ISO 8601, shifted by some seconds; others, such as None, unchanged."""
    if not isinstance(utc, str) or not by_s:
        return utc
    return utc_at((datetime.fromisoformat(utc) + timedelta(seconds=by_s)).timestamp())


def read_tables(
    layout: Layout, campaign: Campaign, history: History, *, processes: int = 1, tell: Tell = NOBODY
) -> Iterator[dict[str, pa.Table]]:
    """Yield a table for each frame that is read from raw files, for one part of the runs each time.

    Runs that have ended follow in the order of the plan.

    Args:
        processes: number of processes; more than one only where no other thread runs.
    """
    states = {run.id: history.states.get(run.id, RunState.PLANNED) for run in campaign.runs}
    ended = [run for run in campaign.runs if states[run.id].has_ended]

    def read(runs: Sequence[Run]) -> dict[str, pa.Table]:
        ended_runs = [(run, states[run.id], layout.run(run.id)) for run in runs]
        return _tables_of(campaign, ended_runs, history.speeds)

    yield from in_processes(
        read, ended, processes=processes, done=lambda done: tell("reading", done, len(ended))
    )


def _tables_of(
    campaign: Campaign,
    runs: Iterable[tuple[Run, RunState, RunFolder]],
    speeds: Mapping[str, Sequence[float]],
) -> dict[str, pa.Table]:
    pending = RunRows()
    parts: dict[str, list[pa.Table]] = {field.name: [] for field in fields(RunRows)}

    def flush(name: str) -> None:
        waiting = getattr(pending, name)
        if name in BLOCK_FRAMES:
            parts[name].append(table_of_blocks(name, waiting))
        else:
            labels = campaign.label_names if name == "summary" else ()
            parts[name].append(table_of(name, waiting, labels=labels))
        waiting.clear()

    counts = Counter[str]()
    for run, state, folder in runs:
        rows = _read_alone(campaign, run, state, folder)
        for row in rows.summary if run.host in speeds else ():
            row.update(zip(CALIBRATION, speeds[run.host], strict=True))
        pending.extend(rows)
        for name in parts:
            counts[name] += rows.count(name)
            if counts[name] > _BATCH_ROWS:
                flush(name)
                counts[name] = 0
    for name in parts:
        flush(name)
    return {name: pa.concat_tables(tables) for name, tables in parts.items()}


def _read_alone(campaign: Campaign, run: Run, state: RunState, folder: RunFolder) -> RunRows:
    """Read a run as `read_run` does; one that cannot be derived costs its own numbers only."""
    try:
        return read_run(campaign, run, state, folder)
    except (MemoryError, ImportError):  # the run is not damaged
        raise
    except Exception as error:  # noqa: BLE001 - one bad run must not take all others with it
        reason = f"volbench cannot derive its numbers ({type(error).__name__}: {error})"
        row = {
            **campaign.identity_of(run, run.sections[0].name),
            "tool": run.tool.value,
            "status": DAMAGED if state is RunState.FINISHED else state.value,
            "damage": reason,
        }
        return RunRows(summary=[row])


def read_latency_maps(layout: Layout, campaign: Campaign, history: History) -> pa.Table:
    """Return the latency map of every finished run whose logs hold latencies one by one."""
    rows: list[Mapping[str, object]] = []
    for run in campaign.runs:
        if history.states.get(run.id) is not RunState.FINISHED or run.tool is not Tool.FIO:
            continue
        folder = layout.run(run.id)
        output = read_run_output(run, folder)
        for section, logs, recording in section_logs(run, folder, output):
            identity = campaign.identity_of(run, section.name)
            rows.extend(
                {
                    **identity,
                    "direction": cell.direction.value,
                    "from_s": cell.from_s,
                    "t_s": cell.to_s,
                    "bin_low_s": cell.low_s,
                    "bin_high_s": cell.high_s,
                    "count": cell.count,
                }
                for cell in read_latency_map(logs, recording)
            )
    return table_of("latency_map", rows)
