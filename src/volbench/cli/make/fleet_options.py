"""Options that name the hosts of a command, and the connection to them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING

import click

from volbench.cli.catalogue.inventory_options import read_hosts
from volbench.cli.options import INVENTORY, LIMIT, MAPPING
from volbench.errors import InputError

if TYPE_CHECKING:
    from volbench.engine.hosts.connected_host import ConnectedHost
    from volbench.execute.connect import HostKeyPolicy
    from volbench.model.campaign.host import Host, Policy
    from volbench.model.campaign.planned_run import Campaign

KNOWN_HOSTS = click.option(
    "--known-hosts",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="volbench's own file of host keys, beside ~/.ssh/known_hosts.",
)

ACCEPT_NEW = click.option(
    "--accept-new-host-keys",
    "accept_new",
    is_flag=True,
    help="Add the keys of unknown hosts to that file. A changed key is refused all the same.",
)

POLICY = click.option(
    "--policy",
    default="all",
    show_default=True,
    metavar="all|quorum:N|best-effort",
    help="How many clients must be ready for a step to start.",
)


OWN_POLICY = click.option(
    "--policy",
    default="",
    metavar="all|quorum:N|best-effort",
    help="How many clients must be in reach to go on. Default: the policy of the campaign.",
)


@dataclass(frozen=True)
class HostSelection:
    """Hosts that a command works on.

    Attributes:
        inventory: None for this machine alone.
        limits: parts of the inventory that are selected.
        mapping: for Terraform's outputs.
        host_keys: which are trusted.
    """

    inventory: Path | None
    limits: tuple[str, ...]
    mapping: Path | None
    host_keys: HostKeyPolicy

    @property
    def resume_options(self) -> tuple[str, ...]:
        """Options by which volbench resume trusts the same host keys."""
        known = self.host_keys.known_hosts
        options = () if known is None else ("--known-hosts", str(known.resolve()))
        return (*options, "--accept-new-host-keys") if self.host_keys.accept_new else options


def on_hosts(function: Callable[..., None]) -> Callable[..., None]:
    """Add the options that name hosts to a command, which receives one keyword, `where`."""

    @INVENTORY
    @LIMIT
    @MAPPING
    @KNOWN_HOSTS
    @ACCEPT_NEW
    @wraps(function)
    def wrapped(
        *arguments: object,
        inventory: Path | None,
        limits: tuple[str, ...],
        mapping: Path | None,
        known_hosts: Path | None,
        accept_new: bool,
        **others: object,
    ) -> None:
        from volbench.execute.connect import HostKeyPolicy

        host_keys = HostKeyPolicy(known_hosts, accept_new)
        function(*arguments, where=HostSelection(inventory, limits, mapping, host_keys), **others)

    return wrapped


@contextmanager
def connected_hosts(where: HostSelection) -> Iterator[list[ConnectedHost]]:
    """Yield the selected hosts, connected, and release them at the end.

    Raises:
        InventoryError: problems in the inventory.
        InputError: it is missing, though a part of it is named.
    """
    from volbench.engine.hosts.connected_host import this_machine

    if where.inventory is None:
        if where.limits or where.mapping:
            raise InputError(
                "--limit and --mapping need an inventory",
                hint="add --inventory FILE",
            )
        yield [this_machine()]
        return
    inventory = read_hosts(where.inventory, limits=where.limits, mapping=where.mapping)
    with connect(inventory.hosts, where.host_keys) as hosts:
        yield hosts


@contextmanager
def connect(hosts: Sequence[Host], host_keys: HostKeyPolicy) -> Iterator[list[ConnectedHost]]:
    """Yield connected hosts; this machine for none."""
    from volbench.engine.hosts.connected_host import ConnectedHost, this_machine
    from volbench.execute.connect import connect_hosts

    if not hosts:
        yield [this_machine()]
        return
    with connect_hosts(hosts, host_keys=host_keys) as executors:
        yield [ConnectedHost(*pair) for pair in zip(hosts, executors, strict=True)]


def with_policy(campaign: Campaign, text: str) -> Campaign:
    """Return a campaign with the policy of ``--policy``; its own where that is empty.

    Raises:
        InputError: the policy is unknown.
    """
    if not text:
        return campaign
    policy, quorum = parse_policy(text)
    return campaign.model_copy(update={"policy": policy, "quorum": quorum})


def parse_policy(text: str) -> tuple[Policy, int]:
    """Return policy and quorum of ``--policy``.

    Raises:
        InputError: it is unknown.
    """
    from volbench.model.campaign.host import Policy

    name, _, number = text.partition(":")
    if name == Policy.QUORUM.value and number.isdecimal() and int(number):
        return Policy.QUORUM, int(number)
    if not number and name in {Policy.ALL.value, Policy.BEST_EFFORT.value}:
        return Policy(name), 0
    raise InputError(
        f"--policy {text} is unknown", hint="write all, best-effort, or quorum:N such as quorum:25"
    )
