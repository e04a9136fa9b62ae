"""Expectations of results, such as ``reads.p99 < 5ms``: a metric, a relation and a bound."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from itertools import combinations

from volbench.errors import InputError, did_you_mean
from volbench.model.client_counts import split_count
from volbench.model.frames.column_names import ALIASES, meaning_of
from volbench.model.frames.columns import AGGREGATE, PERCENTILES, SUMMARY, VERDICTS, Column
from volbench.units import parse_duration, parse_rate, parse_size

ALL_JOBS = "*"
AGGREGATED = "aggregate"  # Prefix of a metric that is summed over the clients of a step
_SYNC = "sync"
# Prefix of a metric to the direction of its rows; syncs are those of fsync and fdatasync
_DIRECTIONS = {
    **dict.fromkeys(("fdatasync", "fsync", _SYNC), _SYNC),
    **{name: name for name in ("read", "write", "trim")},
}
# Numbers of the summary and of the verdicts that are chosen, not measured
_CHOSEN = frozenset(
    {
        *("repeat", "rwmixread", "block_bytes", "iodepth", "numjobs", "size_bytes"),
        *("volume_bytes", "limit_iops", "limit_bw_bytes_per_s", "start_offset_s", "step_start_s"),
        *("client", "from_s", "to_s", "block_s", "blocks"),
    }
)
_STEADY = Column("steady", "bool", "", "Whether the verdict on the IOPS is `steady`.")


def _measured(*columns: Column) -> dict[str, Column]:
    return {
        column.name: column
        for column in columns
        if column.dtype in {"int", "float"} and column.name not in _CHOSEN
    }


# Metric to its column, by frame
_SUMMARY = _measured(*SUMMARY)
_VERDICTS = {
    name: column
    for name, column in {**_measured(*VERDICTS), _STEADY.name: _STEADY}.items()
    if name not in _SUMMARY
} | {column.name: column for column in VERDICTS if column.name == "snia_steady"}
_AGGREGATE = _measured(*AGGREGATE)

# Statistics of a latency, none above the next
_ASCENDING = ("min", *PERCENTILES, "max")
_EXPECTATION = re.compile(
    r"(?:(?P<job>[^<>=.]+)\.)?(?P<metric>[^\W\d][^<>=.]*?(?:\.\d+)?)\s*"
    r"(?P<relation><=|>=|<|>|=)(?P<bound>[^<>=]+)"
)
_HINT = "write it like p99 < 5ms, reads.iops >= 3000, wal.fdatasync_p99 < 10ms or reads.steady=yes"
_UNBOUND = "write it like '< 10ms' or '>= 3000'"


@dataclass(frozen=True)
class Expectation:
    """A bound that a metric of each matching result must keep."""

    text: str  # as written
    job: str  # name or pattern of the jobs; ``*`` for all
    metric: str  # as written, such as ``fdatasync_p99``
    written_bound: str  # relation and bound as written, such as ``< 10ms``
    frame: str  # ``summary``, ``verdicts`` or ``aggregate``
    direction: str  # ``read``, ``write``, ``trim`` or ``sync``; empty for each but sync
    column: str  # of the frame
    relation: str  # ``<``, ``<=``, ``>``, ``>=`` or ``=``
    bound: float  # in the unit of the column; 1 for yes

    def matches(self, job: str) -> bool:
        """Return whether a job must keep the bound."""
        return _is_named(job, self.job)

    def holds(self, value: float) -> bool:
        """Return whether a value keeps the bound."""
        if "=" in self.relation and value == self.bound:
            return True
        if self.relation == "=":
            return False
        return value < self.bound if self.relation.startswith("<") else value > self.bound

    def contradicts(self, other: Expectation) -> bool:
        """Return whether no result can keep both, of one job and direction."""
        if self.relation == other.relation == "=":
            return self.column == other.column and self.bound != other.bound
        low, high = (self, other) if ">" in self.relation else (other, self)
        if "=" in {low.relation, high.relation}:
            equal, bounded = (low, high) if low.relation == "=" else (high, low)
            return self.column == other.column and not bounded.holds(equal.bound)
        if ">" not in low.relation or "<" not in high.relation:
            return False
        if low.column != high.column and not _is_at_most(low.column, high.column):
            return False
        is_strict = low.relation == ">" or high.relation == "<"
        return low.bound > high.bound or (low.bound == high.bound and is_strict)


def _is_at_most(column: str, other: str) -> bool:
    """Return whether a statistic of a latency is never above another, as p50 and p99."""
    kind, _, statistic = column.removesuffix("_s").partition("_")
    other_kind, _, other_statistic = other.removesuffix("_s").partition("_")
    if kind != other_kind or not {statistic, other_statistic} <= set(_ASCENDING):
        return False
    return _ASCENDING.index(statistic) <= _ASCENDING.index(other_statistic)


def parse_expectation(text: str) -> Expectation:
    """Return the expectation in a text such as ``reads.p99 < 5ms``.

    Raises:
        InputError: it is not one, there is no such metric, or the bound has no or another unit.
    """
    match = _EXPECTATION.fullmatch(text.strip())
    if match is None:
        raise InputError(f"{text!r} is not an expectation", hint=_HINT)
    return _read(
        (match["job"] or ALL_JOBS).strip(),
        match["metric"].strip(),
        match["relation"],
        match["bound"].strip(),
    )


def parse_bound(metric: str, text: str, *, job: str) -> Expectation:
    """Return the expectation in a key of a file and its value, such as ``p99`` and ``< 5ms``.

    Raises:
        InputError: as for `parse_expectation`.
    """
    match = re.fullmatch(r"(?P<relation><=|>=|<|>|=)?(?P<bound>[^<>=]+)", text.strip())
    if match is None:
        raise InputError(f"{text!r} is not a bound", hint=_UNBOUND)
    try:
        return _read(job, metric, match["relation"] or "=", match["bound"].strip())
    except _NoRelationError as error:
        if match["relation"]:
            raise
        raise InputError(f"{text!r} has no relation", hint=_UNBOUND) from error


class _NoRelationError(InputError):
    """A measured number is required to be equal to another."""


class UnknownMetricError(InputError):
    """No result has the metric of an expectation."""


def _read(job: str, metric: str, relation: str, bound: str) -> Expectation:
    is_aggregated = metric.startswith(f"{AGGREGATED}_")
    name = metric.removeprefix(f"{AGGREGATED}_")
    prefix, _, rest = name.partition("_")
    direction = _DIRECTIONS.get(prefix, "") if rest else ""
    frame, column = _column(rest if direction else name, is_aggregated=is_aggregated)
    return Expectation(
        text=f"{'' if job == ALL_JOBS else f'{job}.'}{metric} {relation} {bound}",
        job=job,
        metric=metric,
        written_bound=f"{relation} {bound}",
        frame=frame,
        direction=direction,
        column=column.name,
        relation=relation,
        bound=_bound(bound, column, relation),
    )


def _column(name: str, *, is_aggregated: bool) -> tuple[str, Column]:
    """Return the frame and the column of a metric."""
    frames = {"aggregate": _AGGREGATE} if is_aggregated else {"summary": _SUMMARY}
    if not is_aggregated:
        frames["verdicts"] = _VERDICTS
    for frame, columns in frames.items():
        if meant := meaning_of(name, columns):
            return frame, columns[meant]
    known = [column for columns in frames.values() for column in columns]
    known += [alias for alias, column in ALIASES.items() if column in known]
    usual = "metrics are iops, bw, p99, max, steady and others: volbench help profile.md"
    raise UnknownMetricError(f"there is no metric {name!r}", hint=did_you_mean(name, known, usual))


def _bound(text: str, column: Column, relation: str) -> float:
    """Return a bound in the unit of a column."""
    if column.dtype == "bool" and relation != "=":
        raise InputError(f"{column.name} is not a number", hint=f"write it like {column.name}=yes")
    if column.dtype == "bool":
        if text.lower() not in {"yes", "true", "on", "1"}:
            raise InputError(
                f"{column.name} can only be yes, not {text!r}",
                hint=f"write {column.name}=yes, or remove it",
            )
        return 1.0
    if column.dtype == "float" and relation == "=":
        raise _NoRelationError(
            f"{column.name} is measured and never exactly {text}", hint="use <, <=, > or >="
        )
    return _number(text, column)


def _number(text: str, column: Column) -> float:
    readers: Mapping[str, Callable[[str], float]] = {
        "bytes/s": parse_rate,
        "bytes": parse_size,
        "s": parse_duration,
    }
    read = readers.get(column.unit, float)
    if column.unit in {"s", "bytes/s"} and text.replace(".", "").isdecimal():
        unit = "ms" if column.unit == "s" else "MB/s"
        raise InputError(f"{text!r} has no unit", hint=f"write it like {text}{unit}")
    try:
        bound = float(read(text.removesuffix("%").strip() if column.unit == "%" else text))
    except ValueError:
        bound = math.nan
    if not math.isfinite(bound):
        raise InputError(f"{text!r} is not a number", hint="write it like 3000")
    return bound


def check_expectations(expectations: Collection[Expectation], jobs: Collection[str]) -> None:
    """Refuse expectations of jobs that do not exist, and those that contradict each other.

    Args:
        jobs: names of the measured jobs.

    Raises:
        InputError: of the first such expectation.
    """
    for expectation in expectations:
        if hint := unknown_job(expectation.job, jobs):
            message = f"{expectation.text!r}: there is no job {expectation.job!r}"
            raise InputError(message, hint=hint)
    for first, second in contradictions(expectations, jobs):
        raise InputError(
            f"{second.text!r} contradicts {first.text!r}", hint="no result can meet both"
        )


def _is_named(job: str, pattern: str) -> bool:
    """Return whether a pattern names a job, or that job with any number of clients."""
    return any(fnmatchcase(name, pattern) for name in (job, split_count(job)[0]))


def unknown_job(job: str, jobs: Collection[str]) -> str:
    """Return the hint for a name or pattern that no job has; empty if one has it."""
    if any(_is_named(name, job) for name in jobs):
        return ""
    return did_you_mean(job, jobs, f"there are {', '.join(sorted(jobs))}")


def contradictions(
    expectations: Iterable[Expectation], jobs: Collection[str]
) -> Iterator[tuple[Expectation, Expectation]]:
    """Yield pairs of expectations that no result of some job can keep."""
    for first, second in combinations(expectations, 2):
        directions = {first.direction, second.direction}
        is_same = first.frame == second.frame and (
            len(directions) == 1 or ("" in directions and _SYNC not in directions)
        )
        if (
            is_same
            and first.contradicts(second)
            and any(first.matches(job) and second.matches(job) for job in jobs)
        ):
            yield first, second
