"""volbench resume: continue an interrupted campaign."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from volbench.cli.fleet_options import HOST_KEYS, connect
from volbench.cli.options import ALLOW_EXEC, CAMPAIGN, GRACE, KEEP_FILES, READY_TIMEOUT, flag
from volbench.cli.output import TableOutput, table_options

if TYPE_CHECKING:
    from volbench.execute.connect import HostKeyPolicy


@click.command("resume")
@CAMPAIGN
@flag("--retry-failed", "Repeat failed runs too.")
@KEEP_FILES
@GRACE
@READY_TIMEOUT
@ALLOW_EXEC
@click.option(
    "--allow-destroy",
    multiple=True,
    metavar="DEVICE",
    help="Allow this device of the plan to be overwritten although it, or what is on it, is not "
    "what it was; repeatable. On another host: vm01:/dev/sdb.",
)
@HOST_KEYS
@table_options(has_output=False)
def command(
    campaign: Path,
    *,
    retry_failed: bool,
    keep_files: bool,
    grace_s: float,
    ready_timeout_s: float,
    allow_exec: bool,
    allow_destroy: tuple[str, ...],
    host_keys: HostKeyPolicy,
    shown: TableOutput,
) -> None:
    """Continue the campaign in DIR: finished runs are kept and never run again.

    Runs that continued without a controller, on the hosts of an inventory, are found again.
    """
    from volbench.cli.make.confirmations import confirm_destruction
    from volbench.cli.make.execution import execute
    from volbench.engine.campaign.client_worker import Settings
    from volbench.engine.campaign.resume_plan import allow_anew, require_own, resume_on
    from volbench.store.consent import read_own_campaign

    layout, archive, seal = read_own_campaign(campaign)
    require_own(archive.campaign)
    settings = Settings(grace_s, keep_files, retry_failed, ready_timeout_s)
    with connect(archive.campaign.hosts, host_keys) as connected:
        hosts = resume_on(connected, archive, allow_exec=allow_exec)
        plan = allow_anew(hosts, layout, archive.campaign, allow_destroy=allow_destroy, seal=seal)
        if allow_destroy:
            confirm_destruction(hosts, plan, only=allow_destroy)
        execute(hosts, layout, plan, settings=settings, shown=shown)
