"""Results that a client must find on the volume of a scenario.

A client keeps `iodepth` requests of one size in flight, at random places, without a break. Its rate
is then the least of what the limits allow and what the device serves: by Little's law (J. D. C.
Little, 1961) the requests it works on at once over the mean time of one. Nothing here is simulated:
it is a second way to the same numbers.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate, pairwise
from math import inf
from typing import Literal

from volbench.lab.disk_parameters import ServiceParameters
from volbench.lab.scenario import Scenario
from volbench.lab.scenario_fields import Cache

Direction = Literal["read", "write"]

_SLICES = 4000


@dataclass(frozen=True)
class Truth:
    """What is true for one workload at the normal speed, before any step, stall or drift.

    Attributes:
        iops: in the long run: every block warm, credits spent, cache full. A cache that stalls
            gives the mean over its cycles.
        bw_bytes_per_s: the same in bytes.
        lat_mean_s: mean latency in the long run.
        bottleneck: ``latency``, ``iops-limit``, ``bandwidth-limit`` or ``cache``.
        cold_iops: while every request touches cold blocks; `iops` without a penalty.
        penalty: 1 - cold / warm.
        warm_90_s: when the rate passes 90 % of the warm one, counted from the first request on a
            volume that is cold; 0 without a penalty.
        warm_s: when the last block was touched. fio's random map visits each place once a pass.
        fast_iops: while credits last or the cache has room; `iops` without either.
        fast_for_s: how long that is; infinite when it never ends, or was never there.
        stall_s: how long a full cache takes nothing, each time; 0 for never.
        levels: begin in seconds and rate, as the scenario's steps have it.
    """

    iops: float
    bw_bytes_per_s: float
    lat_mean_s: float
    bottleneck: str
    cold_iops: float
    penalty: float
    warm_90_s: float
    warm_s: float
    fast_iops: float
    fast_for_s: float
    stall_s: float
    levels: tuple[tuple[float, float], ...]


def truth(scenario: Scenario, *, direction: Direction, block_bytes: int, iodepth: int) -> Truth:
    """Return what a client must find.

    Args:
        scenario: the volume.
        direction: ``read`` or ``write``; reads find written blocks.
        block_bytes: size of a request.
        iodepth: requests in flight, of all jobs together.
    """
    ceilings = _ceilings(scenario, block_bytes)
    served, bottleneck = _served(scenario, direction, block_bytes, iodepth)
    bounds = {**ceilings, bottleneck: served}
    peak = min(bounds.values())
    lasting, fast_for_s, word = _after_credits(scenario, block_bytes, peak)
    bottleneck = word or min(bounds, key=lambda name: bounds[name])
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
        levels=_levels(scenario, lasting),
    )


def warm_up(
    scenario: Scenario, *, direction: Direction, block_bytes: int, iodepth: int
) -> list[tuple[float, float]]:
    """Return the curve of a cold volume: seconds since the first request, and IOPS.

    Args:
        scenario: the volume; credits, cache, steps, stalls and drift are left out.
        direction: ``read`` or ``write``.
        block_bytes: size of a request.
        iodepth: requests in flight.
    """
    ceiling = min(_ceilings(scenario, block_bytes).values())
    warmth = _Warmth.of(scenario, direction, block_bytes, iodepth, ceiling=ceiling)
    return list(warmth.curve())


def _ceilings(scenario: Scenario, block_bytes: int) -> dict[str, float]:
    """Return the highest rates that limits and full credits allow."""
    limits, burst = scenario.limits, scenario.burst
    requests = min(limits.iops or inf, burst.iops.to if burst.iops else inf)
    volume = min(
        limits.bandwidth_bytes_per_s or inf, burst.bandwidth.to if burst.bandwidth else inf
    )
    return {"iops-limit": requests, "bandwidth-limit": volume / block_bytes}


def _service(scenario: Scenario, direction: Direction) -> ServiceParameters:
    parameters = scenario.parameters()
    return parameters.read if direction == "read" else parameters.write


def _served(
    scenario: Scenario, direction: Direction, block_bytes: int, iodepth: int
) -> tuple[float, str]:
    """Return the rate of warm requests without limits, and what it is called."""
    if direction == "write" and scenario.cache:
        return iodepth / scenario.cache.latency_s, "latency"
    at_once = min(iodepth, scenario.service.slots or iodepth)
    return at_once / _service(scenario, direction).mean_s(block_bytes), "latency"


def _after_credits(
    scenario: Scenario, block_bytes: int, peak: float
) -> tuple[float, float, str | None]:
    """Return the rate when credits are spent, when the first are, and which cap binds then."""
    burst = scenario.burst
    purses = []
    if burst.iops:
        purses.append((burst.iops.baseline, burst.iops.credits, "iops-limit"))
    if burst.bandwidth:
        baseline = burst.bandwidth.baseline / block_bytes
        purses.append((baseline, burst.bandwidth.credits / block_bytes, "bandwidth-limit"))
    spent = [purse for purse in purses if purse[0] < peak]
    if not spent:
        return peak, inf, None
    lasting, _, word = min(spent)
    return lasting, min(size / (peak - baseline) for baseline, size, _ in spent), word


def _after_cache(
    cache: Cache, block_bytes: int, rate: float, fast_for_s: float
) -> tuple[float, float, float]:
    """Return the rate when the cache is full, when it is, and how long it stalls each time."""
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


def _levels(scenario: Scenario, iops: float) -> tuple[tuple[float, float], ...]:
    return ((0.0, iops), *((step.at_s, iops * step.to) for step in scenario.steps))


@dataclass(frozen=True)
class _Warmth:
    """How the rate depends on the share of requests that touch cold blocks.

    Attributes:
        ceiling: of the limits.
        at_once: requests worked on at once.
        service_s: mean time of a warm request.
        penalty_s: what a request with cold blocks waits in addition; 0 for none.
        prepared: requests with cold blocks that can be prepared in a second.
        places: requests in a pass over the volume.
        each: requests that fit into a block; 1 for those larger than a block.
    """

    ceiling: float
    at_once: int
    service_s: float
    penalty_s: float
    prepared: float
    places: int
    each: int

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
        """Return that of a workload."""
        penalty_s = scenario.first_write_s if direction == "write" else scenario.first_read_s
        touched = max(1, block_bytes // scenario.block_bytes)
        workers = scenario.first_touch.parallel
        return cls(
            ceiling=ceiling,
            at_once=min(iodepth, scenario.service.slots or iodepth),
            service_s=_service(scenario, direction).mean_s(block_bytes),
            penalty_s=penalty_s * (-(-touched // workers) if workers else 1),
            prepared=workers / (penalty_s * touched) if workers and penalty_s else inf,
            places=scenario.size_bytes // block_bytes,
            each=max(1, scenario.block_bytes // block_bytes),
        )

    def rate(self, cold: float) -> float:
        """Return IOPS while this share of the requests touches cold blocks."""
        served = self.at_once / (self.service_s + self.penalty_s * cold)
        return min(self.ceiling, served, self.prepared / cold if cold else inf)

    def cold(self, share_done: float) -> float:
        """Return the share of requests that touch cold blocks when part of a pass is done.

        A block of n places is still cold for a request if none of the other n - 1 came before it.
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
        """Return when a rate is reached, or the end of the pass if it never is before."""
        if not self.penalty_s:
            return 0.0
        curve = self.curve()
        return next((at for at, found in curve if found >= rate), curve[-1][0])
