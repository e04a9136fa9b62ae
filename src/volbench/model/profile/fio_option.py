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
    """An option of fio.

    Attributes:
        name: fio's canonical name.
        kind: type of its value.
        help: fio's own one-line description.
        aliases: other names that fio accepts.
        choices: the values of a CHOICE; empty otherwise.
        minimum: minimum integer value; None when unlimited.
        maximum: maximum integer value; None when unlimited.
        engines: ioengines that provide it; empty for a general option.
    """

    name: str
    kind: OptionKind
    help: str = ""
    aliases: tuple[str, ...] = ()
    choices: tuple[str, ...] = ()
    minimum: int | None = None
    maximum: int | None = None
    engines: tuple[str, ...] = ()


@dataclass(frozen=True)
class OptionTable:
    """All options of a fio version.

    Attributes:
        fio_version: such as ``3.33``.
        options: canonical name to Option.
        engines: ioengines of this fio.
        source: ``shipped`` or ``installed``.
    """

    fio_version: str
    options: Mapping[str, Option]
    engines: tuple[str, ...]
    source: str

    def find(self, name: str) -> Option | None:
        """Return an option by its name or an alias, or None."""
        found = self.options.get(name)
        if found is not None:
            return found
        return next((option for option in self.options.values() if name in option.aliases), None)

    def names(self) -> list[str]:
        """Return all names and aliases."""
        return [*self.options, *(a for option in self.options.values() for a in option.aliases)]
