"""The first words: plan and frames enter; what was asked, found and can't be trusted leave.

Every sentence is made from the frames, so that it says no more than the tables below it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from volbench.model.results.finding import Severity
from volbench.present.figures.chart import shape
from volbench.present.formatting import Row, job_label, text
from volbench.present.report.content import ReportContent
from volbench.present.report.summary import AgainstLimit, listed
from volbench.present.tables.findings_table import by_rule

_BINDS = {
    "iops-limit": "an IOPS limit",
    "bandwidth-limit": "a bandwidth limit",
    "latency": "the latency of single I/Os",
    "cache": "a cache",
    "cpu": "the CPU",
}


@dataclass(frozen=True)
class Distrust:
    """Why some numbers can't be trusted.

    Attributes:
        rule: that found it, and the part of the page about it.
        severity: of its heaviest Finding.
        where: the jobs it is about.
        example: what was seen, in one of them.
        why: it matters.
    """

    rule: str
    severity: str
    where: str
    example: str
    why: str


def asked(content: ReportContent, rows: Sequence[Row]) -> list[str]:
    """Return sentences on what the campaign was to do."""
    runs = content.campaign.runs
    jobs = dict.fromkeys((run.profile, run.job) for run in runs)
    repeats = max((run.repeat for run in runs), default=1)
    hosts = dict.fromkeys(run.host for run in runs)
    parts = [_count(len(jobs), "job")]
    parts += [f"{repeats} repeats"] if repeats > 1 else []
    parts += [f"{len(hosts)} hosts"] if len(hosts) > 1 else []
    word = "Imported" if content.campaign.is_imported else "WorkloadSpec for"
    told = [f"{word}: {', '.join(parts)}, {_count(len(runs), 'Run')} in all."]
    shapes = dict.fromkeys(shape(row) for row in rows if text(row, "phase") in ("", "measured"))
    if shapes:
        told.append(f"They did {listed(shapes, most=8, joint='; ')}.")
    return told


def found(verdicts: Sequence[Row], limits: Sequence[AgainstLimit]) -> list[str]:
    """Return sentences on how steady the results are, what binds them, and limits reached."""
    return [*_steady(verdicts), *_bound(verdicts), *_reached(limits)]


def distrusted(findings: Sequence[Row]) -> list[Distrust]:
    """Return the rules that doubt numbers, the heaviest first; notes are context, not doubts."""
    doubts = [row for row in findings if text(row, "severity") != Severity.NOTE.value]
    told = []
    for rule, group in by_rule(doubts).items():
        heaviest = next(
            (row for row in group if row["severity"] == Severity.INVALID.value), group[0]
        )
        told.append(
            Distrust(
                rule=rule,
                severity=text(heaviest, "severity"),
                where=listed(dict.fromkeys(job_label(row) for row in group)),
                example=text(heaviest, "message"),
                why=text(heaviest, "why"),
            )
        )
    return told


def _steady(verdicts: Sequence[Row]) -> list[str]:
    """Return how many results were steady, and which were not."""
    by_verdict: dict[str, dict[str, None]] = {}
    for row in verdicts:
        by_verdict.setdefault(text(row, "verdict"), {})[job_label(row)] = None
    judged = sum(1 for row in verdicts if text(row, "verdict") not in ("", "too-short"))
    steady = sum(1 for row in verdicts if text(row, "verdict") == "steady")
    if not judged:
        short = "too-short" in by_verdict
        return ["The Runs were too short to tell whether their speed was steady."] * short
    told = f"Of {_count(judged, 'result')} over time, {steady} {_be(steady)} steady"
    parts = [
        f"{name}: {listed(jobs)}"
        for name, jobs in by_verdict.items()
        if name in ("drifting", "stepped", "noisy")
    ]
    return [f"{told}; {'; '.join(parts)}." if parts else f"{told}."]


def _bound(verdicts: Sequence[Row]) -> list[str]:
    """Return what held the results back, where it is known."""
    jobs: dict[str, dict[str, None]] = {}
    for row in verdicts:
        jobs.setdefault(text(row, "bottleneck"), {})[job_label(row)] = None
    parts = [f"{words} ({listed(jobs[cause])})" for cause, words in _BINDS.items() if cause in jobs]
    return [f"What held them back: {'; '.join(parts)}."] if parts else []


def _reached(limits: Sequence[AgainstLimit]) -> list[str]:
    """Return how many jobs came to the declared limit."""
    if not limits:
        return []
    readings = Counter(re.split("[:,]", limit.reading)[0] for limit in limits)
    words = {"reached": "reached one", "above": "went above one", "below": "stayed below"}
    parts = [f"{readings[word]} {told}" for word, told in words.items() if readings[word]]
    return [f"Of {_count(len(limits), 'job')} with declared limits, {', '.join(parts)}."]


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _be(count: int) -> str:
    return "is" if count == 1 else "are"
