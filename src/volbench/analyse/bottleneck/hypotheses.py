"""Evidence for and against exhausted burst credits at a fall of the rate."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from volbench.analyse.bottleneck.volume_context import (
    FLASH,
    LOCAL,
    REMOTE,
    DeviceKind,
    Earlier,
    device_kind,
)
from volbench.analyse.frames.disturbed import disturbed
from volbench.analyse.frames.resample import median
from volbench.analyse.frames.run_view import RunView, host_rows_in_run
from volbench.analyse.time.change_points import Change
from volbench.analyse.time.run_rates import Rates
from volbench.model.campaign.planned_run import VolumeKind
from volbench.model.profile.profile_settings import Limits
from volbench.model.results.finding import Cause
from volbench.units import format_count, format_duration, format_latency, format_rate

# Relative distance within which a level counts as a declared limit; providers promise 90 to 99 % of
# a limit; chosen on the even seeds of the truth benchmark.
# Noticed by: test_threshold_edges.py::test_a_level_is_at_the_declared_limit_within_five_percent
MAX_DISTANCE_FROM_LIMIT = 0.05
# Relative distance from the predicted end of credits: how full the bucket was is not known; chosen
# on the even seeds of the truth benchmark.
# Noticed by: test_explain.py::test_credits_that_ended_early_are_questioned
_MAX_TIME_DISTANCE = 0.20


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
    written: Callable[[float], str]  # formats a rate

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
    fitting = buckets(limits, rates, change)
    return next(
        (bucket for bucket in fitting if bucket.is_at_base),
        next((bucket for bucket in fitting if bucket.is_on_time), None),
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


# Spread of samples over a level that a throttle does not exceed; chosen on the even seeds of the
# truth benchmark.
# Noticed by: test_ssd_series.py::test_a_fall_between_flat_levels_names_two_candidates
MAX_FLAT_SPREAD = 0.03
# Share of the pace of the fastest I/O below which a level is that of a throttle; chosen on the even
# seeds of the truth benchmark.
# Noticed by: benchmarks/truth.py
_MAX_SHARE_OF_PACE = 0.5
# More than any volume type with burst credits delivers (2026: some 30,000).
# Noticed by: test_evidence_of_falls.py::test_implausibly_high_rates_contradict_credits
_MAX_BURST_IOPS = 100_000
# Writes that are taken faster go to memory or to flash beside the host: 8 Gbit/s of network.
# Noticed by: benchmarks/truth.py
_MIN_MEMORY_BYTES_PER_S = 1e9
# Share of the rate that is left after a fall as far as garbage collection and exhausted SLC caches
# make it; chosen on the even seeds of the truth benchmark.
# Noticed by: benchmarks/truth.py
_MAX_RATIO_FAR = 1 / 3
# Share of the rate that is left above which throttling by heat is likelier than a full cache;
# chosen on the even seeds of the truth benchmark.
# Noticed by: benchmarks/truth.py
_MAX_RATIO_HALF = 0.5
# Percentile 99.9 over the mean latency after a fall from which the tail explodes, as during garbage
# collection; chosen on the even seeds of the truth benchmark.
# Noticed by: benchmarks/truth.py
_MIN_TAIL_RATIO = 8.0
# Mean steal from which the tail of latency may be that of the host: one in 200 I/Os.
# Noticed by: benchmarks/truth.py
_MIN_TAIL_STEAL_PERCENT = 0.5
# Scatter after a fall over that before it from which the level became uneven; chosen on the even
# seeds of the truth benchmark.
# Noticed by: benchmarks/truth.py
_MIN_UNEVEN_RATIO = 1.5
# Scatter below which a level is even whatever it was before: twice that of a throttle.
# Noticed by: benchmarks/truth.py
_MIN_UNEVEN_SPREAD = 0.06
# Latency of the fastest I/Os above which a device is not flash in the host: NVMe takes 10 to 100
# us.
# Noticed by: test_evidence_of_falls.py::test_slow_first_ios_contradict_garbage_collection
_MAX_FLASH_S = 150e-6
# Queue depth up to which 1 % of the I/Os hardly queue; chosen on the even seeds of the truth
# benchmark.
# Noticed by: test_evidence_of_falls.py::test_slow_first_ios_contradict_garbage_collection
_MAX_SHALLOW_DEPTH = 4
# Latency of a write below which it did not cross a network to a volume (cloud volumes take 500 us
# and more).
# Noticed by: benchmarks/truth.py
_MAX_CACHED_S = 300e-6
# Latency of a write above which no cache accepted it, whatever the depth: a disk takes 10 ms.
# Noticed by: test_evidence_of_falls.py::test_slow_writes_contradict_a_full_cache
_MAX_ACCEPTED_S = 50e-3
# Percentile 10 over the mean latency before a fall from which I/Os waited alike; chosen on the even
# seeds of the truth benchmark.
# Noticed by: benchmarks/truth.py
_MIN_SIMILAR_RATIO = 0.8
# Points that a hypothesis needs to be certain, besides being the only one; chosen on the even seeds
# of the truth benchmark.
# Noticed by: benchmarks/truth.py
_MIN_SCORE_CERTAIN = 4
# Share of the capacity after which erased flash may be used up; drives keep 7 to 28 % in reserve.
# Noticed by: test_explain.py::test_a_drive_falls_after_its_capacity
_MIN_PASSES = 0.8
# Points that a hypothesis needs to be named; chosen on the even seeds of the truth benchmark.
# Noticed by: benchmarks/truth.py
_MIN_SCORE = 3
# Lead over the next that it needs to be named; chosen on the even seeds of the truth benchmark.
# Noticed by: benchmarks/truth.py
_MIN_LEAD = 2

Point = tuple[int, str]  # Weight and words: above 0 for a hypothesis, else against it or unknown


@dataclass(frozen=True)
class Hypothesis:
    """A possible cause with its evidence."""

    cause: Cause  # the cause
    points: tuple[Point, ...]  # evidence with its weight

    @property
    def score(self) -> int:
        """Sum of the weights."""
        return sum(weight for weight, _ in self.points)

    @property
    def speaks_for(self) -> tuple[str, ...]:
        """Words of the evidence for it."""
        return tuple(reason for weight, reason in self.points if weight > 0)

    @property
    def speaks_against(self) -> tuple[str, ...]:
        """Words of the evidence against it."""
        return tuple(reason for weight, reason in self.points if weight <= 0)

    @property
    def words(self) -> str:
        """The evidence for the cause, with its name."""
        return f"for {self.cause.value}: {', '.join(self.speaks_for)}"


@dataclass(frozen=True)
class Ranking:
    """Hypotheses by their score."""

    best: Hypothesis | None  # the one that is named; None where none is far enough ahead
    is_alone: bool  # whether no other one has any evidence in its favour, and the best has a lot
    candidates: tuple[Hypothesis, ...]  # the two best


def rank(hypotheses: Iterable[Hypothesis]) -> Ranking:
    """Return hypotheses by their score, and the one that is named, if any."""
    likely = sorted((each for each in hypotheses if each.score > 0), key=lambda each: -each.score)
    second = likely[1].score if len(likely) > 1 else 0
    is_named = bool(likely) and likely[0].score >= max(_MIN_SCORE, second + _MIN_LEAD)
    is_alone = len(likely) == 1 and likely[0].score >= _MIN_SCORE_CERTAIN
    return Ranking(likely[0] if is_named else None, is_alone, tuple(likely[:2]))


@dataclass(frozen=True)
class Fall:
    """A lasting fall of the rate, with the facts that hypotheses use."""

    view: RunView  # the run
    rates: Rates  # of one direction
    change: Change  # the fall
    earlier: Earlier  # earlier runs on the volume
    stalls: Sequence[tuple[float, float]] = ()  # begin and end of each time without a completion

    @property
    def moved_bytes(self) -> float:
        """Bytes read or written until the fall."""
        before = self.rates.t_s <= self.change.t_s
        return float(self.rates.bw_bytes_per_s[before].sum() * self.rates.interval_s)

    @property
    def passes(self) -> float:
        """How often the capacity had been written until then; NaN for reads or if unknown."""
        capacity = self.view.volume.size_bytes if self.view.volume is not None else None
        is_known = self.rates.direction == "write" and capacity
        return self.moved_bytes / capacity if capacity and is_known else math.nan

    @property
    def predicted_s(self) -> float | None:
        """Predicted end of declared credits; None without any."""
        return predicted_s(self.view.run.limits, self.rates, self.change)

    @property
    def kind(self) -> DeviceKind:
        """Kind of the volume's device."""
        return device_kind(self.view)

    @property
    def is_write(self) -> bool:
        """Whether writes fell."""
        return self.rates.direction == "write"

    def is_flat(self, *, after: bool) -> bool:
        """Return whether all levels on one side of the fall are flat."""
        sides = [
            level for level in self.rates.plateaus if (level.from_s >= self.change.t_s) is after
        ]
        return bool(sides) and all(level.spread <= MAX_FLAT_SPREAD for level in sides)

    @property
    def before_s(self) -> float:
        """Mean latency before, by Little's law."""
        return self.rates.depth / self.change.before if self.change.before else math.inf

    @property
    def has_queued(self) -> bool:
        """Whether I/Os waited before: far longer than the fastest, and all alike."""
        rates = self.rates
        fastest_s = rates.lat_min_s
        unhindered = rates.depth / fastest_s if fastest_s > 0 else 0.0
        is_slow = rates.depth > 1 and self.change.before < _MAX_SHARE_OF_PACE * unhindered
        return is_slow and not rates.lat_p10_s < _MIN_SIMILAR_RATIO * self.before_s

    @property
    def became_uneven(self) -> bool:
        """Whether the samples scatter more after it than before."""
        before, after = (_scatter(self.rates.iops[side]) for side in self._sides())
        return after > max(_MIN_UNEVEN_SPREAD, _MIN_UNEVEN_RATIO * before)

    def _sides(self) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
        is_before = self.rates.t_s <= self.change.t_s
        return is_before, ~is_before

    @property
    def noise_after(self) -> float:
        """Share of the intervals after the fall that the host disturbed, less that before it."""
        flags, after = disturbed(self.view).at(self.rates.t_s), self.rates.t_s > self.change.t_s
        return max(0.0, float(flags[after].mean()) - float(flags[~after].mean()))

    @property
    def is_stolen(self) -> bool:
        """Whether the hypervisor took CPU time."""
        rows = host_rows_in_run(self.view)
        return bool(len(rows)) and float(rows["steal_percent"].mean()) >= _MIN_TAIL_STEAL_PERCENT


