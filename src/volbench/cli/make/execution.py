"""What run and resume share: connect engine, screen and signals, then show what came out."""

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
    from volbench.engine.hosts.machine import Machine
    from volbench.model.campaign.planned_run import Campaign
    from volbench.plan.prices import Bill
    from volbench.store.layout import Layout


def execute(
    machines: Sequence[Machine], layout: Layout, campaign: Campaign, *, settings: Settings
) -> None:
    """Run a campaign with progress on standard error and its summary on standard output.

    Raises:
        VolbenchError: as `run_campaign` does, after what did finish has been shown.
    """
    from volbench.api import open_campaign
    from volbench.engine.campaign.campaign_engine import RunContext, run_campaign
    from volbench.engine.conditioning.warmup_verification import (
        Outcomes,
        passes_of,
        verification_text,
    )
    from volbench.engine.run.stop_request import stop_on_signals
    from volbench.model.campaign.planned_run import RunState
    from volbench.present.tables.results_table import summary_table
    from volbench.present.terminal.live_display import listener_for
    from volbench.store.journal import read_history

    try:
        with stop_on_signals() as stop, listener_for(sys.stderr) as listener:
            run_campaign(
                layout,
                campaign,
                settings=settings,
                around=RunContext({one.host: one for one in machines}, listener, stop),
            )
    finally:
        opened = open_campaign(layout.root)
        opened.store_tables()
        TableOutput().write(summary_table(opened.rows("summary"), states=opened.runs))
        click.echo(f"campaign folder: {layout.root}", err=True)
    if any(run.extent for run in campaign.runs):
        states = read_history(layout.journal).states
        passes = passes_of(
            Outcomes(layout),
            campaign,
            is_done=lambda run: states.get(run.id) is RunState.FINISHED,
        )
        click.echo(verification_text(passes))


def start(prepared: Prepared, folder: Path, *, grace_s: float, keep_files: bool = False) -> None:
    """Ask for confirmation of what is overwritten, create the campaign folder, and run.

    Raises:
        RefusedError: it was not confirmed.
        VolbenchError: as `execute` does.
    """
    from volbench.cli.make.wipe_confirmation import confirm_destruction
    from volbench.engine.campaign.client_worker import Settings
    from volbench.store.archive import create_campaign

    confirm_destruction(prepared)
    layout = create_campaign(folder, prepared.archive)
    settings = Settings(grace_s=grace_s, keep_files=keep_files)
    execute(prepared.machines, layout, prepared.campaign, settings=settings)


def show_plan(prepared: Prepared, *, bill: Bill | None = None) -> None:
    """Print what would run, in order, with time and bytes as far as the plan tells."""
    from volbench.plan.expansion.estimate import expected_s
    from volbench.present.tables.plan_tables import runs_table
    from volbench.present.terminal.estimate_text import estimate_words

    runs = prepared.campaign.runs
    known = {run.id: seconds for run in runs if (seconds := expected_s(run)) is not None}
    TableOutput().write(runs_table(prepared.campaign, expected_s=known))
    for one in prepared.campaign.absent:
        click.echo(f"left out: {one.host}: {one.reason}", err=True)
    click.echo(estimate_words(prepared.estimate, bill=bill))
