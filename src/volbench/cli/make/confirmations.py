"""Cost of a campaign, and confirmation of long or destructive campaigns."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import click

from volbench.cli.verbosity import questions_shown
from volbench.errors import InputError, RefusedError
from volbench.model.campaign.host import LOCAL

if TYPE_CHECKING:
    from volbench.catalogue.bundled_prices import Bill, Rented
    from volbench.engine.campaign.prepare import Prepared
    from volbench.engine.hosts.connected_host import ConnectedHost
    from volbench.execute.protocol import Executor
    from volbench.model.campaign.planned_run import Campaign, Run
    from volbench.model.campaign.target import Volume

FLAVOR, VOLUME_TYPE = "flavor", "volume_type"  # Host labels that select prices


def confirm_length(prepared: Prepared, *, bill: Bill | None, yes: bool) -> None:
    """Print time, bytes and cost of a campaign, and ask for confirmation if it is long."""
    from volbench.present.terminal.campaign_text import estimate_words, memory_words

    if warning := memory_words(prepared.archive.provenance.volumes):
        click.echo(warning, err=True)
    click.echo(estimate_words(prepared.estimate, bill=bill), err=True)
    if yes or not prepared.estimate.is_long or not sys.stdin.isatty():
        return
    with questions_shown():
        is_confirmed = click.confirm("This takes long. Start?", err=True, default=False)
    if not is_confirmed:
        raise RefusedError(
            "a long campaign was not confirmed; nothing was done",
            hint="make it shorter with --set runtime=..., or leave out jobs with --set 'JOB='",
        )


def bill_of(prepared: Prepared, prices: str | None) -> Bill | None:
    """Return the maximum cost of a campaign; None without a price list."""
    if prices is None:
        return None
    from volbench.catalogue.bundled_prices import Bill, load_prices, money

    read, hours = load_prices(prices), (prepared.estimate.total_s or 0.0) / 3600
    bills = [
        money(
            read,
            hours=hours,
            flavor=host.labels.get(FLAVOR, ""),
            volume_types=_rented(host.labels.get(VOLUME_TYPE, ""), host.name, prepared),
        )
        for host in prepared.campaign.hosts
        if {FLAVOR, VOLUME_TYPE} & host.labels.keys()
    ]
    if not bills:
        raise InputError(
            "no host has a label that names its price",
            hint=f"give hosts of an inventory the labels {FLAVOR} and {VOLUME_TYPE}",
        )
    return Bill(sum(bill.amount for bill in bills), sum(bill.once for bill in bills), read.currency)


def _rented(volume_type: str, host: str, prepared: Prepared) -> list[Rented]:
    """Return the billed volumes of a host: every volume that a run uses."""
    from volbench.catalogue.bundled_prices import Rented

    if not volume_type:
        return []
    used = {run.volume.target: run for run in prepared.campaign.runs if run.host == host}
    sizes = [float(run.volume.pin.size_bytes) if run.volume.pin else 0.0 for run in used.values()]
    return [Rented(volume_type, size_bytes=size) for size in sizes]


def confirm_destruction(
    hosts: Sequence[ConnectedHost], campaign: Campaign, *, only: Sequence[str] = ()
) -> None:
    """Ask the user to type the name of each device that a run may overwrite.

    Without a terminal nothing is asked: scripts use ``--allow-destroy``.

    Args:
        only: devices as --allow-destroy names them; all where it is empty.
    """
    if not sys.stdin.isatty():
        return
    from volbench.engine.guard.run_guard import describe_device
    from volbench.engine.hosts.volume_probe import probe_volume

    executors = {host.name: host.executor for host in hosts}
    for (host, target), volume in _written_devices(campaign).items():
        name = target if host == LOCAL else f"{host}:{target}"
        if only and name not in only:
            continue
        facts = probe_volume(executors[host], volume)
        with questions_shown():
            click.echo(describe_device(facts, host=_host_name(executors[host])), err=True)
            typed = click.prompt(
                f"All of it will be overwritten. Type {name} to go on", err=True, default=""
            )
        if typed.strip() != name:
            raise RefusedError(
                f"{name} was not confirmed; nothing was done",
                hint=f"type exactly {name} when asked",
            )


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
                f"the password for {use} is not stored, and was not given",
                hint=f"set the environment variable {variable}, or use a terminal to be asked",
            )
        secrets[variable] = given
    return secrets


def _host_name(executor: Executor) -> str:
    """Return the name of a machine in the plan, and its own."""
    own = (executor.read_text("/proc/sys/kernel/hostname") or "").strip()
    return f"{'this machine' if executor.host == LOCAL else executor.host} ({own})"


def _written_devices(campaign: Campaign) -> dict[tuple[str, str], Volume]:
    """Return the devices that will be written, by host and path."""
    from volbench.fio.jobs.output_files import writes
    from volbench.model.campaign.target import VolumeKind

    return {
        (run.host, run.volume.target): run.volume
        for run in campaign.runs
        if run.volume.kind is VolumeKind.DEVICE and writes(run)
    }
