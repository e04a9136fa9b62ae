"""Parameters of the simulated disk: plain numbers, to and from JSON.

The simulation runs inside nbdkit, in the system's Python without volbench's dependencies. The
modules it imports therefore use the standard library only: this one, `disk_effects`
`noise`, `simulated_disk` and `plugin`.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from typing import Any


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
class FlashParameters:
    """Flash of an SSD; a size or time of 0 leaves that part out."""

    slc_bytes: int = 0  # bytes that are written at full speed until the SLC cache is exhausted
    slc_after: float = 1.0  # speed of writes afterwards, of the full one
    refill_bytes_per_s: float = 0.0  # rate at which the cache is emptied while the drive is idle
    spare_bytes: int = 0  # bytes that can be written before the drive has to collect garbage
    collecting_speed: float = 1.0  # median speed of writes while it does
    collecting_sigma: float = 0.0  # shape of the log-normal spread of that speed over time
    recover_s: float = 0.0  # time until writes of a run after it are at full speed again
    hot_after_s: float = 0.0  # busy time after which the drive throttles itself
    hot_speed: float = 1.0  # speed of all requests from then on
    cooling: float = 1.0  # seconds of busy time that a second of rest makes up for
    ramp_s: float = 0.0  # length of the climb to full speed after an idle time
    ramp_speed: float = 1.0  # speed at its begin


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
    flash: FlashParameters | None = None  # of an SSD; None for none
    noise: NoiseParameters | None = None  # around the volume; None for none

    def to_json(self) -> str:
        """Return the parameters as a JSON text."""
        return json.dumps(asdict(self), indent=1)

    @classmethod
    def from_json(cls, text: str) -> DiskParameters:
        """Return the parameters from a text written by `to_json`."""
        values: dict[str, Any] = json.loads(text)
        values["read"] = ServiceParameters(**values["read"])
        values["write"] = ServiceParameters(**values["write"])
        for name in ("request_buckets", "byte_buckets"):
            values[name] = tuple(BucketParameters(**bucket) for bucket in values[name])
        if values["cache"] is not None:
            values["cache"] = CacheParameters(**values["cache"])
        for name in ("stalls", "steps"):
            values[name] = tuple((pair[0], pair[1]) for pair in values[name])
        if values["flash"] is not None:
            values["flash"] = FlashParameters(**values["flash"])
        if values["noise"] is not None:
            bursts = {name: BurstNoise(**values["noise"][name]) for name in ("neighbour", "steal")}
            values["noise"] = NoiseParameters(**{**values["noise"], **bursts})
        return cls(**values)
