"""volbench warmup: touch every block of a volume once, into a campaign folder."""

from __future__ import annotations

from pathlib import Path

import click

from volbench.cli.make.cost_confirmation import YES, confirm_length
from volbench.cli.make.execution import execute, show_plan
from volbench.cli.make.wipe_confirmation import confirm_destruction
from volbench.cli.options import ALLOW_DESTROY, DRY_RUN, GRACE, NEW_CAMPAIGN, examples
from volbench.cli.outputs import default_campaign_folder, recorded_command
from volbench.engine.campaign.client_worker import Settings
from volbench.engine.campaign.prepare import Request, prepare
from volbench.engine.hosts.connected_host import this_machine
from volbench.engine.hosts.volume_probe import find_volume
from volbench.errors import InputError
from volbench.execute.local import LocalExecutor
from volbench.execute.protocol import Executor
from volbench.model.campaign.planned_run import OnError
from volbench.model.campaign.target import VolumeKind
from volbench.model.profile.profile_model import Job, Phase, Profile
from volbench.model.profile.profile_settings import MOST_EXTENTS, Warming, WarmingMode
from volbench.plan.expansion.extents import LADDER
from volbench.plan.profile.job_conflicts import warming_conflict
from volbench.store.archive import create_campaign
from volbench.units import parse_duration, parse_size

_MOST_CLONES = 1024
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
    type=click.Choice([mode.value for mode in WarmingMode]),
    default=WarmingMode.WRITE_READ.value,
    show_default=True,
    help="Write all of it, read all of it (a volume restored from a snapshot), or both.",
)
@click.option(
    "--jobs",
    type=click.IntRange(1, _MOST_CLONES),
    default=32,
    show_default=True,
    help="Clones that share each extent; --auto finds its own number.",
)
@click.option(
    "--iodepth",
    type=click.IntRange(1, 65536),
    default=32,
    show_default=True,
    help="I/Os that each clone keeps under way.",
)
@click.option("--bs", default="1m", show_default=True, metavar="SIZE", help="Block size.")
@click.option(
    "--extents",
    type=click.IntRange(0, MOST_EXTENTS),
    default=0,
    help="Parts the volume is done in, about. Default: by its size.",
)
@click.option(
    "--auto",
    is_flag=True,
    help=f"Raise the number of clones from 1 to {LADDER[-1]} until it gains nothing more.",
)
@click.option(
    "--size",
    default="",
    metavar="SIZE",
    help="Of the volume where nobody tells, or of its first part.",
)
@NEW_CAMPAIGN
@ALLOW_DESTROY
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
    grace: str,
    dry_run: bool,
    yes: bool,
) -> None:
    """Touch every block of VOLUME (device, file or NBD uri) exactly once, and prove it."""
    options = {"bs": str(parse_size(bs)), "iodepth": str(iodepth), "numjobs": str(jobs)}
    job = Job(
        name=_JOB,
        phase=Phase.WARMUP,
        options=options | ({"size": str(parse_size(size))} if size else {}),
        warming=Warming(mode=WarmingMode(mode), extents=extents, auto_jobs=auto),
    )
    _run(
        job,
        volume,
        output=output,
        allow_destroy=allow_destroy,
        grace=grace,
        dry_run=dry_run,
        yes=yes,
    )


def _run(
    job: Job,
    volume: str,
    *,
    output: Path | None,
    allow_destroy: tuple[str, ...],
    grace: str,
    dry_run: bool,
    yes: bool,
) -> None:
    """Run a profile of one warm-up job by the usual engine."""
    executor = LocalExecutor()
    _check(executor, job, volume)
    request = Request(
        profiles=(Profile(name="warmup", jobs=(job,)),),
        targets={job.role: volume},
        into=output or default_campaign_folder("warmup"),
        on_error=OnError.STOP,
        allow_destroy=allow_destroy,
        command=recorded_command((), output),
    )
    grace_s = parse_duration(grace)
    prepared = prepare([this_machine()], request)
    if dry_run:
        show_plan(prepared)
        return
    confirm_length(prepared, bill=None, yes=yes)
    confirm_destruction(prepared)
    layout = create_campaign(request.into, prepared.archive)
    how = Settings(grace_s=grace_s)
    execute(prepared.machines, layout, prepared.campaign, settings=how)


def _check(executor: Executor, job: Job, target: str) -> None:
    """Refuse what is no warm-up, and what volbench would make and then remove."""
    for conflict in warming_conflict(job):
        raise InputError(conflict.message, hint=conflict.hint)
    volume = find_volume(executor, role=job.role, target=target)
    if volume.kind is VolumeKind.DIRECTORY or (
        volume.kind is VolumeKind.FILE and executor.stat(volume.target) is None
    ):
        raise InputError(
            f"{target} is no device, file or NBD uri that exists",
            hint="name a device, or make the file first with truncate -s 10g",
            context={"path": target},
        )
