"""References between hosts: group members, jump hosts, and duplicate addresses."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from ipaddress import ip_address

from volbench.errors import did_you_mean
from volbench.model.campaign.host import Host
from volbench.plan.inventory.host_document import parse_hop
from volbench.plan.inventory.host_drafts import GroupDraft, HostDraft, InventoryDraft
from volbench.plan.inventory.host_names import ALL

_SSHD_PORT = 22


def resolve_groups(draft: InventoryDraft) -> dict[str, tuple[str, ...]]:
    """Return the names of hosts by group, in the order of the inventory."""
    for group in draft.groups.values() if not draft.has_lost_names else ():
        for kind, written, known in (
            ("host", group.hosts, dict.fromkeys(draft.hosts)),
            ("group", group.children, dict.fromkeys(draft.groups)),
        ):
            for name in (name for name in written if name not in known):
                hint = did_you_mean(name, known)
                draft.complain(written[name], f"there is no {kind} called {name!r}", hint=hint)
    if _has_circles(draft):
        return {}
    members = {name: _members(name, draft.groups) for name in draft.groups if name != ALL}
    resolved = {
        name: tuple(host for host in draft.hosts if host in hosts)
        for name, hosts in members.items()
    }
    for name, hosts in resolved.items():
        if name in draft.hosts and hosts != (name,):
            hint = "rename one, so that --limit is unambiguous"
            draft.complain(draft.groups[name].at, f"a host is also called {name}", hint=hint)
    return resolved


def _members(start: str, groups: Mapping[str, GroupDraft]) -> set[str]:
    below, waiting, hosts = {start}, [start], set[str]()
    while waiting:
        if group := groups.get(waiting.pop()):
            hosts |= group.hosts.keys()
            waiting += group.children.keys() - below
            below |= group.children.keys()
    return hosts


def _has_circles(draft: InventoryDraft) -> bool:
    """Record each group that contains itself, once per cycle."""
    seen: set[frozenset[str]] = set()
    for start, group in draft.groups.items():
        circle = _circle(start, draft.groups)
        if circle and frozenset(circle) not in seen:
            seen.add(frozenset(circle))
            message = f"the group contains itself: {' -> '.join(circle)}"
            draft.complain(group.at, message, hint="remove one of them from the other")
    return bool(seen)


def _circle(start: str, groups: Mapping[str, GroupDraft]) -> Sequence[str]:
    """Return the path from a group to itself, or an empty one."""
    ways: list[tuple[str, ...]] = [(start,)]
    visited: set[str] = set()
    while ways:
        way = ways.pop()
        for child in groups[way[-1]].children if way[-1] in groups else ():
            if child == start:
                return (*way, start)
            if child not in visited:
                visited.add(child)
                ways.append((*way, child))
    return ()


def resolve_hops(draft: InventoryDraft, hosts: Mapping[str, Host]) -> dict[str, Host]:
    """Return the hosts with the inventory hosts on their routes; record circular routes."""
    cut = {name: _without_itself(host, draft.hosts[name]) for name, host in hosts.items()}

    def complain(name: str, message: str) -> None:
        host = draft.hosts[name]
        draft.complain(host.own.get("jump") or host.inherited.get("jump") or host.at, message)

    def over(host: Host, before: tuple[str, ...]) -> Iterator[Host]:
        """Yield the hops of a host; `before` are the hosts whose route contains it."""
        way = (*before, host.name)
        if host.name in before:
            complain(way[0], f"the route to {way[0]} is circular: {' -> '.join(way)}")
            return
        for number, text in enumerate(host.jump or ()):
            hop = cut.get(parse_hop(text)[1])
            if hop is None:
                continue
            if hop.is_local:
                complain(way[0], f"the hop {hop.name} is the controller's own machine")
            yield hop
            if number == 0 or hop.name in way:  # later hops are reached through the earlier ones
                yield from over(hop, way)

    routes = {name: {hop.name: hop for hop in over(host, ())} for name, host in cut.items()}
    return {
        name: host.model_copy(update={"hops": tuple(routes[name].values())})
        for name, host in cut.items()
    }


def _without_itself(host: Host, draft: HostDraft) -> Host:
    """Return a host whose inherited route ends before the host itself."""
    if not host.jump or "jump" in draft.own:
        return host
    hops = [parse_hop(text)[1] for text in host.jump]
    itself = {host.name, host.address}
    end = next((number for number, hop in enumerate(hops) if hop in itself), len(hops))
    return host.model_copy(update={"jump": host.jump[:end]})


def check_duplicates(draft: InventoryDraft, hosts: Mapping[str, Host]) -> None:
    """Record each host with the same route as another one.

    One address behind two routes may be two machines, and so may two ports of one address; the same
    address, port and route is one machine, which would compete with itself. Two names of one
    machine are noticed when its hosts are surveyed.
    """
    seen: dict[object, str] = {}  # routes, and addresses that several names of a range have
    for name, host in hosts.items():
        port = host.port or _SSHD_PORT
        jump = () if host.is_local else host.jump or ()
        first = seen.setdefault((_without_port(host.address), port, jump), name)
        node = draft.hosts[name].own.get("address") or draft.hosts[name].at
        if first == name or seen.setdefault(id(node), name) != name:
            continue
        where = f"{host.address} port {host.port or _SSHD_PORT}" if host.address else "this machine"
        hint = "keep one of them; a machine cannot be measured twice in parallel"
        words = f"{name} and {first} are the same machine: both are {where}"
        draft.complain(node, words, hint=hint)


def _without_port(address: str) -> str:
    """Return an address in normal form: short, lower case, one name for the loopback."""
    try:
        number = ip_address(address)
    except ValueError:
        name = address.lower().rstrip(".")
        return "127.0.0.1" if name == "localhost" else name
    return "127.0.0.1" if number.is_loopback and number.version == 6 else str(number)
