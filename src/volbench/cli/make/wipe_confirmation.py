"""A person at a terminal types the name of every device that will be overwritten."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import click

from volbench.engine.guard.run_guard import describe_device
from volbench.engine.hosts.connected_host import ConnectedHost
from volbench.engine.hosts.volume_probe import probe_volume
from volbench.errors import RefusedError
from volbench.fio.jobs.output_files import writes
from volbench.model.campaign.host import LOCAL
from volbench.model.campaign.planned_run import Campaign
from volbench.model.campaign.target import Volume, VolumeKind


def confirm_destruction(
    hosts: Sequence[ConnectedHost], campaign: Campaign, *, only: Sequence[str] = ()
) -> None:
    """Ask for each device that a run may write; scripts have said so with --allow-destroy.

    Args:
        hosts: of the plan, connected.
        campaign: the plan.
        only: devices as --allow-destroy names them; all where it is empty.

    Raises:
        RefusedError: something else was typed.
    """
    if not sys.stdin.isatty():
        return
    executors = {host.name: host.executor for host in hosts}
    for (host, target), volume in _written_devices(campaign).items():
        name = target if host == LOCAL else f"{host}:{target}"
        if only and name not in only:
            continue
        click.echo(describe_device(probe_volume(executors[host], volume)), err=True)
        typed = click.prompt(
            f"All of it will be overwritten. Type {name} to go on", err=True, default=""
        )
        if typed.strip() != name:
            raise RefusedError(
                f"{name} was not confirmed; nothing was done",
                hint=f"type exactly {name} when asked",
            )


def _written_devices(campaign: Campaign) -> dict[tuple[str, str], Volume]:
    """Return the devices that will be written, by host and path."""
    return {
        (run.host, run.volume.target): run.volume
        for run in campaign.runs
        if run.volume.kind is VolumeKind.DEVICE and writes(run)
    }