def _scatter(values: npt.NDArray[np.float64]) -> float:
    level = median(values) if len(values) else 0.0
    return 1.4826 * median(np.abs(values - level)) / level if level else 0.0


def explain_fall(fall: Fall) -> Ranking:
    """Rank the possible causes of a lasting fall."""
    judges = {Cause.CREDITS: _credits}
    if fall.is_write:
        judges |= {
            Cause.CACHE_FULL: _full_cache,
            Cause.WRITE_CLIFF: _garbage_collection,
            Cause.SLC_CACHE: _slc_cache,
        }
    if fall.kind in FLASH or fall.kind is DeviceKind.UNKNOWN:
        judges[Cause.THERMAL] = _thermal
    if fall.noise_after:
        judges[Cause.HOST_NOISE] = _host_noise
    return rank(Hypothesis(cause, tuple(judge(fall))) for cause, judge in judges.items())


def _host_noise(fall: Fall) -> Iterator[Point]:
    weight = 6 if fall.noise_after >= _MAX_RATIO_HALF else 1
    yield (
        weight,
        f"the host disturbed {100 * fall.noise_after:.0f} % more of the time after the fall",
    )


def _credits(fall: Fall) -> Iterator[Point]:
    limits = fall.view.run.limits
    bucket = likeliest(limits, fall.rates, fall.change)
    if bucket is not None:
        reasons, against = bucket.evidence()
        yield from ((4, reason) for reason in reasons)
        yield from ((-1, reason) for reason in against)
        return
    if fall.predicted_s is not None:
        yield -4, "the declared credits would end at a different level and time"
    if fall.stalls:
        yield -3, "throttling slows I/O but does not stop it"
    if fall.kind in LOCAL:
        yield -6, f"{fall.kind.value} has no burst credits"
    if fall.kind in REMOTE:
        yield 1, f"it is {fall.kind.value}"
        if fall.before_s <= _MAX_CACHED_S:
            yield -2, f"I/Os took {format_latency(fall.before_s)} before the fall: none waited"
    if fall.change.before > _MAX_BURST_IOPS:
        yield -6, f"no volume type bursts to {format_count(fall.change.before)} IOPS"
    if fall.is_flat(after=False) and fall.is_flat(after=True):
        flat = f"both levels are flat within {100 * MAX_FLAT_SPREAD:.0f} %"
        yield 1, f"{flat}, which is typical of throttling"
    else:
        yield -1, "the levels are not flat"
    yield (
        (1, "the queue was already full before the fall")
        if fall.has_queued
        else (-3, "I/Os did not queue before the fall")
    )
    yield 0, "no baseline limit is declared"


