"""Runs of an opened campaign, each with its rows and facts, for the rules that judge them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress

import pandas as pd
import pyarrow as pa

from volbench.analyse.bottleneck.campaign_context import Context, verdict_rows
from volbench.analyse.findings import failure_row, finding_rows
from volbench.analyse.frames.aggregate import aggregate_rows
from volbench.analyse.frames.run_view import RunView, run_views
from volbench.errors import OutputError
from volbench.ingest.run_files import read_facts, read_probe
from volbench.model.campaign.planned_run import Campaign, Run
from volbench.model.frames.columns import Row
from volbench.model.results.finding import Severity
from volbench.model.results.provenance import ColdProbe, VolumeFacts
from volbench.store.archive import Archive
from volbench.store.layout import Layout
from volbench.store.parquet_tables import table_of
from volbench.store.worker_processes import NOBODY, Tell, in_processes


def opened_runs(
    layout: Layout, archive: Archive, frame: Callable[[str], pd.DataFrame]
) -> Iterator[RunView]:
    """Return the runs of a campaign side by side."""
    volumes: dict[str, VolumeFacts] = {}
    for run in archive.campaign.runs:
        with suppress(OutputError):  # where they are damaged, the summary says so
            if facts := read_facts(layout.run(run.id)):
                volumes[run.id] = facts
    hosts = {host.host: host for host in archive.provenance.hosts}
    colds = _colds(layout, archive.campaign)
    return run_views(archive.campaign, frame, volumes=volumes, hosts=hosts, colds=colds)


def judged_tables(
    campaign: Campaign,
    context: Context,
    frame: Callable[[str], pd.DataFrame],
    *,
    processes: int = 1,
    tell: Tell = NOBODY,
) -> dict[str, pa.Table]:
    """Return the frames that are judged from the others: verdicts, findings and aggregates.

    Args:
        processes: to judge runs in; more than one only where no other thread runs.
    """
    views = context.views

    def judge(views: Sequence[RunView]) -> tuple[list[Row], list[Row]]:
        verdicts: list[Row] = []
        findings: list[Row] = []
        for view in views:
            try:
                judged = verdict_rows(context, [view]), finding_rows(context, [view])
            except Exception as error:  # noqa: BLE001 - one bad run must not take all others with it
                judged = [], [failure_row(view, error, severity=Severity.INVALID)]
            verdicts += judged[0]
            findings += judged[1]
        return verdicts, findings

    def done(count: int) -> None:
        tell("judging", count, len(views))

    judged = list(in_processes(judge, views, processes=processes, done=done))
    findings = [row for _, run_findings in judged for row in run_findings]

    def not_added(run: Run, error: Exception) -> None:
        task = "add up the clients of this step"
        view = context.by_id[run.id]
        findings.append(failure_row(view, error, task=task, severity=Severity.WARNING))

    invalid = {str(row["run"]) for row in findings if row["severity"] == Severity.INVALID.value}
    rows: dict[str, Sequence[Row]] = {
        "verdicts": [row for verdicts, _ in judged for row in verdicts],
        "aggregate": aggregate_rows(campaign, frame, on_failure=not_added, invalid=invalid),
        "findings": findings,
    }
    labels = {"aggregate": campaign.label_names}
    return {
        name: table_of(name, table_rows, labels=labels.get(name, ()))
        for name, table_rows in rows.items()
    }


def _colds(layout: Layout, campaign: Campaign) -> Mapping[str, ColdProbe]:
    """Return role to the result of its volume's cold probe, where there was one."""
    probes: dict[str, ColdProbe] = {}
    for role in campaign.cold_probe_roles:
        # `volbench check --files` names a damaged one; the runs do not depend on it.
        with suppress(OutputError):
            if (probed := read_probe(layout.probe(role))) and probed.cold:
                probes[role] = probed.cold
    return probes
