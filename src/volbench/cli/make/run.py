"""volbench run: execute profiles on volumes, into a campaign folder."""

from __future__ import annotations

from pathlib import Path

import click

from volbench.cli.catalogue.profile_sources import knows_volume_types, load_texts, profile_texts
from volbench.cli.make.cost_confirmation import PRICES, YES, bill_of, confirm_length
from volbench.cli.make.fleet_options import (
    POLICY,
    HostSelection,
    connected_hosts,
    on_hosts,
    parse_policy,
)
from volbench.cli.options import (
    ALLOW_DESTROY,
    ALLOW_EXEC,
    ALLOW_SHARED_FOLDER,
    DRY_RUN,
    GRACE,
    KEEP_FILES,
    NEW_CAMPAIGN,
    READY_TIMEOUT,
    SETTINGS,
    examples,
    parse_targets,
)
from volbench.cli.outputs import default_campaign_folder, recorded_command
from volbench.units import parse_duration


@click.command(
    "run",
    epilog=examples(
        "volbench run quick --on /data",
        "volbench run aks-disk --on data=/data --on os=/tmp --set runtime=2s",
        "volbench run iodepth-sweep --on /dev/sdb --allow-destroy /dev/sdb",
        "volbench run aks-disk --inventory fleet.yaml --limit fast",
    ),
)
@click.argument("profiles", nargs=-1, metavar="PROFILE...")
@click.option(
    "--like",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    metavar="DIR",
    help="Take the profiles of the campaign in DIR, wherever it comes from. Its targets and what "
    "it may overwrite are not taken.",
)
@click.option(
    "--on",
    "targets",
    multiple=True,
    metavar="[ROLE=]TARGET",
    help="Device, file, directory or NBD URI of a role; without a role: data.",
)
@NEW_CAMPAIGN
@SETTINGS
@knows_volume_types
@click.option("--repeat", type=click.IntRange(1, 10_000), help="Run the measured jobs N times.")
@click.option("--seed", type=click.IntRange(0, 2**31 - 1), help="Seed of order and random offsets.")
@click.option(
    "--on-error",
    type=click.Choice(["continue", "stop"]),
    default="continue",
    show_default=True,
    help="After a failed run: continue with the next, or stop.",
)
@ALLOW_DESTROY
@ALLOW_SHARED_FOLDER
@KEEP_FILES
@GRACE
@READY_TIMEOUT
@DRY_RUN
@ALLOW_EXEC
@on_hosts
@POLICY
@click.option(
    "--install-fio",
    is_flag=True,
    help="Install fio where it is missing, by apt-get, dnf or apk, as root or by sudo -n.",
)
@PRICES
@YES
def command(
    profiles: tuple[str, ...],
    like: Path | None,
    targets: tuple[str, ...],
    output: Path | None,
    settings: tuple[str, ...],
    repeat: int | None,
    seed: int | None,
    on_error: str,
    allow_destroy: tuple[str, ...],
    *,
    allow_shared_folder: bool,
    keep_files: bool,
    grace: str,
    ready_timeout: str,
    dry_run: bool,
    allow_exec: bool,
    where: HostSelection,
    policy: str,
    install_fio: bool,
    prices: str | None,
    yes: bool,
) -> None:
    """Run PROFILEs (bundled names or YAML files) and keep the results in a campaign folder."""
    from volbench.cli.make.execution import show_plan, start
    from volbench.engine.campaign.client_worker import Settings
    from volbench.engine.campaign.prepare import Request, prepare
    from volbench.execute.local import LocalExecutor
    from volbench.model.campaign.planned_run import OnError

    executor = LocalExecutor()
    sources = profile_texts(profiles, like=like)
    loaded = load_texts(executor, sources, settings=settings, allow_exec=allow_exec)
    chosen, quorum = parse_policy(policy)
    request = Request(
        profiles=loaded,
        targets=parse_targets(targets),
        into=output or default_campaign_folder("+".join(profile.name for profile in loaded)),
        repeat=repeat,
        seed=seed,
        on_error=OnError(on_error),
        allow_destroy=allow_destroy,
        allow_shared_folder=allow_shared_folder,
        command=recorded_command((*profiles, like or ""), output),
        policy=chosen,
        quorum=quorum,
        install_fio=install_fio,
    )
    execution = Settings(
        grace_s=parse_duration(grace),
        keep_files=keep_files,
        ready_timeout_s=parse_duration(ready_timeout),
    )
    with connected_hosts(where) as hosts:
        prepared = prepare(hosts, request)
        bill = bill_of(prepared, prices)
        if dry_run:
            show_plan(prepared, bill=bill)
            return
        confirm_length(prepared, bill=bill, yes=yes)
        start(prepared, request.into, settings=execution)
