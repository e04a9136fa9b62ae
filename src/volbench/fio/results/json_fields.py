"""Typed access to fio's JSON: a decoded object goes in, checked values come out, or OutputError."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from volbench.errors import OutputError

_BEYOND_FIO = 2**64


@dataclass(frozen=True)
class Fields:
    """One JSON object with the place it stands, so that what is wrong in it can be named.

    Attributes:
        raw: the object as decoded; of a repeated key the last value.
        where: such as ``jobs[0].read``.
        path: the file, for messages.
    """

    raw: Mapping[str, object]
    where: str = ""
    path: str = ""

    def wrong(self, key: str, expected: str) -> OutputError:
        """Return the error that says what was expected at a key."""
        place = f"{self.where}.{key}" if self.where else key
        found = repr(self.raw[key])[:60] if key in self.raw else "nothing"
        return OutputError(
            f"fio's JSON has {found} at {place}, expected {expected}",
            context={"path": self.path, "key": place},
        )

    def number(self, key: str) -> float | None:
        """Return a number, or None when fio gave none, or nan or inf."""
        value = self._numeric(key)
        return None if value is None or not math.isfinite(value) else value

    def need_number(self, key: str) -> float:
        """Return a number that every fio prints; NaN where fio printed nan or inf."""
        value = self._numeric(key)
        if value is None:
            raise self.wrong(key, "a number")
        return value if math.isfinite(value) else math.nan

    def count(self, key: str) -> int | None:
        """Return a whole number, or None when fio gave none."""
        value = self._numeric(key)
        if value is None:
            return None
        if isinstance(value, float) and not value.is_integer():
            raise self.wrong(key, "a whole number")
        return int(value)

    def need_count(self, key: str) -> int:
        """Return a whole number that every fio prints."""
        value = self.count(key)
        if value is None:
            raise self.wrong(key, "a whole number")
        return value

    def text(self, key: str) -> str | None:
        """Return a text, or None when fio gave none."""
        value = self.raw.get(key)
        if value is not None and not isinstance(value, str):
            raise self.wrong(key, "a text")
        return value

    def child(self, key: str) -> Fields | None:
        """Return the object below a key, or None when fio gave none."""
        if key not in self.raw:
            return None
        return self._below(key, self.raw[key], self._place(key))

    def children(self, key: str) -> list[Fields]:
        """Return the objects of a list; empty when fio gave none."""
        value = self.raw.get(key, [])
        if not isinstance(value, list):
            raise self.wrong(key, "a list")
        place = self._place(key)
        return [self._below(key, item, f"{place}[{n}]") for n, item in enumerate(value)]

    def texts(self) -> dict[str, str]:
        """Return the object itself as texts, for fio's options."""
        found: dict[str, str] = {}
        for key, value in self.raw.items():
            if isinstance(value, dict | list | None):
                raise self.wrong(key, "a text")
            found[key] = str(value)
        return found

    def numbers(self) -> dict[str, float]:
        """Return the object itself as numbers, for fio's tables."""
        return {key: self.need_number(key) for key in self.raw}

    def _numeric(self, key: str) -> int | float | None:
        value = self.raw.get(key)
        if value is None and key not in self.raw:
            return None
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise self.wrong(key, "a number")
        if isinstance(value, int) and abs(value) >= _BEYOND_FIO:
            raise self.wrong(key, "a number of 64 bits")
        return value

    def _place(self, key: str) -> str:
        return f"{self.where}.{key}" if self.where else key

    def _below(self, key: str, value: object, place: str) -> Fields:
        if not isinstance(value, dict):
            raise self.wrong(key, "an object")
        return Fields(value, place, self.path)
