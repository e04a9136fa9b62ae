"""volbench reap: end and remove what a campaign left on its machines."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from volbench.cli.fleet_options import HOST_KEYS, connect
from volbench.cli.options import CAMPAIGN

if TYPE_CHECKING:
    from volbench.execute.connect import HostKeyPolicy


@click.command("reap")
@CAMPAIGN
@HOST_KEYS
def command(campaign: Path, *, host_keys: HostKeyPolicy) -> None:
    """End what the campaign in DIR still runs, and remove what it left on its machines.

    Only processes that it started, scratch files that it made, its folders and its locks. Results
    that were fetched stay; volbench resume repeats the runs that were ended.
    """
    from volbench.engine.campaign.cleanup import reap
    from volbench.engine.campaign.resume_plan import resume_on
    from volbench.present.terminal.progress_lines import listener_for
    from volbench.store.consent import read_own_campaign

    layout, archive, _ = read_own_campaign(campaign)
    with connect(archive.campaign.hosts, host_keys) as connected:
        hosts = resume_on(connected, archive, allow_exec=True)
        with listener_for(sys.stderr) as listener:
            reap(layout, archive.campaign, hosts, listener=listener)
    click.echo(f"nothing of {campaign} is left on its machines", err=True)
