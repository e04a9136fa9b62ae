"""Declared limits of planned runs: derived from a volume type, and what they mean for a runtime."""

from __future__ import annotations

import math

from volbench.errors import InputError
from volbench.model.campaign.planned_run import Run
from volbench.model.profile.profile_settings import BurstRuntime, Limits
from volbench.seams import load
from volbench.units import parse_duration

# Returns the limits of a `VolumeOfType`, or None where its size is needed and unknown; see
# `volbench.seams.load`
LIMITS_OF_TYPE = "catalogue.volume_types:known_limits"


def with_known_limits(run: Run) -> Run:
    """Return a run with evaluated limits, if the size of its volume is known."""
    volume = run.limits.wanted
    if volume is None:
        return run
    if volume.size_bytes is None and run.volume.pin is not None:
        volume = volume.model_copy(update={"size_bytes": run.volume.pin.size_bytes})
    limits = load(LIMITS_OF_TYPE)(volume, writes=_writes(run))
    return run if limits is None else run.model_copy(update={"limits": limits})


def check_known_limits(runs: tuple[Run, ...]) -> None:
    """Refuse limits that depend on an unknown size."""
    for run in runs:
        if run.limits.wanted is not None:
            raise InputError(
                f"the limits of {run.limits.name} depend on the size of the volume, and "
                f"{run.volume.target} is not a device that reports its size",
                hint=f'declare it: --set limits.{run.volume.role}="{run.limits.name} size=100g"',
            )


def _writes(run: Run) -> bool | None:
    """Return whether a run only writes (True), only reads (False), or may do both (None)."""
    accesses = {
        run.effective(section).get("rw", "").partition(":")[0].removeprefix("rand")
        for section in run.sections
    }
    return {frozenset({"write"}): True, frozenset({"read"}): False}.get(frozenset(accesses))


def with_burst_runtime(run: Run, burst: BurstRuntime | None) -> Run:
    """Return a run with its runtime extended beyond the burst credits of its volume."""
    lasts_s = credits_last_s(run.limits)
    if burst is None or lasts_s is None:
        return run
    (section,) = run.sections
    min_s = parse_duration(run.effective(section)["runtime"])
    runtime_s = min(burst.factor * lasts_s, burst.max_s)
    if runtime_s <= min_s:
        return run
    options = section.options | {"runtime": f"{math.ceil(runtime_s)}s"}
    return run.model_copy(update={"sections": (section.model_copy(update={"options": options}),)})


def credits_last_s(limits: Limits) -> float | None:
    """Return the duration of the declared credits at the burst rate; None if not declared.

    A full bucket is drained at the burst rate while it refills at the base rate. Of two buckets,
    the longer duration applies.
    """
    buckets = (
        (limits.burst_ios, limits.burst_iops, limits.iops),
        (limits.burst_bytes, limits.burst_bandwidth_bytes_per_s, limits.bandwidth_bytes_per_s),
    )
    return max(
        (full / (burst - base) for full, burst, base in buckets if full and burst and base),
        default=None,
    )
