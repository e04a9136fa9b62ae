"""Parsing and formatting of sizes, durations, rates and prices, in base SI units.

Sizes follow fio's default: ``k``, ``kb``, ``KiB`` are all 1024 bytes. Rates follow SI, as
providers declare them (``125MB/s``): ``MB`` is 10**6 bytes and ``MiB`` is 2**20. Values that fio
misinterprets (``1.5g`` is 1 byte to fio, ``1min`` a microsecond; see docs/explanation/fio.md) have
their usual meaning here and are passed to fio as plain integers.
"""

from __future__ import annotations

import math
import re
from fractions import Fraction
from typing import TYPE_CHECKING

from volbench.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

_NUMBER = re.compile(
    r"\s*(0x[0-9a-f]+|[+-]?\d+(?:\.\d+)?)\s*([a-z/]*)\s*", re.IGNORECASE | re.ASCII
)
_MOST_LETTERS = 40
_MAX_SPANS = 5  # of names
_BEYOND = 2**63  # fio stores sizes, and times in microseconds, in 63 bits

_BINARY = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4, "p": 5}
_SECONDS = {
    "us": 1e-6,
    "usec": 1e-6,
    "ms": 1e-3,
    "msec": 1e-3,
    "": 1.0,
    "s": 1.0,
    "sec": 1.0,
    "second": 1.0,
    "seconds": 1.0,
    "m": 60.0,
    "min": 60.0,
    "minute": 60.0,
    "minutes": 60.0,
    "h": 3600.0,
    "hour": 3600.0,
    "hours": 3600.0,
    "d": 86400.0,
    "day": 86400.0,
    "days": 86400.0,
}

SECTOR_BYTES = 512  # Unit of the kernel's sector counts, and the smallest logical block of a disk


def _split(text: str | float, *, what: str, example: str) -> tuple[Fraction, str]:
    """Return number and lower-case suffix of a text such as ``1.5g``."""
    if len(str(text)) > _MOST_LETTERS:
        raise InputError(f"{str(text)[:20]!r}... is too long", hint=f"write it like {example}")
    match = _NUMBER.fullmatch(str(text))
    if match is None:
        raise InputError(f"{text!r} is not {what}", hint=f"write it like {example}")
    digits, suffix = match.groups()
    from fractions import Fraction  # noqa: PLC0415 - imports decimal, not needed to show a table

    number = Fraction(int(digits, 16) if digits.lower().startswith("0x") else digits)
    if number < 0:
        raise InputError(f"{text!r} is negative, expected {what}", hint=f"write it like {example}")
    return number, suffix


def parse_size(text: str | float) -> int:
    """Return bytes of a size such as ``4k``, ``1.5g``, ``128KiB`` or a bare number of bytes.

    Raises:
        InputError: not a number, an unknown suffix, a negative size, or a fraction of a byte.
    """
    number, suffix = _split(text, what="a size", example="4k, 1.5g or 4096")
    letter = suffix.lower().removesuffix("b").removesuffix("i")
    if letter not in _BINARY:
        raise InputError(f"{text!r} has an unknown suffix", hint="use k, m, g, t or p (1k = 1024)")
    size = number * 1024 ** _BINARY[letter]
    if size >= _BEYOND:
        raise InputError(f"{text!r} is too large", hint="fio takes up to 8191p")
    if size.denominator != 1:
        raise InputError(
            f"{text!r} is not a whole number of bytes", hint="write it like 1.5g or 1536"
        )
    return int(size)


def parse_duration(text: str | float) -> float:
    """Return seconds of a duration such as ``300s``, ``1min``, ``1.5h``, ``500ms`` or bare seconds.

    Raises:
        InputError: not a number, an unknown suffix or a negative duration.
    """
    number, suffix = _split(text, what="a duration", example="300s, 5m or 1.5h")
    if suffix.lower() not in _SECONDS:
        raise InputError(f"{text!r} has an unknown suffix", hint="use us, ms, s, m, h or d")
    seconds = float(number) * _SECONDS[suffix.lower()]
    if seconds * 1e6 >= _BEYOND:
        raise InputError(f"{text!r} is too long", hint="fio counts microseconds in 64 bits")
    return seconds


def parse_rate(text: str | float) -> float:
    """Return bytes per second of a rate such as ``125MB/s``, ``120MiB/s`` or bare bytes per second.

    Raises:
        InputError: not a number, an unknown suffix or a negative rate.
    """
    number, suffix = _split(text, what="a rate", example="125MB/s or 120MiB/s")
    unit = suffix.removesuffix("/s").removesuffix("ps")
    if unit and unit[-1] == "b":
        raise InputError(
            f"{text!r} is ambiguous: lower-case b is often read as bits",
            hint="write bytes with a capital B, such as 125MB/s",
        )
    letter = unit.removesuffix("B").lower()
    base = 1024 if letter.endswith("i") else 1000
    letter = letter.removesuffix("i")
    if letter not in _BINARY:
        raise InputError(f"{text!r} has an unknown suffix", hint="write it like 125MB/s")
    return float(number * base ** _BINARY[letter])


def parse_count(text: str) -> float:
    """Return a number such as ``3000``, ``3k``, ``1.5M`` or ``1e6``; prefixes are SI.

    Raises:
        InputError: it is not one.
    """
    match = re.fullmatch(r"(\d+(?:\.\d+)?(?:e[+-]?\d+)?)\s*([kKMG]?)", text.strip(), re.ASCII)
    number = float(match[1]) if match else math.inf
    if match is None or not math.isfinite(number):
        raise InputError(f"{text!r} is not a number", hint="write it like 3000 or 3k (1k = 1000)")
    return number * {"": 1.0, "k": 1e3, "M": 1e6, "G": 1e9}[match[2].replace("K", "k")]


