"""Lasting falls of a rate: exhausted burst credits, other load on the host, or neither."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from volbench.analyse.bottleneck.volume_context import REMOTE, device_kind
from volbench.analyse.frames.disturbed import disturbed
from volbench.analyse.frames.run_view import RunView
from volbench.analyse.time.change_points import Change
from volbench.analyse.time.run_rates import Rates
from volbench.model.results.finding import Cause, Explanation
from volbench.units import format_capacity, format_count, format_duration, format_rate

# Relative distance within which a level counts as a declared limit; providers promise 90 to 99 % of
# a limit; chosen on the even seeds of the truth benchmark.
# Noticed by: test_threshold_edges.py::test_a_level_is_at_the_declared_limit_within_five_percent
MAX_DISTANCE_FROM_LIMIT = 0.05
# Spread of samples over a level that a throttle does not exceed; chosen on the even seeds of the
# truth benchmark.
# Noticed by: test_lasting_falls.py::test_undeclared_credits_need_every_sign_of_a_throttle
MAX_FLAT_SPREAD = 0.03
# Relative distance from the predicted end of credits: how full the bucket was is not known; chosen
# on the even seeds of the truth benchmark.
# Noticed by: test_explain.py::test_credits_that_ended_early_are_questioned
_MAX_TIME_DISTANCE = 0.20
# Share of the pace of the fastest I/O below which a level is that of a throttle; chosen on the even
# seeds of the truth benchmark.
# Noticed by: test_lasting_falls.py::test_undeclared_credits_need_every_sign_of_a_throttle
_MAX_SHARE_OF_PACE = 0.5
# More than any volume type with burst credits delivers (2026: some 30,000).
# Noticed by: test_lasting_falls.py::test_undeclared_credits_need_every_sign_of_a_throttle
_MAX_BURST_IOPS = 100_000
# Writes that are taken faster go to memory or to flash beside the host: 8 Gbit/s of network.
# Noticed by: test_lasting_falls.py::test_undeclared_credits_need_every_sign_of_a_throttle
_MIN_MEMORY_BYTES_PER_S = 1e9
# Latency of an I/O below which it did not wait at a volume behind a network (cloud volumes take
# 500 us and more).
# Noticed by: test_lasting_falls.py::test_undeclared_credits_need_every_sign_of_a_throttle
_MAX_CACHED_S = 300e-6
# Percentile 10 over the mean latency before a fall from which I/Os waited alike; chosen on the even
# seeds of the truth benchmark. Noticed by: benchmarks/truth.py
_MIN_SIMILAR_RATIO = 0.8
# What makes a rate fall from one flat level to another, and what would decide
_LEVEL_CAUSES = (
    "burst credits, if the upper level is back after an hour without I/O",
    "a cache that was full, if twice the block size brings the fall after half the time",
    "a limit, if the lower level is the same at another queue depth",
)
# Share of the time after a fall that the host disturbed, less that before it, from which the host
# caused it: a majority. Noticed by: benchmarks/truth.py
_MIN_NOISE_AFTER = 0.5


def is_near(level: float, limit: float | None) -> bool:
    """Return whether a level is at a declared limit; never if none is declared."""
    return bool(limit) and abs(level / (limit or 1.0) - 1) <= MAX_DISTANCE_FROM_LIMIT


@dataclass(frozen=True)
class Bucket:
    """Burst credits of one kind at a fall of the rate, counted in I/Os or in bytes."""

    at_s: float  # instant of the fall
    before: float  # rate per second until then
    after: float  # rate per second afterwards
    base: float | None  # declared baseline, the refill rate of credits; None if not declared
    credits: float | None  # capacity of the bucket; None if not declared
    format_rate: Callable[[float], str]

    @property
    def is_at_base(self) -> bool:
        """Whether the rate fell to the declared baseline."""
        return is_near(self.after, self.base)

    @property
    def predicted_s(self) -> float | None:
        """Time until a full bucket is empty at the rate before; None if not known."""
        if not self.credits or self.base is None or self.before <= self.base:
            return None
        return self.credits / (self.before - self.base)

    @property
    def is_on_time(self) -> bool:
        """Whether the rate fell when a full bucket ran empty."""
        predicted_s = self.predicted_s
        return predicted_s is not None and abs(self.at_s / predicted_s - 1) <= _MAX_TIME_DISTANCE

    def evidence(self) -> tuple[list[str], list[str]]:
        """Return the evidence for and against the end of these credits."""
        reasons: list[str] = []
        against: list[str] = []
        base = "" if self.base is None else self.format_rate(self.base)
        if self.is_at_base:
            reasons.append(f"the level after it is the declared baseline of {base}")
        else:
            against.append(f"the level after it is not the declared baseline of {base}")
        if self.predicted_s is None:
            against.append("no credits were declared")
            return reasons, against
        lasts = f"a full bucket lasts {format_duration(self.predicted_s)} at that rate"
        if self.is_on_time:
            reasons.append(lasts)
        else:
            against.append(f"{lasts}; it may not have been full")
        return reasons, against


@dataclass(frozen=True)
class Fall:
    """A lasting fall of the rate."""

    view: RunView  # the run
    rates: Rates  # of one direction
    change: Change  # the fall
    has_stalled: bool = False  # whether there was a time without a completion

    @property
    def moved_bytes(self) -> float:
        """Bytes read or written until the fall."""
        before = self.rates.t_s <= self.change.t_s
        return float(self.rates.bw_bytes_per_s[before].sum() * self.rates.interval_s)

    @property
    def buckets(self) -> tuple[Bucket, Bucket]:
        """The credits for I/Os and those for bytes."""
        limits, change, size = self.view.run.limits, self.change, self.rates.io_bytes
        of_bytes = limits.bandwidth_bytes_per_s, limits.burst_bytes, format_rate
        return (
            Bucket(
                *(change.t_s, change.before, change.after),
                *(limits.iops, limits.burst_ios, format_count),
            ),
            Bucket(change.t_s, change.before * size, change.after * size, *of_bytes),
        )

    @property
    def predicted_s(self) -> float | None:
        """Predicted end of the declared credits, the earlier one; None without any."""
        known = [each.predicted_s for each in self.buckets if each.predicted_s is not None]
        return min(known, default=None)

    @property
    def noise_after(self) -> float:
        """Share of the intervals after the fall that the host disturbed, less that before it."""
        flags, after = disturbed(self.view).at(self.rates.t_s), self.rates.t_s > self.change.t_s
        return max(0.0, float(flags[after].mean()) - float(flags[~after].mean()))

    def is_flat(self, *, after: bool) -> bool:
        """Return whether all levels on one side of the fall are flat."""
        sides = [
            level for level in self.rates.plateaus if (level.from_s >= self.change.t_s) is after
        ]
        return bool(sides) and all(level.spread <= MAX_FLAT_SPREAD for level in sides)


def explain_fall(fall: Fall) -> Explanation:
    """Explain a fall that lasted: by credits, by the host, or by when it came."""
    change = fall.change
    bucket = next(
        (each for each in fall.buckets if each.is_at_base),
        next((each for each in fall.buckets if each.is_on_time), None),
    )
    is_sure = bucket is not None and bucket.is_at_base and bucket.is_on_time
    level, against = change.after, list[str]()
    if fall.noise_after >= _MIN_NOISE_AFTER and not is_sure:
        named, more = Cause.HOST_NOISE, f"{100 * fall.noise_after:.0f} % more of the time"
        reasons = [f"the host disturbed {more} after the fall"]
    elif bucket is not None:
        named, (reasons, against) = Cause.CREDITS, bucket.evidence()
    elif reasons := _signs_of_throttling(fall):
        named, against = Cause.CREDITS, ["no baseline limit is declared"]
    else:
        named, reasons = Cause.SLOWER, [f"{format_capacity(fall.moved_bytes)} moved until then"]
        if not fall.is_flat(after=True):
            level = float(fall.rates.iops[fall.rates.t_s > change.t_s].mean())
    is_between_levels = fall.is_flat(after=False) and fall.is_flat(after=True)
    step = f"from {format_count(change.before)} to {format_count(level)} IOPS"
    evidence = {
        "at_s": change.t_s,
        "before_iops": change.before,
        "after_iops": level,
        "moved_bytes": fall.moved_bytes,
        "predicted_s": math.nan if fall.predicted_s is None else fall.predicted_s,
    }
    return Explanation(
        cause=named,
        direction=fall.rates.direction,
        from_s=change.t_s,
        to_s=float(fall.rates.t_s[-1]),
        level=level,
        speaks_for=(f"a fall {step} at {format_duration(change.t_s)}", *reasons),
        speaks_against=tuple(against),
        evidence={name: value for name, value in evidence.items() if math.isfinite(value)},
        is_certain=named is Cause.SLOWER or (is_sure and not fall.noise_after),
        candidates=_LEVEL_CAUSES if named is Cause.SLOWER and is_between_levels else (),
    )


def _signs_of_throttling(fall: Fall) -> list[str]:
    """Return the evidence that undeclared credits ran out; empty if any of it is missing."""
    kind, before = device_kind(fall.view), fall.change.before
    before_s = fall.rates.depth / before
    is_flat = fall.is_flat(after=False) and fall.is_flat(after=True)
    is_in_memory = before * fall.rates.io_bytes >= _MIN_MEMORY_BYTES_PER_S
    too_fast = before > _MAX_BURST_IOPS or before_s <= _MAX_CACHED_S or is_in_memory
    is_excluded = fall.predicted_s is not None or fall.has_stalled or too_fast
    if kind not in REMOTE or is_excluded or not is_flat or not _has_queued(fall, before_s):
        return []
    return [
        f"it is {kind.value}",
        f"both levels are flat within {100 * MAX_FLAT_SPREAD:.0f} %, as of a throttle",
        "the queue was already full before the fall",
    ]


def _has_queued(fall: Fall, before_s: float) -> bool:
    """Return whether I/Os waited before the fall: far longer than the fastest, and all alike."""
    rates = fall.rates
    unhindered = rates.depth / rates.lat_min_s if rates.lat_min_s > 0 else 0.0
    is_slow = rates.depth > 1 and fall.change.before < _MAX_SHARE_OF_PACE * unhindered
    return is_slow and not rates.lat_p10_s < _MIN_SIMILAR_RATIO * before_s
