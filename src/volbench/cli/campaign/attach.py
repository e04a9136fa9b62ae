"""volbench attach: the progress of a campaign whose controller runs elsewhere."""

from __future__ import annotations

from pathlib import Path

import click

from volbench.cli.options import CAMPAIGN
from volbench.cli.output import TableOutput
from volbench.errors import CampaignError


@click.command("attach")
@CAMPAIGN
def command(campaign: Path) -> None:
    """Show the progress of the campaign in DIR until its controller ends, then the results.

    Ctrl-C leaves; the campaign goes on.
    """
    from volbench.cli.make.controller_log import follow_log
    from volbench.cli.make.execution import show_results
    from volbench.store.archive import is_held, read_campaign
    from volbench.store.journal import read_history

    layout, archive = read_campaign(campaign)
    if not is_held(layout):
        raise CampaignError(
            f"no controller runs the campaign in {campaign}",
            hint=f"continue it: volbench resume {campaign}; or see: volbench status {campaign}",
        )
    try:
        follow_log(layout)
    except KeyboardInterrupt:
        click.echo(f"\nthe campaign in {campaign} goes on", err=True)
        return
    show_results(layout, TableOutput())
    states = read_history(layout.journal).states
    left = [run.id for run in archive.campaign.runs if run.id not in states]
    left += [name for name, state in states.items() if not state.is_settled]
    if left:
        raise CampaignError(
            f"{len(left)} of {len(archive.campaign.runs)} runs have not finished",
            hint=f"look at them: volbench show {campaign}; continue: volbench resume {campaign}",
        )
