"""Rules that warn of unreliable results, and the rows of the findings frame."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence

from volbench.analyse.findings.cache import (
    cold_blocks,
    compressible,
    host_cache,
    never_written,
    page_cache,
    smaller_than_memory,
)
from volbench.analyse.findings.evidence import (
    bad_log_rows,
    clock_jumped,
    damaged_files,
    io_errors,
    swapping,
)
from volbench.analyse.findings.limits import (
    busy_device,
    cpu_bound,
    credits_ran_out,
    credits_refilled,
    neighbour,
    queue_depth,
    shared_limit,
    stall,
    throttled,
)
from volbench.analyse.findings.method import (
    ended_early,
    file_not_device,
    late_start,
    missing_clients,
    not_steady,
    overlapping_jobs,
    rounds_not_steady,
    start_skew,
    too_short,
)
from volbench.analyse.findings.rule import Rule
from volbench.analyse.frames.campaign_context import Context
from volbench.analyse.frames.run_view import RunView
from volbench.model.frames.columns import run_identity
from volbench.model.results.finding import Finding, Severity

__all__ = ["RULES", "Rule", "find", "finding_rows"]

RULES: tuple[Rule, ...] = (
    cold_blocks.RULE,
    never_written.RULE,
    page_cache.RULE,
    smaller_than_memory.RULE,
    host_cache.RULE,
    throttled.RULE,
    credits_ran_out.RULE,
    credits_refilled.RULE,
    not_steady.RULE,
    rounds_not_steady.RULE,
    neighbour.RULE,
    stall.RULE,
    too_short.RULE,
    ended_early.RULE,
    compressible.RULE,
    queue_depth.RULE,
    overlapping_jobs.RULE,
    cpu_bound.RULE,
    swapping.RULE,
    busy_device.RULE,
    shared_limit.RULE,
    file_not_device.RULE,
    io_errors.RULE,
    clock_jumped.RULE,
    late_start.RULE,
    start_skew.RULE,
    missing_clients.RULE,
    bad_log_rows.RULE,
    damaged_files.RULE,
)
"""Every rule, in the order in which findings are shown."""

_WEIGHT = {Severity.INVALID: 0, Severity.WARNING: 1, Severity.NOTE: 2}


def find(context: Context) -> list[Finding]:
    """Return the data-quality warnings about the runs of a campaign.

    Args:
        context: all runs that have ended; only finished ones are judged,
            and damage to one that finished is reported.

    Returns:
        Findings in the order of the runs; of a run, the heaviest first.
    """
    found: list[Finding] = []
    for view in context.views:
        found += sorted(_of_run(view, context), key=lambda finding: _WEIGHT[finding.severity])
    return found


def _of_run(view: RunView, context: Context) -> Iterable[Finding]:
    if view.is_damaged:
        yield from damaged_files.RULE.check(view, context)
    if not view.is_finished:
        return
    for rule in RULES:
        if view.run.phase in rule.phases:
            yield from rule.check(view, context)


def finding_rows(context: Context) -> Sequence[dict[str, object]]:
    """Return the rows of the findings frame."""
    known = {view.run.id: view for view in context.views}
    return [
        {**_identity(known[finding.run], finding), **_columns(finding)} for finding in find(context)
    ]


def _identity(view: RunView, finding: Finding) -> dict[str, object]:
    only = view.run.sections[0].name if len(view.run.sections) == 1 else None
    group = finding.evidence.get("section", only)
    return run_identity(view.campaign, view.run, None if group is None else str(group))


def _columns(finding: Finding) -> dict[str, object]:
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
