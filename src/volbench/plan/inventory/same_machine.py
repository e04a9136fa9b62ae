"""Hosts that are one machine: two names for one address, or two aliases of one in ssh_config(5)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from ipaddress import ip_address
from pathlib import Path

from volbench.errors import InventoryError
from volbench.model.campaign.host import Host, HostKind
from volbench.plan.inventory.host_drafts import Draft, HostReader

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