def _accepted(fall: Fall) -> Iterator[Point]:
    """Yield what the speed before a fall says about a cache."""
    bandwidth = fall.change.before * fall.rates.io_bytes
    if fall.before_s > _MAX_ACCEPTED_S:
        yield -3, f"I/Os took {format_latency(fall.before_s)} before the fall: too slow for a cache"
    if bandwidth >= _MIN_MEMORY_BYTES_PER_S and fall.kind not in FLASH:
        yield 2, f"writes were accepted at {format_rate(bandwidth)}, the speed of memory or flash"
    elif fall.before_s <= _MAX_CACHED_S and fall.kind in REMOTE:
        yield 1, f"writes took {format_latency(fall.before_s)}, less than a network round trip"


def _full_cache(fall: Fall) -> Iterator[Point]:
    ratio = fall.change.ratio
    if len(fall.stalls) >= 2 or any(end - begin >= 5 for begin, end in fall.stalls):
        longest = max(end - begin for begin, end in fall.stalls)
        count = "1 stall" if len(fall.stalls) == 1 else f"{len(fall.stalls)} stalls"
        yield 3, f"{count} of up to {format_duration(longest)}"
    yield from _accepted(fall)
    if ratio > _MAX_RATIO_HALF:
        yield -2, f"{100 * ratio:.0f} % of the rate is left: the step is small for a full cache"
    elif fall.became_uneven:
        yield 1, "the level after it is uneven"
    elif not fall.has_queued and fall.before_s <= _MAX_CACHED_S and fall.is_flat(after=True):
        yield 1, "I/Os did not wait before the fall, and are accepted at a flat rate after it"
    if fall.kind in REMOTE:
        yield 1, f"it is {fall.kind.value}"
    if fall.kind in LOCAL:
        yield -3, f"{fall.kind.value} has no write-back cache"
    if fall.view.run.volume.kind is VolumeKind.NBD or fall.view.device.empty:
        yield 0, "the cache itself cannot be observed"


