"""volbench resume: go on where a campaign was interrupted."""

from __future__ import annotations

from pathlib import Path

import click

from volbench.cli.execution import execute
from volbench.cli.options import CAMPAIGN
from volbench.engine.campaign import GRACE_S, Settings
from volbench.engine.probe import require_fio
from volbench.execute.local import LocalExecutor
from volbench.model.profile import Tool
from volbench.store.archive import read_campaign
from volbench.units import parse_duration


@click.command("resume")
@CAMPAIGN
@click.option("--retry-failed", is_flag=True, help="Do failed Runs again too.")
@click.option("--keep-files", is_flag=True, help="Leave scratch files on the volumes.")
@click.option("--grace", default=f"{GRACE_S:.0f}s", show_default=True, metavar="TIME")
def command(campaign: Path, *, retry_failed: bool, keep_files: bool, grace: str) -> None:
    """Go on with the campaign in DIR: finished Runs are kept and never run again."""
    executor = LocalExecutor()
    layout, archive = read_campaign(campaign)
    needs_fio = any(run.tool is Tool.FIO for run in archive.campaign.runs)
    settings = Settings(
        fio=require_fio(executor) if needs_fio else "",
        grace_s=parse_duration(grace),
        keep_files=keep_files,
        retry_failed=retry_failed,
    )
    execute(executor, layout, archive.campaign, settings=settings)
