"""ended-early: the job did less, or for a shorter time, than it was asked to."""

from __future__ import annotations

import math
from collections.abc import Iterator

from volbench.analyse.findings.rule import Rule
from volbench.analyse.findings.wording import amount, percent
from volbench.analyse.frames.campaign_context import Context
from volbench.analyse.frames.observed import Result, results_of
from volbench.analyse.frames.run_view import RunView
from volbench.analyse.frames.workload_spec import WorkloadSpec
from volbench.model.profile.profile_model import Phase
from volbench.model.results.finding import Finding, Severity
from volbench.units import format_duration

_ENOUGH_TIME = 0.95
_ENOUGH_BYTES = 0.99
_OTHER_ENDS = ("number_ios", "steadystate", "fill_device", "read_iolog", "verify", "ramp_time")


def check(view: RunView, context: Context) -> Iterator[Finding]:
    """Yield a finding for each section that ended before its time or before its bytes."""
    del context
    results = list(results_of(view))
    for workload in view.workloads:
        rows = [row for row in results if row.section == workload.section]
        if not rows or view.run.until is not None or workload.engine in {"null", "cpuio"}:
            continue
        ran_s = max(row["runtime_s"] for row in rows)
        too_soon = bool(workload.runtime_s) and ran_s < _ENOUGH_TIME * workload.runtime_s
        if workload.is_time_based:
            if too_soon and not workload.is_on("steadystate"):
                yield _too_soon(view, workload, ran_s)
        elif not workload.runtime_s or too_soon:
            yield from _by_size(view, workload, rows, ran_s)


def _too_soon(view: RunView, workload: WorkloadSpec, ran_s: float) -> Finding:
    return RULE.finding(
        view,
        f"It ran for {format_duration(ran_s)} of the {format_duration(workload.runtime_s)} asked"
        " for.",
        {"runtime_s": ran_s, "asked_runtime_s": workload.runtime_s, "section": workload.section},
    )


def _by_size(
    view: RunView, workload: WorkloadSpec, rows: list[Result], ran_s: float
) -> Iterator[Finding]:
    """Yield what is to be said of a section that its size was to end."""
    moved, wanted = math.fsum(row["io_bytes"] for row in rows), _wanted_bytes(view, workload)
    evidence: dict[str, float | str] = {"moved_bytes": moved, "section": workload.section}
    if moved < _ENOUGH_BYTES * wanted:
        yield RULE.finding(
            view,
            f"It moved {amount(moved)} of the {amount(wanted)} asked for"
            f" ({percent(moved / wanted)}).",
            evidence | {"asked_bytes": wanted},
        )
    elif workload.runtime_s:
        yield RULE.finding(
            view,
            f"All {amount(moved)} were done after {format_duration(ran_s)};"
            f" {format_duration(workload.runtime_s)} were allowed (runtime without time_based).",
            evidence | {"runtime_s": ran_s, "asked_runtime_s": workload.runtime_s},
            severity=Severity.NOTE,
        )


def _wanted_bytes(view: RunView, workload: WorkloadSpec) -> float:
    """Return what all jobs were to move; NaN where options leave that open."""
    if any(workload.is_on(name) for name in _OTHER_ENDS):
        return math.nan
    pin = view.run.volume.pin
    volume = math.nan if pin is None else float(pin.size_bytes)
    size = workload.options.get("io_size", workload.options.get("size", "100%"))
    if size.isdecimal():
        each = float(size)
    elif size.endswith("%"):
        each = volume * float(size[:-1]) / 100
    else:
        each = math.nan
    return each * workload.numjobs * workload.number("loops", default=1)


RULE = Rule(
    id="ended-early",
    title="shorter than asked for",
    severity=Severity.WARNING,
    looks_at=(
        "Runtime against the one asked for of time-based jobs (at least 95 %), and bytes moved"
        " against `size` or `io_size` of the others (at least 99 %): fio cuts a size larger than"
        " a device without a word. A job that was done with its size before a `runtime` without"
        " `time_based` was over is a note. Runs that end when they are steady are left out."
    ),
    why="A shorter run is another test: it may have seen only the cache, or a part of the volume.",
    advice=(
        "Add time_based: 1 to run for the whole runtime. Make size fit the volume, or leave it out"
        " to use all of a device."
    ),
    check=check,
    phases=(Phase.PRECONDITION, Phase.WARMUP, Phase.MEASURED),
)
