"""First screen of a report: place in one line, verdict in a sentence, data quality as one badge."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import pandas as pd

from volbench.analyse.time.warmup_curve import Curve
from volbench.model.results.finding import Severity
from volbench.present.formatting import Row, counted_noun, instant, number, text
from volbench.present.plots.labels import short_target
from volbench.present.report.content import ReportContent
from volbench.present.report.findings_section import invalid_runs
from volbench.present.report.lead_charts import worst_warm_up
from volbench.present.report.outcomes import REACHED, AgainstLimit, KeyNumber
from volbench.present.report.summary_text import BOTTLENECKS, listed
from volbench.present.terminal.campaign_text import unfinished
from volbench.units import format_count, format_duration, format_size


@dataclass(frozen=True)
class QualityBadge:
    """Data quality in a few words."""

    severity: str  # ``ok``, ``warning`` or ``invalid``
    text: str  # such as ``12 of 343 runs affected``


@dataclass(frozen=True)
class FirstScreen:
    """Content of the first screen besides the charts."""

    place: str
    verdict: str
    badge: QualityBadge


def first_screen(
    content: ReportContent,
    rows: Mapping[str, Sequence[Row]],
    key: Sequence[KeyNumber],
    limits: Sequence[AgainstLimit],
) -> FirstScreen:
    """Return the first screen of a campaign."""
    climb = worst_warm_up(content.frames)
    sentence = _curve_text(climb) if climb else _answer(key, rows, limits)
    if content.lead and content.lead[0].kind == "storm":
        sentence = content.lead[0].description
    return FirstScreen(
        _place(content, rows["summary"]), sentence, _badge(content, rows["findings"])
    )


def _place(content: ReportContent, rows: Sequence[Row]) -> str:
    """Return hosts, volume, number of runs, fio version and start in one line."""
    runs = content.campaign.runs
    hosts = list(dict.fromkeys(run.host for run in runs))
    volumes = {run.volume.target: run.volume.role for run in runs}
    sizes = {text(row, "volume"): number(row, "volume_bytes") for row in rows}
    if len(volumes) == 1:
        [target] = volumes
        size = sizes.get(target, math.nan)
        volume = short_target(target) + (f" ({format_size(size)})" if size > 0 else "")
    else:
        volume = counted_noun(len(volumes), "volume")
    tools = sorted({text(row, "fio_version") for row in rows} - {""})
    started = sorted(text(row, "started_utc") for row in rows if row.get("started_utc"))
    jobs = len({(run.profile, run.job) for run in runs})
    parts = [
        "this machine" if hosts == ["local"] else listed(hosts, most=2),
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
    measured = set(results["run"]) if "run" in results else set()
    missing = _without_result(content, measured)
    if not measured:
        return QualityBadge("invalid", "no run has a result")
    parts = (
        [f"{len(affected)} of {counted_noun(len(measured), 'run')} affected"] if affected else []
    )
    parts += [f"{missing} without a result"] if missing else []
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
        f"Fresh blocks are {100 * curve.penalty:.0f} % slower: {curve.direction}s began at "
        f"{format_count(curve.cold_iops)} IOPS, {format_count(curve.warm_iops)} IOPS is the warm "
        f"level, and they {reached}."
    )


def _answer(
    key: Sequence[KeyNumber], rows: Mapping[str, Sequence[Row]], limits: Sequence[AgainstLimit]
) -> str:
    """Return the highest rates, their bottleneck, and how many results are steady or left out."""
    if not key:
        return "No run has a result yet."
    phrases = [own.phrase for own in key if own.phrase]
    if max(own.jobs for own in key) == 1:
        parts = [", ".join(phrases)]
    else:
        parts = [f"Up to {' and '.join(phrases)}"] if phrases else ["No rate was reported"]
    verdicts = rows["verdicts"]
    parts += [*_limit(limits), *_bottleneck(verdicts), *_steady(verdicts), *_left_out(rows)]
    return "; ".join(parts) + "."


def _limit(limits: Sequence[AgainstLimit]) -> list[str]:
    shares = [max(v for v in (own.iops, own.bw) if not math.isnan(v)) for own in limits]
    if not shares:
        return []
    reached = sum(share >= REACHED for share in shares)
    if reached:
        return [f"{reached} of {counted_noun(len(shares), 'job')} reached the declared limit"]
    return [f"at most {100 * max(shares):.0f} % of the declared limit"]


def _bottleneck(verdicts: Sequence[Row]) -> list[str]:
    causes = Counter(text(row, "bottleneck") for row in verdicts)
    [(cause, count)] = causes.most_common(1) or [("", 0)]
    if cause not in BOTTLENECKS:
        return []
    many = counted_noun(len(verdicts), "result")
    return [
        f"{count} of {many} {'is' if count == 1 else 'are'} consistent with {BOTTLENECKS[cause]}"
    ]


def _left_out(rows: Mapping[str, Sequence[Row]]) -> list[str]:
    """Return how many runs with an invalid number the highest rates leave out."""
    runs = {text(row, "run") for row in rows["summary"]}
    invalid = runs.intersection(invalid_runs(rows["findings"]))
    if not invalid or invalid == runs:
        return []
    return [f"{len(invalid)} of {counted_noun(len(runs), 'run')} are invalid and left out"]


def _steady(verdicts: Sequence[Row]) -> list[str]:
    judged = [text(row, "verdict") for row in verdicts]
    judged = [verdict for verdict in judged if verdict not in {"", "too-short"}]
    if not judged:
        return []
    steady = judged.count("steady")
    if steady == len(judged) == 1:
        return ["steady"]
    if steady == len(judged):
        return ["all results are steady"]
    return [f"{steady} of {counted_noun(len(judged), 'result')} are steady"]
