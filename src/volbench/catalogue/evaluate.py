"""Limits of volumes from type, size and provisioned performance; limits of planned runs."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from volbench.catalogue.volume_type import Provision, Rule, Rules, VolumeType, Wanted
from volbench.errors import InputError
from volbench.model.campaign.planned_run import Run
from volbench.model.profile.profile_settings import BurstRuntime, Limits
from volbench.units import format_rate, format_size, parse_duration

GIB = 1 << 30
_MIB = 1 << 20


def evaluate(wanted: Wanted, *, writes: bool | None = None) -> Limits:
    """Return the limits of a volume of a type.

    Args:
        writes: only writes (True) or only reads (False); None for both or unknown, where the
            lower limit applies.
    """
    kind = _tier(wanted)
    size_bytes = wanted.size_bytes or kind.size_bytes
    _check_size(kind, size_bytes, wanted.type)
    given = _Given(kind, size_bytes)
    given.iops = _provisioned(given, "iops", wanted.iops)
    given.bandwidth = _provisioned(given, "bandwidth", wanted.bandwidth_bytes_per_s)
    iops, bandwidth = (
        _sustained(given, name, own=own, writes=writes)
        for name, own in (("iops", given.iops), ("bandwidth", given.bandwidth))
    )
    return Limits(
        name=wanted.type.name,
        iops=iops,
        bandwidth_bytes_per_s=bandwidth,
        **_burst(given, "iops", "ios", base=iops),
        **_burst(given, "bandwidth_bytes_per_s", "bytes", base=bandwidth),
    )


@dataclass
class _Given:
    """Input of the rules of a type."""

    kind: VolumeType
    size_bytes: int
    iops: float | None = None
    bandwidth: float | None = None

    def lowest(self, rules: Rules) -> float | None:
        """Return the lowest value of the rules; None when none applies."""
        found = [value for rule in rules if (value := self._at(rule)) is not None]
        return min(found, default=None)

    def _at(self, rule: Rule[float]) -> float | None:
        if rule.above_bytes and self.size_bytes <= rule.above_bytes:
            return None
        if rule.below_bytes and self.size_bytes >= rule.below_bytes:
            return None
        value = rule.base + rule.per_gib * self.size_bytes / GIB
        value += rule.per_iops * (self.iops or 0.0)
        value += rule.per_mib_s * (self.bandwidth or 0.0) / _MIB
        value = value if rule.min is None else max(value, rule.min)
        return value if rule.max is None else min(value, rule.max)


def _tier(wanted: Wanted) -> VolumeType:
    """Return the type itself, or the smallest tier of sufficient size."""
    kind = wanted.type
    if not kind.tiers:
        return kind
    if wanted.size_bytes is None:
        raise _no_size(kind)
    for tier in kind.tiers:
        if wanted.size_bytes <= tier.size_bytes:
            return tier
    return kind.tiers[-1]


def _check_size(kind: VolumeType, size_bytes: int, named: VolumeType) -> None:
    if not size_bytes:
        if kind.needs_size:
            raise _no_size(kind)
        return
    if not kind.min_bytes <= size_bytes <= kind.max_bytes:
        low, high = format_size(kind.min_bytes), format_size(kind.max_bytes)
        bounds = f"of at high {high}" if kind.size_bytes else f"from {low} to {high}"
        raise InputError(
            f"there is no {named.name} volume of {format_size(size_bytes)}: they are {bounds}",
            hint="see: volbench volume-types list",
        )


def _no_size(kind: VolumeType) -> InputError:
    return InputError(
        f"the limits of {kind.name} depend on the size, which is unknown",
        hint=f'declare it: "{kind.name} size=100g"',
    )


def _provisioned(given: _Given, name: str, chosen: float | None) -> float | None:
    """Return the provisioned amount; None where the type has no provisioning."""
    provision: Provision[float] | None = getattr(given.kind, f"buys_{name}")
    words, written = _WORDS[name]
    if provision is None:
        if chosen is None:
            return None
        raise InputError(
            f"{given.kind.name} has no provisioned {words}",
            hint=f"leave {name} out: it follows from the type",
        )
    low, high = given.lowest(provision.min), given.lowest(provision.max)
    if chosen is None:
        if provision.included is None:
            raise InputError(
                f"{given.kind.name} has as many {words} as are bought"
                if name == "iops"
                else f"{given.kind.name} has as much {words} as is bought",
                hint=f'write it: "{given.kind.name} {_EXAMPLES[name]}"',
            )
        return provision.included if high is None else min(provision.included, high)
    if (low is not None and chosen < low) or (high is not None and chosen > high):
        size = f" of {format_size(given.size_bytes)}" if given.size_bytes else ""
        start = "" if low is None else f"from {written(low)} "
        end = "" if high is None else f"to {written(high)}"
        raise InputError(
            f"{given.kind.name}{size} can have {start}{end}, not {written(chosen)}".replace(
                "  ", " "
            ),
            hint=f"see: volbench volume-types show {given.kind.name}",
        )
    return chosen


_WORDS: dict[str, tuple[str, Callable[[float], str]]] = {
    "iops": ("IOPS", lambda value: f"{value:,.10g} IOPS"),
    "bandwidth": ("bandwidth", format_rate),
}
_EXAMPLES = {"iops": "size=500g iops=6000", "bandwidth": "size=2t bandwidth=100MiB/s"}


def _sustained(given: _Given, name: str, *, own: float | None, writes: bool | None) -> float | None:
    reads = own if own is not None else given.lowest(getattr(given.kind, name))
    written = given.lowest(getattr(given.kind, f"write_{name}"))
    if written is None or writes is False:
        return reads
    if writes or reads is None:
        return written
    return min(reads, written)


def _burst(given: _Given, rate: str, credits_: str, *, base: float | None) -> dict[str, float]:
    kind = given.kind
    burst = given.lowest(getattr(kind, f"burst_{rate.removesuffix('_bytes_per_s')}"))
    if burst is None or base is None or burst <= base:
        return {}
    found = {f"burst_{rate}": burst}
    full = given.lowest(getattr(kind, f"burst_{credits_}"))
    if full is None and kind.burst_s is not None:
        # Credits refill while they are spent, so only the difference drains the bucket.
        full = (burst - base) * kind.burst_s
    return found if full is None else found | {f"burst_{credits_}": full}


def with_known_limits(run: Run) -> Run:
    """Return a run with evaluated limits, if the size of its volume is known."""
    wanted = run.limits.wanted
    if wanted is None:
        return run
    if wanted.size_bytes is None and run.volume.pin is not None:
        wanted = wanted.model_copy(update={"size_bytes": run.volume.pin.size_bytes})
    if wanted.type.needs_size and wanted.size_bytes is None:
        return run
    return run.model_copy(update={"limits": evaluate(wanted, writes=_writes(run))})


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


def with_burst_runtime(run: Run, wanted: BurstRuntime | None) -> Run:
    """Return a run with its runtime extended beyond the burst credits of its volume."""
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
