"""Parameters of the simulated disk, to and from JSON, and their effects: clock and noise.

The simulation runs inside nbdkit, in the system's Python without volbench's dependencies. The
modules it imports therefore use the standard library only: this one, `simulated_disk` and `plugin`.
"""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from heapq import heappop, heappush
from itertools import accumulate
from math import exp, sqrt
from random import Random
from typing import Any

# Maximum delay that is treated as overhead; longer delays are think time of the client. Noticed by:
# tests/extensions/lab/test_simulated_disk.py::test_a_delay_of_a_millisecond_is_overhead
PATIENCE_S = 0.001
# Resolution of the noise. Noticed by:
# tests/extensions/lab/test_virtual_volume.py::test_jitter_is_autocorrelated_and_has_its_size
CELL_S = 0.1
# Degrees of freedom of the innovations: the fourth moment does not exist. Noticed by:
# tests/extensions/lab/test_virtual_volume.py::test_noise_has_a_heavy_tail
_FREEDOM = 4
# Largest logarithm of a factor: 4.5 times faster or slower. Noticed by:
# tests/extensions/lab/test_virtual_volume.py::test_jitter_is_autocorrelated_and_has_its_size
_MAX_LOG_FACTOR = 1.5


@dataclass(frozen=True)
class ServiceParameters:
    """Service time of a request."""

    latency_s: float  # mean of the fixed part
    sigma: float = 0.0  # shape of a log-normal spread around that mean; 0 for a constant
    # transfer rate of a request; 0 when latency is independent of size
    stream_bytes_per_s: float = 0.0

    def mean_s(self, length_bytes: int) -> float:
        """Return the mean service time of a request."""
        stream = self.stream_bytes_per_s
        return self.latency_s + (length_bytes / stream if stream else 0.0)


@dataclass(frozen=True)
class BucketParameters:
    """A token bucket, initially full: at most `depth` tokens, refilled at `rate` per second."""

    rate: float
    depth: float = 0.0


@dataclass(frozen=True)
class CacheParameters:
    """A write-back cache."""

    size_bytes: int  # capacity
    drain_bytes_per_s: float  # drain rate
    latency_s: float  # latency of a cached write
    # once full, the cache accepts no writes until its content drops to this level; None to accept
    # each write as soon as it fits, at the drain rate
    resume_bytes: int | None = None


@dataclass(frozen=True)
class BurstNoise:
    """Bursts that take a share away: `share` on average, for `length_s`, after pauses."""

    share: float = 0.0
    length_s: float = 1.0
    every_s: float = 10.0


@dataclass(frozen=True)
class NoiseParameters:
    """Noise of a volume and its client."""

    jitter: float = 0.0  # shape of the spread of the speed: standard deviation of its logarithm
    jitter_memory_s: float = 1.0  # time after which its autocorrelation has fallen to 1/e
    # whether limits vary as well, not only the device: below, never above
    reaches_limits: bool = False
    neighbour: BurstNoise = BurstNoise()  # load of other clients on the device
    steal: BurstNoise = BurstNoise()  # CPU time that the hypervisor takes from the client
    slice_s: float = 0.01  # length of a stolen slice


@dataclass(frozen=True)
class DiskParameters:
    """Complete description of the simulated disk."""

    size_bytes: int  # capacity
    block_bytes: int  # unit of first touches
    seed: int  # seed of the random spread
    read: ServiceParameters  # service time of reads
    write: ServiceParameters  # service time of writes
    slots: int = 0  # requests served in parallel; 0 for unlimited
    request_buckets: tuple[BucketParameters, ...] = ()  # buckets that charge one token per request
    byte_buckets: tuple[BucketParameters, ...] = ()  # buckets that charge one token per byte
    first_write_s: float = 0.0  # additional time of the first write of a block
    first_read_s: float = 0.0  # additional time of the first read of a block
    first_touches: int = 0  # blocks that can be prepared in parallel; 0 for unlimited
    restored: bool = False  # whether all blocks contain data initially, as after a snapshot restore
    instant_unwritten: bool = False  # whether reads of unwritten blocks are answered immediately
    cache: CacheParameters | None = None  # write-back cache; None for none
    # pairs of start and length in seconds, without any completion
    stalls: tuple[tuple[float, float], ...] = field(default=())
    # pairs of start in seconds and speed after it; 1 is normal
    steps: tuple[tuple[float, float], ...] = field(default=())
    drift_per_s: float = 0.0  # change of speed per second, as a share of the normal speed
    # whether times count from the first write, not the first request
    clock_starts_at_write: bool = False
    slower_after_bytes: int = 0  # bytes written at full speed; 0 for unlimited
    slower_to: float = 1.0  # speed of writes afterwards, as a share of the full speed
    noise: NoiseParameters | None = None  # around the volume; None for none

    def to_json(self) -> str:
        """Return the parameters as a JSON text."""
        return json.dumps(asdict(self), indent=1)

    @classmethod
    def from_json(cls, text: str) -> DiskParameters:
        """Return the parameters from a text written by `to_json`."""
        values: dict[str, Any] = json.loads(text)
        values |= {name: ServiceParameters(**values[name]) for name in ("read", "write")}
        for name in ("request_buckets", "byte_buckets"):
            values[name] = tuple(BucketParameters(**bucket) for bucket in values[name])
        for name in ("stalls", "steps"):
            values[name] = tuple((pair[0], pair[1]) for pair in values[name])
        if noise := values["noise"]:
            noise |= {name: BurstNoise(**noise[name]) for name in ("neighbour", "steal")}
        optional = {"cache": CacheParameters, "noise": NoiseParameters}
        values |= {name: kind(**values[name]) for name, kind in optional.items() if values[name]}
        return cls(**values)


