"""Rules on single numbers of a result: impossible values, Little's law, empty logs."""

from __future__ import annotations

import math
from collections.abc import Iterator

from volbench.analyse.bottleneck.campaign_context import Context
from volbench.analyse.findings.rule import Observation, rule
from volbench.analyse.frames.run_view import RunView, results_of
from volbench.analyse.frames.workload_spec import SYNCHRONOUS
from volbench.model.frames.columns import RAMP_LINES, SUBMISSION
from volbench.model.profile.fio_defects import defects_of, version_in
from volbench.model.profile.profile_model import Phase
from volbench.model.results.finding import Severity
from volbench.units import format_count

# Share by which more I/Os may be in flight than the depth allows: fio rounds, and I/Os that were
# submitted in the ramp complete after it. Noticed by: tests/analyse/findings/test_raw_files.py
_MAX_OVER_DEPTH = 0.1
# Runtime from which filling and draining the queue does not count.
# Noticed by: tests/analyse/findings/test_raw_files.py
_MIN_RUNTIME_S = 2.0
# Words of remarks on what is left out although nothing is wrong
_EXPECTED = ("the last bin of fio", SUBMISSION, RAMP_LINES)


@rule(
    "implausible numbers of fio were left out",
    looks_at=(
        "Latencies longer than the run, percentiles above the maximum or in fio's last bin (17 s),"
        " percentiles of completion latency where completion is less than half of the mean latency"
        " (a note), and logs with less than 75 % or more than 125 % of the I/Os of the result."
    ),
    why=(
        "These numbers are errors of fio, or (a note) only a lower bound, or those of a small part"
        " of the latency. Tables, charts and verdicts leave them out."
    ),
    advice=(
        "Measure again with a newer version of fio, and with lat_percentiles=1 for percentiles of"
        " the whole latency. The other numbers of the result count."
    ),
)
def impossible_values(view: RunView, _: Context) -> Iterator[Observation]:
    """Yield what was left out of each direction."""
    for row in view.results:
        if text := row["impossible"]:
            share = row["log_share"]
            is_bound = all(
                any(words in remark for words in _EXPECTED) for remark in str(text).split("; ")
            )
            yield Observation(
                f"Left out: {text}.",
                {"section": str(row["group"])}
                | ({"log_share": share} if isinstance(share, float) else {}),
                direction if isinstance(direction := row["direction"], str) else None,
                severity=Severity.NOTE if is_bound else None,
            )


@rule(
    "rate and latency contradict each other",
    severity=Severity.INVALID,
    looks_at=(
        "Little's law for each section of at least 2 s: IOPS times mean latency, summed over its"
        " directions, is at most 10 % above iodepth times numjobs."
    ),
    why=(
        "There cannot be more I/Os in flight than the job may submit, so the rate, the latency or"
        " the reported options are wrong."
    ),
    advice="Compare fio's own IOPS and latencies of this run. Then measure again.",
)
def contradicting_latency(view: RunView, _: Context) -> Iterator[Observation]:
    """Yield each section with more I/Os in flight than its queues hold."""
    for workload in view.workloads:
        rows = [row for row in results_of(view) if row.section == workload.section]
        jobs = max((row["numjobs"] for row in rows), default=math.nan)
        depth = 1.0 if workload.engine in SYNCHRONOUS else float(workload.depth)
        is_known = workload.is_complete or "iodepth" in workload.options
        runtime_s = min((row["runtime_s"] for row in rows), default=0.0)
        if not is_known or not runtime_s >= _MIN_RUNTIME_S:
            continue
        in_flight = math.fsum(row["iops"] * row["lat_mean_s"] for row in rows)
        if in_flight > (1 + _MAX_OVER_DEPTH) * depth * jobs:
            yield Observation(
                f"IOPS times mean latency is {format_count(in_flight)} I/Os in flight, but the job"
                f" allows {depth * jobs:,.0f}.",
                {"in_flight": in_flight, "asked_depth": depth * jobs, "section": workload.section},
            )


@rule(
    "this version of fio has a defect",
    looks_at=(
        "The version of fio and the options of each section against the known defects of fio, which"
        " are rows of a table in volbench (fio's issues and commits up to 3.42)."
    ),
    why="Numbers that a defect falsifies look like any other.",
    advice="Leave out the numbers named here, or measure again with a newer version of fio.",
    phases=(Phase.PRECONDITION, Phase.WARMUP, Phase.MEASURED),
)
def fio_defect(view: RunView, _: Context) -> Iterator[Observation]:
    """Yield each defect that the options of a section meet."""
    versions = {str(row["group"]): str(row.get("fio_version") or "") for row in view.results}
    for workload in view.workloads:
        version = version_in(versions.get(workload.section, ""))
        if not version:
            continue
        size = workload.size_of("size", view.size_bytes)
        blocks = "" if math.isnan(size) else str(int(size // workload.block_bytes))
        options = {**workload.options, "blocks": blocks}
        for defect in defects_of(version, options):
            yield Observation(
                defect.sentence(version, options),
                {"section": workload.section, "upstream": defect.upstream},
            )


@rule(
    "logs are empty",
    severity=Severity.NOTE,
    looks_at="Log files without a single line, other than slat logs.",
    why="Without logs there is no series, so nothing can be said about changes during the run.",
    advice="Use a longer runtime, or a shorter interval of the logs: --set sample=100ms.",
)
def empty_logs(view: RunView, _: Context) -> Iterator[Observation]:
    """Yield the number of empty logs of a run."""
    by_section = {row["group"]: row["empty_logs"] for row in view.results}
    count = sum(value for value in by_section.values() if isinstance(value, int))
    if count:
        files = "1 log of fio is" if count == 1 else f"{count} logs of fio are"
        lost = "" if len(view.series) else " There is no series."
        yield Observation(f"{files} empty.{lost}", {"empty_logs": float(count)})
