"""volbench reap: end and remove what a campaign left on its machines."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from volbench.cli.make.fleet_options import ACCEPT_NEW, KNOWN_HOSTS, connect
from volbench.cli.options import CAMPAIGN


@click.command("reap")
@CAMPAIGN
@KNOWN_HOSTS
@ACCEPT_NEW
def command(campaign: Path, *, known_hosts: Path | None, accept_new: bool) -> None:
    """End what the campaign in DIR still runs, and remove what it left on its machines.

    Only processes that it started, scratch files that it made, its folders and its locks. Results
    that were fetched stay; volbench resume repeats the runs that were ended.
    """
    from volbench.engine.campaign.cleanup import reap
    from volbench.engine.campaign.resume_plan import resume_on
    from volbench.execute.connect import HostKeyPolicy
    from volbench.present.terminal.progress_lines import listener_for
    from volbench.store.consent import read_own_campaign

    layout, archive, _ = read_own_campaign(campaign)
    with connect(archive.campaign.hosts, HostKeyPolicy(known_hosts, accept_new)) as connected:
        hosts = resume_on(connected, archive, allow_exec=True)
        with listener_for(sys.stderr) as listener:
            reap(layout, archive.campaign, hosts, listener=listener)
    click.echo(f"nothing of {campaign} is left on its machines", err=True)
