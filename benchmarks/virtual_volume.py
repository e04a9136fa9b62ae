"""Virtual time: what a client finds on a simulated volume, tick by tick instead of I/O by I/O.

A minute of 100,000 IOPS takes some milliseconds: within a tick every rate is taken to be constant,
so that limits, credits, caches and first touches are sums and not events. Latency follows
from Little's law (J. D. C. Little, 1961): a client keeps `iodepth` requests in flight, so its mean
is `iodepth` over the rate. The disk of `simulated_disk` serves each request; both take the same
parameters and the same noise, and a test compares them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from random import Random
from statistics import NormalDist

import numpy as np

from volbench.extensions.lab.disk_model import (
    BucketParameters,
    Noise,
    NoiseParameters,
    Speed,
)
from volbench.extensions.lab.scenario import Scenario

TICK_S = 0.05
_LEAST_IOS = 1e-6  # Less than that in a tick is rounding, at the edges of a stall


@dataclass(frozen=True)
class Load:
    """What a client does."""

    direction: str  # ``read`` or ``write``
    block_bytes: int  # size of a request
    iodepth: int  # requests in flight, over all jobs
    runtime_s: float  # length of the run
    cpu_s: float = 0.0  # CPU time of the client for a request; it has one CPU


@dataclass(frozen=True)
class Tick:
    """A short time of a run."""

    at_s: float  # its begin, since the run began
    ios: float  # requests that completed
    service_s: float  # time that the device needs for a request at that time
    waits: bool  # whether a limit, a full cache or the CPU decided, not the device
    steal: float  # share of CPU time that was stolen


@dataclass
class VirtualSeries:
    """Outcome of a run."""

    load: Load  # what was done
    sigma: float  # shape of the spread of service times
    slice_s: float  # length of a stolen slice
    ticks: list[Tick] = field(default_factory=list)  # in order, without gaps
    # first time of each state of the volume, in seconds since the run began: ``credits``,
    # ``cache-full`` or ``slower``
    began: dict[str, float] = field(default_factory=dict)
    longest_s: float = 0.0  # longest time without a completion


class _Bucket:
    """Token bucket of a limit; a request costs one token, or one for each of its bytes."""

    def __init__(self, parameters: BucketParameters, *, per_byte: bool) -> None:
        self._rate = parameters.rate
        self._depth = self._left = parameters.depth
        self._per_byte = per_byte

    def room(self, load: Load, seconds: float) -> float:
        """Return the requests that may pass within a time."""
        return (self._left + self._rate * seconds) / self._cost(load)

    def take(self, load: Load, ios: float, seconds: float) -> bool:
        """Charge requests; return whether credits are spent."""
        tokens = self._left + self._rate * seconds - ios * self._cost(load)
        self._left = min(self._depth, tokens)
        return self._depth > 0 and self._left < 1e-6 * self._depth

    def rest(self, seconds: float) -> None:
        """Refill."""
        self._left = min(self._depth, self._left + self._rate * seconds)

    def _cost(self, load: Load) -> float:
        return load.block_bytes if self._per_byte else 1


class VirtualVolume:
    """A simulated volume whose clock only moves by what is done with it."""

    def __init__(self, scenario: Scenario) -> None:
        self._parameters = parameters = scenario.parameters()
        self._speed = Speed(
            stalls=parameters.stalls, steps=parameters.steps, drift_per_s=parameters.drift_per_s
        )
        self._noise = Noise(parameters.noise or NoiseParameters(), seed=parameters.seed)
        self._rng = Random(parameters.seed + 1)  # noqa: S311 - a simulation must be repeatable
        self._buckets = [
            *(_Bucket(bucket, per_byte=False) for bucket in parameters.request_buckets),
            *(_Bucket(bucket, per_byte=True) for bucket in parameters.byte_buckets),
        ]
        self._now = 0.0
        self._level = 0.0
        self._is_stalled = False
        self._touched = 0.0
        self._written_bytes = 0.0

    def rest(self, seconds: float) -> None:
        """Leave the volume idle."""
        for bucket in self._buckets:
            bucket.rest(seconds)
        if self._parameters.cache:
            drained = seconds * self._parameters.cache.drain_bytes_per_s
            self._level = max(0.0, self._level - drained)
        self._now += seconds

    def run(self, load: Load) -> VirtualSeries:
        """Do one run, directly after what was done before."""
        parameters = self._parameters
        service = parameters.read if load.direction == "read" else parameters.write
        series = VirtualSeries(
            load, service.sigma, parameters.noise.slice_s if parameters.noise else 0.0
        )
        silent_s = 0.0
        for number in range(round(load.runtime_s / TICK_S)):
            at = number * TICK_S
            work_s = self._speed.work(self._now + TICK_S) - self._speed.work(self._now)
            tick = self._tick(series, at, work_s)
            series.ticks.append(tick)
            silent_s = silent_s + TICK_S - work_s if tick.ios < _LEAST_IOS else 0.0
            series.longest_s = max(series.longest_s, silent_s)
            self._now += TICK_S
        return series

    def _tick(self, series: VirtualSeries, at: float, work_s: float) -> Tick:
        load, steal = series.load, self._noise.steal(self._now)
        jitter = self._noise.jitter(self._now)
        service_s, capacity = self._device(series, at, jitter)
        unhindered = ios = capacity * work_s
        if load.direction == "write" and self._parameters.cache:
            ios = self._cached(series, at, work_s)
            service_s = self._parameters.cache.latency_s
            unhindered = load.iodepth / service_s * work_s
        limit_s = work_s * (min(1.0, jitter) if self._noise.reaches_limits else 1.0)
        ios = min(ios, self._room(load, limit_s))
        if load.cpu_s:
            ios = min(ios, TICK_S * (1 - steal) / load.cpu_s)
        ios = self._stolen(load, ios, steal)
        ios = self._uneven(series, ios, is_limited=ios < 0.98 * unhindered)
        for bucket in self._buckets:
            if bucket.take(load, ios, limit_s):
                series.began.setdefault("credits", at)
        moved_bytes = ios * load.block_bytes
        self._written_bytes += moved_bytes if load.direction == "write" else 0.0
        if self._parameters.cache and load.direction == "write":
            self._level += moved_bytes
        self._touched += moved_bytes / self._parameters.size_bytes
        return Tick(
            at_s=at,
            ios=ios,
            service_s=service_s,
            waits=ios < 0.98 * unhindered,
            steal=steal,
        )

    def _device(self, series: VirtualSeries, at: float, jitter: float) -> tuple[float, float]:
        """Return service time and rate of the device, and note when its writes become slower."""
        parameters, load = self._parameters, series.load
        write = load.direction == "write"
        service = parameters.write if write else parameters.read
        speed = jitter * (1 - self._noise.neighbour(self._now))
        mean_s = service.mean_s(load.block_bytes)
        at_once = min(load.iodepth, parameters.slots or load.iodepth)
        limit = parameters.slower_after_bytes
        if write and limit and self._written_bytes >= limit:
            speed *= parameters.slower_to
            series.began.setdefault("slower", at)
        mean_s /= speed
        cold, penalty_s = self._cold(load)
        capacity = at_once / (mean_s + penalty_s * cold)
        if cold and parameters.first_touches and penalty_s:
            touched = max(1, load.block_bytes // parameters.block_bytes)
            capacity = min(capacity, parameters.first_touches / (penalty_s * touched * cold))
        return mean_s, capacity

    def _cold(self, load: Load) -> tuple[float, float]:
        """Return the share of requests that touch cold blocks, and their additional time."""
        parameters = self._parameters
        write = load.direction == "write"
        penalty_s = parameters.first_write_s if write else parameters.first_read_s
        if not penalty_s or self._touched >= 1:
            return 0.0, penalty_s
        each = max(1, parameters.block_bytes // load.block_bytes)
        return float((1 - self._touched) ** (each - 1)), penalty_s

    def _cached(self, series: VirtualSeries, at: float, work_s: float) -> float:
        """Return the writes that the cache takes, after it has drained."""
        cache, load = self._parameters.cache, series.load
        if cache is None:
            return 0.0
        self._level = max(0.0, self._level - cache.drain_bytes_per_s * work_s)
        if self._is_stalled:
            self._is_stalled = self._level > (cache.resume_bytes or 0)
            return 0.0
        room = max(0.0, (cache.size_bytes - self._level) / load.block_bytes)
        wanted = load.iodepth / cache.latency_s * work_s
        if min(wanted, self._room(load, work_s)) >= room:
            series.began.setdefault("cache-full", at)
            self._is_stalled = cache.resume_bytes is not None
        return min(wanted, room)

    def _stolen(self, load: Load, ios: float, steal: float) -> float:
        """Return the requests of a client that is stopped in slices while its queue goes on."""
        if not steal:
            return ios
        slice_s = self._parameters.noise.slice_s if self._parameters.noise else 0.0
        in_slices = min(ios, load.iodepth / slice_s * TICK_S)
        return ios * (1 - steal) + in_slices * steal

    def _uneven(self, series: VirtualSeries, ios: float, *, is_limited: bool) -> float:
        """Return whole requests: their service times vary, and limits let whole ones pass."""
        if is_limited or not series.sigma or ios < 1:
            return ios
        spread = min(1.0, series.sigma) / math.sqrt(ios)
        return max(0.0, ios * (1 + spread * self._rng.gauss(0, 1)))

    def _room(self, load: Load, seconds: float) -> float:
        return min((bucket.room(load, seconds) for bucket in self._buckets), default=math.inf)


@dataclass(frozen=True)
class Sampled:
    """A run as fio's logs and its result show it."""

    t_s: list[float]  # ends of the intervals
    iops: list[float]  # of the intervals; whole requests
    lat_mean_s: list[float]  # of the intervals; 0 for none
    steal_percent: list[float]  # of the client's CPU time
    # of the whole run by name: ``mean``, ``min``, ``max`` and, for the percentiles of fio's
    # defaults, ``p1`` to ``p99.99``
    latency_s: dict[str, float]


