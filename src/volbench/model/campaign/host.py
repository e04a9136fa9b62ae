"""Hosts of a campaign, inventories, and the policy on missing hosts."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum

from pydantic import Field

from volbench.model.frozen_model import Count, Frozen
from volbench.model.profile.profile_settings import Limits

LOCAL = "local"  # Name of the controller's own machine when no inventory is given


class Policy(StrEnum):
    """Number of hosts that must complete a run for its totals to count."""

    ALL = "all"
    QUORUM = "quorum"
    BEST_EFFORT = "best-effort"


class HostKind(StrEnum):
    """Type of connection to a host."""

    LOCAL = "local"
    SSH = "ssh"
    POD = "pod"


class Pod(Frozen):
    """Pod of a Kubernetes cluster, as a host."""

    name: str  # its name
    namespace: str  # its namespace
    uid: str  # its UID; another pod of the same name has another one
    container: str  # the container that programs are started in
    node: str  # node that it runs on
    claim: str = ""  # name of its PersistentVolumeClaim; empty without one
    campaign: str = ""  # name of the object that owns everything of the campaign
    context: str = ""  # context of the kubeconfig file; empty for a controller inside the cluster
    # What the cluster says of them; empty where it says nothing, or where reading it is forbidden
    machine: str = ""  # identity of the node's machine: that of its firmware, or its machine-id
    machine_type: str = ""  # of the node, such as ``Standard_D4s_v5``
    zone: str = ""  # of the node
    claim_uid: str = ""  # UID of the claim; another claim of the same name has another one
    persistent_volume: str = ""  # name of the PersistentVolume
    volume_bytes: Count | None = None  # its capacity
    csi_driver: str = ""  # driver of the volume
    volume_handle: str = ""  # name of the disk at its provider
    # limit of its files outside volumes (ephemeral-storage); None without one
    ephemeral_limit_bytes: Count | None = None


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
    pod: Pod | None = None  # the pod that is this host; None for a machine

    @property
    def kind(self) -> HostKind:
        """Type of connection; the controller's own machine has no address."""
        if self.pod is not None:
            return HostKind.POD
        return HostKind.SSH if self.address else HostKind.LOCAL


def by_name(hosts: Iterable[Host]) -> dict[str, Host]:
    """Return hosts by name, including those used as jump hosts only."""
    listed = tuple(hosts)
    return {hop.name: hop for host in listed for hop in host.hops} | {
        host.name: host for host in listed
    }


class Inventory(Frozen):
    """Hosts and their groups."""

    hosts: tuple[Host, ...]  # in the order of the file; names are unique
    # group to names of hosts; a group named ``all`` is never listed
    groups: dict[str, tuple[str, ...]] = Field(default_factory=dict)
