"""Hosts in; two names for one address are noted as a problem."""

from __future__ import annotations

from collections.abc import Mapping
from ipaddress import ip_address

from volbench.model.campaign.host import Host, HostKind
from volbench.plan.inventory.draft import Draft, HostReader
from volbench.plan.inventory.sshconfig import Aliases

_SSHD_PORT = 22

Place = tuple[str, int, tuple[str, ...]]


def check_doubles(
    reader: HostReader,
    drafts: Mapping[str, Draft],
    hosts: Mapping[str, Host],
    aliases: Aliases,
) -> None:
    """Note each host that is reached exactly as another one is.

    One address behind two ways may be two machines, and so may two ports of one address; the same
    address, port and way is one machine, which would be measured against itself.
    """
    seen: dict[Place, str] = {}
    for name, host in hosts.items():
        first = seen.setdefault(_place(host, aliases), name)
        if first == name:
            continue
        where = f"{host.address} port {host.port or _SSHD_PORT}" if host.address else "this machine"
        draft = drafts[name]
        reader.complain(
            draft.own.get("address") or draft.place,
            f"{name} and {first} are one machine: both are {where}",
            hint="keep one of them; a machine can't be measured beside itself",
        )


def _place(host: Host, aliases: Aliases) -> Place:
    address, port = aliases.reached(host.address)
    return (
        _plain(address),
        host.port or port or _SSHD_PORT,
        () if host.kind is HostKind.LOCAL else host.jump or (),
    )


def _plain(address: str) -> str:
    """Return an address as it compares: short, small letters, one name for the loopback."""
    try:
        number = ip_address(address)
    except ValueError:
        name = address.lower().rstrip(".")
        return "127.0.0.1" if name == "localhost" else name
    return "127.0.0.1" if number.is_loopback and number.version == 6 else str(number)