# Minimum speed under drift, as a share of the normal speed. Noticed by:
# tests/extensions/lab/test_simulated_disk.py::test_drift_is_linear
MIN_DRIFT = 0.1


class Speed:
    """Conversion between real and virtual time of the disk; both start at 0."""

    def __init__(
        self,
        *,
        stalls: Sequence[tuple[float, float]] = (),
        steps: Sequence[tuple[float, float]] = (),
        drift_per_s: float = 0.0,
    ) -> None:
        self._drift = drift_per_s
        self._floor_at = (MIN_DRIFT - 1) / drift_per_s if drift_per_s < 0 else float("inf")
        edges = {0.0, *(at for at, _ in steps)}
        edges |= {edge for at, length in stalls for edge in (at, at + length)}
        self._begins = sorted(edges)
        self._factors = [_factor(at, stalls, steps) for at in self._begins]
        pieces = zip(self._factors, self._begins, self._begins[1:], strict=False)
        grown = (
            factor * (self._drifted(end) - self._drifted(begin)) for factor, begin, end in pieces
        )
        self._works = list(accumulate(grown, initial=0.0))

    def work(self, real_s: float) -> float:
        """Return the virtual time at a real time; before 0 the two are equal."""
        if real_s <= 0:
            return real_s
        piece = bisect_right(self._begins, real_s) - 1
        gone = self._drifted(real_s) - self._drifted(self._begins[piece])
        return self._works[piece] + self._factors[piece] * gone

    def real(self, work_s: float) -> float:
        """Return the real time of a virtual time; for a stall, its end."""
        if work_s < 0:
            return work_s
        piece = bisect_right(self._works, work_s) - 1
        if not self._factors[piece]:  # the end of a final stall
            return self._begins[piece]
        gone = (work_s - self._works[piece]) / self._factors[piece]
        return self._undrifted(self._drifted(self._begins[piece]) + gone)

    def _drifted(self, real_s: float) -> float:
        """Return the integral of the speed under drift alone."""
        until = min(real_s, self._floor_at)
        return until + self._drift * until**2 / 2 + MIN_DRIFT * (real_s - until)

    def _undrifted(self, value: float) -> float:
        """Return the inverse of `_drifted`."""
        if self._floor_at < float("inf") and value > self._drifted(self._floor_at):
            return self._floor_at + (value - self._drifted(self._floor_at)) / MIN_DRIFT
        root = sqrt(max(0.0, 1 + 2 * self._drift * value))
        return 2 * value / (1 + root)


def _factor(
    at: float, stalls: Sequence[tuple[float, float]], steps: Sequence[tuple[float, float]]
) -> float:
    """Return the speed after an edge, without drift."""
    if any(begin <= at < begin + length for begin, length in stalls):
        return 0.0
    passed = [(begin, factor) for begin, factor in steps if begin <= at]
    return max(passed)[1] if passed else 1.0


