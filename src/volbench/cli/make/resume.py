"""volbench resume: continue an interrupted campaign."""

from __future__ import annotations

from pathlib import Path

import click

from volbench.cli.make.fleet_options import ACCEPT_NEW, KNOWN_HOSTS, connect
from volbench.cli.options import ALLOW_EXEC, CAMPAIGN, GRACE, KEEP_FILES, READY_TIMEOUT
from volbench.units import parse_duration


@click.command("resume")
@CAMPAIGN
@click.option("--retry-failed", is_flag=True, help="Repeat failed runs too.")
@KEEP_FILES
@GRACE
@READY_TIMEOUT
@ALLOW_EXEC
@click.option(
    "--allow-destroy",
    multiple=True,
    metavar="DEVICE",
    help="Allow this device of the plan to be overwritten although it, or what is on it, is not "
    "what it was; on another host with its name before it: vm01:/dev/sdb.",
)
@KNOWN_HOSTS
@ACCEPT_NEW
def command(
    campaign: Path,
    *,
    retry_failed: bool,
    keep_files: bool,
    grace: str,
    ready_timeout: str,
    allow_exec: bool,
    allow_destroy: tuple[str, ...],
    known_hosts: Path | None,
    accept_new: bool,
) -> None:
    """Continue the campaign in DIR: finished runs are kept and never run again.

    Runs that continued without a controller, on the hosts of an inventory, are found again.
    """
    from volbench.cli.make.execution import execute
    from volbench.cli.make.wipe_confirmation import confirm_destruction
    from volbench.engine.campaign.client_worker import Settings
    from volbench.engine.campaign.resume_plan import allow_anew, require_own, resume_on
    from volbench.execute.connect import HostKeyPolicy
    from volbench.store.consent import read_own_campaign

    layout, archive, seal = read_own_campaign(campaign)
    require_own(archive.campaign)
    settings = Settings(
        grace_s=parse_duration(grace),
        keep_files=keep_files,
        retry_failed=retry_failed,
        ready_timeout_s=parse_duration(ready_timeout),
    )
    with connect(archive.campaign.hosts, HostKeyPolicy(known_hosts, accept_new)) as connected:
        hosts = resume_on(connected, archive, allow_exec=allow_exec)
        plan = allow_anew(hosts, layout, archive.campaign, allow_destroy=allow_destroy, seal=seal)
        if allow_destroy:
            confirm_destruction(hosts, plan, only=allow_destroy)
        execute(hosts, layout, plan, settings=settings)