def sampled(series: VirtualSeries, *, sample_s: float) -> Sampled:
    """Return a run in intervals, which are a multiple of a tick."""
    size = round(sample_s / TICK_S)
    count = len(series.ticks) // size
    ios = np.array([tick.ios for tick in series.ticks[: count * size]])
    sums = np.floor(np.cumsum(ios.reshape(count, size).sum(axis=1)) + 1e-6)
    done = np.diff(sums, prepend=0.0)
    steal = np.array([tick.steal for tick in series.ticks[: count * size]])
    depth = series.load.iodepth
    return Sampled(
        t_s=[sample_s * (number + 1) for number in range(count)],
        iops=(done / sample_s).tolist(),
        lat_mean_s=[depth * sample_s / ios if ios else 0.0 for ios in done.tolist()],
        steal_percent=(100 * steal.reshape(count, size).mean(axis=1)).tolist(),
        latency_s=_latency(series),
    )


_NORMAL = np.array([NormalDist().inv_cdf((number + 0.5) / 40) for number in range(40)])
_PERCENTILES = (1, 5, 10, 20, 30, 40, 50, 60, 70, 80, 90, 95, 99, 99.5, 99.9, 99.95, 99.99)


def _latency(series: VirtualSeries) -> dict[str, float]:
    """Return statistics of latency: a mixture over ticks of usual and delayed requests."""
    busy = [tick for tick in series.ticks if tick.ios >= _LEAST_IOS]
    ios = np.array([tick.ios for tick in busy])
    mean_s = np.minimum(series.load.iodepth * TICK_S / ios, 60.0)
    service_s = np.array([tick.service_s for tick in busy])
    steal = np.array([tick.steal for tick in busy])
    waits = np.array([tick.waits for tick in busy])
    shape = series.sigma * np.where(waits, np.minimum(1.0, service_s / mean_s), 1.0)
    usual = mean_s[:, None] * np.exp(shape[:, None] * _NORMAL - shape[:, None] ** 2 / 2)
    # A client that was stopped submits its whole queue at once: the first waits for one request.
    even = (np.arange(8) + 0.5) / 8
    late = service_s[:, None] + even * (mean_s + series.slice_s - service_s)[:, None]
    values = np.concatenate([usual.ravel(), late.ravel()])
    weights = np.concatenate(
        [
            np.repeat(ios * (1 - steal) / usual.shape[1], usual.shape[1]),
            np.repeat(ios * steal / even.size, even.size),
        ]
    )
    order = np.argsort(values)
    reached = np.cumsum(weights[order]) / weights.sum()
    places = np.searchsorted(reached, np.array(_PERCENTILES) / 100 - 1e-12)
    found = values[order][np.minimum(places, len(values) - 1)]
    fastest = float((service_s * np.exp(-3 * series.sigma)).min())
    slowest = max(float(values[weights > 0].max()), series.longest_s + float(mean_s.min()))
    named = {f"p{name:g}": float(value) for name, value in zip(_PERCENTILES, found, strict=True)}
    mean = float(ios @ mean_s / ios.sum())
    return {"mean": mean, "min": min(fastest, float(found[0])), "max": slowest, **named}
