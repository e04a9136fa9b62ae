"""Parts of a scenario file, one model each."""

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
Percent = Annotated[float, parsed(_percent), Field(allow_inf_nan=False), value_schema("percent")]


class Service(Document):
    """Time that the device works on a request; a single value is its latency."""

    shorthand: ClassVar[str] = "latency"

    latency_s: Seconds = Field(alias="latency", gt=0, description="Mean of the fixed part.")
    sigma: Number = Field(
        default=0.0, ge=0, le=2, description="Shape of a log-normal spread around that mean."
    )
    stream_bytes_per_s: BytesPerSecond | None = Field(
        default=None, alias="stream", description="Speed of one request's bytes."
    )


class Services(Document):
    """Service of reads and writes."""

    read: Service = Field(description="Of a read.")
    write: Service = Field(description="Of a write.")
    slots: AtOnce | None = Field(
        default=None, description="Requests worked on at once; any number when left out."
    )


class VolumeLimits(Document):
    """Limits of the provider, for reads and writes together."""

    iops: Positive | None = Field(default=None, description="I/Os a second.")
    bandwidth_bytes_per_s: BytesPerSecond | None = Field(
        default=None, alias="bandwidth", description="Bytes a second."
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
    """Credits for I/Os, one of which is spent on each I/O."""

    to: Positive = Field(description="Rate while credits last.")
    baseline: Positive = Field(description="Rate afterwards, at which credits come back.")
    credits: Positive = Field(description="Of a full bucket.")


class BandwidthBurst(_Credits):
    """Credits for bytes."""

    to: BytesPerSecond = Field(description="Rate while credits last.")
    baseline: BytesPerSecond = Field(description="Rate afterwards, at which credits come back.")
    credits: Bytes = Field(description="Of a full bucket.")


class Burst(Document):
    """Credits that run out."""

    iops: IopsBurst | None = Field(default=None, description="For I/Os.")
    bandwidth: BandwidthBurst | None = Field(default=None, description="For bytes.")


class Penalty(Frozen):
    """Cost of a first touch, in seconds or as a multiple of the service."""

    seconds: float = 0.0
    times: float | None = None

    def of(self, service: Service) -> float:
        """Return it in seconds."""
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

    write: Touch = Field(default=Penalty(), description="Of a write: 5ms, or 20x the service.")
    read: Touch = Field(default=Penalty(), description="Of a read, in the same way.")
    parallel: AtOnce | None = Field(
        default=None, description="Blocks prepared at once; any number when left out."
    )


class Cache(Document):
    """Write-back cache that takes writes quickly until it is full."""

    size_bytes: Bytes = Field(alias="size", description="Its capacity.")
    drain_bytes_per_s: BytesPerSecond = Field(alias="drain", description="Speed of emptying.")
    latency_s: Seconds = Field(
        default=0.0001, alias="latency", gt=0, description="Of a write that it takes."
    )
    when_full: Literal["drain", "stall"] = Field(
        default="drain",
        description="drain: writes go on as room appears; stall: none is taken for a while.",
    )
    resume_bytes: Bytes | None = Field(
        default=None, alias="resume_below", description="Content at which a stall ends."
    )

    @model_validator(mode="after")
    def _stall_has_an_end(self) -> Self:
        if (self.when_full == "stall") != (self.resume_bytes is not None):
            reject(Fault("when_full: stall and resume_below go together"))
        if self.resume_bytes is not None and self.resume_bytes >= self.size_bytes:
            reject(Fault("must be below size", at=("resume_below",)))
        return self


class Stall(Document):
    """Time in which nothing completes."""

    at_s: Seconds = Field(alias="at", description="Its begin.")
    length_s: Seconds = Field(alias="for", gt=0, description="Its length.")


class Step(Document):
    """Change of speed."""

    at_s: Seconds = Field(alias="at", description="Its time.")
    to: Positive = Field(description="Speed from then on, as a multiple of the first.")


class Expected(Document):
    """Results that a client with a constant number of requests in flight must find.

    Names are those of `volbench.lab.truth.Truth`; every figure may be left out.
    """

    rw: Literal["read", "write"] = Field(description="Direction.")
    bs: Bytes = Field(description="Block size.")
    iodepth: Integer = Field(ge=1, description="Requests in flight.")
    iops: Positive | None = Field(default=None, description="In the long run.")
    bandwidth: BytesPerSecond | None = Field(default=None, description="In the long run.")
    bottleneck: str | None = Field(default=None, description="In the long run.")
    cold_iops: Positive | None = Field(default=None, description="On cold blocks.")
    penalty: Percent | None = Field(default=None, description="1 - cold / warm, in percent.")
    warm_after: Seconds | None = Field(default=None, description="Time to 90 % of the warm rate.")
    fast_iops: Positive | None = Field(default=None, description="While credits or cache last.")
    fast_for: Seconds | None = Field(default=None, description="How long that is.")
    stall_for: Seconds | None = Field(default=None, description="Of a full cache.")