class Timeline:
    """Conversion between the server's clock and the virtual time of the disk."""

    def __init__(self, parameters: DiskParameters) -> None:
        self._speed = Speed(
            stalls=parameters.stalls, steps=parameters.steps, drift_per_s=parameters.drift_per_s
        )
        self._at_write = parameters.clock_starts_at_write
        self._first: float | None = None
        self._started = False
        self._offset = 0.0

    def work(self, now: float, *, write: bool) -> float:
        """Return the virtual time; the first request, or the first write, starts the clock."""
        if self._first is None:
            self._first = now
        if not self._started and (write or not self._at_write):
            self._started, self._offset, self._first = True, now - self._first, now
        elapsed = now - self._first
        return self._offset + (self._speed.work(elapsed) if self._started else elapsed)

    def real(self, work: float) -> float:
        """Return the server's time at a virtual time."""
        gone = work - self._offset
        return (self._first or 0.0) + (self._speed.real(gone) if self._started else gone)


class Pacer:
    """Matches arrivals with the answers that triggered them."""

    def __init__(self, patience_s: float = PATIENCE_S) -> None:
        self._patience_s = patience_s
        self._due: list[float] = []

    def arrival(self, now: float) -> float:
        """Return the arrival time of a request without overhead."""
        while self._due and self._due[0] < now - self._patience_s:
            heappop(self._due)
        if self._due and self._due[0] <= now:
            return heappop(self._due)
        return now

    def expect(self, due: float) -> None:
        """Record the due time of an answer."""
        heappush(self._due, due)


class _Jitter:
    """Logarithm of the speed, cell by cell."""

    def __init__(self, parameters: NoiseParameters, *, seed: int) -> None:
        self._rng = Random(seed)  # noqa: S311 - a simulation must be repeatable
        self._sigma = parameters.jitter
        self._phi = exp(-CELL_S / parameters.jitter_memory_s)
        self._state = 0.0
        self._factors: list[float] = []

    def factor(self, at: float) -> float:
        cell = max(0, int(at / CELL_S))
        rng = self._rng
        while len(self._factors) <= cell:
            # Student's t: a normal over the root of a chi-square over its degrees of freedom.
            chi = sum(rng.gauss(0, 1) ** 2 for _ in range(_FREEDOM))
            fresh = rng.gauss(0, 1) / sqrt(chi / _FREEDOM) / sqrt(_FREEDOM / (_FREEDOM - 2))
            self._state = self._phi * self._state + sqrt(1 - self._phi**2) * fresh
            logarithm = max(-_MAX_LOG_FACTOR, min(_MAX_LOG_FACTOR, self._sigma * self._state))
            self._factors.append(exp(logarithm))
        return self._factors[cell]


class _Bursts:
    """Share that is taken away, cell by cell: 0 in pauses."""

    def __init__(self, parameters: BurstNoise, *, seed: int) -> None:
        self._rng = Random(seed)  # noqa: S311 - a simulation must be repeatable
        self._parameters = parameters
        self._shares: list[float] = []

    def share(self, at: float) -> float:
        cell = max(0, int(at / CELL_S))
        rng, parameters = self._rng, self._parameters
        while len(self._shares) <= cell:
            pause = int(rng.expovariate(1.0) * parameters.every_s / CELL_S)
            length = 1 + int(rng.expovariate(1.0) * parameters.length_s / CELL_S)
            size = min(0.95, parameters.share * rng.uniform(0.5, 1.5))
            self._shares += [0.0] * pause + [size] * length
        return self._shares[cell]


class Noise:
    """Noise of a scenario."""

    def __init__(self, parameters: NoiseParameters, *, seed: int) -> None:
        self.reaches_limits = parameters.reaches_limits
        self.slice_s = parameters.slice_s
        self._jitter = _Jitter(parameters, seed=3 * seed + 1) if parameters.jitter else None
        self._neighbour, self._steal = (
            _Bursts(burst, seed=3 * seed + number) if burst.share else None
            for number, burst in ((2, parameters.neighbour), (3, parameters.steal))
        )

    def jitter(self, at: float) -> float:
        """Return the speed due to jitter; its median is 1."""
        return self._jitter.factor(at) if self._jitter else 1.0

    def neighbour(self, at: float) -> float:
        """Return the share of the device that neighbours use."""
        return self._neighbour.share(at) if self._neighbour else 0.0

    def steal(self, at: float) -> float:
        """Return the share of the client's CPU time that is stolen."""
        return self._steal.share(at) if self._steal else 0.0

    def delivered(self, done: float) -> float:
        """Return the time at which a client whose CPU is stolen in slices notices a completion.

        A share s of the time is one slice out of every slice / s.
        """
        share = self.steal(done)
        if not share:
            return done
        period = self.slice_s / share
        into = done % period
        return done + self.slice_s - into if into < self.slice_s else done
