"""Sentences of the report: the first screen with its verdict, and the summary with reservations.

Every sentence is made from the frames, so that it says no more than the tables below it.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

import pandas as pd

from volbench.analyse.time.warmup_curve import Curve
from volbench.model.campaign.planned_run import Run, RunState, count_states, unfinished
from volbench.model.profile.profile_model import Phase
from volbench.model.results.finding import Severity
from volbench.present.formatting import Row, instant, number, short_target, text
from volbench.present.plots.labels import shape
from volbench.present.report.content import ReportContent
from volbench.present.report.lead_charts import storm_sentence, worst_warm_up
from volbench.present.tables.audit_table import audit_words
from volbench.present.tables.expectations_table import expectation_words
from volbench.present.terminal.campaign_text import came_from, sources
from volbench.units import counted_noun, format_count, format_duration, format_percent, format_size

_MAX_NAMES = 6  # Names that a sentence lists before it counts the rest
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


def summary(content: ReportContent, rows: Sequence[Row]) -> list[str]:
    """Return sentences about what ran where and when, on the plan, and on how the runs ended."""
    return [*_what_ran(content, rows), *_requested(content, rows), _ending(content)]


def _hosts(content: ReportContent) -> list[str]:
    """Return the hosts in words; files of an import may not name theirs."""
    words = {"local": "this machine"}
    if content.campaign.is_imported:
        words["unknown"] = "an unnamed host"
    return [words.get(name, name) for name in dict.fromkeys(r.host for r in content.campaign.runs)]


def _volume_words(run: Run) -> str:
    """Return a volume in words; files of an import may not name theirs."""
    is_unnamed = run.imported is not None and run.volume.target == "unknown"
    return "an unnamed volume" if is_unnamed else run.volume.target


def _what_ran(content: ReportContent, rows: Sequence[Row]) -> list[str]:
    campaign = content.campaign
    profiles = listed(dict.fromkeys(run.profile for run in campaign.runs))
    hosts = _hosts(content)
    volumes = dict.fromkeys(f"{run.volume.role} ({run.volume.target})" for run in campaign.runs)
    where = listed(hosts)
    where = f"{len(hosts)} hosts ({where})" if len(hosts) > _MAX_NAMES else where
    started = sorted(text(row, "started_utc") for row in rows if row.get("started_utc"))
    when = f"planned at {instant(campaign.created_utc)}"
    if started:
        first, last = instant(started[0]), instant(started[-1])
        when = f"from {first} to {last} (start of the last run)" if last != first else f"at {first}"
    if campaign.is_imported:
        measured = when if started else "at a time that the files do not report"
        targets = dict.fromkeys(map(_volume_words, campaign.runs))
        return [
            came_from(campaign),
            sources(campaign),
            f"The results were measured on {where}, on {listed(targets)}, {measured}.",
        ]
    return [f"Profile {profiles} ran on {where}, on {listed(volumes)}, {when}."]


def _requested(content: ReportContent, rows: Sequence[Row]) -> list[str]:
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


def _ending(content: ReportContent) -> str:
    counts = count_states(content.campaign, content.states)
    unneeded = counts.pop(RunState.NOT_NEEDED, 0)
    total = sum(counts.values())
    if counts.get(RunState.FINISHED) == total:
        more = f" {unneeded} more were planned and not needed." if unneeded else ""
        return "The only run finished." if total == 1 else f"All {total} runs finished.{more}"
    counts |= {RunState.NOT_NEEDED: unneeded} if unneeded else {}
    parts = [f"{count} {_state_text(state, count)}" for state, count in counts.items()]
    return f"Of {counted_noun(total + unneeded, 'run')}, {listed(parts)}."


def _state_text(state: RunState, count: int) -> str:
    state_words = _STATES[state]
    return state_words.replace("was ", "were ", 1) if count > 1 else state_words


def cautions(rows: Sequence[Row]) -> list[str]:
    """Return reservations about the numbers."""
    measured = [row for row in rows if text(row, "phase") in ("", Phase.MEASURED.value)]
    buffered = dict.fromkeys(
        text(row, "job")
        for row in measured
        if row.get("direct") is False and not text(row, "volume").startswith("nbd")
    )
    sentences = []
    if buffered:
        sentences.append(
            f"{listed(buffered)} went through the page cache (direct=0): these numbers reflect"
            " the memory of the host as much as the volume."
        )
    if measured and all(row.get("repeat") == 1 for row in measured):
        sentences.append("Each job ran once, so the variation between repeats is unknown.")
    return sentences


def listed(names: Iterable[str], *, most: int = _MAX_NAMES, joint: str = ", ") -> str:
    """Return names as a list in a sentence; of many, the first and how many more there are."""
    every = list(names)
    if len(every) > most:
        return f"{joint.join(every[: most - 1])}{joint}and {len(every) - most + 1} more"
    *head, last = every or [""]
    return f"{joint.join(head)} and {last}" if head else last


@dataclass(frozen=True)
class QualityBadge:
    """Data quality in a few words."""

    severity: str  # ``ok``, ``warning`` or ``invalid``
    text: str  # such as ``12 of 343 runs affected``


@dataclass(frozen=True)
class FirstScreen:
    """Content of the first screen besides the charts."""

    place: str
    sentences: Sequence[str]  # the answer first
    badge: QualityBadge

    @property
    def verdict(self) -> str:
        """All sentences together."""
        return " ".join(self.sentences)


def first_screen(content: ReportContent, rows: Mapping[str, Sequence[Row]]) -> FirstScreen:
    """Return the first screen of a campaign.

    Args:
        rows: of the frames ``summary``, ``findings``, ``verdicts`` and ``aggregate``.
    """
    sentences = (
        expectation_words(content.expected),
        *_answer(content, rows),
        *_bottleneck(rows["verdicts"]),
        _imprecise(content.imprecise),
    )
    return FirstScreen(
        _place_line(content, rows["summary"]),
        list(filter(None, sentences)),
        _badge(content, rows["findings"]),
    )


def _answer(content: ReportContent, rows: Mapping[str, Sequence[Row]]) -> Sequence[str]:
    """Return what the campaign was made to answer, or what fits what was measured."""
    if content.audited:
        return [audit_words(content.audited)]
    if storm := storm_sentence(content.frames):
        return [storm]
    if climb := worst_warm_up(content.frames):
        return [_curve_text(climb)]
    has_rates = any(row.get("iops") or row.get("bw_bytes_per_s") for row in rows["summary"])
    return (has_rates and content.workloads) or _without_numbers(rows["summary"])


def _imprecise(missed: Sequence[str]) -> str:
    """Return which workload missed its precision, or the first of several and their number."""
    if len(missed) < 2:
        return "".join(f"{words}." for words in missed)
    return f"{len(missed)} workloads are not precise, see Data quality: {missed[0]}."


def _place_line(content: ReportContent, rows: Sequence[Row]) -> str:
    """Return hosts, volume, number of runs, fio version and start in one line."""
    runs = content.campaign.runs
    volumes = set(map(_volume_words, runs))
    sizes = {text(row, "volume"): number(row, "volume_bytes") for row in rows}
    if len(volumes) == 1:
        [target] = volumes
        size = sizes.get(target, math.nan)
        volume = short_target(target) + (f" ({format_size(size)})" if size > 0 else "")
    else:  # the same path on two hosts is two volumes
        volume = counted_noun(len({(run.host, _volume_words(run)) for run in runs}), "volume")
    tools = sorted({text(row, "fio_version") for row in rows} - {""})
    started = sorted(text(row, "started_utc") for row in rows if row.get("started_utc"))
    jobs = len({(run.profile, run.job) for run in runs})
    hosts = _hosts(content)
    parts = [
        listed(hosts) if len(hosts) <= 2 else counted_noun(len(hosts), "host"),
        volume,
        f"{counted_noun(len(runs), 'run')} of {counted_noun(jobs, 'job')}",
        listed(tools, most=2),
        instant(started[0]) if started else "",
    ]
    return " \u00b7 ".join(part for part in parts if part)


def _badge(content: ReportContent, findings: Sequence[Row]) -> QualityBadge:
    """Return the number of runs with a warning or without a result; notes don't count."""
    severe = [row for row in findings if row["severity"] != Severity.NOTE.value]
    affected = {text(row, "run") for row in severe} - {""}
    results = content.frames.get("summary", pd.DataFrame())
    finished = results[results["status"] == RunState.FINISHED.value] if len(results) else results
    measured = set(finished["run"]) if len(finished) else set()
    missing = _without_result(content, measured)
    if not measured:
        return QualityBadge("invalid", "no run has a result")
    parts = (
        [f"{len(affected):,} of {counted_noun(len(measured), 'run')} affected"] if affected else []
    )
    parts += [f"{missing:,} without a result"] if missing else []
    if not parts:
        return QualityBadge("ok", "no warnings")
    invalid = any(row["severity"] == Severity.INVALID.value for row in severe)
    return QualityBadge("invalid" if invalid or missing else "warning", ", ".join(parts))


