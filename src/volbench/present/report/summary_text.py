"""Summary of the report in sentences: plan, results and reservations.

Every sentence is made from the frames, so that it says no more than the tables below it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence

from volbench.model.campaign.planned_run import RunState
from volbench.present.formatting import Row, counted_noun, instant, job_label, text
from volbench.present.plots.labels import shape
from volbench.present.report.content import ReportContent
from volbench.present.report.outcomes import AgainstLimit, Outcome
from volbench.present.terminal.campaign_text import came_from, count_states, sources
from volbench.units import format_count, format_rate

_MOST_NAMES = 6  # Names that a sentence lists before it counts the rest
BOTTLENECKS = {
    "iops-limit": "an IOPS limit",
    "bandwidth-limit": "a bandwidth limit",
    "latency": "the latency of single I/Os",
    "cache": "a cache",
    "cpu": "the CPU",
}
_STATES = {
    RunState.FINISHED: "finished",
    RunState.FAILED: "failed",
    RunState.INTERRUPTED: "was interrupted",
    RunState.RUNNING: "was still running when the report was made",
    RunState.PLANNED: "never ran",
    RunState.NOT_NEEDED: "was not needed",
    RunState.LOST: "was lost with its host",
}


def what_ran(content: ReportContent, rows: Sequence[Row]) -> list[str]:
    """Return sentences about profiles, hosts, volumes and time."""
    campaign = content.campaign
    profiles = listed(dict.fromkeys(run.profile for run in campaign.runs))
    hosts = dict.fromkeys(run.host for run in campaign.runs)
    volumes = dict.fromkeys(f"{run.volume.role} ({run.volume.target})" for run in campaign.runs)
    where = "this machine" if list(hosts) == ["local"] else listed(hosts)
    where = f"{len(hosts)} hosts ({where})" if len(hosts) > _MOST_NAMES else where
    started = sorted(text(row, "started_utc") for row in rows if row.get("started_utc"))
    when = f"planned at {instant(campaign.created_utc)}"
    if started:
        when = f"from {instant(started[0])} to {instant(started[-1])} (start of the last run)"
    if campaign.is_imported:
        measured = when if started else "at a time that the files do not report"
        return [
            came_from(campaign),
            sources(campaign),
            f"It was measured on {where}, on {listed(volumes)}, {measured}.",
        ]
    return [f"Profile {profiles} ran on {where}, on {listed(volumes)}, {when}."]


def requested(content: ReportContent, rows: Sequence[Row]) -> list[str]:
    """Return sentences on the plan of the campaign."""
    runs = content.campaign.runs
    jobs = dict.fromkeys((run.profile, run.job) for run in runs)
    repeats = max((run.repeat for run in runs), default=1)
    hosts = dict.fromkeys(run.host for run in runs)
    parts = [counted_noun(len(jobs), "job")]
    parts += [f"{repeats} repeats"] if repeats > 1 else []
    parts += [f"{len(hosts)} hosts"] if len(hosts) > 1 else []
    word = "Imported" if content.campaign.is_imported else "Planned"
    sentences = [f"{word}: {', '.join(parts)}, {counted_noun(len(runs), 'run')} in all."]
    shapes = dict.fromkeys(shape(row) for row in rows if text(row, "phase") in ("", "measured"))
    if shapes:
        sentences.append(f"Workloads: {listed(shapes, most=8, joint='; ')}.")
    return sentences


def ending(content: ReportContent) -> str:
    """Return the number of runs in each state."""
    counts = count_states(content.campaign, content.states)
    unneeded = counts.pop(RunState.NOT_NEEDED, 0)
    total = sum(counts.values())
    if counts.get(RunState.FINISHED) == total:
        more = f" {unneeded} more were planned and not needed." if unneeded else ""
        return "The only run finished." if total == 1 else f"All {total} runs finished.{more}"
    counts |= {RunState.NOT_NEEDED: unneeded} if unneeded else {}
    parts = [f"{count} {_state_text(state, count)}" for state, count in counts.items()]
    return f"Of {total + unneeded} runs, {listed(parts)}."


def _state_text(state: RunState, count: int) -> str:
    words = _STATES[state]
    return words.replace("was ", "were ", 1) if count > 1 else words


def found(verdicts: Sequence[Row], limits: Sequence[AgainstLimit]) -> list[str]:
    """Return sentences on steady state, bottlenecks, and limits reached."""
    return [*_steady(verdicts), *_bottlenecks(verdicts), *_reached(limits)]


def cautions(outcomes: Sequence[Outcome]) -> list[str]:
    """Return reservations about the numbers."""
    buffered = [outcome.job for outcome in outcomes if outcome.buffered]
    sentences = []
    if buffered:
        sentences.append(
            f"{listed(buffered)} went through the page cache (direct=0): such numbers show the"
            " memory of the host as much as the volume."
        )
    repeats = max((outcome.repeats for outcome in outcomes), default=0)
    if repeats > 1:
        sentences.append(f"Headline numbers are the median of {repeats} repeats.")
    elif outcomes:
        sentences.append("Each job ran once, so the variation between repeats is not known.")
    return sentences


def declared_limits(outcomes: Sequence[Outcome]) -> list[str]:
    """Return a sentence for each volume on its declared limits."""
    jobs: dict[str, list[str]] = {}
    for outcome in outcomes:
        limits = []
        if outcome.limit_iops > 0:
            limits.append(f"{format_count(outcome.limit_iops)} IOPS")
        if outcome.limit_bw_bytes_per_s > 0:
            limits.append(format_rate(outcome.limit_bw_bytes_per_s))
        if limits:
            jobs.setdefault(f"{outcome.role}: {listed(limits)}", []).append(outcome.job)
    return [
        f"Declared for {limits} ({listed(dict.fromkeys(names))})." for limits, names in jobs.items()
    ]


def listed(names: Iterable[str], *, most: int = _MOST_NAMES, joint: str = ", ") -> str:
    """Return names as a list in a sentence; of many, the first and how many more there are."""
    every = list(names)
    if len(every) > most:
        return f"{joint.join(every[: most - 1])}{joint}and {len(every) - most + 1} more"
    *head, last = every or [""]
    return f"{joint.join(head)} and {last}" if head else last


def _steady(verdicts: Sequence[Row]) -> list[str]:
    """Return the number of steady results, and the names of others."""
    by_verdict: dict[str, dict[str, None]] = {}
    for row in verdicts:
        by_verdict.setdefault(text(row, "verdict"), {})[job_label(row)] = None
    judged = sum(1 for row in verdicts if text(row, "verdict") not in ("", "too-short"))
    steady = sum(1 for row in verdicts if text(row, "verdict") == "steady")
    if not judged:
        is_short = "too-short" in by_verdict
        return ["The runs were too short to judge their steady state."] * is_short
    sentence = f"Of {counted_noun(judged, 'result')} over time, {steady} {_be(steady)} steady"
    parts = [
        f"{name}: {listed(jobs)}"
        for name, jobs in by_verdict.items()
        if name in ("drifting", "stepped", "noisy")
    ]
    return [f"{sentence}; {'; '.join(parts)}." if parts else f"{sentence}."]


def _bottlenecks(verdicts: Sequence[Row]) -> list[str]:
    jobs: dict[str, dict[str, None]] = {}
    for row in verdicts:
        jobs.setdefault(text(row, "bottleneck"), {})[job_label(row)] = None
    parts = [
        f"{words} ({listed(jobs[cause])})" for cause, words in BOTTLENECKS.items() if cause in jobs
    ]
    return [f"Bottlenecks: {'; '.join(parts)}."] if parts else []


def _reached(limits: Sequence[AgainstLimit]) -> list[str]:
    """Return the number of jobs that reached the declared limit."""
    if not limits:
        return []
    counts = Counter(re.split("[:,]", limit.reading)[0] for limit in limits)
    words = {"reached": "reached the limit", "above": "exceeded it", "below": "stayed below"}
    parts = [f"{counts[word]} {meaning}" for word, meaning in words.items() if counts[word]]
    return [f"Of {counted_noun(len(limits), 'job')} with declared limits, {', '.join(parts)}."]


def _be(count: int) -> str:
    return "is" if count == 1 else "are"
