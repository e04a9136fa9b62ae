"""Findings in the report: rows of the findings frame enter, badges and groups by rule leave."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from volbench.model.results.finding import Severity
from volbench.present.formatting import Row, text
from volbench.present.tables.findings_table import by_rule, count_severities, counted, when


@dataclass(frozen=True)
class Badge:
    """A mark beside a number that a rule doubts; it links to the rule's part of the page.

    Attributes:
        rule: that doubts it.
        severity: warning or invalid.
        message: what was seen.
        place: begins the id of the rule's part, where there are several campaigns.
    """

    rule: str
    severity: str
    message: str
    place: str = ""


@dataclass(frozen=True)
class Doubt:
    """One distinct Finding with the Runs it was seen in.

    Attributes:
        severity: note, warning or invalid.
        runs: ids, in order.
        when: direction and time; may be empty.
        message: what was seen.
        evidence: name with its unit to number or text.
    """

    severity: str
    runs: Sequence[str]
    when: str
    message: str
    evidence: Mapping[str, str]


@dataclass(frozen=True)
class RuleDoubts:
    """Everything one rule found."""

    rule: str
    counts: str
    why: str
    advice: str
    doubts: Sequence[Doubt]


def by_run(rows: Sequence[Row]) -> dict[str, list[Row]]:
    """Return the rows of the findings frame by Run."""
    groups: dict[str, list[Row]] = {}
    for row in rows:
        groups.setdefault(text(row, "run"), []).append(row)
    return groups


def badges_of(doubts: Mapping[str, Sequence[Row]], result: Row) -> tuple[Badge, ...]:
    """Return a badge for each rule that puts a row of the results in doubt; notes have none.

    Args:
        doubts: rows of the findings frame by Run.
        result: a row of the summary.
    """
    badges: dict[str, Badge] = {}
    for row in doubts.get(text(result, "run"), ()):
        weight, about = text(row, "severity"), text(row, "direction")
        if about in ("", text(result, "direction")) and weight != Severity.NOTE.value:
            known = badges.get(text(row, "rule"))
            if known is None or known.severity != Severity.INVALID.value:
                badges[text(row, "rule")] = Badge(text(row, "rule"), weight, text(row, "message"))
    return tuple(badges.values())


def invalid_runs(rows: Sequence[Row]) -> Collection[str]:
    """Return the Runs that have a number that does not measure what it claims to."""
    return {text(row, "run") for row in rows if row["severity"] == Severity.INVALID.value}


def told_by_rule(rows: Sequence[Row]) -> list[RuleDoubts]:
    """Return the Findings in groups, the heaviest rules first."""
    return [
        RuleDoubts(
            rule=rule,
            counts=counted(count_severities(group)),
            why=text(group[0], "why"),
            advice=text(group[0], "advice"),
            doubts=_distinct(group),
        )
        for rule, group in by_rule(rows).items()
    ]


def verdict(rows: Sequence[Row]) -> str:
    """Return one sentence on how many Findings there are; empty for none."""
    runs = len({text(row, "run") for row in rows})
    where = "1 Run" if runs == 1 else f"{runs} Runs"
    return f"{counted(count_severities(rows))} in {where}" if rows else ""


def _distinct(group: Sequence[Row]) -> list[Doubt]:
    """Return the Findings of a rule, equal ones of several Runs once."""
    found: dict[tuple[str, str, str], tuple[dict[str, None], Row]] = {}
    for row in group:
        key = (text(row, "severity"), when(row), text(row, "message"))
        found.setdefault(key, ({}, row))[0][text(row, "run")] = None
    return [
        Doubt(severity, list(runs), part, message, _evidence(row))
        for (severity, part, message), (runs, row) in found.items()
    ]


def _evidence(row: Row) -> dict[str, str]:
    """Return the evidence for people: numbers in full, names without underscores."""
    told = json.loads(text(row, "evidence", missing="{}"))
    return {str(name): _exact(value) for name, value in told.items()}


def _exact(value: object) -> str:
    """Return a value without an exponent: large numbers whole, with commas."""
    if not isinstance(value, float):
        return str(value)
    return f"{value:,.0f}" if abs(value) >= 1e5 or value.is_integer() else f"{value:.6g}"