def _without_result(content: ReportContent, measured: Collection[str]) -> int:
    """Return the number of runs without a result, except those that were not needed."""
    return sum(run.id not in measured for run, _ in unfinished(content.campaign, content.states))


def _curve_text(curve: Curve) -> str:
    """Return the warm-up curve as a sentence."""
    reached = "never reached 90 % of that"
    if curve.to_90_s is not None:
        reached = f"reached 90 % of that after {format_duration(curve.to_90_s)}"
    return (
        f"Fresh blocks are {format_percent(curve.penalty)} slower: {curve.direction}s began at "
        f"{format_count(curve.cold_iops)} IOPS, {format_count(curve.warm_iops)} IOPS is the warm "
        f"level, and they {reached}."
    )


def _without_numbers(rows: Sequence[Row]) -> list[str]:
    """Return why there is no number: nothing finished, or logs have no totals."""
    states = {row.get("status") for row in rows}
    if RunState.FINISHED.value in states:
        return ["The finished runs have time series but no totals: see the charts."]
    if states:
        return ["No run finished. The results table shows partial results."]
    return ["No run has a result yet."]


def _bottleneck(verdicts: Sequence[Row]) -> list[str]:
    """Return the most common bottleneck, if it is known."""
    causes = Counter(text(row, "bottleneck") for row in verdicts)
    [(cause, count)] = causes.most_common(1) or [("", 0)]
    if cause not in BOTTLENECKS:
        return []
    many = counted_noun(len(verdicts), "result")
    be = "is" if count == 1 else "are"
    return [f"{count} of {many} {be} consistent with {BOTTLENECKS[cause]}."]