def _garbage_collection(fall: Fall) -> Iterator[Point]:
    if fall.kind in FLASH:
        yield 1, f"it is {fall.kind.value}"
    if fall.kind in REMOTE:
        yield -3, f"it is {fall.kind.value}"
    if fall.kind in {DeviceKind.HARD_DISK, DeviceKind.MEMORY}:
        yield -6, f"{fall.kind.value} needs no garbage collection"
    if fall.became_uneven:
        yield 1, "the level after it is uneven"
    elif fall.is_flat(after=True):
        yield -2, "the level after it is flat"
    if fall.change.ratio <= _MAX_RATIO_FAR:
        yield 1, f"{100 * fall.change.ratio:.0f} % of the rate is left"
    if fall.passes >= _MIN_PASSES:
        yield 3, f"it came after {fall.passes:.1f} times the capacity had been written"
    if fall.earlier.is_written:
        yield 1, "earlier runs wrote to the volume"
    yield from _tail(fall)
    yield from _no_flash(fall)
    if fall.stalls:
        yield -1, "garbage collection slows a drive but does not stop it"


def _tail(fall: Fall) -> Iterator[Point]:
    """Yield what the slowest I/Os say, unless the host may have delayed them."""
    tail_s, after = fall.rates.lat_tail_s, fall.change.after
    if math.isnan(tail_s) or not after:
        return
    after_s = fall.rates.depth / after
    reason = (
        f"p99.9 is {format_latency(tail_s)}, at a mean of {format_latency(after_s)} after the fall"
    )
    if tail_s < _MIN_TAIL_RATIO * after_s:
        yield -1 if fall.became_uneven else -2, reason
    else:
        yield 0 if fall.is_stolen else 2, reason


