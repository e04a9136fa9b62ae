"""Options that name the hosts of a command, and the connection to them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from volbench.cli.configuration import unless_targets_are_given
from volbench.cli.options import PATH, flag, option_group
from volbench.errors import InputError

if TYPE_CHECKING:
    from volbench.engine.hosts.connected_host import ConnectedHost
    from volbench.execute.connect import HostKeyPolicy
    from volbench.model.campaign.host import Host, Inventory, Policy
    from volbench.model.campaign.planned_run import Campaign

_FAILED = "@failed"

INVENTORY = click.option(
    "--inventory",
    type=PATH,
    metavar="FILE",
    callback=unless_targets_are_given,
    help="List of hosts: volbench's YAML, an Ansible inventory, or terraform output -json.",
)

LIMIT = click.option(
    "--limit",
    "limits",
    multiple=True,
    metavar="GROUP|HOST|@FILE",
    help="Only these hosts: a group, a host, a range, a pattern such as vm*, the names in a file, "
    "or @failed for those whose runs the campaign did not finish.",
)

MAPPING = click.option(
    "--mapping",
    type=PATH,
    metavar="FILE",
    help="File that says which of Terraform's outputs describe the hosts.",
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


def _limit_parallel(context: click.Context, _option: click.Parameter, count: int | None) -> None:
    from volbench.execute.parallel import parallel_limit

    if count is not None:
        context.with_resource(parallel_limit(count))


_FORKS = click.option(
    "--forks",
    type=click.IntRange(1, 1000),
    metavar="N",
    expose_value=False,
    callback=_limit_parallel,
    help="Connect to, survey, prepare and clean at most N hosts at once; fio still starts on all "
    "together. Default: 64.",
)

_HOST_KEYS = (
    _FORKS,
    click.option(
        "--known-hosts",
        type=PATH,
        metavar="FILE",
        help="volbench's own file of host keys, beside ~/.ssh/known_hosts.",
    ),
    flag(
        "--accept-new-host-keys",
        "Add the keys of unknown hosts to that file. A changed key is refused all the same.",
        "accept_new",
    ),
)


def _host_keys(known_hosts: Path | None, accept_new: bool) -> HostKeyPolicy:  # noqa: FBT001 - click passes options by name
    from volbench.execute.connect import HostKeyPolicy

    return HostKeyPolicy(known_hosts, accept_new)


# Options for trusted host keys, as the keyword `host_keys`
HOST_KEYS = option_group("host_keys", _host_keys, *_HOST_KEYS)


@dataclass(frozen=True)
class HostSelection:
    """Hosts selected on the command line."""

    inventory: Path | None  # inventory file; None for this machine only
    limits: tuple[str, ...]  # selected groups and hosts of the inventory
    mapping: Path | None  # mapping of Terraform's outputs
    known_hosts: Path | None  # volbench's known_hosts file; None for the default
    accept_new: bool  # add keys of unknown hosts to it

    def after(self, campaign: Path | None) -> HostSelection:
        """Return the selection in which ``@failed`` means the hosts of an earlier campaign."""
        return replace(self, limits=named_limits(self.limits, campaign))

    @property
    def resume_options(self) -> tuple[str, ...]:
        """Options of volbench resume to trust the same host keys."""
        known = self.known_hosts
        options = () if known is None else ("--known-hosts", str(known.resolve()))
        return (*options, "--accept-new-host-keys") if self.accept_new else options

    @contextmanager
    def connected(self) -> Iterator[list[ConnectedHost]]:
        """Yield the selected hosts with open connections, closed at the end of the block."""
        if self.inventory is None and (self.limits or self.mapping):
            raise InputError("--limit and --mapping need an inventory", hint="add --inventory FILE")
        limits = named_limits(self.limits, None)
        found = self.inventory and read_hosts(self.inventory, limits=limits, mapping=self.mapping)
        host_keys = _host_keys(self.known_hosts, self.accept_new)
        with connect(found.hosts if found else (), host_keys) as hosts:
            yield hosts


# Options that select hosts, as the keyword `where`
on_hosts = option_group("where", HostSelection, INVENTORY, LIMIT, MAPPING, *_HOST_KEYS)


@contextmanager
def connect(hosts: Sequence[Host], host_keys: HostKeyPolicy) -> Iterator[list[ConnectedHost]]:
    """Yield connected hosts; this machine if none are given."""
    from volbench.engine.hosts.connected_host import ConnectedHost, this_machine
    from volbench.execute.connect import connect_hosts

    if not hosts:
        yield [this_machine()]
        return
    with connect_hosts(hosts, host_keys=host_keys) as executors:
        yield [ConnectedHost(*pair) for pair in zip(hosts, executors, strict=True)]


def read_hosts(file: Path, *, limits: Sequence[str] = (), mapping: Path | None = None) -> Inventory:
    """Return the selected hosts of an inventory; notes go to stderr."""
    from volbench.plan.inventory import load_inventory, select

    inventory = load_inventory(
        file,
        mapping=mapping,
        ssh_config=Path.home() / ".ssh" / "config",
        on_note=lambda note: click.echo(f"note: {note}", err=True),
    )
    return select(inventory, limits)


def named_limits(limits: Sequence[str], campaign: Path | None) -> tuple[str, ...]:
    """Return the hosts of ``--limit``, with the content of files in place of ``@FILE``.

    Args:
        campaign: the folder whose unfinished hosts are meant by ``@failed``; None without one.
    """
    found: list[str] = []
    for limit in limits:
        found += _names_in(limit, campaign) if limit.startswith("@") else [limit]
    return tuple(found)


def _names_in(limit: str, campaign: Path | None) -> list[str]:
    from volbench.store.layout import Layout

    path = Path(limit.removeprefix("@"))
    if limit == _FAILED:
        if campaign is None:
            raise InputError(
                f"--limit {_FAILED} needs a campaign whose hosts are meant",
                hint="name the file that it left: --limit @DIR/failed-hosts.txt",
            )
        path = Layout(campaign).failed_hosts
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, ValueError) as error:
        raise InputError(
            f"--limit {limit}: {path} cannot be read: {getattr(error, 'strerror', error)}",
            hint="a campaign writes failed-hosts.txt when it ends with unfinished runs",
        ) from error
    names = [name for line in lines if (name := line.partition("#")[0].strip())]
    if not names:
        raise InputError(f"--limit {limit}: {path} names no host", hint="write one name per line")
    return names


def with_policy(campaign: Campaign, text: str) -> Campaign:
    """Return a campaign with the policy of ``--policy``; unchanged if that is empty."""
    if not text:
        return campaign
    policy, quorum = parse_policy(text)
    return campaign.model_copy(update={"policy": policy, "quorum": quorum})


def parse_policy(text: str) -> tuple[Policy, int]:
    """Return policy and quorum of ``--policy``."""
    from volbench.model.campaign.host import Policy

    name, _, number = text.partition(":")
    if name == Policy.QUORUM.value and number.isdecimal() and int(number):
        return Policy.QUORUM, int(number)
    if not number and name in {Policy.ALL.value, Policy.BEST_EFFORT.value}:
        return Policy(name), 0
    raise InputError(
        f"--policy {text} is unknown", hint="write all, best-effort, or quorum:N such as quorum:25"
    )
