"""Parameters of the simulated disk: plain numbers, to and from JSON.

The simulation runs inside nbdkit, in the system's Python without volbench's dependencies. The
modules it imports therefore use the standard library only: this one, `disk_clock`, `flash`,
`noise`, `simulated_disk` and `plugin`.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(frozen=True)
class ServiceParameters:
    """Service time of a request.

    Attributes:
        latency_s: mean of the fixed part.
        sigma: shape of a log-normal spread around that mean; 0 for a constant.
        stream_bytes_per_s: transfer rate of a request; 0 when latency is independent of size.
    """

    latency_s: float
    sigma: float = 0.0
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
    """A write-back cache.

    Attributes:
        size_bytes: capacity.
        drain_bytes_per_s: drain rate.
        latency_s: latency of a cached write.
        resume_bytes: once full, the cache accepts no writes until its content drops to this
            level; None to accept each write as soon as it fits, at the drain rate.
    """

    size_bytes: int
    drain_bytes_per_s: float
    latency_s: float
    resume_bytes: int | None = None


@dataclass(frozen=True)
class FlashParameters:
    """Flash of an SSD; a size or time of 0 leaves that part out.

    Attributes:
        slc_bytes: bytes that are written at full speed until the SLC cache is exhausted.
        slc_after: speed of writes afterwards, of the full one.
        refill_bytes_per_s: rate at which the cache is emptied while the drive is idle.
        spare_bytes: bytes that can be written before the drive has to collect garbage.
        collecting_speed: median speed of writes while it does.
        collecting_sigma: shape of the log-normal spread of that speed over time.
        recover_s: time until writes of a run after it are at full speed again.
        hot_after_s: busy time after which the drive throttles itself.
        hot_speed: speed of all requests from then on.
        cooling: seconds of busy time that a second of rest makes up for.
        ramp_s: length of the climb to full speed after an idle time.
        ramp_speed: speed at its begin.
    """

    slc_bytes: int = 0
    slc_after: float = 1.0
    refill_bytes_per_s: float = 0.0
    spare_bytes: int = 0
    collecting_speed: float = 1.0
    collecting_sigma: float = 0.0
    recover_s: float = 0.0
    hot_after_s: float = 0.0
    hot_speed: float = 1.0
    cooling: float = 1.0
    ramp_s: float = 0.0
    ramp_speed: float = 1.0


@dataclass(frozen=True)
class BurstNoise:
    """Bursts that take a share away: `share` on average, for `length_s`, after pauses."""

    share: float = 0.0
    length_s: float = 1.0
    every_s: float = 10.0


@dataclass(frozen=True)
class NoiseParameters:
    """Noise of a volume and its client.

    Attributes:
        jitter: shape of the spread of the speed: standard deviation of its logarithm.
        jitter_memory_s: time after which its autocorrelation has fallen to 1/e.
        reaches_limits: whether limits vary as well, not only the device: below, never above.
        neighbour: load of other clients on the device.
        steal: CPU time that the hypervisor takes from the client.
        slice_s: length of a stolen slice.
    """

    jitter: float = 0.0
    jitter_memory_s: float = 1.0
    reaches_limits: bool = False
    neighbour: BurstNoise = BurstNoise()
    steal: BurstNoise = BurstNoise()
    slice_s: float = 0.01


@dataclass(frozen=True)
class DiskParameters:
    """Complete description of the simulated disk.

    Attributes:
        size_bytes: capacity.
        block_bytes: unit of first touches.
        seed: seed of the random spread.
        read: service time of reads.
        write: service time of writes.
        slots: requests served in parallel; 0 for unlimited.
        request_buckets: buckets that charge one token per request.
        byte_buckets: buckets that charge one token per byte.
        first_write_s: additional time of the first write of a block.
        first_read_s: additional time of the first read of a block.
        first_touches: blocks that can be prepared in parallel; 0 for unlimited.
        restored: whether all blocks contain data initially, as after a snapshot restore.
        instant_unwritten: whether reads of unwritten blocks are answered immediately.
        cache: write-back cache; None for none.
        stalls: pairs of start and length in seconds, without any completion.
        steps: pairs of start in seconds and speed after it; 1 is normal.
        drift_per_s: change of speed per second, as a share of the normal speed.
        clock_starts_at_write: whether times count from the first write, not the first request.
        flash: of an SSD; None for none.
        noise: around the volume; None for none.
    """

    size_bytes: int
    block_bytes: int
    seed: int
    read: ServiceParameters
    write: ServiceParameters
    slots: int = 0
    request_buckets: tuple[BucketParameters, ...] = ()
    byte_buckets: tuple[BucketParameters, ...] = ()
    first_write_s: float = 0.0
    first_read_s: float = 0.0
    first_touches: int = 0
    restored: bool = False
    instant_unwritten: bool = False
    cache: CacheParameters | None = None
    stalls: tuple[tuple[float, float], ...] = field(default=())
    steps: tuple[tuple[float, float], ...] = field(default=())
    drift_per_s: float = 0.0
    clock_starts_at_write: bool = False
    flash: FlashParameters | None = None
    noise: NoiseParameters | None = None

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
