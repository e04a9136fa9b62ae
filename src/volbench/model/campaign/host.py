"""Where a campaign runs when that is not one machine: hosts, and how many of them must do it."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum

from pydantic import Field

from volbench.model.base import Frozen
from volbench.model.profile.profile_settings import Limits

LOCAL = "local"
"""Name of the controller's own machine where no inventory names hosts."""


class Policy(StrEnum):
    """How many hosts must do a run for its totals to count."""

    ALL = "all"
    QUORUM = "quorum"
    BEST_EFFORT = "best-effort"


class HostKind(StrEnum):
    """How a host is reached."""

    LOCAL = "local"
    SSH = "ssh"


class Host(Frozen):
    """A machine that fio runs on.

    Attributes:
        name: unique in the inventory: letters, digits, ``.``, ``_`` and ``-``.
        address: name or IP address that is connected to; empty for the controller's own machine.
        port: of sshd; None to take ``~/.ssh/config``'s, or 22.
        user: None to take ``~/.ssh/config``'s, or the controller's own.
        key: file of a private key, as it was written (``~`` is not expanded); empty for the
            agent's, ``~/.ssh/config``'s and the usual ones.
        jump: hosts to go through, first hop first: names of the inventory or ``user@host:port``;
            None to take ``~/.ssh/config``'s, empty for none.
        hops: the hosts of the inventory that `jump` names, and those that their own way names, so
            that a host can be reached when they themselves are left out.
        sudo: start fio, and what looks at devices, by ``sudo -n``.
        volumes: role to device, file, directory or NBD URI.
        labels: what tables and charts tell hosts apart by, such as provider and volume_type.
        limits: role to declared limits; the key ``*`` holds for every role.
        allow_destroy: devices that may be overwritten: paths under ``/dev/disk/by-id`` or
            ``serial:TEXT``.
        workdir: folder on the host for what volbench leaves there while a run goes on; empty for
            ``.volbench`` in the user's home.
    """

    name: str
    address: str = ""
    port: int | None = None
    user: str | None = None
    key: str = ""
    jump: tuple[str, ...] | None = None
    hops: tuple[Host, ...] = ()
    sudo: bool = False
    volumes: dict[str, str] = Field(default_factory=dict)
    labels: dict[str, str] = Field(default_factory=dict)
    limits: dict[str, Limits] = Field(default_factory=dict)
    allow_destroy: tuple[str, ...] = ()
    workdir: str = ""

    @property
    def kind(self) -> HostKind:
        """How it is reached: the controller's own machine has no address."""
        return HostKind.SSH if self.address else HostKind.LOCAL


def by_name(hosts: Iterable[Host]) -> dict[str, Host]:
    """Return name to host, with the hosts that are only gone through."""
    listed = tuple(hosts)
    return {hop.name: hop for host in listed for hop in host.hops} | {
        host.name: host for host in listed
    }


def label_names(hosts: Iterable[Host]) -> tuple[str, ...]:
    """Return the name of every label that a host has, in the order they are met."""
    return tuple(dict.fromkeys(name for host in hosts for name in host.labels))


class Inventory(Frozen):
    """Hosts and the groups they are in.

    Attributes:
        hosts: in the order of the file; names are unique.
        groups: group to names of hosts; a group named ``all`` is never listed.
    """

    hosts: tuple[Host, ...]
    groups: dict[str, tuple[str, ...]] = Field(default_factory=dict)
