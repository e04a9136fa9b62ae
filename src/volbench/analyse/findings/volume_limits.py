"""Rules on limits of the volume and caches that hide them: throttled, host-cache, shared-limit."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from volbench.analyse.bottleneck.campaign_context import Context
from volbench.analyse.findings.rule import (
    Evidence,
    Observation,
    explained,
    level_text,
    observed,
    percent,
    rule,
    several,
)
from volbench.analyse.frames.run_view import (
    RunView,
    bytes_until_end,
    declared,
    device_rows,
    directions,
    rate_per_s,
    runtime_s,
    total,
)
from volbench.model.results.finding import Cause, Explanation, Severity
from volbench.units import format_duration

_NEAR = 0.05
_COLUMNS = {Cause.IOPS_LIMIT: "iops", Cause.BANDWIDTH_LIMIT: "bw_bytes_per_s"}
_OVER = 1.05
_OVER_FOR_A_WHILE = 1.2
_WHILE_S = 5.0
_BACKING_SHARE = 0.5
_LEFT = 0.5


@rule(
    "the volume was throttled at a limit",
    severity=Severity.NOTE,
    looks_at=(
        "What explains the level at which the run ended, as in the verdicts frame: a limit on"
        " IOPS or on bandwidth, declared or inferred. Below 95 % of the declared limit it is a"
        " warning: the volume delivers less than promised, or another limit (that of the machine)"
        " applies."
    ),
    why="At a limit the number is a price list, not the speed of the hardware: all I/Os queue.",
    advice=(
        "Quote it as the limit. If it is below the declared one, look at the limits of the machine"
        " type and of other disks on it, and declare the limit that applies."
    ),
)
def throttled(view: RunView, context: Context) -> Iterator[Observation]:
    """Yield each limit that throttled a run; all directions together, as providers count them."""
    is_mixed = len(directions(view)) > 1
    is_paced = any(workload.is_paced for workload in view.workloads)
    for cause, column in _COLUMNS.items():
        limits = explained(view, context, cause)
        level, declared_limit = total(view, column), declared(view.run, column)[0]
        if is_mixed and not is_paced and _is_near(level, declared_limit):
            yield Observation(
                f"Throttled at {level_text(column, level)} in all directions together,"
                f" {percent(level / declared_limit)} of the declared"
                f" {level_text(column, declared_limit)}.",
                {"level": level, "of": column, "declared": declared_limit},
            )
            continue
        for limit in limits[:1] if is_mixed else limits:
            yield _throttled_at(view, limit, level if is_mixed else limit.level)


def _is_near(level: float, limit: float) -> bool:
    return bool(limit) and abs(level / limit - 1) <= _NEAR


def _throttled_at(view: RunView, explanation: Explanation, level: float) -> Observation:
    column = _COLUMNS[explanation.cause]
    sustained, burst = declared(view.run, column)
    evidence: Evidence = {"level": level, "of": column}
    severity, beside = Severity.NOTE, ""
    if sustained:
        evidence["declared"] = sustained
        nearest = min((sustained, burst or sustained), key=lambda limit: abs(level - limit))
        is_less = level < (1 - _NEAR) * sustained
        severity = Severity.WARNING if is_less else Severity.NOTE
        beside = (
            f", {'only ' if is_less else ''}{percent(level / nearest)} of the declared"
            f" {level_text(column, nearest)}"
        )
    words = "Throttled" if explanation.is_certain else "Consistent with throttling"
    message = f"{words} at {level_text(column, level)}{beside}"
    seen = observed(explanation, message, evidence, severity=severity)
    return replace(seen, direction=None) if len(directions(view)) > 1 else seen


@rule(
    "a cache of the host or the provider is suspected",
    looks_at=(
        "Runs with `direct=1`: IOPS and bandwidth above 105 % of what is declared for the volume"
        " (bursts included), or above 120 % for 5 s. Writes that were fast and then stalled again"
        " and again, or fell by more than half to an uneven level after they were taken at the"
        " speed of memory, where a full write-back cache is likelier than any other cause. Less"
        " than half of the I/O arriving at the backing disk of a loop or dm device is a note. The"
        " thresholds are volbench's own."
    ),
    why=(
        "O_DIRECT bypasses the page cache of this host, not the caches below it: those of the"
        " hypervisor, the provider and the disk. They are fast until they are full or cold."
    ),
    advice=(
        "Turn caching of the disk off where the provider allows it, measure over a range larger"
        " than the cache, and long enough to fill it. If the declared limit is wrong, or a burst"
        " is not declared, correct limits in the profile."
    ),
)
def host_cache(view: RunView, context: Context) -> Iterator[Observation]:
    """Yield full caches, rates above the declared limit, and a backing disk that saw little."""
    if view.is_buffered:
        return
    for cause in explained(view, context, Cause.CACHE_FULL):
        # Smaller falls have other causes as often.
        fell_far = cause.level < _LEFT * cause.evidence.get("fast_iops", math.inf)
        yield observed(
            cause,
            f"Writes were fast for {format_duration(cause.from_s)} and then slow, consistent with"
            " a write-back cache that filled up",
            severity=None if fell_far else Severity.NOTE,
        )
    for column in _COLUMNS.values():
        limit = max(declared(view.run, column))
        if limit:
            yield from _above(view, column, limit)
    for direction in ("read", "write"):
        yield from _backing(view, direction)


def _above(view: RunView, column: str, limit: float) -> Iterator[Observation]:
    """Yield that the whole run, or 5 s of it, was above the declared limit."""
    rate = total(view, column)
    if rate > _OVER * limit:
        yield Observation(
            f"{level_text(column, rate)} is {percent(rate / limit)} of the declared"
            f" {level_text(column, limit)}.",
            {"rate": rate, "declared": limit, "of": column},
        )
        return
    t_s, rates = rate_per_s(view, column)
    window = max(1, round(_WHILE_S / view.run.sample_s)) if view.run.sample_s else 1
    if len(rates) < window:
        return
    means = np.convolve(rates, np.ones(window) / window, mode="valid")
    above = np.flatnonzero(means > _OVER_FOR_A_WHILE * limit)
    if len(above):
        fastest = float(means.max())
        yield Observation(
            f"{level_text(column, fastest)} for {format_duration(window * 1.0)} is"
            f" {percent(fastest / limit)} of the declared {level_text(column, limit)}.",
            {"rate": fastest, "declared": limit, "of": column},
            window=(
                float(t_s[above[0]]) - view.run.sample_s,
                float(t_s[above[-1] + window - 1]),
            ),
        )


def _backing(view: RunView, direction: str) -> Iterator[Observation]:
    """Yield that the backing disk moved less than half of what the volume did."""
    rows, column = device_rows(view), f"{direction}_bw_bytes_per_s"
    backing, runtime = device_rows(view, level="backing"), runtime_s(view)
    moved = total(view, "io_bytes", direction=direction)
    if rows.empty or backing.empty or math.isnan(runtime) or not moved > 0:
        return
    upper = bytes_until_end(rows, column, runtime=runtime)
    lower = bytes_until_end(backing, column, runtime=runtime)
    if upper >= _BACKING_SHARE * moved and lower < _BACKING_SHARE * upper:
        disks = ", ".join(sorted({str(name) for name in backing["device"]}))
        yield Observation(
            f"The backing disk ({disks}) moved {percent(lower / upper)} of the bytes that the"
            f" volume {'wrote' if direction == 'write' else 'read'} during the run.",
            {"volume_bytes": upper, "backing_bytes": lower},
            direction,
            severity=Severity.NOTE,
        )


@rule(
    "two volumes share a disk and its limit",
    looks_at=(
        "The block device of each volume and its backing disks, as the kernel reports them,"
        " against those of other roles on the same host."
    ),
    why=(
        "I/O on one volume uses operations and credits of the other, so the roles are not"
        " independent measurements, and the limit may be that of the shared disk."
    ),
    advice="Put the volumes on disks of their own, or measure only one of them.",
)
def shared_limit(view: RunView, context: Context) -> Iterator[Observation]:
    """Yield that a volume of another role on the same host shares its disk."""
    shared = {
        role: view.disks & disks
        for role, disks in context.disks[view.run.host].items()
        if role != view.run.volume.role and view.disks & disks
    }
    if shared:
        disks = ", ".join(sorted(set().union(*shared.values())))
        yield Observation(
            f"{view.run.volume.role} and {several(sorted(shared))} are on the same disk ({disks})"
            " and share its limit.",
            {"disks": disks, "roles": ", ".join([view.run.volume.role, *sorted(shared)])},
        )
