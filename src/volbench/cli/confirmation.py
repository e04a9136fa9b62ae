"""Questions before a campaign: long campaigns, devices that are overwritten, and passwords."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from volbench.cli.verb_groups import questions_shown
from volbench.errors import InputError, RefusedError

if TYPE_CHECKING:
    from volbench.engine.campaign.prepare import Prepared
    from volbench.engine.hosts.connected_host import ConnectedHost
    from volbench.execute.protocol import Executor
    from volbench.model.campaign.planned_run import Campaign, Run


def confirm_length(prepared: Prepared, *, yes: bool) -> None:
    """Print time and bytes of a campaign, and ask for confirmation if it is long."""
    from volbench.present.terminal.campaign_text import estimate_words

    print_notes(prepared)
    click.echo(estimate_words(prepared.estimate), err=True)
    if yes or not prepared.estimate.is_long or not sys.stdin.isatty():
        return
    with questions_shown():
        is_confirmed = click.confirm(
            "This campaign will take a long time. Start it?", err=True, default=False
        )
    if not is_confirmed:
        raise RefusedError(
            "the campaign was not confirmed; nothing was run",
            hint="make it shorter with --set runtime=..., or leave out jobs with --set 'JOB='",
        )


def print_notes(prepared: Prepared) -> None:
    """Print what is unusual about the volumes: they are memory, or files that do not exist yet."""
    from volbench.model.campaign.host import LOCAL
    from volbench.model.campaign.planned_files import file_ranges
    from volbench.model.campaign.planned_run import VolumeKind
    from volbench.present.terminal.campaign_text import memory_words
    from volbench.units import format_capacity

    volumes, runs = prepared.archive.provenance.volumes, prepared.campaign.runs
    if warning := memory_words(volumes):
        click.echo(warning, err=True)
    extents = ((run.host, run.extent.note) for run in runs if run.extent)
    for host, note in dict.fromkeys(extents):
        if note:
            click.echo(f"note: {'' if host == LOCAL else f'{host}: '}{note}", err=True)
    if any(not host.is_local for host in prepared.campaign.hosts):
        return
    sizes: dict[str, int] = {}
    for run in (run for run in runs if run.volume.kind is VolumeKind.FILE):
        for path, (_, end) in file_ranges(run).items():
            sizes[path] = max(end, sizes.get(path, 0))
    for path, most in sizes.items():
        if not Path(path).exists():
            size = format_capacity(most)
            click.echo(f"note: {path} does not exist: the runs create it, up to {size}", err=True)


def confirm_destruction(
    hosts: Sequence[ConnectedHost], campaign: Campaign, *, only: Sequence[str] = ()
) -> None:
    """Ask the user to type the name of each device that a run may overwrite.

    Without a terminal nothing is asked: scripts use ``--allow-destroy``.

    Args:
        only: devices as --allow-destroy names them; all if it is empty.
    """
    if not sys.stdin.isatty():
        return
    from volbench.api.campaign_drive import written_devices
    from volbench.engine.guard.run_guard import describe_device
    from volbench.engine.guard.volume_targets import probe_volume

    for name, host, volume in written_devices(campaign, hosts, only):
        facts = probe_volume(host.executor, volume)
        with questions_shown():
            click.echo(describe_device(facts, host=_host_name(host.executor)), err=True)
            typed = click.prompt(
                f"All data on it will be overwritten. Type {name} to continue", err=True, default=""
            )
        if typed.strip() != name:
            message = f"{name} was not confirmed; nothing was done"
            raise RefusedError(message, hint=f"type exactly {name} when asked")


def ask_secrets(runs: Iterable[Run], known: Mapping[str, str]) -> dict[str, str]:
    """Return the secrets of runs: known ones, and others from the environment or the terminal."""
    from volbench.model.campaign.run_secrets import missing_secrets

    secrets = dict(known)
    for variable, use in missing_secrets(runs, known).items():
        given = os.environ.get(variable, "")
        if not given and sys.stdin.isatty():
            with questions_shown():
                given = click.prompt(f"Password for {use}", hide_input=True, err=True, default="")
        if not given or not given.isprintable():
            raise InputError(
                f"the password for {use} is missing",
                hint=f"set the environment variable {variable}, or use a terminal to be asked",
            )
        secrets[variable] = given
    return secrets


def _host_name(executor: Executor) -> str:
    from volbench.execute.agent.files import read_files
    from volbench.model.campaign.host import LOCAL

    hostname = (executor.ask(read_files, ["/proc/sys/kernel/hostname"])[0] or "").strip()
    return f"{'this machine' if executor.host == LOCAL else executor.host} ({hostname})"
