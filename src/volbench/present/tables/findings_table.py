"""Findings for a terminal: rows of the findings frame enter, text grouped by rule leaves.

Equal Findings of several Runs are told once. The heaviest rules come first.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from io import StringIO
from typing import TextIO

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from volbench.model.results.finding import Severity
from volbench.present.formatting import Row, number, text
from volbench.units import format_duration

STYLES: Mapping[Severity, str] = {
    Severity.INVALID: "bold red",
    Severity.WARNING: "yellow",
    Severity.NOTE: "cyan",
}
_WORDS = {
    Severity.INVALID: ("invalid", "invalid"),
    Severity.WARNING: ("warning", "warnings"),
    Severity.NOTE: ("note", "notes"),
}
_PIPE_WIDTH = 100
_SHOWN_RUNS = 4


def count_severities(rows: Sequence[Row]) -> dict[Severity, int]:
    """Return how many Findings there are of each severity, the heaviest first."""
    return {severity: sum(row["severity"] == severity.value for row in rows) for severity in _WORDS}


def counted(counts: Mapping[Severity, int]) -> str:
    """Return counts in words, such as ``1 invalid, 3 warnings``; zeros are left out."""
    told = [
        f"{count} {_WORDS[severity][count != 1]}" for severity, count in counts.items() if count
    ]
    return ", ".join(told)


def doubt_marks(rows: Sequence[Row]) -> dict[str, str]:
    """Return how many Findings doubt each Run, with ``!`` when one says that it is invalid.

    Notes don't count, and Runs without a doubt are left out.
    """
    heavy: dict[str, list[Row]] = {}
    for row in rows:
        if row["severity"] != Severity.NOTE.value:
            heavy.setdefault(text(row, "run"), []).append(row)
    return {
        run: f"{len(doubts)}{'!' if count_severities(doubts)[Severity.INVALID] else ''}"
        for run, doubts in heavy.items()
    }


def when(row: Row) -> str:
    """Return what part of a Run a Finding is about, such as ``write, 10s to 25s``; may be empty."""
    start, end = number(row, "from_s"), number(row, "to_s")
    told = not math.isnan(start) and not math.isnan(end)
    window = f"{format_duration(start)} to {format_duration(end)}" if told else ""
    return ", ".join(part for part in (text(row, "direction"), window) if part)


def by_rule(rows: Sequence[Row]) -> dict[str, list[Row]]:
    """Return Findings by rule, the rules with the heaviest first."""
    groups: dict[str, list[Row]] = {}
    for row in rows:
        groups.setdefault(text(row, "rule"), []).append(row)
    order = [severity.value for severity in _WORDS]
    heaviest = {
        rule: min(order.index(text(row, "severity")) for row in group)
        for rule, group in groups.items()
    }
    return {rule: groups[rule] for rule in sorted(groups, key=lambda rule: heaviest[rule])}


def show_findings(rows: Sequence[Row], *, runs: int, stream: TextIO) -> None:
    """Print Findings in groups, each with why it matters and what to do.

    Args:
        rows: of the findings frame, of one campaign or several.
        runs: how many finished Runs were looked at.
        stream: where to.
    """
    if stream.isatty():
        _print(rows, runs=runs, console=Console(file=stream))
        return
    console = Console(file=StringIO(), force_terminal=False, width=_PIPE_WIDTH)
    with console.capture() as captured:
        _print(rows, runs=runs, console=console)
    stream.writelines(f"{line.rstrip()}\n" for line in captured.get().splitlines())


def _print(rows: Sequence[Row], *, runs: int, console: Console) -> None:
    if not rows:
        console.print(Text(f"no doubts about {_runs(runs)}"))
        return
    several = len({text(row, "campaign") for row in rows}) > 1
    for rule, group in by_rule(rows).items():
        console.print(_heading(rule, group))
        console.print(Padding(_lines(group, with_campaign=several), (0, 0, 0, 2)))
        console.print(Padding(_advice(group[0]), (0, 0, 1, 2)))
    touched = len({(text(row, "campaign"), text(row, "run")) for row in rows})
    told = counted(count_severities(rows))
    console.print(Text(f"{told}; {touched} of {_runs(runs)} concerned"))


def _runs(count: int) -> str:
    return f"{count} Run" if count == 1 else f"{count} Runs"


def _heading(rule: str, group: Sequence[Row]) -> Text:
    """Return the name of a rule with the counts of its Findings."""
    heading = Text(rule, style="bold")
    heading.append(f"  {counted(count_severities(group))}", style="not bold")
    return heading


def _lines(group: Sequence[Row], *, with_campaign: bool) -> Table:
    """Return a line for each distinct Finding of a rule with the Runs it was seen in."""
    equal: dict[tuple[str, str, str], list[str]] = {}
    for row in group:
        run = text(row, "run")
        if with_campaign:
            run = f"{text(row, 'campaign')}/{run}"
        equal.setdefault((text(row, "severity"), when(row), text(row, "message")), []).append(run)
    grid = Table.grid(padding=(0, 2, 0, 0))
    for _ in range(2):
        grid.add_column(no_wrap=True)
    grid.add_column(overflow="fold")
    for (severity, part, message), names in equal.items():
        told = Text(f"{part}: {message}" if part else message)
        shown = Text("\n".join(_shorten(names)))
        grid.add_row(Text(severity, style=STYLES[Severity(severity)]), shown, told)
    return grid


def _shorten(names: Sequence[str]) -> list[str]:
    """Return the first Runs, and how many more there are."""
    once = list(dict.fromkeys(names))
    if len(once) <= _SHOWN_RUNS:
        return once
    return [*once[: _SHOWN_RUNS - 1], f"and {len(once) - _SHOWN_RUNS + 1} more"]


def _advice(row: Row) -> Table:
    """Return why a rule matters and what to do."""
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(no_wrap=True, style="dim")
    grid.add_column(overflow="fold")
    grid.add_row("why", Text(text(row, "why")))
    grid.add_row("do", Text(text(row, "advice")))
    return grid
