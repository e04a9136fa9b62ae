"""Expectations of results, such as ``reads.p99 < 5ms``: a metric, a relation and a bound."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase

from volbench.errors import InputError, did_you_mean
from volbench.model.client_counts import split_count
from volbench.model.frames.column_names import ALIASES, meaning_of
from volbench.model.frames.columns import AGGREGATE, SUMMARY, VERDICTS, Column
from volbench.units import parse_count, parse_duration, parse_rate, parse_size

ALL_JOBS = "*"
AGGREGATED = "aggregate"  # Prefix of a metric that is summed over the clients of a step
SYNC = "sync"
SYNC_CALLS = ("fdatasync", "fsync")
# Prefix of a metric to the direction of its rows
_DIRECTIONS = {
    **dict.fromkeys((*SYNC_CALLS, SYNC), SYNC),
    **{name: name for name in ("read", "write", "trim")},
}
# Columns whose values may be below 0
_SIGNED = frozenset({"drift_percent", "start_late_s", "clock_offset_s"})
# Numbers of the summary and of the verdicts that are chosen, not measured
_CHOSEN = frozenset(
    {
        *("repeat", "rwmixread", "block_bytes", "iodepth", "numjobs", "size_bytes"),
        *("volume_bytes", "limit_iops", "limit_bw_bytes_per_s", "start_offset_s", "step_start_s"),
        *("client", "from_s", "to_s", "block_s", "blocks"),
    }
)
# Verdicts that can be required
FLAGS = ("steady",)
_STEADY = Column("steady", "bool", "", "Whether the verdict on the IOPS is `steady`.")
_EXPECTATION = re.compile(
    r"(?:(?P<job>[^<>=.]+)\.)?(?P<metric>[^\W\d][^<>=.:]*?(?:\.\d+)?)\s*"
    r"(?P<relation><=|>=|<|>|=)(?P<bound>[^<>=]+)"
)
_HINT = "write it like p99 < 5ms, reads.iops >= 3000, wal.fdatasync_p99 < 10ms or reads.steady=yes"
_UNBOUND = "write it like '< 10ms' or '>= 3000'"


def _measured_columns(*columns: Column) -> dict[str, Column]:
    return {
        column.name: column
        for column in columns
        if column.dtype in {"int", "float"} and column.name not in _CHOSEN
    }


# Metric to its column, by frame
_SUMMARY = _measured_columns(*SUMMARY)
_VERDICTS = {
    name: column for name, column in _measured_columns(*VERDICTS).items() if name not in _SUMMARY
} | {column.name: column for column in (*VERDICTS, _STEADY) if column.name in FLAGS}
_AGGREGATE = _measured_columns(*AGGREGATE)


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
    sync_call: str = ""  # ``fsync`` or ``fdatasync``; empty where any sync is meant

    def matches(self, job: str) -> bool:
        """Return whether a job must keep the bound."""
        return any(fnmatchcase(name, self.job) for name in (job, split_count(job)[0]))

    def holds(self, value: float) -> bool:
        """Return whether a value keeps the bound."""
        if "=" in self.relation and value == self.bound:
            return True
        if self.relation == "=":
            return False
        return value < self.bound if self.relation.startswith("<") else value > self.bound


def parse_expectation(text: str) -> Expectation:
    """Return the expectation in a text such as ``reads.p99 < 5ms`` or ``steady=yes``."""
    match = _EXPECTATION.fullmatch(text.strip())
    if match is None:
        raise InputError(f"{text!r} is not an expectation", hint=_HINT)
    return _expectation(
        (match["job"] or ALL_JOBS).strip(),
        match["metric"].strip(),
        match["relation"],
        match["bound"].strip(),
    )


def parse_bound(metric: str, text: str, *, job: str) -> Expectation:
    """Return the expectation in a key of a file and its value, such as ``p99`` and ``< 5ms``."""
    match = re.fullmatch(r"(?P<relation><=|>=|<|>|=)?(?P<bound>[^<>=]+)", text.strip())
    if match is None:
        raise InputError(f"{text!r} is not a bound", hint=_UNBOUND)
    try:
        return _expectation(job, metric, match["relation"] or "=", match["bound"].strip())
    except _NoRelationError as error:
        if match["relation"]:
            raise
        raise InputError(f"{text!r} has no relation", hint=_UNBOUND) from error


class _NoRelationError(InputError):
    """A measured number is required to be equal to another."""


class UnknownMetricError(InputError):
    """No result has the metric of an expectation."""


def _expectation(job: str, metric: str, relation: str, bound: str) -> Expectation:
    is_aggregated = metric.startswith(f"{AGGREGATED}_")
    name = metric.removeprefix(f"{AGGREGATED}_")
    prefix, _, rest = name.partition("_")
    direction = _DIRECTIONS.get(prefix, "") if rest else ""
    frame, column = _find_column(rest if direction else name, is_aggregated=is_aggregated)
    return Expectation(
        text=f"{'' if job == ALL_JOBS else f'{job}.'}{metric} {relation} {bound}",
        job=job,
        metric=metric,
        written_bound=f"{relation} {bound}",
        frame=frame,
        direction=direction,
        column=column.name,
        relation=relation,
        bound=_parse_bound(bound, column, relation),
        sync_call=prefix if prefix in SYNC_CALLS else "",
    )


def _find_column(name: str, *, is_aggregated: bool) -> tuple[str, Column]:
    frames = {"aggregate": _AGGREGATE} if is_aggregated else {"summary": _SUMMARY}
    if not is_aggregated:
        frames["verdicts"] = _VERDICTS
    for frame, columns in frames.items():
        if meant := meaning_of(name, columns):
            return frame, columns[meant]
    known = [column for columns in frames.values() for column in columns]
    known += [alias for alias, column in ALIASES.items() if column in known]
    known += [f"{direction}_{metric}" for direction in _DIRECTIONS for metric in known]
    usual = "metrics are iops, bw, p99, max, steady and others: volbench help profile.md"
    raise UnknownMetricError(f"there is no metric {name!r}", hint=did_you_mean(name, known, usual))


def _parse_bound(text: str, column: Column, relation: str) -> float:
    if column.dtype == "bool":
        if relation != "=":
            hint = f"write it like {column.name}=yes"
            raise InputError(f"{column.name} is not a number", hint=hint)
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
    bound = _parse_number(text, column, relation)
    if column.name not in _SIGNED and (bound < 0 or (bound == 0 and relation in {"<", ">="})):
        always = "never" if relation.startswith("<") else "always"
        raise InputError(
            f"{column.name} {relation} {text} is {always} true: it is not negative",
            hint="a bound is above 0",
        )
    return bound


def _parse_number(text: str, column: Column, relation: str) -> float:
    readers: Mapping[str, Callable[[str], float]] = {
        "bytes/s": parse_rate,
        "bytes": parse_size,
        "s": parse_duration,
    }
    digits = text.rstrip("kKmMgGtT") if column.unit == "bytes/s" else text
    if column.unit in {"s", "bytes/s"} and digits.replace(".", "").isdecimal():
        unit = "ms" if column.unit == "s" else "MB/s"
        raise InputError(f"{text!r} has no unit", hint=f"write it like '{relation} {text}{unit}'")
    is_negative = text.startswith("-")
    plain = text.removeprefix("-").strip()
    read = readers.get(column.unit, parse_count)
    bound = read(plain.removesuffix("%").strip() if column.unit == "%" else plain)
    return -bound if is_negative else bound


def check_expectations(expectations: Collection[Expectation], jobs: Collection[str]) -> None:
    """Refuse expectations of jobs that are not among the measured ones."""
    for expectation in expectations:
        if hint := unknown_job(expectation, jobs):
            raise InputError(
                f"{expectation.text!r}: there is no job {expectation.job!r}", hint=hint
            )


def unknown_job(expectation: Expectation, jobs: Collection[str]) -> str:
    """Return the hint for a name or pattern that no job has; empty if one has it."""
    if any(map(expectation.matches, jobs)):
        return ""
    return did_you_mean(expectation.job, jobs, f"there are {', '.join(sorted(jobs))}")
