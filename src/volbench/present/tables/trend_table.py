"""Table of trends: level of reference and of now, control limits, and what changed when."""

from __future__ import annotations

from collections.abc import Sequence

from volbench.analyse.compare.comparison_result import percent, signed_percent
from volbench.analyse.compare.workload_trends import (
    FALSE_ALARMS,
    LevelChange,
    State,
    Trend,
    Trends,
    record_of,
)
from volbench.present.tables.compare_table import measure_name, shown_value
from volbench.present.tables.table import IDENTITY, Column, Table

_MOST_NAMED = 3


def trends_table(trends: Trends) -> Table[Trend]:
    """Return a row for each workload and metric, the worse ones first."""
    order = list(State)
    rows = sorted(trends.rows, key=lambda trend: order.index(trend.state))
    answer = headline(trends)
    notes = [*_notes(trends), *trends.remarks]
    return Table(
        "trend",
        _columns(rows),
        rows,
        record=record_of,
        title=answer,
        notes=notes,
        document={
            "summary": answer,
            "trends": [record_of(row) for row in rows],
            "remarks": notes,
        },
    )


def headline(trends: Trends) -> str:
    """Return how many workloads have which state over which time, in a sentence."""
    campaigns = max(len(trend.campaigns) for trend in trends.rows)
    dates = sorted(text[:10] for trend in trends.rows for text in trend.started_utc if text)
    period = f", {dates[0]} to {dates[-1]}" if dates else ""
    states = [trend.state for trend in trends.rows]
    counts = [_counted(state, states.count(state)) for state in State if state in states]
    return f"{campaigns} campaigns{period}: {', '.join(counts)}."


def _counted(state: State, count: int) -> str:
    return f"{count} {state.value}{'s' * (state is State.REGRESSION and count > 1)}"


def change_words(trend: Trend, change: LevelChange) -> str:
    """Return a change of the level with its date and what else changed."""
    step = signed_percent(change.after / change.before - 1)
    return f"{step} % on {_when(trend, change)}{_facts(change)}"


def words(trend: Trend) -> str:
    """Return the state of a trend in words, such as ``regression 12 % since 2026-03-04``."""
    state, changes = trend.state, trend.changes
    if state is State.TOO_FEW:
        return trend.shortage
    if state is State.OUTSIDE:
        loss = percent(trend.loss(float(trend.results[-1])))
        return f"{state.value}: the last campaign is {loss} % worse than the reference"
    if state is State.STABLE:
        parts = [trend.shortage] if trend.shortage else []
        parts += [change_words(trend, change) for change in changes[-_MOST_NAMED:]]
        return f"{state.value} ({'; '.join(parts)})" if parts else state.value
    parts = [change_words(trend, change) for change in changes[-_MOST_NAMED:-1]]
    before = f"; before: {'; '.join(parts)}" if parts else ""
    since = f"since {_when(trend, changes[-1])}{_facts(changes[-1])}"
    return f"{state.value} {percent(abs(trend.loss(trend.level)))} % {since}{before}"


def _when(trend: Trend, change: LevelChange) -> str:
    return trend.started_utc[change.place][:10] or trend.campaigns[change.place]


def _facts(change: LevelChange) -> str:
    return f" (then {', '.join(change.facts)})" if change.facts else ""


def _notes(trends: Trends) -> list[str]:
    lines = ["Dates are those of the first campaign of a new level; no cause is implied."]
    if any(trend.limits for trend in trends.rows):
        lines.append(
            f"Limits: an unchanged campaign is beyond one on the worse side with at most"
            f" {100 * FALSE_ALARMS:g} %, over all rows together."
        )
    return lines


def _columns(rows: Sequence[Trend]) -> list[Column[Trend]]:
    columns: list[Column[Trend]] = [
        Column("job", lambda row: row.label, priority=IDENTITY),
        Column("direction", lambda row: row.direction, header="dir", priority=IDENTITY),
    ]
    columns += [
        Column(name, lambda row, name=name: row.by[name], priority=IDENTITY)  # type: ignore[misc]  # the default binds the loop's value
        for name in (rows[0].by if rows else ())
    ]
    return [
        *columns,
        Column("metric", lambda row: measure_name(row.measure), priority=IDENTITY),
        Column("campaigns", lambda row: str(len(row.campaigns)), priority=4, is_right=True),
        Column(
            "reference_value",
            lambda row: shown_value(row.measure, row.base),
            header="reference",
            priority=2,
            is_right=True,
        ),
        Column("limits", _limits, priority=3, is_right=True),
        Column(
            "value",
            lambda row: shown_value(row.measure, row.level),
            header="now",
            priority=2,
            is_right=True,
        ),
        Column("state", words, priority=IDENTITY, is_folded=True),
    ]


def _limits(row: Trend) -> str:
    if row.limits is None:
        return "n/a"
    ends = (row.limits.low, row.limits.high)
    return " to ".join(shown_value(row.measure, end) for end in ends)
