"""What run and resume share: connect engine, screen and signals, then show what came out."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import click

from volbench.api import open_campaign
from volbench.cli.table_output import TableOutput
from volbench.engine.campaign.campaign_engine import RunContext, run_campaign
from volbench.engine.campaign.client_worker import Settings
from volbench.engine.campaign.prepare import Prepared
from volbench.engine.conditioning.warmup_verification import Outcomes, passes_of, verification_text
from volbench.engine.hosts.machine import Machine
from volbench.engine.run.stop_request import stop_on_signals
from volbench.model.campaign.planned_run import Campaign, RunState
from volbench.plan.expansion.estimate import expected_s
from volbench.plan.prices import Bill
from volbench.present.tables.plan_tables import runs_table
from volbench.present.tables.results_table import summary_table
from volbench.present.terminal.estimate_text import estimate_words
from volbench.present.terminal.live_display import listener_for
from volbench.store.journal import read_history
from volbench.store.layout import Layout


def execute(
    machines: Sequence[Machine], layout: Layout, campaign: Campaign, *, settings: Settings
) -> None:
    """Run a campaign with progress on standard error and its summary on standard output.

    Raises:
        VolbenchError: as `run_campaign` does, after what did finish has been shown.
    """
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


def show_plan(prepared: Prepared, *, bill: Bill | None = None) -> None:
    """Print what would run, in order, with time and bytes as far as the plan tells."""
    runs = prepared.campaign.runs
    known = {run.id: seconds for run in runs if (seconds := expected_s(run)) is not None}
    TableOutput().write(runs_table(prepared.campaign, expected_s=known))
    for one in prepared.campaign.absent:
        click.echo(f"left out: {one.host}: {one.reason}", err=True)
    click.echo(estimate_words(prepared.estimate, bill=bill))
