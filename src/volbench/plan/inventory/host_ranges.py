"""Names with ranges such as ``vm[02-30]`` in, every name they stand for out."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import product
from math import prod
from string import ascii_letters

from volbench.errors import InputError

MOST_HOSTS = 10_000
"""Hosts a range, and a whole inventory, may have; more is a mistake of a digit."""

NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,99}")
"""Names of hosts and groups: they become names of folders, and words of a command."""

_PARTS = re.compile(r"\[([^\[\]]*)\]")


class Style(Enum):
    """How a range is written: its sign between first and last, and whether a step may follow."""

    OWN = "-"
    ANSIBLE = ":"


@dataclass(frozen=True)
class Expansion:
    """What a name with ranges stands for.

    Attributes:
        texts: every name; of several ranges the last one counts fastest.
        shape: how many values each range has; empty for a plain name.
    """

    texts: tuple[str, ...]
    shape: tuple[int, ...] = ()


def expand(text: str, style: Style = Style.OWN) -> Expansion:
    """Return every name that a name with ranges stands for; digits keep their zeros.

    Raises:
        InputError: a range that can't be, or one of too many names.
    """
    pieces = _PARTS.split(text)
    if any(sign in literal for literal in pieces[::2] for sign in "[]"):
        raise InputError(
            f"{text!r} has a bracket without its other half", hint=f"write it like {_like(style)}"
        )
    ranges = [_values(inside, text, style) for inside in pieces[1::2]]
    shape = tuple(len(values) for values in ranges)
    if prod(shape) > MOST_HOSTS:
        raise _too_many(text)
    texts = tuple(_joined(pieces[::2], values) for values in product(*ranges))
    return Expansion(texts, shape)


def _joined(literals: Sequence[str], values: Sequence[str]) -> str:
    return literals[0] + "".join(a + b for a, b in zip(values, literals[1:], strict=True))


def _values(inside: str, text: str, style: Style) -> list[str]:
    """Return the values of one pair of brackets; our own may hold several, with commas."""
    items = inside.split(",") if style is Style.OWN else [inside]
    values = [value for item in items for value in _item(item.strip(), text, style)]
    if len(set(values)) < len(values):
        raise InputError(f"{text!r} counts a value twice", hint="keep one of them")
    return values


def _item(item: str, text: str, style: Style) -> list[str]:
    first, *rest = item.split(style.value)
    if not rest and style is Style.OWN and _is_end(first):
        return [first]
    last = rest[0] if rest else ""
    step = rest[1] if style is Style.ANSIBLE and len(rest) == 2 else "1"
    if len(rest) > 1 + (style is Style.ANSIBLE) or not (step.isdecimal() and int(step)):
        raise _no_range(text, item, style)
    if not first and style is Style.ANSIBLE and last.isdecimal():
        first = "0"
    if not (_is_end(first) and _is_end(last)) or first.isdecimal() != last.isdecimal():
        raise _no_range(text, item, style)
    found = _numbers(first, last, text) if first.isdecimal() else _letters(first, last)
    if not found:
        raise InputError(
            f"{text!r} counts from {first} to {last}, which is backwards",
            hint=f"write [{last}{style.value}{first}]",
        )
    return found[:: int(step)]


def _is_end(text: str) -> bool:
    """Tell whether a range can begin or end with it: digits, or one letter."""
    return (text.isascii() and text.isdecimal()) or (len(text) == 1 and text in ascii_letters)


def _numbers(first: str, last: str, text: str) -> list[str]:
    padded = any(len(end) > 1 and end.startswith("0") for end in (first, last))
    if padded and len(first) != len(last):
        raise InputError(
            f"{text!r} begins with {first} and ends with {last}, which have not as many digits",
            hint=f"write {first.zfill(len(last))} and {last.zfill(len(first))}, or no zeros",
        )
    if max(len(first), len(last)) > 18 or int(last) - int(first) >= MOST_HOSTS:
        raise _too_many(text)
    width = len(first) if padded else 0
    return [str(number).zfill(width) for number in range(int(first), int(last) + 1)]


def _letters(first: str, last: str) -> list[str]:
    return list(ascii_letters[ascii_letters.index(first) : ascii_letters.index(last) + 1])


def _like(style: Style) -> str:
    return f"vm[02{style.value}30]"


def _no_range(text: str, item: str, style: Style) -> InputError:
    return InputError(f"[{item}] in {text!r} is no range", hint=f"write it like {_like(style)}")


def _too_many(text: str) -> InputError:
    return InputError(
        f"{text!r} stands for more than {MOST_HOSTS} names", hint="is a digit too many in it?"
    )
