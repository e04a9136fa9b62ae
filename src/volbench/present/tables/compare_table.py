"""Tables of comparisons and trends: values, change with its interval or limits, and verdict."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TypeVar

from volbench.analyse.compare.comparability import Comparability, DifferingFact
from volbench.analyse.compare.comparison import Comparison, headlines
from volbench.analyse.compare.comparison_result import (
    Compared,
    Verdict,
    change_text,
    row_of,
    signed_percent,
)
from volbench.analyse.compare.workload_trends import LevelChange, State, Trend, Trends, record_of
from volbench.model.frames.column_names import Measure
from volbench.present.tables.table import IDENTITY, MAX_ROWS, SCREEN_ROWS, Column, Table
from volbench.units import (
    counted_noun,
    format_count,
    format_latency,
    format_percent,
    format_rate,
    percent,
)

_MAX_NAMED = 3
_Judged = TypeVar("_Judged", Compared, Trend)


def comparison_table(comparison: Comparison, *, is_brief: bool = False) -> Table[Compared]:
    """Return a row for each comparison under the answer, with notes that explain the verdicts."""
    answer = headlines(comparison)
    is_cut = is_brief and len(comparison.rows) > MAX_ROWS
    rows = sorted(comparison.rows, key=_weight)[:SCREEN_ROWS] if is_cut else comparison.rows
    left_out = len(comparison.rows) - len(rows)
    more = f"{left_out:,} more that differ less: --format csv lists all, --where selects some"
    return Table(
        "comparison",
        _columns(comparison.rows),
        rows,
        record=row_of,
        title=" ".join(answer),
        notes=[
            *notes(comparison),
            *(text for text in comparison.remarks if text not in comparison.comparability.remarks),
            *[more] * is_cut,
        ],
        document={
            "summary": answer,
            "comparability": comparison.comparability.verdict,
            "facts": [fact.record for fact in comparison.comparability.facts],
            "confidence": comparison.confidence,
            "comparisons": [row_of(row) for row in comparison.rows],
            "remarks": [*notes(comparison), *comparison.remarks],
        },
    )


def _weight(row: Compared) -> tuple[bool, float]:
    """Return a key that puts significant differences first, and of equal ones the largest."""
    is_significant = row.verdict in {Verdict.FASTER, Verdict.SLOWER}
    return not is_significant, -abs(math.log(row.ratio)) if row.ratio > 0 else 0.0


def facts_table(comparability: Comparability) -> Table[DifferingFact]:
    """Return a row for each fact that differs, with its value on each side and its effect.

    What differs among the runs of one side, which would be pooled, has values on that side only.
    """
    sides = list(dict.fromkeys(side for fact in comparability.facts for side in fact.by_side))
    return Table(
        "facts",
        [
            Column("fact", lambda row: row.fact, priority=IDENTITY),
            *(
                Column(side, lambda row, side=side: row.by_side.get(side, ""), is_folded=True)  # type: ignore[misc]  # the default binds the loop's value
                for side in sides
            ),
            Column("effect", lambda row: row.effect.value, priority=IDENTITY),
            Column("workloads", lambda row: str(len(row.workloads)), priority=2, is_right=True),
        ],
        comparability.facts,
        record=lambda row: row.record,
        title=f"What differs: {comparability.verdict}.",
        notes=comparability.defects,
        document={
            "comparability": comparability.verdict,
            "facts": [fact.record for fact in comparability.facts],
        },
    )


def notes(comparison: Comparison) -> list[str]:
    """Return the notes that explain the verdicts, one sentence each."""
    tested = [row for row in comparison.rows if row.contrast]
    share = format_percent(comparison.confidence)
    lines = [
        "Percent: change against the base, x: ratio to it; faster is more IOPS or less latency."
    ]
    if len(tested) > 1:
        lines.append(
            f"{len(tested)} comparisons: family-wise confidence {share} (Holm-Bonferroni);"
            " each interval is adjusted for multiple comparisons."
        )
    elif tested:
        lines.append(f"Confidence of the intervals: {share}.")
    lines += _chance_notes(comparison.rows)
    units = {row.contrast.unit for row in tested if row.contrast}
    if units & {"repeats", "blocks"}:
        lines.append("n = 1 volume per side: does not generalise to the volume type.")
    if "blocks" in units:
        lines.append(
            "Paired: the ratio in each block, whose runs were next to each other, is one value;"
            " a drift from block to block cancels out."
        )
    if any(row.warnings for row in comparison.rows):
        lines.append("! marks a run with data-quality warnings; see volbench check.")
    return lines


def measure_name(measure: Measure) -> str:
    """Return the name of a metric, with the kind of latency if it is not total latency."""
    kind = measure.column.partition("lat_")[0] if measure.is_latency else ""
    already = measure.name.startswith(("c", "s")) or not kind
    return measure.name if already else f"{measure.name} ({kind}lat)"


def shown_value(measure: Measure, value: float) -> str:
    """Return a value of a metric for people."""
    if measure.is_latency:
        return format_latency(value)
    return format_rate(value) if measure.column.startswith("bw_") else format_count(value)


def _columns(rows: Sequence[Compared]) -> list[Column[Compared]]:
    candidates = list(dict.fromkeys(row.candidate for row in rows))
    several = len(candidates) > 1
    reasons = {row.words.partition(", not tested")[2] for row in rows}  # which the answer says
    reason = f", not tested{next(iter(reasons))}" if len(reasons) == 1 else ""
    are_paired = any(row.contrast and row.contrast.unit == "blocks" for row in rows)
    base = rows[0].base if rows else "base"
    header = "value" if several or not rows else candidates[0]
    columns: list[Column[Compared]] = [*_identity(rows)]
    if several:
        columns.append(Column("candidate", lambda row: row.candidate, priority=IDENTITY))
    return [
        *columns,
        _value_column("base_value", base, lambda row: row.base_group.median),  # one of two rates
        _value_column("value", header, lambda row: row.candidate_group.median),  # says nothing
        Column("repeats", _repeats, priority=3, is_right=True),
        *([Column[Compared]("design", lambda row: row.design, priority=4)] if are_paired else []),
        Column(
            "verdict",
            lambda row: row.words.removesuffix(reason) + (" !" if row.warnings else ""),
            priority=IDENTITY,
            is_folded=True,
        ),
    ]


def _identity(rows: Sequence[_Judged]) -> Iterator[Column[_Judged]]:
    """Yield the columns that name a row."""
    yield Column("workload", lambda row: row.label, priority=IDENTITY)
    for name in rows[0].by if rows else ():
        yield Column(name, lambda row, name=name: row.by[name], priority=IDENTITY)  # type: ignore[misc,has-type]  # the default binds the loop's value
    yield Column("metric", lambda row: measure_name(row.measure), priority=IDENTITY)


def _chance_notes(rows: Sequence[Compared]) -> list[str]:
    """Return that untested differences may be chance, and how far their repeats differ."""
    untested = [row for row in rows if row.verdict is Verdict.TOO_FEW and row.ratio > 0]
    untested = [row for row in untested if not row.confirmed]
    groups = [group for row in untested for group in (row.base_group, row.candidate_group)]
    spreads = [max(g.values) / min(g.values) for g in groups if g.repeats > 1 and min(g.values) > 0]
    known = f"by up to {change_text(max(spreads)).lstrip('+')}" if spreads else "unknown"
    many = "repeats of a workload differ" if spreads else "the spread of repeats is"
    return [f"Not tested: differences may be chance; {many} {known}."] if untested else []


def _value_column(
    name: str, header: str, value_of: Callable[[_Judged], float], priority: int = IDENTITY
) -> Column[_Judged]:
    return Column(
        name,
        lambda row: shown_value(row.measure, value_of(row)),
        header=header,
        priority=priority,
        is_right=True,
    )


def _repeats(row: Compared) -> str:
    texts = [
        f"{group.repeats} on {group.volumes}" if group.volumes > 1 else str(group.repeats)
        for group in (row.base_group, row.candidate_group)
    ]
    return texts[0] if texts[0] == texts[1] else ", ".join(texts)


def trends_table(trends: Trends) -> Table[Trend]:
    """Return a row for each workload and metric, the worse ones first."""
    order = list(State)
    rows = sorted(trends.judged, key=lambda trend: order.index(trend.state))
    every = sorted(trends.rows, key=lambda trend: order.index(trend.state))
    answer = trend_headline(trends)
    dates = "Dates: the first campaign at the new level. They do not imply a cause."
    notes = [dates] if any(trend.changes for trend in trends.rows) else []
    if any(trend.limits for trend in trends.rows):
        notes.append(f"{false_alarm_words(trends)}.")
    notes += trends.remarks
    if len(rows) < len(every):
        notes.append(f"Not listed: {_counted(State.TOO_FEW, len(every) - len(rows))}.")
    return Table(
        "trend",
        _trend_columns(rows),
        rows,
        record=record_of,
        title=answer,
        notes=notes,
        document={"summary": answer, "trends": [record_of(row) for row in every], "remarks": notes},
    )


def trend_headline(trends: Trends) -> str:
    """Return how many workloads have which state over which time, in a sentence."""
    dates = sorted(text[:10] for trend in trends.rows for text in trend.started_utc if text)
    period = f" ({' to '.join(dict.fromkeys([dates[0], dates[-1]]))})" if dates else ""
    states = [trend.state for trend in trends.rows]
    counts = [_counted(state, states.count(state)) for state in State if state in states]
    campaigns = counted_noun(len(trends.campaigns), "campaign")
    return f"Trends over {campaigns}{period}: {', '.join(counts)}."


def course_sentences(trends: Trends) -> list[str]:
    """Return what fell and since when, or that nothing did, and how many have which state."""
    fallen = [row for row in trends.judged if row.state.is_bad or row.is_unconfirmed]
    words = [f"{row.name}, {measure_name(row.measure)}: {trend_words(row)}." for row in fallen]
    known, count = sum(row.state is not State.TOO_FEW for row in trends.rows), len(trends.rows)
    where = f" in {known} of {count} trends; the others are undecided" if known < count else ""
    words = words or [f"No regression{where}." if known else "Too few campaigns for a trend."]
    return [*words[:_MAX_NAMED], trend_headline(trends)]


def _counted(state: State, count: int) -> str:
    return f"{count} {state.value}{'s' if state is State.REGRESSION and count > 1 else ''}"


def change_words(trend: Trend, change: LevelChange) -> str:
    """Return a change of the level with its date and what else changed."""
    step = signed_percent(change.after / change.before - 1)
    return f"{step} % on {_when(trend, change)}{_facts(change)}"


def trend_words(trend: Trend) -> str:
    """Return the state of a trend in words, such as ``regression 12 % since 2026-03-04``."""
    if trend.cleared:
        return f"{trend.cleared} ({trend_words(replace(trend, cleared=''))})"
    state, changes = trend.state, trend.changes
    if state is State.TOO_FEW:
        return ": ".join([*(change_words(trend, each) for each in changes[:1]), trend.shortage])
    if state is State.OUTSIDE:
        loss = percent(trend.loss(float(trend.results[-1])))
        return f"{state.value}: the last campaign is {loss} % worse than the reference"
    if state is State.STABLE:
        parts = [trend.shortage] if trend.shortage else []
        beyond = [trend.started_utc[n][:10] or trend.campaigns[n] for n in trend.outside]
        parts += [f"beyond a limit: {', '.join(beyond[-_MAX_NAMED:])}"] if beyond else []
        parts += [change_words(trend, change) for change in changes[-_MAX_NAMED:]]
        return f"{state.value} ({'; '.join(parts)})" if parts else state.value
    parts = [change_words(trend, change) for change in changes[-_MAX_NAMED:-1]]
    before = f"; before: {'; '.join(parts)}" if parts else ""
    since = f"since {_when(trend, changes[-1])}{_facts(changes[-1])}"
    new = "new " if trend.is_new else ""
    return f"{new}{state.value} {percent(abs(trend.loss(trend.level)))} % {since}{before}"


def _when(trend: Trend, change: LevelChange) -> str:
    """Return the date of a change, with the time if the campaign before was on that day too."""
    started, before = trend.started_utc[change.place], trend.started_utc[change.place - 1]
    is_same_day = change.place > 0 and started[:10] == before[:10]
    when = started[:16].replace("T", " ") if is_same_day else started[:10]
    return when or trend.campaigns[change.place]


def _facts(change: LevelChange) -> str:
    return f" (then {', '.join(change.facts)})" if change.facts else ""


def false_alarm_words(trends: Trends) -> str:
    """Return how often limits are wrong."""
    share = format_percent(trends.false_alarms)
    return f"False alarms: an unchanged campaign is beyond any limit in at most {share} of cases"


def _trend_columns(rows: Sequence[Trend]) -> list[Column[Trend]]:
    return [
        *_identity(rows),
        Column("campaigns", lambda row: str(len(row.campaigns)), priority=4, is_right=True),
        _value_column("reference_value", "reference", lambda row: row.base, 2),
        Column("limits", _limits, priority=3, is_right=True),
        _value_column("last_value", "now", lambda row: float(row.results[-1]), 2),
        Column("state", trend_words, priority=IDENTITY, is_folded=True),
    ]


def _limits(row: Trend) -> str:
    if row.limits is None:
        return "n/a"
    ends = (row.limits.low, row.limits.high)
    return " to ".join(shown_value(row.measure, end) for end in ends)
