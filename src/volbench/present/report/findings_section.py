"""Data quality in the report: badges beside results, and findings grouped by rule, worst first."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from volbench.model.results.finding import Severity
from volbench.present.formatting import Row, counted_noun, text
from volbench.present.tables.findings_table import (
    STYLES,
    by_rule,
    count_severities,
    counted,
    when,
)

_MOST = 10  # Different findings of a rule that are shown; the command line has them all


@dataclass(frozen=True)
class Badge:
    """A mark beside a result that a rule warns about, with a link to the rule's findings."""

    rule: str  # that warns
    severity: str  # warning or invalid
    message: str  # of the finding
    place: str = ""  # begins the id of the rule's findings, where there are several campaigns


@dataclass(frozen=True)
class DistinctFinding:
    """One finding with all the runs that have it."""

    severity: str  # note, warning or invalid
    runs: Sequence[str]  # ids, in order
    when: str  # direction and time; may be empty
    message: str  # the observation
    evidence: Mapping[str, str]  # name with its unit to number or text

    @property
    def where(self) -> str:
        """The run, or how many there are and one of them."""
        first, *others = self.runs
        return f"{len(self.runs)} runs, such as {first}" if others else first


@dataclass(frozen=True)
class RuleFindings:
    """The findings of one rule."""

    rule: str
    severity: str  # of the worst
    counts: str  # of each severity, in words
    affected: Sequence[str]  # runs with a finding of that severity
    example: str  # observation of the worst finding
    why: str
    advice: str
    findings: Sequence[DistinctFinding]  # those of most runs first
    more: int  # different findings that are not shown


def by_run(rows: Sequence[Row]) -> dict[str, list[Row]]:
    """Return the rows of the findings frame by run."""
    groups: dict[str, list[Row]] = {}
    for row in rows:
        groups.setdefault(text(row, "run"), []).append(row)
    return groups


def badges_of(findings: Mapping[str, Sequence[Row]], result: Row) -> tuple[Badge, ...]:
    """Return a badge for each rule that warns about a row of the results; notes have none."""
    badges: dict[str, Badge] = {}
    for row in findings.get(text(result, "run"), ()):
        rule, severity = text(row, "rule"), text(row, "severity")
        if severity == Severity.NOTE.value:
            continue
        if text(row, "direction") in ("", text(result, "direction")):
            known = badges.get(rule)
            if known is None or known.severity != Severity.INVALID.value:
                badges[rule] = Badge(rule, severity, text(row, "message"))
    return tuple(badges.values())


def invalid_runs(rows: Sequence[Row]) -> Collection[str]:
    """Return the runs with a number that does not measure what it claims to."""
    return {text(row, "run") for row in rows if row["severity"] == Severity.INVALID.value}


def findings_by_rule(rows: Sequence[Row]) -> list[RuleFindings]:
    """Return the findings in groups, the most severe rules first, then those of most runs."""
    groups = [_of_rule(rule, group) for rule, group in by_rule(rows).items()]
    order = [severity.value for severity in STYLES]
    return sorted(groups, key=lambda own: (order.index(own.severity), -len(own.affected)))


def _of_rule(rule: str, group: Sequence[Row]) -> RuleFindings:
    counts = count_severities(group)
    worst = next(severity.value for severity, count in counts.items() if count)
    distinct = _distinct(group)
    order = [severity.value for severity in STYLES]
    distinct.sort(key=lambda own: (order.index(own.severity), -len(own.runs)))
    return RuleFindings(
        rule=rule,
        severity=worst,
        counts=counted(counts),
        affected=list(dict.fromkeys(text(row, "run") for row in group if row["severity"] == worst)),
        example=distinct[0].message,
        why=text(group[0], "why"),
        advice=text(group[0], "advice"),
        findings=distinct[:_MOST],
        more=max(0, len(distinct) - _MOST),
    )


def findings_count(rows: Sequence[Row]) -> str:
    """Return the number of findings of each severity and of their runs; empty for none."""
    runs = len({text(row, "run") for row in rows})
    where = counted_noun(runs, "run")
    return f"{counted(count_severities(rows))} in {where}" if rows else ""


def _distinct(group: Sequence[Row]) -> list[DistinctFinding]:
    """Return the findings of a rule, equal ones of several runs once."""
    found: dict[tuple[str, str, str], tuple[dict[str, None], Row]] = {}
    for row in group:
        key = (text(row, "severity"), when(row), text(row, "message"))
        found.setdefault(key, ({}, row))[0][text(row, "run")] = None
    return [
        DistinctFinding(severity, list(runs), part, message, _evidence(row))
        for (severity, part, message), (runs, row) in found.items()
    ]


def _evidence(row: Row) -> dict[str, str]:
    """Return the evidence for people: numbers in full, names without underscores."""
    evidence = json.loads(text(row, "evidence", missing="{}"))
    return {str(name): _exact(value) for name, value in evidence.items()}


def _exact(value: object) -> str:
    """Return a value without an exponent: large numbers whole, with commas."""
    if not isinstance(value, float):
        return str(value)
    return f"{value:,.0f}" if abs(value) >= 1e5 or value.is_integer() else f"{value:.6g}"
