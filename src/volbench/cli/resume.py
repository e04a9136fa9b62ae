"""volbench resume: go on where a campaign was interrupted."""

from __future__ import annotations

from pathlib import Path

import click

from volbench.cli.execution import execute
from volbench.cli.options import ALLOW_EXEC, CAMPAIGN, GRACE, KEEP_FILES
from volbench.engine.fio_options import options_on
from volbench.engine.machine import Machine
from volbench.engine.probe import require_fio
from volbench.engine.resuming import check_resumable
from volbench.engine.worker import Settings
from volbench.execute.local import LocalExecutor
from volbench.model.profile import Tool
from volbench.store.archive import read_campaign
from volbench.units import parse_duration


@click.command("resume")
@CAMPAIGN
@click.option("--retry-failed", is_flag=True, help="Do failed Runs again too.")
@KEEP_FILES
@GRACE
@ALLOW_EXEC
def command(
    campaign: Path, *, retry_failed: bool, keep_files: bool, grace: str, allow_exec: bool
) -> None:
    """Go on with the campaign in DIR: finished Runs are kept and never run again."""
    executor = LocalExecutor()
    layout, archive = read_campaign(campaign)
    plan = check_resumable(executor, archive, table=options_on(executor), allow_exec=allow_exec)
    needs_fio = bool(plan.cold_probe_roles) or any(run.tool is Tool.FIO for run in plan.runs)
    fio = require_fio(executor) if needs_fio else ""
    settings = Settings(
        grace_s=parse_duration(grace),
        keep_files=keep_files,
        retry_failed=retry_failed,
    )
    execute([Machine(executor, fio)], layout, plan, settings=settings)
