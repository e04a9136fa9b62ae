"""Limits of planned runs: volume types once their size is known, and runtimes beyond bursts."""

from __future__ import annotations

import math

from volbench.errors import InputError
from volbench.model.campaign.planned_run import Run
from volbench.model.profile.profile_settings import BurstRuntime, Limits
from volbench.plan.volume_types import evaluate
from volbench.units import parse_duration


def with_known_limits(run: Run) -> Run:
    """Return a run whose limits are evaluated, as far as the size of its volume is known.

    Raises:
        InputError: there is no volume of that type and size.
    """
    wanted = run.limits.wanted
    if wanted is None:
        return run
    if wanted.size_bytes is None and run.volume.pin is not None:
        wanted = wanted.model_copy(update={"size_bytes": run.volume.pin.size_bytes})
    if wanted.type.needs_size and wanted.size_bytes is None:
        return run
    return run.model_copy(update={"limits": evaluate(wanted, writes=_writes(run))})


def check_known_limits(runs: tuple[Run, ...]) -> None:
    """Refuse limits that depend on an unknown size.

    Raises:
        InputError: the type of a volume needs a size, and the volume reports none.
    """
    for run in runs:
        if run.limits.wanted is not None:
            raise InputError(
                f"the limits of {run.limits.name} depend on the size of the volume, and "
                f"{run.volume.target} is not a device that reports its size",
                hint=f'declare it: --set limits.{run.volume.role}="{run.limits.name} size=100g"',
                context={"role": run.volume.role, "type": run.limits.name},
            )


def _writes(run: Run) -> bool | None:
    """Return whether a run only writes (True), only reads (False), or may do both (None)."""
    accesses = {
        run.effective(section).get("rw", "").partition(":")[0].removeprefix("rand")
        for section in run.sections
    }
    return {frozenset({"write"}): True, frozenset({"read"}): False}.get(frozenset(accesses))


def credits_last_s(limits: Limits) -> float | None:
    """Return how long the declared credits last at full speed; None when that is not declared.

    A full bucket is drained at the burst rate while it refills at the base rate. Of two buckets,
    the one that lasts longer counts.
    """
    buckets = (
        (limits.burst_ios, limits.burst_iops, limits.iops),
        (limits.burst_bytes, limits.burst_bandwidth_bytes_per_s, limits.bandwidth_bytes_per_s),
    )
    return max(
        (full / (burst - base) for full, burst, base in buckets if full and burst and base),
        default=None,
    )


def with_burst_runtime(run: Run, wanted: BurstRuntime | None) -> Run:
    """Return a run whose runtime is longer than the burst credits of its volume last."""
    lasts_s = credits_last_s(run.limits)
    if wanted is None or lasts_s is None:
        return run
    (section,) = run.sections
    least_s = parse_duration(run.effective(section)["runtime"])
    runtime_s = min(wanted.factor * lasts_s, wanted.max_s)
    if runtime_s <= least_s:
        return run
    options = section.options | {"runtime": f"{math.ceil(runtime_s)}s"}
    return run.model_copy(update={"sections": (section.model_copy(update={"options": options}),)})
