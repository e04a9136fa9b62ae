"""Estimate of a campaign's time and cost, and the confirmation of a long one."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from volbench.errors import InputError, RefusedError

if TYPE_CHECKING:
    from volbench.engine.campaign.prepare import Prepared
    from volbench.model.campaign.planned_run import Run
    from volbench.plan.prices import Bill, Rented

FLAVOR, VOLUME_TYPE = "flavor", "volume_type"
"""Labels of hosts that name their prices."""

YES = click.option("--yes", is_flag=True, help="Skip the confirmation.")

PRICES = click.option(
    "--prices",
    metavar="NAME|FILE",
    help="Show what it costs, by the labels flavor and volume_type of the hosts.",
)


def confirm_length(prepared: Prepared, *, bill: Bill | None, yes: bool) -> None:
    """Print time, bytes and cost of a campaign, and ask for confirmation if it is long.

    Raises:
        RefusedError: it was not.
    """
    from volbench.present.terminal.estimate_text import estimate_words

    click.echo(estimate_words(prepared.estimate, bill=bill), err=True)
    if yes or not prepared.estimate.is_long or not sys.stdin.isatty():
        return
    if not click.confirm("That is long. Begin?", err=True, default=False):
        raise RefusedError(
            "a long campaign was not confirmed; nothing was done",
            hint="make it shorter with --set runtime=..., or leave out jobs with --set 'JOB='",
        )


def bill_of(prepared: Prepared, prices: str | None) -> Bill | None:
    """Return what a campaign costs at most; None when no prices are named.

    Raises:
        InputError: the prices can't be read, lack something, or no host says what it is.
    """
    if prices is None:
        return None
    from volbench.plan.prices import Bill, load_prices, money

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
    """Return the volumes of a host that are paid for: each that a run works on."""
    from volbench.plan.prices import Rented

    if not volume_type:
        return []
    used = {run.volume.target: run for run in prepared.campaign.runs if run.host == host}
    return [Rented(volume_type, size_bytes=_size(run)) for run in used.values()]


def _size(run: Run) -> float:
    return float(run.volume.pin.size_bytes) if run.volume.pin else 0.0
