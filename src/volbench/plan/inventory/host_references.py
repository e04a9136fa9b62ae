"""References between hosts: group members, jump hosts, and duplicate machines.

Two names are the same machine when their addresses, or their aliases in ssh_config(5), are equal.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from ipaddress import ip_address
from pathlib import Path

from volbench.errors import InventoryError, did_you_mean
from volbench.model.campaign.host import Host, HostKind
from volbench.plan.inventory.host_document import parse_hop
from volbench.plan.inventory.host_drafts import Draft, GroupDraft, HostReader, Sheet
from volbench.plan.inventory.host_names import ALL


def resolve_groups(reader: HostReader, sheet: Sheet) -> dict[str, tuple[str, ...]]:
    """Return the names of hosts by group, in the order of the inventory."""
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
    for kind, written, known in (
        ("host", group.hosts, sheet.drafts),
        ("group", group.children, sheet.groups),
    ):
        for name, node in written.items():
            if name not in known and not reader.has_lost_names:
                reader.complain(
                    node, f"there is no {kind} called {name!r}", hint=did_you_mean(name, known)
                )


def _circles(reader: HostReader, groups: Mapping[str, GroupDraft]) -> bool:
    """Record each group that contains itself, once per cycle."""
    seen: set[frozenset[str]] = set()
    for start in groups:
        circle = _circle(start, groups)
        if circle and frozenset(circle) not in seen:
            seen.add(frozenset(circle))
            reader.complain(
                groups[start].place,
                f"the group contains itself: {' -> '.join(circle)}",
                hint="remove one of them from the other",
            )
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


def _members(start: str, groups: Mapping[str, GroupDraft]) -> set[str]:
    """Return all hosts of a group and its descendants."""
    below, waiting = {start}, [start]
    while waiting:
        group = groups.get(waiting.pop())
        new = set(group.children) - below if group else set()
        below |= new
        waiting.extend(new)
    return {host for name in below if name in groups for host in groups[name].hosts}


def _check_names(reader: HostReader, sheet: Sheet, groups: Mapping[str, tuple[str, ...]]) -> None:
    """Record a name of both a host and a group of others, which is ambiguous in ``--limit``."""
    for name, hosts in groups.items():
        if name in sheet.drafts and hosts != (name,):
            reader.complain(
                sheet.groups[name].place,
                f"a host is also called {name}",
                hint="rename one, so that --limit is unambiguous",
            )


def resolve_hops(
    reader: HostReader, drafts: Mapping[str, Draft], hosts: Mapping[str, Host]
) -> dict[str, Host]:
    """Return the hosts with their hops; a circular route is recorded as a problem."""
    cut = {name: _without_itself(host, drafts[name]) for name, host in hosts.items()}
    ways = _Ways(reader, drafts, cut)
    return {name: host.model_copy(update={"hops": ways.hops(host)}) for name, host in cut.items()}


def _without_itself(host: Host, draft: Draft) -> Host:
    """Return a host whose inherited route ends before the host itself."""
    if not host.jump or "jump" in draft.own:
        return host
    places = [parse_hop(text)[1] for text in host.jump]
    itself = {host.name, host.address}
    end = next((number for number, place in enumerate(places) if place in itself), len(places))
    return host.model_copy(update={"jump": host.jump[:end]})


@dataclass
class _Ways:
    reader: HostReader
    drafts: Mapping[str, Draft]
    hosts: Mapping[str, Host]

    def hops(self, host: Host) -> tuple[Host, ...]:
        """Return all inventory hosts on the route to a host."""
        return tuple({hop.name: hop for hop in self._over(host, ())}.values())

    def _over(self, host: Host, before: tuple[str, ...]) -> Iterator[Host]:
        """Yield the hops of a host; `before` are the hosts whose route contains it."""
        way = (*before, host.name)
        if host.name in before:
            circle = " -> ".join(way)
            self._complain(way[0], f"the route to {way[0]} is circular: {circle}")
            return
        for number, text in enumerate(host.jump or ()):
            hop = self.hosts.get(parse_hop(text)[1])
            if hop is None:
                continue
            if hop.kind is HostKind.LOCAL:
                self._complain(way[0], f"the hop {hop.name} is the controller's own machine")
            yield hop
            if number == 0 or hop.name in way:  # later hops are reached through the earlier ones
                yield from self._over(hop, way)

    def _complain(self, name: str, message: str) -> None:
        draft = self.drafts[name]
        node = draft.own.get("jump") or draft.inherited.get("jump") or draft.place
        self.reader.complain(node, message)


# Depth of included files (ssh_config(5), OpenSSH 9.2: the same). Noticed by:
# tests/plan/inventory/test_own.py::test_two_aliases_of_one_machine_are_noticed
_MAX_DEPTH = 16

_LINE = re.compile(r"\s*([A-Za-z]+)(?:\s*=\s*|\s+)(.*?)\s*")


@dataclass(frozen=True)
class Aliases:
    """The ``Host`` blocks of an ssh configuration."""

    # patterns of each block with its keywords in lower case, in file order; settings before the
    # first block apply to every host. ``Match`` blocks are ignored.
    blocks: tuple[tuple[tuple[str, ...], dict[str, str]], ...] = ()

    def reached(self, name: str) -> tuple[str, int | None]:
        """Return the address and port of an alias; the first value found applies."""
        found: dict[str, str] = {}
        for patterns, values in self.blocks:
            if _fits(name, patterns):
                found = values | found
        port = found.get("port", "")
        address = found.get("hostname", name).replace("%h", name).replace("%%", "%")
        return address, int(port) if port.isdecimal() else None


def _fits(name: str, patterns: Sequence[str]) -> bool:
    if any(p.startswith("!") and fnmatchcase(name, p[1:]) for p in patterns):
        return False
    return any(fnmatchcase(name, p) for p in patterns if not p.startswith("!"))


def read_aliases(path: Path) -> Aliases:
    """Return the aliases of a configuration and its included files; none if it does not exist."""
    return parse_aliases("\n".join(_lines(path, path.parent, 0)))


def _lines(path: Path, folder: Path, depth: int) -> Iterator[str]:
    """Yield the lines of a file, with those of included files in place."""
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except (FileNotFoundError, NotADirectoryError):
        return
    except OSError as error:
        raise InventoryError(
            f"{path} cannot be read: {error.strerror or error}",
            hint="it defines the machines of aliases; check its permissions",
        ) from error
    for line in text.splitlines():
        match = _LINE.fullmatch(line)
        if match is None or match[1].lower() != "include" or depth == _MAX_DEPTH:
            yield line
            continue
        for pattern in match[2].replace('"', "").split():
            wanted = folder.absolute() / Path(pattern).expanduser()
            for found in sorted(Path("/").glob(str(wanted)[1:])):
                yield from _lines(found, folder, depth + 1)


def parse_aliases(text: str) -> Aliases:
    """Return the ``Host`` blocks of a configuration."""
    blocks: list[tuple[tuple[str, ...], dict[str, str]]] = [(("*",), {})]
    for line in text.splitlines():
        match = _LINE.fullmatch(line)
        if match is None:
            continue
        keyword, value = match[1].lower(), match[2].strip('"')
        if keyword == "host":
            blocks.append((tuple(value.replace('"', "").split()), {}))
        elif keyword == "match":
            blocks.append((("*",) if value.lower() == "all" else (), {}))
        else:
            blocks[-1][1].setdefault(keyword, value)
    return Aliases(tuple(blocks))


_SSHD_PORT = 22

Place = tuple[str, int, tuple[str, ...]]


def check_duplicates(
    reader: HostReader, drafts: Mapping[str, Draft], hosts: Mapping[str, Host], aliases: Aliases
) -> None:
    """Record each host with the same route as another one.

    One address behind two routes may be two machines, and so may two ports of one address; the same
    address, port and route is one machine, which would compete with itself.
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
            f"{name} and {first} are the same machine: both are {where}",
            hint="keep one of them; a machine cannot be measured twice in parallel",
        )


def _place(host: Host, aliases: Aliases) -> Place:
    address, port = aliases.reached(host.address)
    return (
        _plain(address),
        host.port or port or _SSHD_PORT,
        () if host.kind is HostKind.LOCAL else host.jump or (),
    )


def _plain(address: str) -> str:
    """Return an address in normal form: short, lower case, one name for the loopback."""
    try:
        number = ip_address(address)
    except ValueError:
        name = address.lower().rstrip(".")
        return "127.0.0.1" if name == "localhost" else name
    return "127.0.0.1" if number.is_loopback and number.version == 6 else str(number)
