"""Models of the parts of a scenario file."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field, WithJsonSchema, model_validator

from volbench.errors import InputError
from volbench.model.base import Frozen
from volbench.model.document.document_model import (
    Document,
    Duration,
    Integer,
    Number,
    Rate,
    Size,
    parsed,
    value_schema,
)
from volbench.model.document.located_errors import Fault, reject
from volbench.units import parse_duration


def _percent(text: str) -> float:
    return _number(text.strip().removesuffix("%"))


def _share(text: str) -> float:
    return _percent(text) / 100 if text.strip().endswith("%") else _number(text)


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError as error:
        raise InputError(
            f"must be a number, not {text!r}", hint="write it like 1100 or 0.5"
        ) from error


Bytes = Annotated[Size, Field(gt=0)]
Seconds = Annotated[Duration, Field(ge=0)]
BytesPerSecond = Annotated[Rate, Field(gt=0)]
Positive = Annotated[Number, Field(gt=0)]
AtOnce = Annotated[Integer, Field(ge=1, le=4096)]
Share = Annotated[
    float, parsed(_share), Field(gt=0, le=1, allow_inf_nan=False), value_schema("percent")
]
Percent = Annotated[float, parsed(_percent), Field(allow_inf_nan=False), value_schema("percent")]


class Service(Document):
    """Service time of a request; a single value is its latency."""

    shorthand: ClassVar[str] = "latency"

    latency_s: Seconds = Field(alias="latency", gt=0, description="Mean of the fixed part.")
    sigma: Number = Field(
        default=0.0, ge=0, le=2, description="Shape of a log-normal spread around that mean."
    )
    stream_bytes_per_s: BytesPerSecond | None = Field(
        default=None, alias="stream", description="Transfer rate of a request."
    )


class Services(Document):
    """Service times of reads and writes."""

    read: Service = Field(description="Service time of a read.")
    write: Service = Field(description="Service time of a write.")
    slots: AtOnce | None = Field(
        default=None, description="Requests served in parallel; unlimited by default."
    )


class VolumeLimits(Document):
    """Limits of the provider, shared by reads and writes."""

    iops: Positive | None = Field(default=None, description="I/Os per second.")
    bandwidth_bytes_per_s: BytesPerSecond | None = Field(
        default=None, alias="bandwidth", description="Bytes per second."
    )


class _Credits(Document):
    """Credits of a full bucket, and the rates with and without them."""

    to: float
    baseline: float

    @model_validator(mode="after")
    def _above(self) -> Self:
        if self.to <= self.baseline:
            message = f"must be above baseline ({self.baseline:g}), not {self.to:g}"
            reject(Fault(message, at=("to",)))
        return self


class IopsBurst(_Credits):
    """Credits for I/Os; each I/O costs one."""

    to: Positive = Field(description="Rate while credits last.")
    baseline: Positive = Field(description="Rate afterwards, at which credits refill.")
    credits: Positive = Field(description="Credits in a full bucket.")


class BandwidthBurst(_Credits):
    """Credits for bytes."""

    to: BytesPerSecond = Field(description="Rate while credits last.")
    baseline: BytesPerSecond = Field(description="Rate afterwards, at which credits refill.")
    credits: Bytes = Field(description="Credits in a full bucket.")


class Burst(Document):
    """Burst credits."""

    iops: IopsBurst | None = Field(default=None, description="Credits for I/Os.")
    bandwidth: BandwidthBurst | None = Field(default=None, description="Credits for bytes.")


class Penalty(Frozen):
    """Cost of a first touch, in seconds or as a multiple of the service latency."""

    seconds: float = 0.0
    times: float | None = None

    def of(self, service: Service) -> float:
        """Return the cost in seconds."""
        if self.times is None:
            return self.seconds
        return (self.times - 1) * service.latency_s


def _penalty(text: str) -> Penalty:
    if not text.strip().lower().endswith("x"):
        return Penalty(seconds=parse_duration(text))
    times = _number(text.strip()[:-1])
    if not 1 <= times < float("inf"):
        raise InputError(f"must be at least 1x, not {text}", hint="write it like 20x or 5ms")
    return Penalty(times=times)


Touch = Annotated[
    Penalty,
    parsed(_penalty),
    WithJsonSchema({"type": ["string", "number"], "$comment": "duration, or a factor such as 20x"}),
]


class FirstTouch(Document):
    """Cost of the first touch of a block; a request waits for all blocks it needs."""

    write: Touch = Field(default=Penalty(), description="Cost for a write: 5ms, or 20x.")
    read: Touch = Field(default=Penalty(), description="Cost for a read, in the same form.")
    parallel: AtOnce | None = Field(
        default=None, description="Blocks prepared in parallel; unlimited by default."
    )


class Cache(Document):
    """Write-back cache that accepts writes at low latency until it is full."""

    size_bytes: Bytes = Field(alias="size", description="Capacity.")
    drain_bytes_per_s: BytesPerSecond = Field(alias="drain", description="Drain rate.")
    latency_s: Seconds = Field(
        default=0.0001, alias="latency", gt=0, description="Latency of a cached write."
    )
    when_full: Literal["drain", "stall"] = Field(
        default="drain",
        description="drain: writes continue at the drain rate; stall: no writes until "
        "`resume_below`.",
    )
    resume_bytes: Bytes | None = Field(
        default=None, alias="resume_below", description="Fill level at which a stall ends."
    )

    @model_validator(mode="after")
    def _stall_has_an_end(self) -> Self:
        if (self.when_full == "stall") != (self.resume_bytes is not None):
            reject(Fault("when_full: stall and resume_below go together"))
        if self.resume_bytes is not None and self.resume_bytes >= self.size_bytes:
            reject(Fault("must be below size", at=("resume_below",)))
        return self


class Stall(Document):
    """Interval without completions."""

    at_s: Seconds = Field(alias="at", description="Start.")
    length_s: Seconds = Field(alias="for", gt=0, description="Length.")


class Step(Document):
    """Change of speed."""

    at_s: Seconds = Field(alias="at", description="Time of the change.")
    to: Positive = Field(description="New speed, as a multiple of the initial one.")


class SlcCache(Document):
    """Part of the flash that takes writes fast until it is full."""

    size_bytes: Bytes = Field(alias="size", description="Size of the cache.")
    after: Share = Field(description="Speed of writes once it is full, such as 30%.")
    refill_bytes_per_s: BytesPerSecond = Field(
        default=1e9, alias="refill", description="Rate at which it empties while idle."
    )


class GarbageCollection(Document):
    """Write cliff: spare blocks are used up, and each write has to wait for an erase."""

    spare_bytes: Bytes = Field(alias="spare", description="Bytes until spare blocks are used up.")
    speed: Share = Field(description="Median speed of writes while it collects.")
    sigma: Number = Field(
        default=0.4, ge=0, le=2, description="Shape of the log-normal spread over time."
    )
    recover_s: Seconds = Field(
        default=0.0,
        alias="recover",
        description="Time until the next run is at full speed; 0 if it stays slow.",
    )


class Thermal(Document):
    """Throttling of a hot drive."""

    after_s: Seconds = Field(alias="after", gt=0, description="Busy time until it throttles.")
    speed: Share = Field(description="Speed from then on.")
    cooling: Positive = Field(
        default=1.0, description="Seconds of busy time that one second of rest offsets."
    )


class RampUp(Document):
    """First seconds of a busy period, after an idle time."""

    for_s: Seconds = Field(alias="for", gt=0, description="Length of the climb to full speed.")
    start: Share = Field(alias="from", description="Speed at the start of the climb.")


class Ssd(Document):
    """Behaviour of the flash of an SSD."""

    slc_cache: SlcCache | None = Field(default=None, description="Cache in SLC mode.")
    garbage_collection: GarbageCollection | None = Field(default=None, description="Write cliff.")
    thermal: Thermal | None = Field(default=None, description="Throttling by temperature.")
    ramp_up: RampUp | None = Field(default=None, description="Slow start after a rest.")


class Bursts(Document):
    """Bursts of something that takes a share away."""

    share: Share = Field(description="Share taken during a burst, on average.")
    length_s: Seconds = Field(default=1.0, alias="for", gt=0, description="Mean length of a burst.")
    every_s: Seconds = Field(default=10.0, alias="every", gt=0, description="Mean pause.")


class Jitter(Document):
    """Autocorrelated, heavy-tailed variation of the speed; a single value is its size."""

    shorthand: ClassVar[str] = "size"

    size: Share = Field(description="Standard deviation, such as 5%.")
    memory_s: Seconds = Field(default=1.0, alias="memory", gt=0, description="Correlation time.")
    of: Literal["device", "volume"] = Field(
        default="device",
        description="device: limits are exact; volume: not always reached.",
    )


class NoiseBlock(Document):
    """Noise around the volume."""

    jitter: Jitter | None = Field(default=None, description="Variation of the speed.")
    neighbour: Bursts | None = Field(
        default=None, description="Load of other clients on the device."
    )
    steal: Bursts | None = Field(default=None, description="CPU time stolen from the client.")


class Expected(Document):
    """Expected results of a client with a constant number of requests in flight.

    Names are those of `volbench.lab.truth.Truth`; all figures are optional.
    """

    rw: Literal["read", "write"] = Field(description="Direction.")
    bs: Bytes = Field(description="Block size.")
    iodepth: Integer = Field(ge=1, description="Requests in flight.")
    iops: Positive | None = Field(default=None, description="Sustained.")
    bandwidth: BytesPerSecond | None = Field(default=None, description="Sustained.")
    bottleneck: str | None = Field(default=None, description="Sustained.")
    cold_iops: Positive | None = Field(default=None, description="IOPS on cold blocks.")
    penalty: Percent | None = Field(default=None, description="1 - cold / warm, in percent.")
    warm_after: Seconds | None = Field(default=None, description="Time to 90 % of the warm rate.")
    fast_iops: Positive | None = Field(default=None, description="IOPS during a burst.")
    fast_for: Seconds | None = Field(default=None, description="Duration of `fast_iops`.")
    stall_for: Seconds | None = Field(default=None, description="Stall of a full cache.")
