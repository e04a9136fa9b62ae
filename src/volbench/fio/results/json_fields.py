"""Typed and checked access to the fields of fio's JSON."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeGuard, cast

from volbench.errors import OutputError

# Upper bound of counts, sizes, rates and times (in fio's units): 9 PB, or 104 days in ns. Below it
# every integer is exact as a float, and the sum of a thousand fits in 64 bits.
_BOUND = 2**53


def are_counts(values: list[object]) -> TypeGuard[list[int]]:
    """Return whether decoded values are plain integers within bounds, as nearly all counts are."""
    if set(map(type, values)) != {int}:
        return False
    counts = cast("list[int]", values)
    return min(counts) >= 0 and max(counts) < _BOUND


@dataclass(frozen=True)
class Fields:
    """One JSON object and its location, for error messages."""

    raw: Mapping[str, object]  # the decoded object; of a repeated key the last value
    where: str = ""  # such as ``jobs[0].read``
    path: str = ""  # the file

    def wrong(self, key: str, expected: str) -> OutputError:
        """Return the error that names what was expected at a key."""
        place = self._place(key)
        found = repr(self.raw[key])[:60] if key in self.raw else "nothing"
        return OutputError(
            f"fio's JSON has {found} at {place}, expected {expected}",
            path=str(self.path),
            key=place,
        )

    def number(self, key: str) -> float | None:
        """Return a number; None when missing, nan or inf."""
        value = self._numeric(key)
        return None if value is None or math.isnan(value) else value

    def need_number(self, key: str) -> float:
        """Return a required number; NaN for nan and inf, which fio prints where it divides by 0."""
        value = self._numeric(key)
        if value is None:
            raise self.wrong(key, "a number")
        return value

    def duration_s(self, key: str) -> float:
        """Return a required duration in milliseconds as seconds; nan and inf are refused."""
        value = self.need_number(key)
        if math.isnan(value):
            raise self.wrong(key, "a duration in milliseconds")
        return value / 1000

    def count(self, key: str) -> int | None:
        """Return an integer, or None when missing."""
        value = self._numeric(key)
        if value is None:
            return None
        if math.isnan(value) or int(value) != value:
            raise self.wrong(key, "an integer")
        return int(value)

    def need_count(self, key: str) -> int:
        """Return a required integer."""
        value = self.count(key)
        if value is None:
            raise self.wrong(key, "an integer")
        return value

    def kib(self, key: str) -> int:
        """Return a required number of KiB as bytes."""
        value = self.need_count(key)
        if value * 1024 >= _BOUND:
            raise self.wrong(key, "a size below 2^53 bytes")
        return value * 1024

    def text(self, key: str) -> str | None:
        """Return a string, or None when missing."""
        value = self.raw.get(key)
        if value is not None and not isinstance(value, str):
            raise self.wrong(key, "a string")
        return None if value is None else self._unicode(key, value)

    def child(self, key: str) -> Fields | None:
        """Return the object of a key, or None when missing."""
        if key not in self.raw:
            return None
        return self._below(key, self.raw[key], self._place(key))

    def children(self, key: str) -> list[Fields]:
        """Return the objects of a list; empty when missing."""
        value = self.raw.get(key, [])
        if not isinstance(value, list):
            raise self.wrong(key, "a list")
        place = self._place(key)
        return [self._below(key, item, f"{place}[{n}]") for n, item in enumerate(value)]

    def texts(self) -> dict[str, str]:
        """Return all values as strings, for fio's options."""
        found: dict[str, str] = {}
        for key, value in self.raw.items():
            if isinstance(value, dict | list | None):
                raise self.wrong(key, "a string")
            found[self._unicode(key, key)] = self._unicode(key, str(value))
        return found

    def numbers(self) -> dict[str, float]:
        """Return all values as numbers, for fio's tables."""
        return {key: self.need_number(key) for key in self.raw}

    def _numeric(self, key: str) -> int | float | None:
        value = self.raw.get(key)
        if value is None and key not in self.raw:
            return None
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise self.wrong(key, "a number")
        if isinstance(value, float) and not math.isfinite(value):
            return math.nan
        if value < 0:
            raise self.wrong(key, "a number that is not negative")
        if value >= _BOUND:
            raise self.wrong(key, "a number below 2^53")
        return value

    def _unicode(self, key: str, text: str) -> str:
        """Return a text without lone surrogates, which can be neither printed nor stored."""
        try:
            text.encode()
        except UnicodeEncodeError:
            raise self.wrong(key, "Unicode text") from None
        return text

    def _place(self, key: str) -> str:
        return f"{self.where}.{key}" if self.where else key

    def _below(self, key: str, value: object, place: str) -> Fields:
        if not isinstance(value, dict):
            raise self.wrong(key, "an object")
        return Fields(value, place, self.path)
