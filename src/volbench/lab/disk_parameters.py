"""What the simulated disk is told: plain numbers, to and from JSON.

The simulation runs inside nbdkit, in the system's Python and without volbench's dependencies.
Everything it imports is therefore made of the standard library alone: this module, `disk_clock`,
`simulated_disk` and `plugin`.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(frozen=True)
class ServiceParameters:
    """How long the device works on one request.

    Attributes:
        latency_s: mean of the fixed part.
        sigma: shape of a log-normal spread around that mean; 0 for a constant.
        stream_bytes_per_s: speed of one request's bytes; 0 when size costs nothing.
    """

    latency_s: float
    sigma: float = 0.0
    stream_bytes_per_s: float = 0.0

    def mean_s(self, length_bytes: int) -> float:
        """Return the mean time of a request of some length."""
        stream = self.stream_bytes_per_s
        return self.latency_s + (length_bytes / stream if stream else 0.0)


@dataclass(frozen=True)
class BucketParameters:
    """A token bucket: `depth` tokens at the start and at most, refilled at `rate` a second."""

    rate: float
    depth: float = 0.0


@dataclass(frozen=True)
class CacheParameters:
    """A write-back cache.

    Attributes:
        size_bytes: what it holds.
        drain_bytes_per_s: how fast it empties.
        latency_s: of a write that it takes.
        resume_bytes: after it was full, no write is taken until it holds this little; None takes
            each as soon as it fits, which is at the speed of draining.
    """

    size_bytes: int
    drain_bytes_per_s: float
    latency_s: float
    resume_bytes: int | None = None


@dataclass(frozen=True)
class DiskParameters:
    """Everything the simulated disk is.

    Attributes:
        size_bytes: capacity.
        block_bytes: unit of first touches.
        seed: of the random spread.
        read: service of reads.
        write: service of writes.
        slots: requests worked on at once; 0 for any number.
        request_buckets: each request takes one token of each.
        byte_buckets: each request takes a token a byte of each.
        first_write_s: time a block takes when it is first written.
        first_read_s: time a block takes when it is first read.
        first_touches: blocks that can be prepared at once; 0 for any number.
        restored: whether every block holds something already, such as a snapshot.
        instant_unwritten: whether reads of blocks that hold nothing are answered at once.
        cache: write-back cache; None for none.
        stalls: pairs of begin and length in seconds: nothing moves meanwhile.
        steps: pairs of begin in seconds and speed from then on; 1 is normal.
        drift_per_s: change of the speed a second, as a share of the normal one.
        clock_starts_at_write: whether times count from the first write, not the first request.
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

    def to_json(self) -> str:
        """Return the parameters as a JSON text."""
        return json.dumps(asdict(self), indent=1)

    @classmethod
    def from_json(cls, text: str) -> DiskParameters:
        """Return the parameters of a text that `to_json` wrote."""
        values: dict[str, Any] = json.loads(text)
        values["read"] = ServiceParameters(**values["read"])
        values["write"] = ServiceParameters(**values["write"])
        for name in ("request_buckets", "byte_buckets"):
            values[name] = tuple(BucketParameters(**bucket) for bucket in values[name])
        if values["cache"] is not None:
            values["cache"] = CacheParameters(**values["cache"])
        for name in ("stalls", "steps"):
            values[name] = tuple((pair[0], pair[1]) for pair in values[name])
        return cls(**values)
