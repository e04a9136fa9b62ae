"""Tables of every frame that is read from the raw files of a campaign."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields

import pyarrow as pa

from volbench.fio.logs.latency_histogram import read_latency_map
from volbench.ingest.run_files import forget_parsed, read_run_output
from volbench.ingest.run_rows import BLOCK_FRAMES, RunRows, read_run
from volbench.ingest.series_rows import section_logs
from volbench.model.campaign.planned_run import Campaign, Run, RunState
from volbench.model.frames.columns import run_identity
from volbench.store.journal import History
from volbench.store.layout import Layout, RunFolder
from volbench.store.parquet_tables import table_of, table_of_blocks
from volbench.store.worker_processes import NOBODY, Tell, in_processes

# Rows that are kept as Python objects before they become a table: these need 20 times less
_BATCH_ROWS = 20_000


def read_tables(
    layout: Layout,
    campaign: Campaign,
    history: History,
    *,
    processes: int = 1,
    tell: Tell = NOBODY,
) -> Iterator[dict[str, pa.Table]]:
    """Yield a table for each frame that is read from raw files, for one part of the runs each time.

    Args:
        processes: to read runs in; more than one only where no other thread runs.

    Yields:
        Frame name to the rows of runs that have ended; runs follow in the order of the plan.
    """
    states = {run.id: history.states.get(run.id, RunState.PLANNED) for run in campaign.runs}
    ended = [run for run in campaign.runs if states[run.id].has_ended]

    def read(runs: Sequence[Run]) -> dict[str, pa.Table]:
        return _tables_of(campaign, [(run, states[run.id], layout.run(run.id)) for run in runs])

    yield from in_processes(
        read, ended, processes=processes, done=lambda done: tell("reading", done, len(ended))
    )
    forget_parsed()


def _tables_of(
    campaign: Campaign, runs: Iterable[tuple[Run, RunState, RunFolder]]
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
        rows = read_run(campaign, run, state, folder)
        pending.extend(rows)
        for name in parts:
            counts[name] += rows.count(name)
            if counts[name] > _BATCH_ROWS:
                flush(name)
                counts[name] = 0
    for name in parts:
        flush(name)
    return {name: pa.concat_tables(tables) for name, tables in parts.items()}


def read_latency_maps(layout: Layout, campaign: Campaign, history: History) -> pa.Table:
    """Return the latency map of every finished run whose logs hold latencies one by one."""
    rows: list[Mapping[str, object]] = []
    for run in campaign.runs:
        if history.states.get(run.id) is not RunState.FINISHED:
            continue
        folder = layout.run(run.id)
        output = read_run_output(run, folder)
        for section, logs, recording in section_logs(run, folder, output):
            identity = run_identity(campaign, run, section.name)
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