def _slc_cache(fall: Fall) -> Iterator[Point]:
    if fall.kind in FLASH:
        yield 1, f"it is {fall.kind.value}"
    if fall.kind in REMOTE:
        yield -3, f"it is {fall.kind.value}"
    if fall.kind in {DeviceKind.HARD_DISK, DeviceKind.MEMORY}:
        yield -6, f"{fall.kind.value} has no SLC cache"
    yield 1, "writes fell"
    yield _evenness(fall)
    if fall.stalls:
        yield -3, "an exhausted SLC cache slows a drive but does not stop it"
    share = f"{100 * fall.change.ratio:.0f} % of the rate is left"
    if fall.change.ratio > _MAX_RATIO_HALF:
        yield -1, f"{share}, more than after most exhausted SLC caches"
    elif fall.change.ratio <= _MAX_RATIO_FAR:
        yield 1, share
    yield from _no_flash(fall)


def _thermal(fall: Fall) -> Iterator[Point]:
    if fall.kind in FLASH:
        yield 1, f"it is {fall.kind.value}"
    yield _evenness(fall)
    share = f"{100 * fall.change.ratio:.0f} % of the rate is left"
    if fall.change.ratio > _MAX_RATIO_HALF:
        yield 1, share
    elif fall.change.ratio <= _MAX_RATIO_FAR:
        yield -1, f"only {share}"
    if not fall.is_write:
        yield 1, "reads fell"
    yield from _no_flash(fall)
    yield 0, "temperature and power state are not sampled"


def _evenness(fall: Fall) -> Point:
    if fall.became_uneven:
        return -2, "the level after it is uneven"
    if fall.is_flat(after=True):
        return 1, "the level after it is flat"
    return 0, "the level after it is as uneven as before"


def _no_flash(fall: Fall) -> Iterator[Point]:
    """Yield that the I/Os of a device of unknown kind were too slow for flash."""
    low_s, min_s = fall.rates.lat_low_s, fall.rates.lat_min_s
    is_deep = fall.rates.depth > _MAX_SHALLOW_DEPTH
    fastest_s = min_s if is_deep or math.isnan(low_s) else low_s
    if fall.kind is DeviceKind.UNKNOWN and fastest_s > _MAX_FLASH_S:
        yield -2, f"the fastest I/Os took {format_latency(fastest_s)}, too long for flash"
