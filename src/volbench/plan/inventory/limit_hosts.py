"""Selection of hosts by ``--limit``."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase

from volbench.errors import InventoryError
from volbench.model.campaign.host import Inventory
from volbench.model.profile.fio_option import nearest
from volbench.plan.inventory.host_ranges import ALL, expand


def select(inventory: Inventory, limits: Sequence[str]) -> Inventory:
    """Return the hosts that at least one of the limits means, in the order of the inventory.

    Args:
        inventory: all hosts.
        limits: names of groups or hosts, names with ranges (``vm[02-05]``) or patterns (``vm*``);
            several may stand in one, with commas. Without any, every host is meant.

    Raises:
        InventoryError: a limit means no host, or a range in it is wrong.
    """
    if not limits:
        return inventory
    words = [word.strip() for limit in limits for word in _split(limit)]
    chosen = {name for word in words for name in _meant(inventory, word)}
    hosts = tuple(host for host in inventory.hosts if host.name in chosen)
    members = {
        name: tuple(host for host in hosts_of if host in chosen)
        for name, hosts_of in inventory.groups.items()
    }
    return Inventory(hosts=hosts, groups={name: kept for name, kept in members.items() if kept})


def _split(limit: str) -> list[str]:
    """Return the parts between commas; those inside brackets belong to a range."""
    parts, depth = [""], 0
    for letter in limit:
        depth += (letter == "[") - (letter == "]")
        if letter == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += letter
    return parts


def _meant(inventory: Inventory, word: str) -> list[str]:
    names = [host.name for host in inventory.hosts]
    if word == ALL:
        return names
    if word in inventory.groups:
        found = list(inventory.groups[word])
    elif any(sign in word for sign in "*?"):
        found = _fitting(inventory, word)
    else:
        found = list(expand(word).texts)
    missing = [name for name in found if name not in names]
    if missing or not found:
        absent = f"; there is no {missing[0]}" if len(found) > 1 else ""
        raise InventoryError(
            f"--limit {word!r} means no host{absent}",
            hint="leave it out of the range" if absent else _hint(inventory, word),
            context={"limit": word},
        )
    return found


def _fitting(inventory: Inventory, pattern: str) -> list[str]:
    """Return the hosts whose name, or a group of which, fits a pattern."""
    literal = pattern.replace("[", "[[]")
    found = [host.name for host in inventory.hosts if fnmatchcase(host.name, literal)]
    for group, hosts in inventory.groups.items():
        found += hosts if fnmatchcase(group, literal) else ()
    return found


def _hint(inventory: Inventory, word: str) -> str:
    groups = list(inventory.groups)
    names = [host.name for host in inventory.hosts]
    if not word:
        return "name a group or a host between the commas"
    if near := nearest(word, [*groups, *names]):
        return f"did you mean `{near}`?"
    shown = [*groups[:8], *names[:8]]
    more = len(groups) + len(names) - len(shown)
    return f"there are {', '.join(shown)}" + (f" and {more} more" if more else "")
