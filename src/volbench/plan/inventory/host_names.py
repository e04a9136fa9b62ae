"""Host names: ranges (``vm[02-30]`` is vm02 to vm30), and selection by ``--limit``."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from itertools import chain, product
from math import prod
from string import ascii_letters

from volbench.errors import InputError, InventoryError, nearest
from volbench.model.campaign.host import Inventory

ALL = "all"  # The implicit group of all hosts; never listed

# Of a range and of an inventory; more is a typing error. Noticed by: tests/inventories/huge-range
MAX_HOSTS = 10_000

# Names of hosts and groups; these are used in folder names and commands
NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,99}")

_PARTS = re.compile(r"\[([^\[\]]*)\]")


@dataclass(frozen=True)
class Expansion:
    """Names expanded from a name with ranges."""

    texts: tuple[str, ...]  # all names; the last of several ranges varies fastest
    shape: tuple[int, ...] = ()  # number of values of each range; empty for a plain name


def expand(text: str) -> Expansion:
    """Return the expansion of a name with ranges; leading zeros are kept."""
    pieces = _PARTS.split(text)
    if any(sign in literal for literal in pieces[::2] for sign in "[]"):
        raise InputError(f"a bracket is not closed in {text!r}", hint="write it like vm[02-30]")
    ranges = [_range_values(inside, text) for inside in pieces[1::2]]
    shape = tuple(len(values) for values in ranges)
    if prod(shape) > MAX_HOSTS:
        raise _too_many(text)
    literals = pieces[::2]
    texts = tuple(
        "".join(chain(*zip(literals, (*values, ""), strict=True))) for values in product(*ranges)
    )
    return Expansion(texts, shape)


def _range_values(inside: str, text: str) -> list[str]:
    """Return the values in a pair of brackets, which may contain several ranges with commas."""
    values = [value for item in inside.split(",") for value in _item(item.strip(), text)]
    if len(set(values)) < len(values):
        raise InputError(f"{text!r} lists a value twice", hint="keep one of them")
    return values


def _item(item: str, text: str) -> list[str]:
    first, dash, last = item.partition("-")
    if not dash and _is_end(first):
        return [first]
    if not (_is_end(first) and _is_end(last)) or first.isdecimal() != last.isdecimal():
        raise InputError(
            f"[{item}] in {text!r} is not a valid range", hint="write it like vm[02-30]"
        )
    if first.isdecimal():
        values = _number_range(first, last, text)
    else:
        values = list(ascii_letters[ascii_letters.index(first) : ascii_letters.index(last) + 1])
    if not values:
        raise InputError(
            f"{text!r} counts backwards, from {first} to {last}", hint=f"write [{last}-{first}]"
        )
    return values


def _is_end(text: str) -> bool:
    """Whether a text is a valid end of a range: digits, or one letter."""
    return (text.isascii() and text.isdecimal()) or (len(text) == 1 and text in ascii_letters)


def _number_range(first: str, last: str, text: str) -> list[str]:
    padded = any(len(end) > 1 and end.startswith("0") for end in (first, last))
    if padded and len(first) != len(last):
        raise InputError(
            f"{text!r} begins with {first} and ends with {last}, whose numbers of digits differ",
            hint=f"write {first.zfill(len(last))} and {last.zfill(len(first))}, or no zeros",
        )
    if max(len(first), len(last)) > 18 or int(last) - int(first) >= MAX_HOSTS:
        raise _too_many(text)
    width = len(first) if padded else 0
    return [str(number).zfill(width) for number in range(int(first), int(last) + 1)]


def _too_many(text: str) -> InputError:
    return InputError(
        f"{text!r} expands to more than {MAX_HOSTS} names", hint="is there a digit too many?"
    )


def select(inventory: Inventory, limits: Sequence[str]) -> Inventory:
    """Return the hosts that match at least one of the limits, in the order of the inventory.

    Args:
        limits: names of groups or hosts, names with ranges (``vm[02-05]``) or patterns (``vm*``),
            each optionally a comma-separated list; empty to select all hosts.
    """
    if not limits:
        return inventory
    # Commas inside the brackets of a range do not separate.
    names = [name.strip() for limit in limits for name in re.split(r",(?![^\[]*\])", limit)]
    chosen = {host for name in names for host in _meant(inventory, name)}
    hosts = tuple(host for host in inventory.hosts if host.name in chosen)
    members = {
        name: tuple(host for host in hosts_of if host in chosen)
        for name, hosts_of in inventory.groups.items()
    }
    return Inventory(hosts=hosts, groups={name: kept for name, kept in members.items() if kept})


def _meant(inventory: Inventory, word: str) -> list[str]:
    names = [host.name for host in inventory.hosts]
    if word == ALL:
        return names
    if word in inventory.groups:
        selected = list(inventory.groups[word])
    elif any(sign in word for sign in "*?"):  # a pattern of names of hosts or groups
        literal = word.replace("[", "[[]")
        selected = [name for name in names if fnmatchcase(name, literal)]
        for group, hosts in inventory.groups.items():
            selected += hosts if fnmatchcase(group, literal) else ()
    else:
        selected = list(expand(word).texts)
    missing = [name for name in selected if name not in names]
    if missing or not selected:
        absent = f"; there is no {missing[0]}" if len(selected) > 1 else ""
        raise InventoryError(
            f"--limit {word!r} matches no host{absent}",
            hint="leave it out of the range" if absent else _hint(inventory, word),
        )
    return selected


def _hint(inventory: Inventory, word: str) -> str:
    groups = list(inventory.groups)
    names = [host.name for host in inventory.hosts]
    if not word:
        return "name a group or a host between the commas"
    if not names:
        return "everything runs on this machine: leave out --limit"
    if near := nearest(word, [*groups, *names]):
        return f"did you mean `{near}`?"
    listed = [*groups[:8], *names[:8]]
    more = len(groups) + len(names) - len(listed)
    return f"there are {', '.join(listed)}" + (f" and {more} more" if more else "")
