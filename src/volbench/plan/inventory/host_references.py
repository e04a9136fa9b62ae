"""References between hosts: the members of groups, and the jump hosts on a route."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from volbench.model.campaign.host import Host, HostKind
from volbench.model.profile.fio_option import nearest
from volbench.plan.inventory import host_values
from volbench.plan.inventory.host_drafts import Draft, GroupDraft, HostReader, Sheet
from volbench.plan.inventory.host_ranges import ALL


def resolve_groups(reader: HostReader, sheet: Sheet) -> dict[str, tuple[str, ...]]:
    """Return group to names of hosts, in the order of the inventory."""
    for group in sheet.groups.values():
        _check(reader, sheet, group)
    circles = _circles(reader, sheet.groups)
    if circles:
        return {}
    found = {name: _members(name, sheet.groups) for name in sheet.groups if name != ALL}
    resolved = {
        name: tuple(host for host in sheet.drafts if host in members)
        for name, members in found.items()
    }
    _check_names(reader, sheet, resolved)
    return resolved


def _check(reader: HostReader, sheet: Sheet, group: GroupDraft) -> None:
    """Check that all that stands in a group is there."""
    for kind, written, known in (
        ("host", group.hosts, sheet.drafts),
        ("group", group.children, sheet.groups),
    ):
        for name, node in written.items():
            if name not in known and not reader.has_lost_names:
                near = nearest(name, list(known))
                reader.complain(
                    node,
                    f"there is no {kind} called {name!r}",
                    hint=f"did you mean `{near}`?" if near else "",
                )


def _circles(reader: HostReader, groups: Mapping[str, GroupDraft]) -> bool:
    """Note each group that holds itself, once for each circle."""
    seen: set[frozenset[str]] = set()
    for start in groups:
        circle = _circle(start, groups)
        if circle and frozenset(circle) not in seen:
            seen.add(frozenset(circle))
            reader.complain(
                groups[start].place,
                f"the group holds itself: {' -> '.join(circle)}",
                hint="take one of them out of the other",
            )
    return bool(seen)


def _circle(start: str, groups: Mapping[str, GroupDraft]) -> Sequence[str]:
    """Return the way from a group to itself, or nothing."""
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


def _members(start: str, groups: Mapping[str, GroupDraft]) -> set[str]:
    """Return every host of a group and of all groups below it."""
    below, waiting = {start}, [start]
    while waiting:
        group = groups.get(waiting.pop())
        new = set(group.children) - below if group else set()
        below |= new
        waiting.extend(new)
    return {host for name in below if name in groups for host in groups[name].hosts}


def _check_names(reader: HostReader, sheet: Sheet, groups: Mapping[str, tuple[str, ...]]) -> None:
    """Note a name that means a host and a group of others, since ``--limit`` could mean either."""
    for name, hosts in groups.items():
        if name in sheet.drafts and hosts != (name,):
            reader.complain(
                sheet.groups[name].place,
                f"a host is called {name} too",
                hint="rename one, so that --limit can tell them apart",
            )


def resolve_hops(
    reader: HostReader, drafts: Mapping[str, Draft], hosts: Mapping[str, Host]
) -> dict[str, Host]:
    """Return the hosts with their hops; a way in a circle is noted as a problem."""
    cut = {name: _without_itself(host, drafts[name]) for name, host in hosts.items()}
    ways = _Ways(reader, drafts, cut)
    return {name: host.model_copy(update={"hops": ways.hops(host)}) for name, host in cut.items()}


def _without_itself(host: Host, draft: Draft) -> Host:
    """Return a host whose way, where it is meant for many, ends before that host itself."""
    if not host.jump or "jump" in draft.own:
        return host
    places = [host_values.hop(text)[1] for text in host.jump]
    itself = {host.name, host.address}
    end = next((number for number, place in enumerate(places) if place in itself), len(places))
    return host.model_copy(update={"jump": host.jump[:end]})


@dataclass
class _Ways:
    reader: HostReader
    drafts: Mapping[str, Draft]
    hosts: Mapping[str, Host]

    def hops(self, host: Host) -> tuple[Host, ...]:
        """Return every host of the inventory that the way to a host leads over."""
        return tuple({hop.name: hop for hop in self._over(host, ())}.values())

    def _over(self, host: Host, before: tuple[str, ...]) -> Iterator[Host]:
        """Yield the hops of a host; `before` are the hosts whose way leads over it."""
        way = (*before, host.name)
        if host.name in before:
            circle = " -> ".join(way)
            self._complain(way[0], f"the way to {way[0]} goes in a circle: {circle}")
            return
        for number, text in enumerate(host.jump or ()):
            hop = self.hosts.get(host_values.hop(text)[1])
            if hop is None:
                continue
            if hop.kind is HostKind.LOCAL:
                self._complain(way[0], f"the hop {hop.name} is the controller's own machine")
            yield hop
            if number == 0 or hop.name in way:  # the way to later ones was said: by those before
                yield from self._over(hop, way)

    def _complain(self, name: str, message: str) -> None:
        draft = self.drafts[name]
        node = draft.own.get("jump") or draft.inherited.get("jump") or draft.place
        self.reader.complain(node, message)
