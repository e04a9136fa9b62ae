"""Findings: a table, text grouped by rule for a terminal, and the groups and badges of a report."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Literal

import click

from volbench.model.results.finding import Severity
from volbench.present.formatting import Row, number, text
from volbench.present.tables.render_table import wrap
from volbench.present.tables.table import IDENTITY, Column, Table
from volbench.units import counted_noun, format_duration

STYLES: Mapping[Severity, str] = {
    Severity.INVALID: "red",
    Severity.WARNING: "yellow",
    Severity.NOTE: "cyan",
}
_WORDS = {
    Severity.INVALID: ("invalid", "invalid"),
    Severity.WARNING: ("warning", "warnings"),
    Severity.NOTE: ("note", "notes"),
}
# Rules whose findings have their cause in the finding of another rule about the same run
_CAUSES: Mapping[str, Sequence[str]] = {
    "smaller-than-memory": ("page-cache",),
    "not-steady": ("host-noise", "cpu-throttled", "throttled", "credits-ran-out", "stall"),
    "uneven-repeats": ("host-noise", "cpu-throttled", "neighbour"),
    "stall": ("host-noise", "cpu-throttled"),
    "two-latencies": ("host-noise", "cpu-throttled", "throttled", "page-cache", "stall"),
    "too-short": ("ended-early",),
    "empty-logs": ("ended-early",),
}
_NUMBER = re.compile(r"\d[\w.,]*")
_PIPE_WIDTH = 100
_SHOWN_RUNS = 4
_SHOWN_FINDINGS = 5  # Distinct findings of a rule that are listed before the others are counted


def count_severities(rows: Sequence[Row]) -> dict[Severity, int]:
    """Return how often a rule warned of a run, by its most severe finding, the severest first."""
    worst = {
        (row.get("campaign"), row["run"], row["rule"]): severity
        for severity in reversed(_WORDS)
        for row in rows
        if row["severity"] == severity.value
    }
    return {severity: [*worst.values()].count(severity) for severity in _WORDS}


def counted(counts: Mapping[Severity, int]) -> str:
    """Return counts in words, such as ``1 invalid, 3 warnings``; zeros are left out."""
    return ", ".join(
        f"{count} {_WORDS[severity][count != 1]}" for severity, count in counts.items() if count
    )


def warning_marks(rows: Sequence[Row]) -> dict[str, str]:
    """Return how many rules warn of each run, with ``!`` if it is invalid.

    Notes are not counted, and runs without warnings are left out.
    """
    heavy = [row for row in rows if row["severity"] != Severity.NOTE.value]
    return {
        run: f"{sum(counts.values())}{'!' if counts[Severity.INVALID] else ''}"
        for (_, run), warnings in _by_run(heavy).items()
        for counts in [count_severities(warnings)]
    }


def when(row: Row) -> str:
    """Return the part of a run that a finding is about, such as ``write, 10s to 25s``, or ""."""
    start, end = number(row, "from_s"), number(row, "to_s")
    is_known = not math.isnan(start) and not math.isnan(end)
    window = f"{format_duration(start)} to {format_duration(end)}" if is_known else ""
    return ", ".join(part for part in (text(row, "direction"), window) if part)


def by_rule(rows: Sequence[Row]) -> dict[str, list[Row]]:
    """Return findings by rule, the rules with the most severe first."""
    groups: dict[str, list[Row]] = {}
    for row in rows:
        groups.setdefault(text(row, "rule"), []).append(row)
    order = [severity.value for severity in _WORDS]
    worst = {
        rule: min(order.index(text(row, "severity")) for row in group)
        for rule, group in groups.items()
    }
    return {rule: groups[rule] for rule in sorted(groups, key=lambda rule: worst[rule])}


FINDING_COLUMNS: tuple[Column[Row], ...] = (
    Column("campaign", priority=2),
    Column("run", priority=IDENTITY),
    Column("rule", priority=IDENTITY),
    Column("severity", styles={severity.value: style for severity, style in STYLES.items()}),
    Column("part", when, priority=3, is_optional=True),
    Column("message", is_folded=True),
)


def findings_table(rows: Sequence[Row]) -> Table[Row]:
    """Return a row for each finding."""
    return Table(
        "findings",
        FINDING_COLUMNS,
        rows,
        record=lambda row: {**row, "evidence": json.loads(str(row["evidence"]))},
    )


def findings_text(
    rows: Sequence[Row],
    *,
    runs: int,
    width: int | None = None,
    colour: bool = False,
    detail: Literal["line", "brief", "whole"] = "brief",
    paths: str = "DIR",
) -> str:
    """Return findings grouped by rule, each rule with its reason and advice.

    Equal findings of several runs are one entry. The most severe rules come first. With the detail
    ``line``, each rule has one line.
    """
    if not rows and not runs:
        return f"no run that finished, so nothing was checked; the reasons: volbench show {paths}\n"
    if not rows:
        return f"no data-quality warnings in {counted_noun(runs, 'run')}\n"
    several = len({text(row, "campaign") for row in rows if "/" not in text(row, "run")}) > 1
    width = width or _PIPE_WIDTH
    lines: list[str] = []
    caused = _caused(rows) if detail == "brief" else {}
    folded = {id(row) for effects in caused.values() for row in effects}
    for rule, group in by_rule([row for row in rows if id(row) not in folded]).items():
        name = click.style(rule, bold=True) if colour else rule
        counts = counted(count_severities(group))
        if detail == "line":
            said = wrap(f"{rule}  {counts}: {text(group[0], 'message')}", width - 4)
            lines.append(name + said[0].removeprefix(rule) + (" ..." if said[1:] else ""))
            continue
        lines.append(f"{name}  {counts}")
        alike = _alike(group, is_brief=detail == "brief")
        is_note = all(row["severity"] == Severity.NOTE.value for row in group)
        shown = alike[: 1 if is_note else _SHOWN_FINDINGS] if detail == "brief" else alike
        for rows_alike in shown:
            lines += _entry(rows_alike, with_campaign=several, width=width, colour=colour)
        messages = {(text(row, "severity"), when(row), row["message"]) for row in group}
        if more := len(messages) - len(shown):
            lines.append(f"  and {more:,} more like these: volbench check --rule {rule} {paths}")
        if rule in caused:
            lines += _paragraph("  also ", _effects(caused[rule], paths), width=width)
        advice = " ".join(dict.fromkeys(text(row, "advice") for row in group))
        lines += _paragraph("  why  ", text(group[0], "why"), width=width)
        lines += [*_paragraph("  do   ", advice, width=width), ""]
    severe = (row for row in rows if row["severity"] != Severity.NOTE.value)
    affected = len({(text(row, "campaign"), text(row, "run")) for row in severe})
    ending = f"; {affected:,} of {counted_noun(runs, 'run')} affected" if affected else ""
    if detail == "line":
        ending += f"; why, and what to do: volbench check --rule NAME {paths}"
    lines.append(f"{counted(count_severities(rows))}{ending}")
    return "\n".join(lines) + "\n"


def _caused(rows: Sequence[Row]) -> dict[str, list[Row]]:
    """Return findings that another finding of their run explains, by the rule of that one.

    A finding is never explained by a lighter one.
    """
    order = [severity.value for severity in _WORDS]
    caused: dict[str, list[Row]] = {}
    for run in _by_run(rows).values():
        weights = {
            text(row, "rule"): order.index(text(row, "severity"))
            for row in sorted(run, key=lambda row: -order.index(text(row, "severity")))
        }
        for row in run:
            weight = order.index(text(row, "severity"))
            causes = _CAUSES.get(text(row, "rule"), ())
            if cause := next((c for c in causes if weights.get(c, len(order)) <= weight), ""):
                caused.setdefault(cause, []).append(row)
    return caused


def _effects(rows: Sequence[Row], paths: str) -> str:
    """Return the numbers of findings that have one cause, and the command that lists them."""
    groups = by_rule(rows)
    named = " and ".join(
        f"{counted(count_severities(group))} of {rule}" for rule, group in groups.items()
    )
    options = " ".join(f"--rule {rule}" for rule in groups)
    return f"{named} in the same runs: volbench check {options} {paths}"


def _alike(group: Sequence[Row], *, is_brief: bool) -> list[list[Row]]:
    order = [severity.value for severity in _WORDS]
    alike: dict[tuple[object, ...], list[Row]] = {}
    for row in group:
        words: tuple[str, ...] = (when(row), text(row, "message"))
        words = tuple(_NUMBER.sub("", word) for word in words) if is_brief else words
        alike.setdefault((order.index(text(row, "severity")), *words), []).append(row)
    return [alike[key] for key in sorted(alike, key=lambda key: (key[0], -len(alike[key])))]


def _entry(rows: Sequence[Row], *, with_campaign: bool, width: int, colour: bool) -> Iterator[str]:
    severity, part, message = text(rows[0], "severity"), when(rows[0]), text(rows[0], "message")
    same = [row for row in rows if (when(row), text(row, "message")) == (part, message)]
    columns = ("campaign", "run") if with_campaign else ("run",)
    names = ["/".join(text(row, column) for column in columns) for row in same]
    label = click.style(severity, fg=STYLES[Severity(severity)]) if colour else severity
    first, *others = wrap(_shorten(names), width - len(severity) - 4)
    yield f"  {label}  {first}"
    yield from (" " * (len(severity) + 4) + line for line in others)
    yield from _paragraph("    ", f"{part}: {message}" if part else message, width=width)


def _paragraph(label: str, message: str, *, width: int) -> list[str]:
    first, *others = wrap(message, width - len(label))
    return [label + first, *(" " * len(label) + line for line in others)]


def _shorten(names: Sequence[str]) -> str:
    distinct = list(dict.fromkeys(names))
    if len(distinct) <= _SHOWN_RUNS:
        return ", ".join(distinct)
    more = len(distinct) - _SHOWN_RUNS + 1
    return f"{', '.join(distinct[: _SHOWN_RUNS - 1])} and {more:,} more"


def _by_run(rows: Sequence[Row]) -> dict[tuple[str, str], list[Row]]:
    groups: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        groups.setdefault((text(row, "campaign"), text(row, "run")), []).append(row)
    return groups
