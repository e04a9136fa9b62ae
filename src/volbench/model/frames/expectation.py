"""Expectation of a result, such as ``reads.p99 < 5ms``, read as its column and unit tell."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection
from dataclasses import dataclass

from volbench.errors import InputError, did_you_mean
from volbench.model.frames.column_names import find_column
from volbench.units import parse_duration, parse_rate, parse_size

# Prefix of a metric to the direction of its rows; syncs are those of fsync and fdatasync
_DIRECTIONS = {
    **dict.fromkeys(("fdatasync", "fsync", "sync"), "sync"),
    **{name: name for name in ("read", "write", "trim")},
}
_EXPECTATION = re.compile(
    r"(?:(?P<job>[^<>=.]+)\.)?(?P<metric>[^<>=.]+?)\s*(?P<relation><=|>=|<|>)(?P<bound>[^<>=]+)"
)
_HINT = "write it like p99 < 5ms, reads.iops >= 3000 or wal.fdatasync_p99 < 10ms"


@dataclass(frozen=True)
class Expectation:
    """A bound that a metric of each matching result must keep."""

    text: str  # as written
    job: str  # name of the job; empty for all jobs
    direction: str  # ``read``, ``write``, ``trim`` or ``sync``; empty for each but sync
    column: str  # of the summary
    relation: str  # ``<``, ``<=``, ``>`` or ``>=``
    bound: float  # in the unit of the column

    def holds(self, value: float) -> bool:
        """Return whether a value keeps the bound."""
        if self.relation.endswith("=") and value == self.bound:
            return True
        return value < self.bound if self.relation.startswith("<") else value > self.bound


def parse_expectation(text: str, columns: Collection[str]) -> Expectation:
    """Return the expectation in a text such as ``reads.p99 < 5ms``.

    Args:
        columns: of the summary that can be required.
    """
    match = _EXPECTATION.fullmatch(text.strip())
    if match is None:
        raise InputError(f"{text!r} is not an expectation", hint=_HINT)
    prefix, _, rest = match["metric"].strip().partition("_")
    direction = _DIRECTIONS.get(prefix, "") if rest else ""
    column = find_column(rest if direction else match["metric"].strip(), columns)
    return Expectation(
        text=text.strip(),
        job=(match["job"] or "").strip(),
        direction=direction,
        column=column,
        relation=match["relation"],
        bound=_bound(match["bound"].strip(), column),
    )


def _bound(text: str, column: str) -> float:
    """Return a bound in the unit of a column."""
    readers: tuple[tuple[str, Callable[[str], float]], ...] = (
        ("bytes_per_s", parse_rate),
        ("bytes", parse_size),
        ("_s", parse_duration),
    )
    read = next((read for ending, read in readers if column.endswith(ending)), float)
    if read is parse_duration and text.replace(".", "").isdecimal():
        raise InputError(f"{text!r} has no unit", hint=f"write it like {text}ms")
    try:
        bound = float(read(text))
    except ValueError:
        bound = math.nan
    if not math.isfinite(bound):
        raise InputError(f"{text!r} is not a number", hint="write it like 3000")
    return bound


def check_jobs(expectations: Collection[Expectation], jobs: Collection[str]) -> None:
    """Refuse expectations of jobs that no result has."""
    for expectation in expectations:
        if expectation.job and expectation.job not in jobs:
            raise InputError(
                f"{expectation.text!r}: there is no job {expectation.job!r}",
                hint=did_you_mean(expectation.job, jobs, f"there are {', '.join(sorted(jobs))}"),
            )
