"""A person at a terminal types the name of every device that will be overwritten."""

from __future__ import annotations

import sys

import click

from volbench.engine.guard import describe_device
from volbench.engine.prepare import Prepared
from volbench.engine.probe import probe_volume
from volbench.errors import RefusedError
from volbench.execute.protocol import Executor
from volbench.fio.files import writes
from volbench.model.target import Volume, VolumeKind


def confirm_destruction(executor: Executor, prepared: Prepared) -> None:
    """Ask for each device that a Run may write; scripts have said so with --allow-destroy.

    Raises:
        RefusedError: something else was typed.
    """
    if not sys.stdin.isatty():
        return
    for volume in _written_devices(prepared):
        click.echo(describe_device(probe_volume(executor, volume)), err=True)
        typed = click.prompt(
            f"All of it will be overwritten. Type {volume.target} to go on", err=True, default=""
        )
        if typed.strip() != volume.target:
            raise RefusedError(
                f"{volume.target} was not confirmed; nothing was done",
                hint=f"type exactly {volume.target} when asked",
            )


def _written_devices(prepared: Prepared) -> list[Volume]:
    found = {
        run.volume.target: run.volume
        for run in prepared.campaign.runs
        if run.volume.kind is VolumeKind.DEVICE and writes(run)
    }
    return list(found.values())
