"""Rules on the length of a run and of its jobs: too-short, ended-early, uneven-jobs."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from volbench.analyse.bottleneck.campaign_context import Context
from volbench.analyse.findings.rule import Evidence, Observation, percent, rule, several
from volbench.analyse.frames.run_view import (
    Result,
    RunView,
    percentiles_of,
    results_of,
    runtime_s,
    total,
)
from volbench.analyse.frames.workload_spec import WorkloadSpec
from volbench.model.profile.profile_model import Phase
from volbench.model.results.finding import Severity
from volbench.units import format_capacity, format_count, format_duration

_SAMPLES_BEYOND = 10
_USUAL_TAIL = 99.0
_LEAST_S = 30.0
_ENOUGH_TIME = 0.95
_ENOUGH_BYTES = 0.99
_TOGETHER = 0.98
_DIFFER = 0.05
_EARLY_ENDS = ("number_ios", "steadystate", "exitall")
_OTHER_ENDS = (*_EARLY_ENDS, "fill_device", "read_iolog", "verify", "ramp_time")


@rule(
    "too short for what is shown",
    looks_at=(
        "I/Os of a direction against 10 / (1 - p) for each percentile p that was reported (1,000"
        " for p99, 100,000 for p99.99), so that ten samples lie beyond it. It is a warning when"
        " p99 or a lower one lacks them, else a note. A time-based run of less than 30 s is a"
        " note (volbench's own choice)."
    ),
    why=(
        "A percentile of a few samples is chance: another run gives another one. A short run shows"
        " caches and bursts, not the volume."
    ),
    advice="Make runtime longer, and do not quote the percentiles that are named here.",
)
def too_short(view: RunView, _: Context) -> Iterator[Observation]:
    """Yield percentiles that rest on too few I/Os, and runs of few seconds."""
    for direction in dict.fromkeys(view.percentiles["direction"]):
        if direction != "sync":
            reported = np.unique(percentiles_of(view, direction).percentile)
            yield from _percentiles(view, direction, reported.tolist())
    runtime = runtime_s(view)
    if runtime < _LEAST_S and any(workload.is_time_based for workload in view.workloads):
        yield Observation(
            f"The runtime was {format_duration(runtime)}: caches and burst credits of cloud volumes"
            " last longer.",
            {"runtime_s": runtime, "least_s": _LEAST_S},
            severity=Severity.NOTE,
        )


def needed_samples(percentile: float) -> float:
    """Return the samples that a percentile needs: 10 / (1 - p), so that ten are above it."""
    return math.inf if percentile >= 100 else _SAMPLES_BEYOND / (1 - percentile / 100)


def _percentiles(view: RunView, direction: str, percentiles: list[float]) -> Iterator[Observation]:
    ios = total(view, "total_ios", direction=direction)
    weak = [p for p in percentiles if 50 <= p < 100 and ios < needed_samples(p) * (1 - 1e-9)]
    if weak:
        yield Observation(
            f"{ios:.0f} {direction}s leave fewer than {_SAMPLES_BEYOND} samples above"
            f" {several([f'p{p:g}' for p in weak])}; p{weak[0]:g} needs"
            f" {needed_samples(weak[0]):.0f}.",
            {"ios": ios, "least_percentile": weak[0], "needed_ios": needed_samples(weak[0])},
            direction,
            severity=Severity.WARNING if weak[0] <= _USUAL_TAIL else Severity.NOTE,
        )


@rule(
    "shorter than asked for",
    looks_at=(
        "Runtime against the one asked for of time-based jobs (at least 95 %), and bytes moved"
        " against `size` or `io_size` of the others (at least 99 %): fio cuts a size larger than"
        " a device without a word. A job that was done with its size before a `runtime` without"
        " `time_based` was over is a note. Jobs that something else may end are left out:"
        " `until: steady`, fio's `steadystate`, `number_ios`, `exitall`, or an unknown size."
    ),
    why="A shorter run is another test: it may have seen only the cache, or a part of the volume.",
    advice=(
        "Add time_based: 1 to run for the whole runtime. Make size fit the volume, or leave it out"
        " to use all of a device."
    ),
    phases=(Phase.PRECONDITION, Phase.WARMUP, Phase.MEASURED),
)
def ended_early(view: RunView, _: Context) -> Iterator[Observation]:
    """Yield each section that ended before its time or before its bytes."""
    results = list(results_of(view))
    for workload in view.workloads:
        rows = [row for row in results if row.section == workload.section]
        if not rows or view.run.until is not None or workload.engine in {"null", "cpuio"}:
            continue
        ran_s = max(row["runtime_s"] for row in rows)
        too_soon = bool(workload.runtime_s) and ran_s < _ENOUGH_TIME * workload.runtime_s
        if not workload.is_time_based:
            if too_soon or not workload.runtime_s:
                yield from _by_size(view, workload, rows, ran_s)
        elif too_soon and not any(workload.is_on(name) for name in _EARLY_ENDS):
            yield Observation(
                f"The job ran for {format_duration(ran_s)} of the requested"
                f" {format_duration(workload.runtime_s)}.",
                {
                    "runtime_s": ran_s,
                    "asked_runtime_s": workload.runtime_s,
                    "section": workload.section,
                },
            )


@rule(
    "jobs in parallel ended at different times",
    looks_at=(
        "Directions whose jobs in parallel ran at the same time for less than 98 % of the runtime,"
        " by their logs or their own runtimes. A warning where the rate of that time and the one"
        " over the whole runtime differ by more than 5 %, else a note."
    ),
    why=(
        "When one of the jobs ends, the sum of the others falls. That is no change of the volume,"
        " and all I/Os over the longest runtime are a rate that it never had."
    ),
    advice=(
        "Quote the rate while all jobs ran (`iops`), not `iops_overall`. Set time_based: 1, so that"
        " all jobs end together, or exitall: 1."
    ),
)
def uneven_jobs(view: RunView, _: Context) -> Iterator[Observation]:
    """Yield each direction whose jobs did not run at the same time."""
    for row in results_of(view):
        parallel_s, whole_s = row["parallel_s"], row["runtime_s"]
        rate, overall = row["iops"], row["iops_overall"]
        if not parallel_s < _TOGETHER * whole_s or not overall > 0:
            continue
        yield Observation(
            f"All jobs of {row.section} ran for {format_duration(parallel_s)} of"
            f" {format_duration(whole_s)}: {format_count(rate)} IOPS in that time, which volbench"
            f" shows; all I/Os over the longest job are {format_count(overall)} IOPS.",
            {
                "parallel_s": parallel_s,
                "runtime_s": whole_s,
                "iops": rate,
                "iops_overall": overall,
                "section": row.section,
            },
            row.direction,
            severity=None if abs(rate / overall - 1) > _DIFFER else Severity.NOTE,
        )


def _by_size(
    view: RunView, workload: WorkloadSpec, rows: list[Result], ran_s: float
) -> Iterator[Observation]:
    """Yield the observations of a section that ends with its size."""
    moved, wanted = math.fsum(row["io_bytes"] for row in rows), _wanted_bytes(view, workload)
    if math.isnan(wanted):
        return
    evidence: Evidence = {"moved_bytes": moved, "section": workload.section}
    if moved < _ENOUGH_BYTES * wanted:
        yield Observation(
            f"The job moved {format_capacity(moved)} of the requested {format_capacity(wanted)}"
            f" ({percent(moved / wanted)}).",
            evidence | {"asked_bytes": wanted},
        )
    elif workload.runtime_s:
        yield Observation(
            f"The job moved all {format_capacity(moved)} in {format_duration(ran_s)} of the allowed"
            f" {format_duration(workload.runtime_s)} (runtime without time_based).",
            evidence | {"runtime_s": ran_s, "asked_runtime_s": workload.runtime_s},
            severity=Severity.NOTE,
        )


def _wanted_bytes(view: RunView, workload: WorkloadSpec) -> float:
    """Return the requested bytes of all jobs; NaN where options leave that open."""
    if any(workload.is_on(name) for name in _OTHER_ENDS):
        return math.nan
    option = "io_size" if "io_size" in workload.options else "size"
    each = workload.size_of(option, view.size_bytes)
    return each * workload.numjobs * workload.number("loops", default=1)
