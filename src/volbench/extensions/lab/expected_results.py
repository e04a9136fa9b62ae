"""Expected results of a client on the volume of a scenario.

The client keeps `iodepth` random requests of equal size in flight. Its rate is the minimum of the
limits and the service rate of the device, which by Little's law (J. D. C. Little, 1961) is the
number of requests in service over the mean service time. These numbers are computed analytically,
independently of the simulation.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate, pairwise
from math import inf
from typing import Literal

from volbench.extensions.lab.scenario import Cache, Scenario

Direction = Literal["read", "write"]

# Steps of the integral over a pass; more change no digit that is shown. Noticed by:
# tests/extensions/lab/test_scenario.py::test_the_declared_truth_equals_the_behaviour_of_the_disk
_SLICES = 4000


@dataclass(frozen=True)
class Truth:
    """Expected results of a workload at full speed: without steps, stalls, drift and noise."""

    # sustained: all blocks warm, credits spent, cache full; for a stalling cache, the mean over its
    # cycles
    iops: float
    bw_bytes_per_s: float  # sustained bytes per second
    lat_mean_s: float  # sustained mean latency
    bottleneck: str  # ``latency``, ``iops-limit``, ``bandwidth-limit`` or ``cache``
    cold_iops: float  # IOPS while every request touches cold blocks; `iops` without a penalty
    penalty: float  # 1 - cold / warm
    # time from the first request on a cold volume until the rate exceeds 90 % of the warm rate; 0
    # without a penalty
    warm_90_s: float
    # time until the last block is touched. fio's random map visits each offset once per pass.
    warm_s: float
    fast_iops: float  # IOPS while credits last or the cache has room; `iops` without either
    fast_for_s: float  # duration of `fast_iops`; infinite if it never ends or never occurs
    stall_s: float  # length of each stall of a full cache; 0 for none
    # start in seconds and rate of each step of the scenario
    levels: tuple[tuple[float, float], ...]


def truth(scenario: Scenario, *, direction: Direction, block_bytes: int, iodepth: int) -> Truth:
    """Return the expected results of a client."""
    ceilings = _ceilings(scenario, block_bytes)
    at_once = min(iodepth, scenario.service.slots or iodepth)
    served = at_once / _service_s(scenario, direction, block_bytes)
    if direction == "write" and scenario.cache:
        served = iodepth / scenario.cache.latency_s
    bounds = {**ceilings, "latency": served}
    peak = min(bounds.values())
    lasting, fast_for_s, spent = _after_credits(scenario, block_bytes, peak)
    bottleneck = spent or min(bounds, key=lambda name: bounds[name])
    stall_s = 0.0
    if direction == "write" and scenario.cache:
        lasting, fast_for_s, stall_s = _after_cache(
            scenario.cache, block_bytes, lasting, fast_for_s
        )
        bottleneck = "cache" if lasting < peak and fast_for_s < inf else bottleneck
    warmth = _Warmth.of(scenario, direction, block_bytes, iodepth, ceiling=min(ceilings.values()))
    warm = warmth.rate(0.0)
    return Truth(
        iops=lasting,
        bw_bytes_per_s=lasting * block_bytes,
        lat_mean_s=iodepth / lasting,
        bottleneck=bottleneck,
        cold_iops=min(lasting, warmth.rate(1.0)) if warmth.penalty_s else lasting,
        penalty=1 - warmth.rate(1.0) / warm if warmth.penalty_s else 0.0,
        warm_90_s=warmth.time_to(0.9 * warm),
        warm_s=warmth.time_to(inf),
        fast_iops=peak if fast_for_s < inf else lasting,
        fast_for_s=fast_for_s,
        stall_s=stall_s,
        levels=((0.0, lasting), *((s.at_s, lasting * s.to) for s in scenario.steps)),
    )


def _ceilings(scenario: Scenario, block_bytes: int) -> dict[str, float]:
    """Return the maximum rates under limits and full credits."""
    limits, burst = scenario.limits, scenario.burst
    requests = min(limits.iops or inf, burst.iops.to if burst.iops else inf)
    volume = min(
        limits.bandwidth_bytes_per_s or inf, burst.bandwidth.to if burst.bandwidth else inf
    )
    return {"iops-limit": requests, "bandwidth-limit": volume / block_bytes}


def _service_s(scenario: Scenario, direction: Direction, block_bytes: int) -> float:
    """Return the mean service time of a warm request."""
    services = scenario.service
    service = services.read if direction == "read" else services.write
    return service.parameters().mean_s(block_bytes)


def _after_credits(
    scenario: Scenario, block_bytes: int, peak: float
) -> tuple[float, float, str | None]:
    """Return the rate after credits are spent, the time until the first are, and the bottleneck."""
    burst = scenario.burst
    buckets = []
    if burst.iops:
        buckets.append((burst.iops.baseline, burst.iops.credits, "iops-limit"))
    if burst.bandwidth:
        baseline = burst.bandwidth.baseline / block_bytes
        buckets.append((baseline, burst.bandwidth.credits / block_bytes, "bandwidth-limit"))
    spent = [bucket for bucket in buckets if bucket[0] < peak]
    if not spent:
        return peak, inf, None
    lasting, _, bottleneck = min(spent)
    return lasting, min(size / (peak - baseline) for baseline, size, _ in spent), bottleneck


def _after_cache(
    cache: Cache, block_bytes: int, rate: float, fast_for_s: float
) -> tuple[float, float, float]:
    """Return the rate with a full cache, the time until it is full, and the length of a stall."""
    drain = cache.drain_bytes_per_s
    filling = rate * block_bytes - drain
    if filling <= 0:
        return rate, fast_for_s, 0.0
    full_s = min(fast_for_s, cache.size_bytes / filling)
    if cache.resume_bytes is None:
        return drain / block_bytes, full_s, 0.0
    refill_s = (cache.size_bytes - cache.resume_bytes) / filling
    stall_s = (cache.size_bytes - cache.resume_bytes) / drain
    return rate * refill_s / (refill_s + stall_s), full_s, stall_s


@dataclass(frozen=True)
class _Warmth:
    """Rate as a function of the share of requests that touch cold blocks."""

    ceiling: float  # maximum rate under the limits
    at_once: int  # requests served in parallel
    service_s: float  # mean service time of a warm request
    penalty_s: float  # additional time of a request with cold blocks; 0 for none
    prepared: float  # requests with cold blocks that can be prepared per second
    places: int  # requests in a pass over the volume
    each: int  # requests per block; 1 for those larger than a block

    @classmethod
    def of(
        cls,
        scenario: Scenario,
        direction: Direction,
        block_bytes: int,
        iodepth: int,
        *,
        ceiling: float,
    ) -> _Warmth:
        """Return the warmth model of a workload."""
        penalty_s = scenario.first_write_s if direction == "write" else scenario.first_read_s
        touched = max(1, block_bytes // scenario.block_bytes)
        workers = scenario.first_touch.parallel
        return cls(
            ceiling=ceiling,
            at_once=min(iodepth, scenario.service.slots or iodepth),
            service_s=_service_s(scenario, direction, block_bytes),
            penalty_s=penalty_s * (-(-touched // workers) if workers else 1),
            prepared=workers / (penalty_s * touched) if workers and penalty_s else inf,
            places=scenario.size_bytes // block_bytes,
            each=max(1, scenario.block_bytes // block_bytes),
        )

    def rate(self, cold: float) -> float:
        """Return the IOPS while this share of the requests touches cold blocks."""
        served = self.at_once / (self.service_s + self.penalty_s * cold)
        return min(self.ceiling, served, self.prepared / cold if cold else inf)

    def cold(self, share_done: float) -> float:
        """Return the share of requests that touch cold blocks after part of a pass.

        A block of n requests is still cold for one if none of the other n - 1 preceded it.
        """
        return float((1 - share_done) ** (self.each - 1)) if share_done < 1 else 0.0

    def curve(self) -> list[tuple[float, float]]:
        """Return time and rate from the first request of a pass to its last."""
        if not self.penalty_s:
            return [(0.0, self.rate(0.0))]
        shares = [number / _SLICES for number in range(_SLICES + 1)]
        rates = [self.rate(self.cold(share)) for share in shares]
        middles = [self.rate(self.cold((a + b) / 2)) for a, b in pairwise(shares)]
        times = accumulate((self.places / _SLICES / rate for rate in middles), initial=0.0)
        return list(zip(times, rates, strict=True))

    def time_to(self, rate: float) -> float:
        """Return the time at which a rate is reached, or the end of the pass if it is not."""
        if not self.penalty_s:
            return 0.0
        curve = self.curve()
        return next((at for at, reached in curve if reached >= rate), curve[-1][0])
