"""Execution of a campaign at the terminal: engine, display and signals, then the summary."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from volbench.cli.table_output import TableOutput

if TYPE_CHECKING:
    from volbench.engine.campaign.client_worker import Settings
    from volbench.engine.campaign.prepare import Prepared
    from volbench.engine.hosts.connected_host import ConnectedHost
    from volbench.model.campaign.planned_run import Campaign
    from volbench.plan.prices import Bill
    from volbench.store.layout import Layout


def execute(
    hosts: Sequence[ConnectedHost], layout: Layout, campaign: Campaign, *, settings: Settings
) -> None:
    """Run a campaign with progress on standard error and its summary on standard output.

    Raises:
        VolbenchError: as `run_campaign` does, after the summary of what has finished.
    """
    from volbench.engine.campaign.campaign_engine import run_campaign
    from volbench.engine.run.stop_request import stop_on_signals
    from volbench.present.terminal.progress_lines import listener_for

    try:
        with stop_on_signals() as stop, listener_for(sys.stderr) as listener:
            run_campaign(layout, campaign, hosts, settings=settings, listener=listener, stop=stop)
    finally:
        _show_summary(layout)
        click.echo(f"campaign folder: {layout.root}", err=True)
    if any(run.extent for run in campaign.runs):
        _show_warmup(layout, campaign)


def _show_summary(layout: Layout) -> None:
    """Print the summary of what has finished; what it needs is imported after the last run only."""
    from volbench.api import open_campaign
    from volbench.present.tables.results_table import summary_table

    opened = open_campaign(layout.root)
    opened.store_tables()
    TableOutput().write(summary_table(opened.rows("summary"), states=opened.runs))


def _show_warmup(layout: Layout, campaign: Campaign) -> None:
    """Print whether every pass of a warm-up has moved all of its volume."""
    from volbench.engine.conditioning.warmup_verification import (
        Outcomes,
        passes_of,
        verification_text,
    )
    from volbench.model.campaign.planned_run import RunState
    from volbench.store.journal import read_history

    states = read_history(layout.journal).states
    passes = passes_of(
        Outcomes(layout), campaign, is_done=lambda run: states.get(run.id) is RunState.FINISHED
    )
    click.echo(verification_text(passes))


def start(prepared: Prepared, folder: Path, *, settings: Settings) -> None:
    """Ask for confirmation of what is overwritten, create the campaign folder, and run.

    Raises:
        RefusedError: it was not confirmed.
        VolbenchError: as `execute` does.
    """
    from volbench.cli.make.wipe_confirmation import confirm_destruction
    from volbench.store.archive import create_campaign
    from volbench.store.consent import sign_campaign

    confirm_destruction(prepared.hosts, prepared.campaign)
    layout = create_campaign(folder, prepared.archive)
    sign_campaign(layout)
    execute(prepared.hosts, layout, prepared.campaign, settings=settings)


def show_plan(prepared: Prepared, *, bill: Bill | None = None) -> None:
    """Print what would run, in order, with time and bytes as far as they are known."""
    from volbench.plan.expansion.estimate import expected_s
    from volbench.present.tables.plan_tables import runs_table
    from volbench.present.terminal.estimate_text import estimate_words

    runs = prepared.campaign.runs
    expected = {run.id: seconds for run in runs if (seconds := expected_s(run)) is not None}
    TableOutput().write(runs_table(prepared.campaign, expected_s=expected))
    for absent in prepared.campaign.absent:
        click.echo(f"left out: {absent.host}: {absent.reason}", err=True)
    click.echo(estimate_words(prepared.estimate, bill=bill))
