"""A Sheet in, an Inventory out: hosts made, ways and groups resolved, doubles refused."""

from __future__ import annotations

from volbench.model.campaign.host import Inventory
from volbench.plan.inventory.draft import HostReader, Sheet
from volbench.plan.inventory.duplicates import check_doubles
from volbench.plan.inventory.groups import resolve_groups
from volbench.plan.inventory.host_entries import read_host
from volbench.plan.inventory.jump_hosts import resolve_hops
from volbench.plan.inventory.sshconfig import Aliases


def assemble(reader: HostReader, sheet: Sheet, aliases: Aliases) -> Inventory:
    """Return the inventory; it is of no use when problems were noted."""
    hosts = {name: read_host(reader, draft) for name, draft in sheet.drafts.items()}
    hosts = resolve_hops(reader, sheet.drafts, hosts)
    check_doubles(reader, sheet.drafts, hosts, aliases)
    groups = resolve_groups(reader, sheet)
    return Inventory(hosts=tuple(hosts.values()), groups=groups)
