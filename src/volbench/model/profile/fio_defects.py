"""Defects of versions of fio that falsify numbers of jobs with certain options.

The table beside this module has a row for each: the first version without the defect (empty while
it is open), the options that trigger it, the numbers that are void, and fio's issue or commit.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache
from importlib.resources import files

Version = tuple[int, ...]


@dataclass(frozen=True)
class FioDefect:
    """Defect of a range of versions."""

    before: str  # first version without it; empty while it is open
    upstream: str  # fio's issue or commit
    # option to its value: a pattern, ``>`` and a number, or nothing for an option that is not set
    options: Mapping[str, str]
    void: str  # numbers that are wrong
    instead: str  # what to do
    since: str = "0"  # first version with it

    def trigger(self, options: Mapping[str, str]) -> str:
        """Return the options of a job that trigger it, such as ``numjobs=4``."""
        return ", ".join(f"{name}={options[name]}" for name in self.options if name in options)

    def holds(self, version: Version, options: Mapping[str, str]) -> bool:
        """Whether a version has it, and a job its options."""
        is_old = not self.before or version < _version(self.before)
        return (
            is_old
            and version >= _version(self.since)
            and all(_matches(options.get(name, ""), value) for name, value in self.options.items())
        )


@cache
def fio_defects() -> tuple[FioDefect, ...]:
    """Return the known defects, the latest mended first."""
    text = files("volbench.model.profile").joinpath("fio_defects.json").read_text("utf-8")
    return tuple(FioDefect(**row) for row in json.loads(text))


def defects_of(version: Version, options: Mapping[str, str]) -> Iterator[FioDefect]:
    """Yield the defects of a version that a job meets.

    Args:
        options: canonical, and ``blocks`` for the number of blocks in its range, if it is known.
    """
    return (defect for defect in fio_defects() if defect.holds(version, options))


def _version(text: str) -> Version:
    return tuple(map(int, text.split(".")))


def _matches(value: str, wanted: str) -> bool:
    if not wanted or wanted == "0":
        return value == wanted
    if wanted.startswith(">"):
        return value.isdecimal() and int(value) > int(wanted[1:])
    return value not in {"", "0", "none"} and fnmatchcase(value, wanted)
