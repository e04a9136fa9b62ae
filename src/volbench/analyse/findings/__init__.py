"""Rules that warn of unreliable results, and the rows of the findings frame."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence

from volbench.analyse.bottleneck.campaign_context import Context
from volbench.analyse.findings import (
    block_contents,
    burst_credit_rules,
    client_rules,
    job_options,
    memory_rules,
    other_load,
    raw_file_rules,
    run_length,
    unsteady_rates,
    volume_limits,
)
from volbench.analyse.findings.rule import Rule
from volbench.analyse.frames.run_view import RunView
from volbench.model.frames.columns import run_identity
from volbench.model.results.finding import Finding, Severity

__all__ = ["RULES", "Rule", "find", "finding_rows"]

# Every rule, in the order in which findings are shown
RULES: tuple[Rule, ...] = (
    block_contents.cold_blocks,
    block_contents.never_written,
    memory_rules.page_cache,
    memory_rules.smaller_than_memory,
    memory_rules.memory_volume,
    volume_limits.host_cache,
    volume_limits.throttled,
    burst_credit_rules.credits_ran_out,
    burst_credit_rules.credits_refilled,
    unsteady_rates.not_steady,
    unsteady_rates.rounds_not_steady,
    other_load.neighbour,
    unsteady_rates.stall,
    run_length.too_short,
    run_length.ended_early,
    run_length.uneven_jobs,
    block_contents.compressible,
    job_options.queue_depth,
    job_options.overlapping_jobs,
    other_load.host_noise,
    other_load.cpu_bound,
    other_load.cpu_throttled,
    memory_rules.swapping,
    other_load.busy_device,
    volume_limits.shared_limit,
    job_options.file_not_device,
    raw_file_rules.io_errors,
    raw_file_rules.inconsistent_result,
    raw_file_rules.copied_result,
    client_rules.clock_jumped,
    client_rules.late_start,
    client_rules.start_skew,
    client_rules.missing_clients,
    raw_file_rules.bad_log_rows,
    raw_file_rules.damaged_files,
)

_WEIGHT = {Severity.INVALID: 0, Severity.WARNING: 1, Severity.NOTE: 2}


def find(context: Context, views: Sequence[RunView] | None = None) -> list[Finding]:
    """Return the data-quality warnings about the runs of a campaign.

    Args:
        context: all runs that have ended; only finished ones are judged,
            and damage to one that finished is reported.
        views: those to judge; None for all.

    Returns:
        Findings in the order of the runs; of a run, the heaviest first.
    """
    found: list[Finding] = []
    for view in context.views if views is None else views:
        found += sorted(_of_run(view, context), key=lambda finding: _WEIGHT[finding.severity])
    return found


def _of_run(view: RunView, context: Context) -> Iterable[Finding]:
    if view.is_damaged:
        yield from raw_file_rules.damaged_files.findings(view, context)
    if not view.is_finished:
        return
    for rule in RULES:
        if view.run.phase in rule.phases:
            yield from rule.findings(view, context)


def finding_rows(
    context: Context, views: Sequence[RunView] | None = None
) -> list[dict[str, object]]:
    """Return the rows of the findings frame; arguments as those of `find`."""
    return [
        {**_identity(context.by_id[finding.run], finding), **_columns(finding)}
        for finding in find(context, views)
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
