"""volbench warmup: touch every block of a volume once, into a campaign folder."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from volbench.cli.make.cost_confirmation import YES, confirm_length
from volbench.cli.options import (
    ALLOW_DESTROY,
    ALLOW_SHARED_FOLDER,
    DRY_RUN,
    GRACE,
    NEW_CAMPAIGN,
    examples,
)
from volbench.cli.outputs import default_campaign_folder, recorded_command
from volbench.errors import InputError
from volbench.units import parse_duration, parse_size

if TYPE_CHECKING:
    from volbench.engine.campaign.client_worker import Settings
    from volbench.engine.campaign.prepare import Request
    from volbench.execute.protocol import Executor
    from volbench.model.profile.profile_model import Job

_MOST_JOBS = 1024
_JOB = "fill"


@click.command(
    "warmup",
    epilog=examples(
        "volbench warmup /dev/sdb --allow-destroy /dev/sdb",
        "volbench warmup /dev/sdb --mode read",
    ),
)
@click.argument("volume")
@click.option(
    "--mode",
    type=click.Choice(["write", "read", "write-read"]),
    default="write-read",
    show_default=True,
    help="Write all of it, read all of it (a volume restored from a snapshot), or both.",
)
@click.option(
    "--jobs",
    type=click.IntRange(1, _MOST_JOBS),
    default=32,
    show_default=True,
    help="numjobs: jobs that share each extent; --auto finds the number itself.",
)
@click.option(
    "--iodepth",
    type=click.IntRange(1, 65536),
    default=32,
    show_default=True,
    help="I/Os in flight for each job.",
)
@click.option("--bs", default="1m", show_default=True, metavar="SIZE", help="Block size.")
@click.option(
    "--extents",
    type=click.IntRange(0, 1000),
    default=0,
    help="Approximate number of parts that the volume is divided into. Default: by its size.",
)
@click.option(
    "--auto",
    is_flag=True,
    help="Raise numjobs step by step from 1 to 64, as long as bandwidth grows.",
)
@click.option(
    "--size",
    default="",
    metavar="SIZE",
    help="Volume size, if it cannot be detected, or size of the part to warm up.",
)
@NEW_CAMPAIGN
@ALLOW_DESTROY
@ALLOW_SHARED_FOLDER
@GRACE
@DRY_RUN
@YES
def command(
    volume: str,
    mode: str,
    jobs: int,
    iodepth: int,
    bs: str,
    extents: int,
    *,
    auto: bool,
    size: str,
    output: Path | None,
    allow_destroy: tuple[str, ...],
    allow_shared_folder: bool,
    grace: str,
    dry_run: bool,
    yes: bool,
) -> None:
    """Touch every block of VOLUME (device, file or NBD URI) exactly once, and prove it."""
    from volbench.engine.campaign.client_worker import Settings
    from volbench.model.profile.profile_model import Job, Phase
    from volbench.model.profile.profile_settings import Warming, WarmingMode

    options = {"bs": str(parse_size(bs)), "iodepth": str(iodepth), "numjobs": str(jobs)}
    job = Job(
        name=_JOB,
        phase=Phase.WARMUP,
        options=options | ({"size": str(parse_size(size))} if size else {}),
        warming=Warming(mode=WarmingMode(mode), extents=extents, auto_jobs=auto),
    )
    request = _request(job, volume, output=output)
    request = replace(request, allow_destroy=allow_destroy, allow_shared_folder=allow_shared_folder)
    _run(request, Settings(grace_s=parse_duration(grace)), dry_run=dry_run, yes=yes)


def _request(job: Job, volume: str, *, output: Path | None) -> Request:
    """Return the request of a profile of one warm-up job."""
    from volbench.engine.campaign.prepare import Request
    from volbench.execute.local import LocalExecutor
    from volbench.model.campaign.planned_run import OnError
    from volbench.model.profile.profile_model import Profile

    _check(LocalExecutor(), job, volume)
    return Request(
        profiles=(Profile(name="warmup", jobs=(job,)),),
        targets={job.role: volume},
        into=output or default_campaign_folder("warmup"),
        on_error=OnError.STOP,
        command=recorded_command((), output),
    )


def _run(request: Request, settings: Settings, *, dry_run: bool, yes: bool) -> None:
    """Run a warm-up by the usual engine."""
    from volbench.cli.make.execution import show_plan, start
    from volbench.engine.campaign.prepare import prepare
    from volbench.engine.hosts.connected_host import this_machine

    prepared = prepare([this_machine()], request)
    if dry_run:
        show_plan(prepared)
        return
    confirm_length(prepared, bill=None, yes=yes)
    start(prepared, request.into, settings=settings)


def _check(executor: Executor, job: Job, target: str) -> None:
    """Refuse invalid warm-up jobs, and files that volbench would create and then remove."""
    from volbench.engine.hosts.volume_probe import find_volume
    from volbench.model.campaign.target import VolumeKind
    from volbench.plan.profile.job_conflicts import warming_conflict

    for conflict in warming_conflict(job):
        raise InputError(conflict.message, hint=conflict.hint)
    volume = find_volume(executor, role=job.role, target=target)
    if volume.kind is VolumeKind.DIRECTORY or (
        volume.kind is VolumeKind.FILE and executor.stat(volume.target) is None
    ):
        raise InputError(
            f"{target} is not an existing device, file or NBD URI",
            hint="name a device, or make the file first with truncate -s 10g",
            context={"path": target},
        )
