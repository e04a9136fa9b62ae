"""Random simulated volumes, each with a cause that is known, for `benchmarks/truth.py`.

What is true follows from the scenario alone: the kind says the cause, the parameters say levels,
and the simulation records when a state began. Nothing here knows how causes are found.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from math import exp, log
from random import Random
from typing import Any

from benchmarks.virtual_volume import Load

from volbench.extensions.lab.expected_results import Direction, truth
from volbench.extensions.lab.scenario import Scenario
from volbench.model.profile.profile_settings import Limits
from volbench.model.results.finding import Cause

NOISES = (0, 5, 20)
"""Percent: size of jitter, of stolen CPU time and of other clients' I/O."""
SIZE = 8 * 1024**3
KIB = 1024
_RAMP_STEPS = 40
_CAPACITIES = (500 * 10**9, 10**12, 2 * 10**12, 4 * 10**12)


@dataclass(frozen=True)
class Case:
    """A campaign on a simulated volume.

    Attributes:
        kind: what it is an example of.
        noise: percent.
        scenario: the volume.
        loads: runs in order, each after a rest; the last one is judged.
        platform: ``nvme``, ``cloud``, ``nbd`` or ``unknown``: what the host says of it.
        truth: the cause.
        level: at the end, in the unit of the cause; None where the kind has none.
        instant: name of the state whose begin is the instant, or the instant itself.
        penalty: 1 - cold / warm; None without first touches.
        declared: limits that the user declares.
        capacity: bytes that the host reports; the scenario's own where it is 0.
    """

    kind: str
    noise: int
    scenario: Scenario
    loads: tuple[Load, ...]
    platform: str
    truth: Cause
    level: float | None = None
    instant: str | float | None = None
    penalty: float | None = None
    declared: Limits = field(default_factory=Limits)
    capacity: int = 0

    @property
    def is_steady(self) -> bool:
        """Whether nothing changes in it."""
        return self.kind in STEADY


class Draw:
    """Random parameters of a case."""

    def __init__(self, seed: int) -> None:
        self.rng = Random(seed)  # noqa: S311 - a benchmark must be repeatable

    def between(self, low: float, high: float) -> float:
        """Return a number whose logarithm is uniform."""
        return exp(self.rng.uniform(log(low), log(high)))

    def even(self, low: float, high: float) -> float:
        """Return a uniform number."""
        return self.rng.uniform(low, high)

    def one_of(self, *values: Any) -> Any:  # noqa: ANN401 - whatever is chosen from
        """Return one of some values."""
        return self.rng.choice(values)

    def often(self, share: float = 0.5) -> bool:
        """Return True with a probability."""
        return self.rng.random() < share


Parts = dict[str, Any]


