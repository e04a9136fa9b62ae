"""fio's options as data: what enters is a table, what leaves is a checked, canonical value.

A canonical value is what is written behind ``option=`` in a job file: plain byte integers, whole
seconds (or milliseconds), ``0`` and ``1``. fio's own reading of suffixes is never relied on.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping


class OptionKind(StrEnum):
    """How the value of an option is read."""

    SIZE = "size"  # bytes, or a percentage where fio takes one
    BLOCK_SIZE = "block-size"  # bytes, as up to three values for read,write,trim
    SIZE_RANGE = "size-range"  # bytes low-high, up to three
    DURATION = "duration"  # fio's time options; bare numbers are seconds
    MICROSECONDS = "microseconds"  # fio's time options whose bare number is a microsecond
    INTEGER = "integer"
    BOOLEAN = "boolean"  # 0 or 1
    FLAG = "flag"  # may stand bare in a job file; rendered as 0 or 1
    FLOATS = "floats"  # numbers separated by colons
    CHOICE = "choice"  # one of `choices`
    TEXT = "text"


@dataclass(frozen=True)
class Option:
    """One fio option.

    Attributes:
        name: fio's canonical name.
        kind: how its value is read.
        help: fio's own one-line description.
        aliases: other names fio accepts.
        choices: the values of a CHOICE; empty otherwise.
        minimum: least integer value; None when unlimited.
        maximum: largest integer value; None when unlimited.
        engines: ioengines it belongs to; empty for a general option.
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
    """All options of one fio version.

    Attributes:
        fio_version: such as ``3.33``.
        options: canonical name to Option.
        engines: ioengines known to this fio.
        source: ``shipped`` or the path of the fio binary asked.
    """

    fio_version: str
    options: Mapping[str, Option]
    engines: tuple[str, ...]
    source: str
