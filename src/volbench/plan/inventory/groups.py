"""Groups of hosts and groups in, the hosts of each group out; a group in itself is refused."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from volbench.model.profile.fio_option import nearest
from volbench.plan.inventory.draft import ALL, GroupDraft, HostReader, Sheet


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
