"""Evidence for and against exhausted burst credits at a fall of the rate."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from volbench.analyse.time.change_points import Change
from volbench.analyse.time.run_rates import Rates
from volbench.model.profile.profile_settings import Limits
from volbench.units import format_count, format_duration, format_rate

_NEAR_BASE = 0.05
_NEAR_TIME = 0.20


@dataclass(frozen=True)
class Bucket:
    """Burst credits of one kind at a fall of the rate, counted in I/Os or in bytes."""

    at_s: float  # instant of the fall
    before: float  # rate per second until then
    after: float  # rate per second afterwards
    base: float | None  # declared baseline, the refill rate of credits; None if not declared
    credits: float | None  # capacity of the bucket; None if not declared
    written: Callable[[float], str]  # formats a rate

    @property
    def is_at_base(self) -> bool:
        """Whether the rate fell to the declared baseline."""
        return bool(self.base) and abs(self.after / (self.base or 1.0) - 1) <= _NEAR_BASE

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
        return predicted_s is not None and abs(self.at_s / predicted_s - 1) <= _NEAR_TIME

    def evidence(self) -> tuple[list[str], list[str]]:
        """Return the evidence for and against the end of these credits."""
        reasons: list[str] = []
        against: list[str] = []
        base = "" if self.base is None else self.written(self.base)
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


def buckets(limits: Limits, rates: Rates, change: Change) -> tuple[Bucket, Bucket]:
    """Return the credits for I/Os and those for bytes at a fall."""
    return (
        Bucket(
            change.t_s, change.before, change.after, limits.iops, limits.burst_ios, format_count
        ),
        Bucket(
            change.t_s,
            change.before * rates.io_bytes,
            change.after * rates.io_bytes,
            limits.bandwidth_bytes_per_s,
            limits.burst_bytes,
            format_rate,
        ),
    )


def likeliest(limits: Limits, rates: Rates, change: Change) -> Bucket | None:
    """Return the credits whose end a fall may be; None if it fits neither.

    A fall to the baseline weighs more than one at the predicted time.
    """
    found = buckets(limits, rates, change)
    return next(
        (bucket for bucket in found if bucket.is_at_base),
        next((bucket for bucket in found if bucket.is_on_time), None),
    )


def predicted_s(limits: Limits, rates: Rates, change: Change) -> float | None:
    """Return the predicted end of the declared credits, the earlier one; None without any."""
    return min(
        (
            bucket.predicted_s
            for bucket in buckets(limits, rates, change)
            if bucket.predicted_s is not None
        ),
        default=None,
    )
