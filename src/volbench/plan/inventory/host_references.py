"""References between hosts: members of groups, jump hosts, and two names of one machine.

Names are one machine when they have one address, or are aliases of one in ssh_config(5).
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
from volbench.plan.inventory import host_values
from volbench.plan.inventory.host_drafts import Draft, GroupDraft, HostReader, Sheet
from volbench.plan.inventory.host_names import ALL


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
                reader.complain(
                    node,
                    f"there is no {kind} called {name!r}",
                    hint=did_you_mean(name, known),
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


_MOST_DEPTH = 16
"""Of files that include each other (ssh_config(5), OpenSSH 9.2: the same)."""

_LINE = re.compile(r"\s*([A-Za-z]+)(?:\s*=\s*|\s+)(.*?)\s*")


@dataclass(frozen=True)
class Aliases:
    """The ``Host`` blocks of a configuration.

    Attributes:
        blocks: patterns of each block with its keywords in small letters, in file order; what
            stands before the first block holds for every host. ``Match`` blocks are left out.
    """

    blocks: tuple[tuple[tuple[str, ...], dict[str, str]], ...] = ()

    def reached(self, name: str) -> tuple[str, int | None]:
        """Return the address and port an alias stands for; the first value found holds."""
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
    """Return the aliases of a configuration and of what it includes; none without such a file.

    Raises:
        InventoryError: it can't be read.
    """
    return parse_aliases("\n".join(_lines(path, path.parent, 0)))


def _lines(path: Path, folder: Path, depth: int) -> Iterator[str]:
    """Yield the lines of a file, those of included files in their places."""
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except (FileNotFoundError, NotADirectoryError):
        return
    except OSError as error:
        raise InventoryError(
            f"{path} can't be read: {error.strerror or error}",
            hint="it says which machine an alias means; check its permissions",
            context={"path": str(path)},
        ) from error
    for line in text.splitlines():
        match = _LINE.fullmatch(line)
        if match is None or match[1].lower() != "include" or depth == _MOST_DEPTH:
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
