"""Values of a job file in, canonical values with fio's own reading of them out.

fio reads ``4KiB`` as 4000, ``1.5g`` as 1 and ``1min`` as a microsecond (3.33, the same code in
3.42). An import keeps what fio does, and says where that is hardly what was meant.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from volbench.errors import InputError
from volbench.model.option import Option, OptionKind

_NUMBER = re.compile(r"\s*(-?)(0[xX][0-9a-fA-F]+|\d+)(.*)", re.DOTALL)
_POWERS = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4, "p": 5}
_TIMES = {"us": 1, "ms": 1000, "s": 1_000_000, "m": 60_000_000, "h": 3_600_000_000}
_TIMES |= {"": 1_000_000, "usec": 1, "msec": 1000, "d": 86_400_000_000}
_NUMERIC = frozenset({OptionKind.SIZE, OptionKind.INTEGER})


@dataclass(frozen=True)
class AsRead:
    """A value as fio reads it.

    Attributes:
        value: canonical.
        surprise: what is odd about the reading; empty when it is as it looks.
    """

    value: str
    surprise: str = ""


def read_value(option: Option, text: str | None) -> AsRead:
    """Return the canonical value of what stands in a job file.

    Raises:
        InputError: fio would refuse it, or its meaning can't be kept.
    """
    if text is None:
        if option.kind is OptionKind.FLAG:
            return AsRead("1")
        raise InputError(f"{option.name} has no value", hint="write option=value")
    if text.strip().startswith("("):
        raise InputError("arithmetic is not kept: many builds of fio lack it", hint="write the sum")
    if option.kind in _NUMERIC and option.name != "cpus_allowed":
        return _joined([_count(part) for part in text.split(",")], ",")
    if option.kind is OptionKind.SIZE_RANGE:
        return _joined([_range(part) for part in text.split(",")], ",")
    if option.kind is OptionKind.BLOCK_SPLIT:
        return _joined([_split(part) for part in text.split(",")], ",")
    if option.kind in {OptionKind.DURATION, OptionKind.MICROSECONDS}:
        return _time(option, text)
    return _word(option, text)


def _joined(parts: list[AsRead], between: str) -> AsRead:
    surprise = "; ".join(part.surprise for part in parts if part.surprise)
    return AsRead(between.join(part.value for part in parts), surprise)


def _count(text: str) -> AsRead:
    """Return a number with fio's suffixes, in powers of 1024 by default."""
    if not text.strip() or re.fullmatch(r"\s*\d+(\.\d+)?%|\s*\d+z", text):
        return AsRead(text.strip())
    match = _NUMBER.fullmatch(text)
    if match is None:
        raise InputError(f"{text!r} is no number to fio", hint="write digits")
    sign, digits, suffix = match.groups()
    number = int(digits, 0) if digits.lower().startswith("0x") else int(digits)
    word = suffix.strip().lower()
    base = 1000 if word.endswith("ib") else 1024
    letter = word.removesuffix("b").removesuffix("i")
    if letter not in _POWERS:
        return AsRead(f"{sign}{number}", f"fio reads {text.strip()} as {number}")
    value = f"{sign}{number * base ** _POWERS[letter]}"
    return AsRead(value, f"fio reads {text.strip()} as {value}" if base == 1000 else "")


def _range(text: str) -> AsRead:
    low, dash, high = text.replace(":", "-").partition("-")
    if not dash:
        raise InputError(f"{text!r} is no range", hint="write it like 4k-64k")
    ends = sorted((_count(low), _count(high)), key=lambda end: int(end.value))
    return _joined(ends, "-")


def _split(text: str) -> AsRead:
    parts = []
    for entry in text.split(":"):
        size, slash, share = entry.partition("/")
        read = _count(size)
        parts.append(AsRead(f"{read.value}{slash}{share.strip()}", read.surprise))
    return _joined(parts, ":")


def _time(option: Option, text: str) -> AsRead:
    """Return a time with fio's suffixes; unknown ones count as microseconds."""
    stripped = text.strip()
    bare_us = 1 if option.kind is OptionKind.MICROSECONDS else 1_000_000
    match = _NUMBER.fullmatch(stripped)
    if match is None or match.group(1):
        raise InputError(f"{text!r} is no time to fio", hint="write it like 300s")
    number, suffix = int(match.group(2), 0 if "x" in match.group(2).lower() else 10), match.group(3)
    word = suffix.strip().lower()
    surprise = ""
    if ":" in word:
        raise InputError(f"fio reads {stripped!r} as no time limit", hint="write it in seconds")
    if word.startswith("."):
        factor = _TIMES["s"]
        surprise = f"fio reads {stripped} as {number} s"
    elif not word:
        factor = bare_us
    elif word in _TIMES:
        factor = _TIMES[word]
    else:
        factor = 1
        surprise = f"fio reads {stripped} as {number} us"
    total_us = number * factor
    if option.kind is OptionKind.MICROSECONDS:
        return AsRead(str(total_us), surprise)
    return AsRead(_canonical_time(total_us), surprise)


def _canonical_time(total_us: int) -> str:
    for factor, unit in ((1_000_000, "s"), (1000, "ms")):
        if total_us % factor == 0:
            return f"{total_us // factor}{unit}"
    return f"{total_us}us"


def _word(option: Option, text: str) -> AsRead:
    stripped = text.strip()
    if option.kind in {OptionKind.BOOLEAN, OptionKind.FLAG}:
        if stripped not in {"0", "1"}:
            raise InputError(f"fio takes 0 or 1, not {stripped!r}", hint="write 0 or 1")
        return AsRead(stripped)
    if text != stripped and option.name not in {"filename", "directory"}:
        raise InputError("fio takes the blank behind = into the value", hint="take it away")
    return AsRead(stripped)
