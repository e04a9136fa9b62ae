"""Rules that warn of unreliable results, and the rows of the findings frame."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import cache

from volbench.analyse.bottleneck.campaign_context import Context
from volbench.analyse.findings import (
    data_rules,
    host_rules,
    job_rules,
    number_rules,
    rate_rules,
    raw_file_rules,
    volume_rules,
)
from volbench.analyse.findings.rule import Observation, Rule
from volbench.analyse.frames.run_view import RunView
from volbench.extension import extensions, load
from volbench.model.profile.profile_model import Tool
from volbench.model.results.finding import Finding, Severity

__all__ = ["RULES", "Rule", "every_rule", "find", "finding_rows"]

# Rules of the core, in the order in which findings are shown
RULES: tuple[Rule, ...] = (
    data_rules.cold_blocks,
    data_rules.never_written,
    data_rules.page_cache,
    data_rules.smaller_than_memory,
    data_rules.memory_volume,
    volume_rules.host_cache,
    volume_rules.throttled,
    volume_rules.credits_ran_out,
    volume_rules.two_latencies,
    rate_rules.not_steady,
    rate_rules.uneven_repeats,
    host_rules.neighbour,
    rate_rules.stall,
    job_rules.too_short,
    job_rules.ended_early,
    job_rules.rate_not_reached,
    data_rules.compressible,
    job_rules.queue_depth,
    job_rules.overlapping_jobs,
    host_rules.host_noise,
    host_rules.cpu_bound,
    host_rules.cpu_throttled,
    host_rules.other_load,
    volume_rules.shared_limit,
    job_rules.file_not_device,
    raw_file_rules.io_errors,
    raw_file_rules.inconsistent_result,
    number_rules.impossible_values,
    number_rules.contradicting_latency,
    number_rules.fio_defect,
    host_rules.clock_jumped,
    host_rules.start_skew,
    host_rules.missing_clients,
    raw_file_rules.bad_log_rows,
    number_rules.empty_logs,
    raw_file_rules.damaged_files,
)

# Those that judge a watched load too, which is as it is: its host and its files, not its workload
_OF_WATCHED = (
    *(host_rules.cpu_bound, host_rules.cpu_throttled, raw_file_rules.io_errors),
    *(host_rules.clock_jumped, raw_file_rules.damaged_files),
)
_WEIGHT = {Severity.INVALID: 0, Severity.WARNING: 1, Severity.NOTE: 2}


@cache
def every_rule() -> tuple[Rule, ...]:
    """Return the rules of the core, and then the rules of extensions."""
    return (*RULES, *(load(each) for extension in extensions() for each in extension.findings))


def find(context: Context, views: Sequence[RunView] | None = None) -> list[Finding]:
    """Return the data-quality warnings about the runs of a campaign.

    Args:
        context: all runs that have ended; only finished ones are judged,
            and damage to one that finished is reported.
        views: those to judge; None for all.

    Returns:
        Findings in the order of the runs; of a run, the heaviest first.
    """
    findings: list[Finding] = []
    for view in context.views if views is None else views:
        findings += sorted(
            _findings_of_run(view, context), key=lambda finding: _WEIGHT[finding.severity]
        )
    return findings


def _findings_of_run(view: RunView, context: Context) -> Iterable[Finding]:
    if view.is_damaged:
        yield from raw_file_rules.damaged_files.findings(view, context)
    if not view.is_finished:
        return
    for rule in _OF_WATCHED if view.run.tool is Tool.WATCH else every_rule():
        if view.run.phase in rule.phases:
            yield from rule.findings(view, context)


def finding_rows(
    context: Context, views: Sequence[RunView] | None = None
) -> list[dict[str, object]]:
    """Return the rows of the findings frame; arguments as those of `find`."""
    return [
        {**_identity_columns(context.by_id[finding.run], finding), **_finding_columns(finding)}
        for finding in find(context, views)
    ]


def failure_row(
    view: RunView, error: Exception, *, task: str = "judge this run", severity: Severity
) -> dict[str, object]:
    """Return the row of the findings frame for a run of which something cannot be worked out."""
    reason = f"{type(error).__name__}: {error}"
    seen = Observation(f"volbench cannot {task} ({reason}).", {}, severity=severity)
    rule = replace(raw_file_rules.damaged_files, check=lambda *_: [seen])
    (finding,) = rule.findings(view, Context((view,)))
    return {**_identity_columns(view, finding), **_finding_columns(finding)}


def _identity_columns(view: RunView, finding: Finding) -> dict[str, object]:
    only = view.run.sections[0].name if len(view.run.sections) == 1 else None
    group = finding.evidence.get("section", only)
    return view.campaign.identity_of(view.run, None if group is None else str(group))


def _finding_columns(finding: Finding) -> dict[str, object]:
    return {
        "rule": finding.rule,
        "severity": finding.severity.value,
        "direction": finding.direction,
        "from_s": finding.from_s,
        "to_s": finding.to_s,
        "message": finding.message,
        "evidence": json.dumps(dict(finding.evidence), sort_keys=True),
        "why": finding.why,
        "advice": finding.advice,
    }
