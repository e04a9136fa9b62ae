"""Latencies over time of a whole campaign: its folder in, rows of the latency map out."""

from __future__ import annotations

from volbench.fio.logs.latency_histogram import read_latency_map
from volbench.ingest.campaign_frames import Row, run_identity
from volbench.ingest.run_files import read_run_output
from volbench.ingest.series_rows import section_logs
from volbench.model.campaign.planned_run import Campaign, RunState
from volbench.store.journal import History
from volbench.store.layout import Layout


def latency_map_rows(layout: Layout, campaign: Campaign, history: History) -> list[Row]:
    """Return the cells of every finished Run whose logs hold latencies one by one.

    Raises:
        OutputError: a log is no log.
        ArchiveError: a file is damaged.
    """
    rows: list[Row] = []
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
    return rows