def format_size(size_bytes: float) -> str:
    """Return a size in fio's binary units: ``4k``, ``64m``, ``1.5g``, ``2300``.

    Whole bytes below 1m that three digits of a unit would round, such as block sizes, stay bytes.
    """
    value = float(size_bytes)
    for suffix in ("", "k", "m", "g"):
        if value < 1024:
            text = _digits(value)
            if suffix == "k" and size_bytes == int(size_bytes) != float(text) * 1024:
                return str(int(size_bytes))
            return f"{text}{suffix}"
        value /= 1024
    return f"{_digits(value)}t"


def format_capacity(size_bytes: float) -> str:
    """Return a size in IEC units: ``23.5 GiB``; ``n/a`` when unknown."""
    if math.isnan(size_bytes):
        return "n/a"
    value = float(size_bytes)
    for unit in ("bytes", "KiB", "MiB", "GiB"):
        if abs(value) < 1024:
            return f"{_digits(value)} {unit}"
        value /= 1024
    return f"{_digits(value)} TiB"


def _scaled(value: float, unit: str, *, space: str = " ") -> str:
    for factor, prefix in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= factor * 0.9995:
            return f"{_digits(value / factor)}{space}{prefix}{unit}"
    return f"{_digits(value)}{space}{unit}".rstrip()


def _digits(value: float) -> str:
    """Return three significant digits, never in exponent form."""
    if value == 0:
        return "0"
    decimals = max(0, 2 - math.floor(math.log10(abs(value))))
    text = f"{value:.{min(decimals, 9)}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def format_rate(bytes_per_s: float) -> str:
    """Return a rate in SI units: ``125 MB/s``; ``n/a`` when unknown."""
    return "n/a" if math.isnan(bytes_per_s) else _scaled(bytes_per_s, "B/s")


def natural_order(text: str) -> list[tuple[int, str]]:
    """Return a key that sorts numbers within texts by size: ``job2`` before ``job10``."""
    parts = re.split(r"([0-9]+)", text)
    parts[1::2] = (digits.lstrip("0") for digits in parts[1::2])
    return [(len(part) if place % 2 else -1, part) for place, part in enumerate(parts)]


def counted_noun(number: int, noun: str) -> str:
    """Return a count with its noun, such as ``3 jobs``."""
    return f"{number} {noun}" if number == 1 else f"{number:,} {noun}s"


def folded_names(names: Sequence[str]) -> str:
    """Return names with consecutive numbers as one span, such as ``vm01 to vm30``."""
    spans: list[list[str]] = []
    for name in names:
        if spans and _following(spans[-1][-1]) == name:
            spans[-1].append(name)
        else:
            spans.append([name])
    words = [f"{span[0]} to {span[-1]}" if span[2:] else ", ".join(span) for span in spans]
    more = sum(map(len, spans[_MAX_SPANS:]))
    return ", ".join(words[:_MAX_SPANS]) + (f" and {more} more" if more else "")


def _following(name: str) -> str:
    return re.sub(r"\d+(?=\D*$)", lambda last: f"{int(last[0]) + 1:0{len(last[0])}}", name)


def format_count(value: float) -> str:
    """Return a number with SI prefix: ``1.1k``, ``950``; ``n/a`` when unknown."""
    return "n/a" if math.isnan(value) else _scaled(value, "", space="")


def format_latency(seconds: float) -> str:
    """Return a latency with its unit: ``250 us``, ``2.5 ms``, ``1.2 s``; ``n/a`` when unknown."""
    if math.isnan(seconds):
        return "n/a"
    for factor, unit in ((1.0, "s"), (1e-3, "ms"), (1e-6, "us")):
        if seconds >= factor * 0.9995:
            return f"{_digits(seconds / factor)} {unit}"
    return "0 s" if seconds == 0 else f"{_digits(seconds * 1e9)} ns"


def utc_text(moment: datetime) -> str:
    """Return an instant in ISO 8601 with milliseconds and ``Z``."""
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def format_duration(seconds: float) -> str:
    """Return a readable duration: ``1.5s``, ``45s``, ``5m 00s``, ``2h 05m``, ``3d 04h``."""
    whole = round(seconds)
    if seconds < 9.95:
        return f"{round(seconds, 6) + 0.0:.2g}s"  # + 0.0: no "-0s"
    if whole < 60:
        return f"{whole}s"
    if whole < 3600:
        return f"{whole // 60}m {whole % 60:02d}s"
    if whole < 86400:
        return f"{whole // 3600}h {whole % 3600 // 60:02d}m"
    return f"{whole // 86400}d {whole % 86400 // 3600:02d}h"


def percent(share: float) -> str:
    """Return a share of 1 as a percentage: ``0.04``, ``4.2``, ``12``, ``99.7``, ``350``."""
    value = 100 * share
    if 99 < value < 99.95:  # what is missing to 100 % is the information
        return f"{value:.1f}".removesuffix(".0")
    if value >= 9.95 or value == round(value):
        return f"{value:.0f}"
    return f"{value:.1f}" if value >= 0.095 else f"{value:.1g}"


def format_percent(share: float) -> str:
    """Return a share of 1 as a percentage with its sign, such as ``4.2 %``; ``n/a`` for NaN."""
    return "n/a" if math.isnan(share) else f"{percent(share)} %"


def gain_words(gain: float) -> str:
    """Return a relative change of a rate in words: ``gained 4.2 %``, ``lost 34 %``."""
    verb = "lost" if gain <= -0.0005 else "gained"
    return f"{verb} {percent(abs(gain) if verb == 'lost' else max(0.0, gain))} %"
