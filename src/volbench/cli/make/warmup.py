"""volbench warmup: touch every block of a volume once, into a campaign folder."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from volbench.cli.make.execution import StartOptions, carry_out, start_options
from volbench.cli.options import Quantity, examples, flag
from volbench.cli.output import (
    TableOutput,
    default_campaign_folder,
    recorded_command,
    table_options,
)
from volbench.errors import InputError
from volbench.units import parse_size

if TYPE_CHECKING:
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
    metavar="N",
    default=32,
    show_default=True,
    help="numjobs: jobs that share each extent; --auto finds the number itself.",
)
@click.option(
    "--iodepth",
    type=click.IntRange(1, 65536),
    metavar="N",
    default=32,
    show_default=True,
    help="I/Os in flight for each job.",
)
@click.option(
    "--bs",
    "bs_bytes",
    type=Quantity("SIZE", parse_size),
    default="1m",
    show_default=True,
    help="Block size.",
)
@click.option(
    "--extents",
    type=click.IntRange(0, 1000),
    metavar="N",
    default=0,
    help="Approximate number of parts that the volume is divided into. Default: by its size.",
)
@flag("--auto", "Raise numjobs step by step from 1 to 64, as long as bandwidth grows.")
@click.option(
    "--size",
    "size_bytes",
    type=Quantity("SIZE", parse_size),
    help="Volume size, if it cannot be detected, or size of the part to warm up.",
)
@start_options()
@table_options(has_output=False, has_events=True)
def command(
    volume: str,
    mode: str,
    jobs: int,
    iodepth: int,
    bs_bytes: int,
    extents: int,
    *,
    auto: bool,
    size_bytes: int | None,
    start: StartOptions,
    shown: TableOutput,
) -> None:
    """Touch every block of VOLUME (device, file or NBD URI) exactly once, and verify it."""
    from volbench.engine.campaign.prepare import Request
    from volbench.engine.hosts.connected_host import this_machine
    from volbench.execute.local import LocalExecutor
    from volbench.model.campaign.planned_run import OnError
    from volbench.model.profile.profile_model import Job, Phase, Profile
    from volbench.model.profile.profile_settings import Warming, WarmingMode

    options = {"bs": str(bs_bytes), "iodepth": str(iodepth), "numjobs": str(jobs)}
    job = Job(
        name=_JOB,
        phase=Phase.WARMUP,
        options=options | ({"size": str(size_bytes)} if size_bytes is not None else {}),
        warming=Warming(mode=WarmingMode(mode), extents=extents, auto_jobs=auto),
    )
    _check(LocalExecutor(), job, volume)
    request = Request(
        profiles=(Profile(name="warmup", jobs=(job,)),),
        targets={job.role: volume},
        into=start.output or default_campaign_folder("warmup"),
        on_error=OnError.STOP,
        allow_destroy=start.allow_destroy,
        wipe_signatures=start.wipe_signatures,
        allow_shared_folder=start.allow_shared_folder,
        command=recorded_command((), start.output),
    )
    carry_out([this_machine()], request, start=start, shown=shown)


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
        )
