"""An inventory enters, a table of its hosts or their records leave."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rich.table import Table

from volbench.model.campaign.host import Host, HostKind, Inventory
from volbench.present.tables.result_tables import text_table

_HEADINGS = ("host", "address", "user", "volumes", "labels", "groups")


def hosts_table(inventory: Inventory) -> Table:
    """Return the hosts, a row each, in the order of the inventory."""
    of_host = groups_of_hosts(inventory)
    rows = [
        (
            host.name,
            _address(host),
            host.user or "",
            _pairs(host.volumes),
            _pairs(host.labels),
            ", ".join(of_host[host.name]),
        )
        for host in inventory.hosts
    ]
    shown = [place for place, heading in enumerate(_HEADINGS) if place < 2 or _any(rows, place)]
    headings = [_HEADINGS[place] for place in shown]
    return text_table(
        headings,
        [[row[place] for place in shown] for row in rows],
        words=headings,
        caption=f"hosts: {len(rows)}",
    )


def host_records(inventory: Inventory) -> list[dict[str, object]]:
    """Return everything that is known of each host, with the groups it is in."""
    of_host = groups_of_hosts(inventory)
    return [
        {**host.model_dump(mode="json"), "groups": of_host[host.name]} for host in inventory.hosts
    ]


def groups_of_hosts(inventory: Inventory) -> dict[str, list[str]]:
    """Return host to the groups it is in."""
    found: dict[str, list[str]] = {host.name: [] for host in inventory.hosts}
    for group, names in inventory.groups.items():
        for name in names:
            found[name].append(group)
    return found


def _any(rows: Sequence[Sequence[str]], place: int) -> bool:
    return any(row[place] for row in rows)


def _address(host: Host) -> str:
    """Return where a host is and the way to it."""
    if host.kind is HostKind.LOCAL:
        return "this machine"
    where = host.address
    if host.port:
        where = f"[{where}]:{host.port}" if ":" in where else f"{where}:{host.port}"
    return f"{where} via {', '.join(host.jump)}" if host.jump else where


def _pairs(values: Mapping[str, str]) -> str:
    return ", ".join(f"{name}={value}" for name, value in values.items())
