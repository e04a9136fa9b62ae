"""OpenSSH's client configuration in, the machine behind an alias out.

Only what tells that two names are one machine is read: HostName and Port (ssh_config(5)). The
connection itself is made from the whole file, elsewhere.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from volbench.errors import InventoryError

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
    if any(one.startswith("!") and fnmatchcase(name, one[1:]) for one in patterns):
        return False
    return any(fnmatchcase(name, one) for one in patterns if not one.startswith("!"))


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
            hint="it tells what the names of hosts mean; check its permissions",
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
