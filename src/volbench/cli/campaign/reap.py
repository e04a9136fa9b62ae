"""volbench reap: end and remove what a campaign left on its machines."""

from __future__ import annotations

import sys
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import click

from volbench.cli.fleet_options import (
    HOST_KEYS,
    LIMIT,
    OWN_POLICY,
    connect,
    named_limits,
    with_policy,
)
from volbench.cli.options import CAMPAIGN
from volbench.kubernetes.cluster_connection import KUBECONFIG

if TYPE_CHECKING:
    from volbench.execute.connect import HostKeyPolicy


@click.command("reap")
@CAMPAIGN
@LIMIT
@OWN_POLICY
@HOST_KEYS
@KUBECONFIG
def command(
    campaign: Path,
    *,
    limits: tuple[str, ...],
    policy: str,
    host_keys: HostKeyPolicy,
) -> None:
    """End what the campaign in DIR still runs, and remove what it left on its machines.

    Only processes that it started, scratch files that it made, its folders and its locks. Results
    that were fetched stay; volbench resume repeats the runs that were ended. Hosts that are in
    reach are cleaned also when others are not.
    """
    from volbench.engine.campaign.cleanup import reap
    from volbench.engine.campaign.resume_plan import hosts_to_reach, resume_on
    from volbench.kubernetes.resumed_pods import pods_to_remove
    from volbench.present.terminal.progress_lines import listener_for
    from volbench.store.consent import read_own_campaign
    from volbench.store.journal import read_history

    layout, archive, _ = read_own_campaign(campaign)
    plan = with_policy(archive.campaign, policy)
    limited = named_limits(limits, campaign)
    hosts = hosts_to_reach(plan, read_history(layout.journal).states, limited)
    with ExitStack() as stack:
        there = stack.enter_context(pods_to_remove(hosts, planned=() if limits else plan.hosts))
        if plan.hosts and not there:  # all of its pods are gone
            click.echo(f"nothing of {campaign} runs any more", err=True)
            return
        connected = stack.enter_context(connect(there, host_keys))
        reached = resume_on(connected, archive, allow_exec=True)
        with listener_for(sys.stderr) as listener:
            reap(layout, plan, reached.hosts, listener=listener)
    if not reached.may_go_on(plan):
        reached.raise_absent(plan, read_history(layout.journal).states)
    for error in reached.absent.values():
        click.echo(f"note: {error.message}", err=True)
    where = (
        f"{', '.join(host.name for host in reached.hosts)}" if reached.absent else "its machines"
    )
    click.echo(f"nothing of {campaign} is left on {where}", err=True)
