"""volbench forget: give up a host of a campaign that is gone for good."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from volbench.cli.options import CAMPAIGN, examples


@click.command(
    "forget",
    epilog=examples('volbench forget OUT --host vm7 --reason "deleted by the provider"'),
)
@CAMPAIGN
@click.option("--host", required=True, metavar="HOST", help="Name of the host.")
@click.option("--reason", required=True, metavar="TEXT", help="Why it is given up; kept on record.")
def command(campaign: Path, *, host: str, reason: str) -> None:
    """Record in DIR that a host is gone for good: its unfinished runs are lost.

    The host is not connected to. Its finished runs stay; resume and reap leave the host out from
    now on.
    """
    from volbench.engine.campaign.cleanup import forget_host
    from volbench.present.terminal.progress_lines import listener_for
    from volbench.store.consent import read_own_campaign

    layout, archive, _ = read_own_campaign(campaign)
    with listener_for(sys.stderr) as listener:
        lost = forget_host(layout, archive.campaign, host, reason=reason, listener=listener)
    click.echo(f"{host} is given up: {len(lost)} of its runs are lost", err=True)
