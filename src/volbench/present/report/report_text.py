"""Sentences of the report beside its answer: constants, data quality, and how runs ended."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from statistics import median

from volbench.analyse.frames.design import MIN_REPEAT_RATIO, Design
from volbench.analyse.frames.workload_words import factor_name, first_names
from volbench.model.campaign.planned_run import RunState, count_states
from volbench.model.results.finding import Severity
from volbench.model.results.steadiness import State
from volbench.present.cell_results import cell_results
from volbench.present.factor_words import constants_words, listed
from volbench.present.formatting import Row, text
from volbench.present.report.content import CampaignPart, Quality
from volbench.present.tables.findings_table import count_severities, findings_text
from volbench.units import counted_noun, format_count, format_percent

# Distance of repeats from their median up to which they agree. Noticed by: test_first_screen.py
_MAX_AGREEMENT = 0.1
_MAX_NAMES = 6  # Names that a sentence lists before it counts the rest


def days_of(design: Design) -> str:
    """Return the first and the last day of results."""
    days = sorted({text(row, "started_utc")[:10] for row in design.rows} - {""})
    return " to ".join(dict.fromkeys(days[:1] + days[-1:]))


def constants_line(design: Design, names: Sequence[str], machine: str) -> str:
    """Return what is equal in all results, with their machine and campaigns."""
    are_many = len(names) >= _MAX_NAMES
    campaigns = counted_noun(len(names), "campaign") if are_many else ", ".join(names)
    return " \u00b7 ".join(filter(None, [constants_words(design), machine, campaigns]))


def quality_of(
    design: Design,
    findings: Sequence[Row],
    verdicts: Sequence[Row],
    parts: Sequence[CampaignPart],
    *,
    runs: int,
    cautions: Iterable[str] = (),
) -> Quality:
    """Return data quality in a line, with all findings and reservations behind it."""
    is_bad = [row["severity"] == Severity.INVALID.value for row in findings]
    invalid = {text(row, "run") for row, bad in zip(findings, is_bad, strict=True) if bad} - {""}
    severe = {text(row, "run") for row in findings if row["severity"] != Severity.NOTE.value}
    warned = severe - invalid - {""}
    missing = sum(len(part.failures) for part in parts)
    counts = count_severities(findings)
    problems = [f"{len(invalid):,} of {counted_noun(runs, 'run')} invalid"] if invalid else []
    problems += [f"{len(warned):,} of {counted_noun(runs, 'run')} with warnings"] if warned else []
    problems += [f"{missing:,} without a result"] if missing else []
    notes = counts[Severity.NOTE]
    known = [_agreement(design), _steady(verdicts)]
    known += [counted_noun(notes, "note")] if notes else []
    is_sound = not notes and any(count > 1 for count in design.repeats)
    if not runs:
        severity, problems, known = "invalid", ["no run has a result"], []
    elif problems:
        severity = "invalid" if invalid or missing else "warning"
    else:
        severity = "ok" if is_sound else "note"
        problems = ["sound" if is_sound else "no warning"]
    words = ", ".join(filter(None, [*problems, *known]))
    shown = findings_text(findings, runs=runs) if findings else ""
    return Quality(severity, words, shown, [*cautions, *_cautions(design)])


def _agreement(design: Design) -> str:
    """Return how far repeats of a cell are from their median, or from each other, at most."""
    rates = [result.rates for result in cell_results(design)]
    several = [every for every in rates if len(every) > 1 and min(every) > 0]
    if not several:
        return "variation unknown (one run each)" if rates else ""
    worst = max(abs(rate / median(every) - 1) for every in several for rate in every)
    if worst <= _MAX_AGREEMENT:
        return f"repeats agree within {format_percent(worst)}"
    ratio = max(max(every) / min(every) for every in several)
    is_large = ratio >= MIN_REPEAT_RATIO
    apart = f"{format_count(ratio)} times" if is_large else format_percent(ratio - 1)
    return f"repeats differ by up to {apart}"


def _steady(verdicts: Sequence[Row]) -> str:
    """Return how many runs were steady, of runs long enough to be judged."""
    states = [row["verdict"] for row in verdicts if row["verdict"] not in {None, ""}]
    judged = [state for state in states if state != State.TOO_SHORT.value]
    if not judged:
        return "too short to be judged over time" if states else ""
    return f"{judged.count(State.STEADY.value)} of {len(judged)} steady"


def _cautions(design: Design) -> list[str]:
    sentences = []
    buffered = {
        text(row, "job")
        for row in design.rows
        if row.get("direct") is False and not text(row, "volume").startswith("nbd")
    }
    if buffered:
        sentences.append(
            f"{first_names(sorted(buffered), _MAX_NAMES)} went through the page cache (direct=0):"
            " these numbers reflect the memory of the host as much as the volume."
        )
    owners = {design.compared, ""}
    also = [name for name, owner in design.aliases.items() if owner in owners and design.compared]
    if also:
        sentences.append(
            f"{listed([factor_name(name) for name in also])} changed with"
            f" {factor_name(design.compared)}: either may be the cause of a difference."
        )
    return sentences


def ending(part: CampaignPart) -> str:
    """Return how many runs of a campaign ended in which way."""
    counts = count_states(part.campaign, part.states)
    words = [f"{count:,} {state.value.replace('-', ' ')}" for state, count in counts.items()]
    return f"{counted_noun(len(part.campaign.runs), 'run')}: {', '.join(words)}."


def without_numbers(rows: Sequence[Row]) -> str:
    """Return why there is no number: nothing finished, or logs have no totals."""
    states = {row.get("status") for row in rows}
    if RunState.FINISHED.value in states:
        return "The finished runs have time series but no totals: see the charts."
    if states:
        return "No run finished. The table shows partial results."
    return "No run has a result yet."