def draw_case(seed: int) -> Case:
    """Return the case of a seed: kinds and noises take turns, everything else is random."""
    number = seed // 2  # seeds of either parity have every kind
    kind = list(KINDS)[number % len(KINDS)]
    noise = NOISES[number // len(KINDS) % len(NOISES)]
    draw = Draw(seed)
    parts = KINDS[kind](draw)
    document = {"name": kind, "size": SIZE, "seed": seed, "restored": True, **parts.pop("volume")}
    if noise:
        document["noise"] = _noise(draw, noise)
    return Case(kind=kind, noise=noise, scenario=Scenario.model_validate(document), **parts)


def _noise(draw: Draw, percent: int) -> Parts:
    share = percent / 100
    block: Parts = {
        "jitter": {
            "size": share,
            "memory": draw.between(0.1, 2),
            "of": draw.one_of("device", "volume"),
        }
    }
    if draw.often():
        block["steal"] = {"share": share, "for": draw.between(0.3, 4), "every": draw.between(2, 20)}
    if draw.often():
        block["neighbour"] = {"share": share, "for": 0.3, "every": draw.between(2, 20)}
    return block


def _device(draw: Draw, low: float = 2e-4, high: float = 1e-2) -> Parts:
    service = {"latency": draw.between(low, high), "sigma": draw.even(0.05, 0.4)}
    return {"read": service, "write": service}


def _load(draw: Draw, *, depth: int, block: int = 4 * KIB, rw: str = "", most: float = 120) -> Load:
    return Load(
        direction=rw or draw.one_of("read", "write"),
        block_bytes=block,
        iodepth=depth,
        runtime_s=round(draw.between(30, most)),
    )


def _place(draw: Draw) -> str:
    return str(draw.one_of("cloud", "cloud", "nbd", "unknown"))


def _latency(draw: Draw) -> Parts:
    service, depth = _device(draw, 8e-5, 2e-2), draw.one_of(1, 1, 2, 4, 8)
    load = _load(draw, depth=depth)
    level = depth / service["read"]["latency"]
    return {
        "volume": {"service": service},
        "loads": (load,),
        "platform": draw.one_of("nvme", "cloud", "nbd", "unknown"),
        "truth": Cause.LATENCY,
        "level": level,
    }


def _iops_limit(draw: Draw) -> Parts:
    service, limit = _device(draw), round(draw.between(300, 20_000))
    depth = max(2, round(draw.even(2.5, 12) * limit * service["read"]["latency"]))
    load = _load(draw, depth=depth, block=draw.one_of(4, 8, 16) * KIB)
    loads = (Load(load.direction, load.block_bytes, 2 * depth, 30), load)
    return {
        "volume": {"service": service, "limits": {"iops": limit}},
        "loads": loads if draw.often() else loads[1:],
        "platform": _place(draw),
        "truth": Cause.IOPS_LIMIT,
        "level": limit,
        "declared": Limits(iops=limit) if draw.often() else Limits(),
    }


def _bandwidth_limit(draw: Draw) -> Parts:
    service, limit = _device(draw, 3e-4), round(draw.between(20e6, 1e9))
    block = draw.one_of(16, 64, 128, 256, 1024) * KIB
    depth = max(2, round(draw.even(2.5, 12) * limit / block * service["read"]["latency"]))
    load = _load(draw, depth=depth, block=block)
    loads = (Load(load.direction, 2 * block, depth, 30), load)
    return {
        "volume": {"service": service, "limits": {"bandwidth": limit}},
        "loads": loads if draw.often() or block < 64 * KIB else loads[1:],
        "platform": _place(draw),
        "truth": Cause.BANDWIDTH_LIMIT,
        "level": limit,
        "declared": Limits(bandwidth_bytes_per_s=limit) if draw.often() else Limits(),
    }


def _credits(draw: Draw) -> Parts:
    service, base = _device(draw, 2e-4, 4e-3), round(draw.between(200, 5000))
    burst = round(base * draw.even(1.4, 8))
    depth = max(2, round(draw.even(3, 10) * burst * service["read"]["latency"]))
    load = _load(draw, depth=depth, most=300)
    lasts = load.runtime_s * draw.even(0.2, 0.7)
    held = round((burst - base) * lasts)
    known = Limits(iops=base, burst_iops=burst, burst_ios=held)
    return {
        "volume": {
            "service": service,
            "burst": {"iops": {"to": burst, "baseline": base, "credits": held}},
        },
        "loads": (load,),
        "platform": _place(draw),
        "truth": Cause.CREDITS,
        "level": base,
        "instant": "credits",
        "declared": known if draw.often() else Limits(),
    }


def _cache_full(draw: Draw) -> Parts:
    service, fast_s = _device(draw, 1e-3, 1e-2), draw.between(2e-5, 2e-4)
    depth, block = draw.one_of(1, 4, 8, 16), draw.one_of(4, 16, 64) * KIB
    load = _load(draw, depth=depth, block=block, rw="write")
    fast = depth / fast_s * block
    drain = fast * draw.even(0.05, 0.45)
    size = round((fast - drain) * load.runtime_s * draw.even(0.15, 0.6))
    cache: Parts = {"size": size, "drain": drain, "latency": fast_s}
    if draw.often(0.4):
        cache |= {"when_full": "stall", "resume_below": round(size - drain * draw.even(1.5, 8))}
        cache["resume_below"] = max(size // 4, cache["resume_below"])
    return {
        "volume": {"service": service, "cache": cache},
        "loads": (load,),
        "platform": _place(draw),
        "truth": Cause.SLOWER,
        "level": drain / block,
        "instant": "cache-full",
    }


def _drive(draw: Draw) -> tuple[Parts, int, float]:
    """Return the service times of an SSD, a queue depth and its rate of 4 KiB writes."""
    latency, depth = draw.between(3e-5, 1.5e-4), draw.one_of(4, 16, 32, 64)
    service = {"latency": latency, "sigma": draw.even(0.1, 0.5)}
    return {"read": service, "write": service, "slots": 64}, depth, depth / latency


def _slc_cache(draw: Draw) -> Parts:
    service, depth, iops = _drive(draw)
    load = _load(draw, depth=depth, rw="write")
    after = draw.even(0.1, 0.5)
    moved = iops * 4096 * load.runtime_s * draw.even(0.15, 0.6)
    return {
        "volume": {
            "service": service,
            "slower": {"after": round(moved), "to": after},
        },
        "loads": (load,),
        "platform": "nvme",
        "capacity": draw.one_of(*_CAPACITIES),
        "truth": Cause.SLOWER,
        "level": iops * after,
        "instant": "slower",
    }


def _ramp_up(draw: Draw) -> Parts:
    service, depth, iops = _drive(draw)
    load = _load(draw, depth=depth)
    length_s, first = draw.even(4, 12), draw.even(0.2, 0.5)
    shares = [number / _RAMP_STEPS for number in range(_RAMP_STEPS + 1)]
    steps = [{"at": length_s * share, "to": first + (1 - first) * share} for share in shares]
    return {
        "volume": {"service": service, "steps": steps},
        "loads": (load,),
        "platform": "nvme",
        "capacity": draw.one_of(*_CAPACITIES),
        "truth": Cause.RAMP_UP,
        "level": iops,
    }


def _neighbour(draw: Draw) -> Parts:
    service, depth = _device(draw), draw.one_of(1, 4, 8, 16)
    load = _load(draw, depth=depth)
    at = load.runtime_s * draw.even(0.2, 0.5)
    length = min(draw.even(4, 15), load.runtime_s * 0.4)
    steps = [{"at": at, "to": draw.even(0.3, 0.75)}, {"at": at + length, "to": 1}]
    return {
        "volume": {"service": service, "steps": steps},
        "loads": (load,),
        "platform": draw.one_of("cloud", "nbd"),
        "truth": Cause.NEIGHBOUR,
        "level": depth / service["read"]["latency"],
        "instant": at,
    }


def _warming(draw: Draw) -> Parts:
    service, depth = _device(draw, 3e-4, 3e-3), draw.one_of(1, 4, 16, 32)
    rw, block = draw.one_of("read", "write"), draw.one_of(32, 64, 128) * KIB
    load = _load(draw, depth=depth, rw=rw, most=180)
    latency, penalty = service["read"]["latency"], draw.between(3, 30)
    warm = depth / latency
    volume: Parts = {"block": block, "first_touch": {rw: f"{penalty}x"}}
    limit = draw.often()
    if limit:
        warm *= draw.even(0.5, 0.9)
        volume["limits"] = {"iops": warm}
    volume |= {"service": service, "restored": rw == "read"}
    volume["size"] = _visible_size(volume, load, goal_s=draw.even(5, load.runtime_s / 3))
    cold = depth / (latency * penalty)
    return {
        "volume": volume,
        "loads": (load,),
        "platform": _place(draw),
        "truth": Cause.WARMING,
        "level": warm,
        "penalty": 1 - cold / warm,
    }


def _visible_size(volume: Parts, load: Load, *, goal_s: float) -> int:
    """Return the size at which a cold volume needs that long to be nearly warm."""
    block, size = volume["block"], 64 * 1024**2
    for _ in range(8):
        scenario = Scenario.model_validate({"name": "warming", **volume, "size": size})
        direction: Direction = "write" if load.direction == "write" else "read"
        known = truth(scenario, direction=direction, block_bytes=4096, iodepth=load.iodepth)
        size = min(16 * 1024**3, max(64, round(size / block * goal_s / known.warm_90_s)) * block)
    return size


def _stall(draw: Draw) -> Parts:
    service, depth = _device(draw), draw.one_of(1, 4, 8, 16)
    load = _load(draw, depth=depth)
    at = load.runtime_s * draw.even(0.2, 0.7)
    return {
        "volume": {"service": service, "stalls": [{"at": at, "for": draw.even(1.5, 4.5)}]},
        "loads": (load,),
        "platform": _place(draw),
        "truth": Cause.STALL,
        "level": depth / service["read"]["latency"],
        "instant": at,
    }


def _cpu(draw: Draw) -> Parts:
    service, depth, iops = _drive(draw)
    cpu_s = draw.even(1.3, 4) / iops
    load = _load(draw, depth=depth)
    return {
        "volume": {"service": service},
        "loads": (Load(load.direction, 4096, depth, load.runtime_s, cpu_s),),
        "platform": draw.one_of("nvme", "cloud", "unknown"),
        "truth": Cause.CPU,
        "level": 1 / cpu_s,
    }


def _step(draw: Draw) -> Parts:
    service, depth = _device(draw), draw.one_of(1, 2, 4)
    load = _load(draw, depth=depth)
    at, to = load.runtime_s * draw.even(0.25, 0.7), draw.even(0.4, 0.8)
    return {
        "volume": {"service": service, "steps": [{"at": at, "to": to}]},
        "loads": (load,),
        "platform": _place(draw),
        "truth": Cause.SLOWER,
        "level": depth / service["read"]["latency"] * to,
        "instant": at,
    }


def _drift(draw: Draw) -> Parts:
    service, depth = _device(draw), draw.one_of(1, 4, 8)
    load = _load(draw, depth=depth)
    fall = min(1.0, draw.even(0.25, 0.6) / load.runtime_s * 60)
    return {
        "volume": {"service": service, "drift": -100 * fall},
        "loads": (load,),
        "platform": _place(draw),
        "truth": Cause.UNKNOWN,
    }


KINDS: dict[str, Callable[[Draw], Parts]] = {
    "latency": _latency,
    "iops-limit": _iops_limit,
    "bandwidth-limit": _bandwidth_limit,
    "cpu": _cpu,
    "credits": _credits,
    "cache-full": _cache_full,
    "slc-cache": _slc_cache,
    "ramp-up": _ramp_up,
    "neighbour": _neighbour,
    "warming": _warming,
    "stall": _stall,
    "step": _step,
    "drift": _drift,
}
STEADY = frozenset({"latency", "iops-limit", "bandwidth-limit", "cpu"})
