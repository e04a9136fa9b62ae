"""Defects of versions of fio that falsify numbers of jobs with certain options.

The table beside this module has a row for each: the first version without the defect (empty while
it is open), the options that trigger it, the numbers that are void, and fio's issue or commit.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache
from importlib.resources import files

Version = tuple[int, ...]

_VERSION = re.compile(r"fio-(\d+)\.(\d+)", re.ASCII)
_MAX_NAMED = 3  # Defects that a sentence names before it counts the rest


@dataclass(frozen=True)
class FioDefect:
    """Defect of a range of versions."""

    before: str  # first version without it; empty while it is open
    upstream: str  # fio's issue or commit
    # option to its value: a pattern, ``>`` and a number or option, or nothing if it is not set
    options: Mapping[str, str]
    void: str  # numbers that are wrong
    instead: str  # what to do
    since: str = "0"  # first version with it

    def trigger(self, options: Mapping[str, str]) -> str:
        """Return the options of a job that trigger it, such as ``numjobs=4``."""
        return ", ".join(f"{name}={options[name]}" for name in self.options if name in options)

    def sentence(self, version: Version, options: Mapping[str, str]) -> str:
        """Return what is wrong, since when it is fixed, and what to do."""
        fixed = f"fixed in {self.before}" if self.before else "not fixed up to 3.42"
        return (
            f"fio {version[0]}.{version[1]} with {self.trigger(options)} reports wrong {self.void}"
            f" ({fixed}, fio {self.upstream}). Instead, {self.instead}."
        )

    def is_in(self, version: Version) -> bool:
        """Whether a version has it."""
        is_old = not self.before or version < _version(self.before)
        return is_old and version >= _version(self.since)

    def holds(self, version: Version, options: Mapping[str, str]) -> bool:
        """Whether a version has it, and a job its options."""
        return self.is_in(version) and all(
            _matches(options.get(name, ""), value, options) for name, value in self.options.items()
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


def version_in(text: str) -> Version:
    """Return the version in ``fio-3.33-12-gabc``; empty if there is none."""
    found = _VERSION.match(text)
    return (int(found[1]), int(found[2])) if found else ()


def known_defects(text: str) -> str:
    """Return how many defects a version has and where they are mended; empty without any."""
    version = version_in(text)
    found = [each for each in fio_defects() if version and each.is_in(version)]
    mended = sorted({_version(each.before) for each in found if each.before})
    until = f", mended up to fio {'.'.join(map(str, mended[-1]))}" if mended else ""
    return f"{len(found)} falsify numbers of some jobs{until}" if found else ""


def defects_between(first: str, second: str) -> str:
    """Return the numbers that one of two versions falsifies and the other does not."""
    one, other = version_in(first), version_in(second)
    apart = [
        each for each in fio_defects() if one and other and each.is_in(one) != each.is_in(other)
    ]
    named = [f"{each.void} (fio {each.upstream})" for each in apart[:_MAX_NAMED]]
    more = [f"{len(apart) - _MAX_NAMED} more"] if len(apart) > _MAX_NAMED else []
    return "; ".join([*named, *more])


def _version(text: str) -> Version:
    return tuple(map(int, text.split(".")))


def _matches(value: str, wanted: str, options: Mapping[str, str]) -> bool:
    if not wanted or wanted == "0":
        return value == wanted
    if wanted.startswith(">"):
        least = options.get(wanted[1:], wanted[1:])
        return value.isdecimal() and least.isdecimal() and int(value) > int(least)
    return value not in {"", "0", "none"} and fnmatchcase(value, wanted)
