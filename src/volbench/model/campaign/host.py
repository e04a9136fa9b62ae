"""Hosts of a campaign, inventories, and the policy on missing hosts."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from typing import Any

from pydantic import Field

from volbench.model.frozen_model import Count, Frozen
from volbench.model.profile.profile_settings import Limits

LOCAL = "local"  # Kind of the controller's own machine, and its name without an inventory
SSH = "ssh"  # Kind of a machine with sshd


class Policy(StrEnum):
    """Number of hosts that must complete a run for its totals to count."""

    ALL = "all"
    QUORUM = "quorum"
    BEST_EFFORT = "best-effort"


class Host(Frozen):
    """A machine that fio runs on."""

    name: str  # unique in the inventory: letters, digits, ``.``, ``_`` and ``-``
    # host name or IP address to connect to; empty for the controller's own machine
    address: str = ""
    port: Count | None = None  # port of sshd; None for that of ``~/.ssh/config``, or 22
    # login name; None for that of ``~/.ssh/config``, or the controller's own
    user: str | None = None
    # path of a private key, as written (``~`` is not expanded); empty for the keys of the agent and
    # ``~/.ssh/config``, and the default key files
    key: str = ""
    # jump hosts, first hop first: names in the inventory or ``user@host:port``; None for those of
    # ``~/.ssh/config``, empty for a direct connection
    jump: tuple[str, ...] | None = None
    # inventory hosts named in `jump` and in the `jump` of those, so that a host remains reachable
    # when they are not selected
    hops: tuple[Host, ...] = ()
    sudo: bool = False  # run fio and device inspection through ``sudo -n``
    # role to device, file, directory or NBD URI
    volumes: dict[str, str] = Field(default_factory=dict)
    # attributes that distinguish hosts in tables and charts, such as provider and volume_type
    labels: dict[str, str] = Field(default_factory=dict)
    # role to declared limits; the key ``*`` applies to every role
    limits: dict[str, Limits] = Field(default_factory=dict)
    # devices that may be overwritten: paths under ``/dev/disk/by-id`` or ``serial:TEXT``
    allow_destroy: tuple[str, ...] = ()
    # folder on the host for temporary files during a run; empty for ``.volbench`` in the user's
    # home
    workdir: str = ""
    turn: Count = 0  # hosts of one turn run together, those of the next turn after them
    python: str = ""  # Python interpreter on the host; empty to try the usual ones
    # what an extension needs to connect to a host that it made for the campaign; ``kind`` names its
    # channel, and nothing else in it concerns anyone but the extension. Empty for a machine
    connection: dict[str, Any] = Field(default_factory=dict)
    # what the maker of the host knows of it, by the fields of `HostFacts`
    facts: dict[str, str | int | None] = Field(default_factory=dict)

    @property
    def kind(self) -> str:
        """Kind of connection: the name of a channel."""
        return str(self.connection.get("kind", SSH if self.address else LOCAL))

    @property
    def is_local(self) -> bool:
        """Whether this is the controller's own machine."""
        return self.kind == LOCAL


def by_name(hosts: Iterable[Host]) -> dict[str, Host]:
    """Return hosts by name, including mere jump hosts."""
    listed = tuple(hosts)
    return {hop.name: hop for host in listed for hop in host.hops} | {
        host.name: host for host in listed
    }


class Inventory(Frozen):
    """Hosts and their groups."""

    hosts: tuple[Host, ...]  # in the order of the file; names are unique
    # group to names of hosts; a group named ``all`` is never listed
    groups: dict[str, tuple[str, ...]] = Field(default_factory=dict)
