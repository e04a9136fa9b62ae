"""Table of fio's options: names, kinds, choices.

A canonical value is the text after ``option=`` in a job file: plain byte integers, whole seconds
(or milliseconds), ``0`` and ``1``. Suffixes are never left to fio to interpret.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum


class OptionKind(StrEnum):
    """Type of the value of an option."""

    SIZE = "size"  # bytes, or a percentage; up to three, separated by commas
    SIZE_RANGE = "size-range"  # bytes low-high, up to three
    BLOCK_SPLIT = "block-split"  # bytes/percent pairs separated by colons
    DURATION = "duration"  # a bare number is seconds
    MICROSECONDS = "microseconds"  # a bare number is microseconds, as in fio
    INTEGER = "integer"  # up to three, separated by commas
    BOOLEAN = "boolean"
    FLAG = "flag"  # may be written without a value in a job file
    FLOATS = "floats"  # numbers separated by colons
    CHOICE = "choice"  # one of `choices`, optionally with a parameter after a colon
    TEXT = "text"


@dataclass(frozen=True)
class Option:
    """An option of fio."""

    name: str  # fio's canonical name
    kind: OptionKind  # type of its value
    help: str = ""  # fio's own one-line description
    aliases: tuple[str, ...] = ()  # other names that fio accepts
    choices: tuple[str, ...] = ()  # the values of a CHOICE; empty otherwise
    minimum: int | None = None  # minimum integer value; None when unlimited
    maximum: int | None = None  # maximum integer value; None when unlimited
    engines: tuple[str, ...] = ()  # ioengines that provide it; empty for a general option


@dataclass(frozen=True)
class OptionTable:
    """All options of a fio version."""

    fio_version: str  # such as ``3.33``
    options: Mapping[str, Option]  # canonical name to Option
    engines: tuple[str, ...]  # ioengines of this fio
    source: str  # ``shipped`` or ``installed``

    def find(self, name: str) -> Option | None:
        """Return an option by its name or an alias, or None."""
        found = self.options.get(name)
        if found is not None:
            return found
        return next((option for option in self.options.values() if name in option.aliases), None)

    def names(self) -> list[str]:
        """Return all names and aliases."""
        return [*self.options, *(a for option in self.options.values() for a in option.aliases)]
