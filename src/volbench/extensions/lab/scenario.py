"""Scenario of a simulated volume: file format, and conversion to disk parameters."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Annotated, ClassVar, Literal, Self

from pydantic import AfterValidator, Field, ValidationError, WithJsonSchema, model_validator

from volbench.errors import InputError
from volbench.extensions.lab.disk_model import (
    BucketParameters,
    BurstNoise,
    CacheParameters,
    DiskParameters,
    NoiseParameters,
    ServiceParameters,
)
from volbench.model.document.document_model import (
    Boolean,
    Document,
    Duration,
    Integer,
    Number,
    Rate,
    Size,
    Text,
    parse_number,
    parsed,
    value_schema,
)
from volbench.model.document.located_errors import Fault, faults_of, reject
from volbench.model.document.yaml_text import read_document
from volbench.model.frozen_model import Frozen
from volbench.plan.bundled_files import bundled_names, read_named
from volbench.units import parse_duration

# Maximum size: the data of the volume is kept in memory. Noticed by:
# tests/extensions/lab/test_scenario.py::test_data_in_memory_has_a_maximum_size
_MAX_BYTES = 16 * 1024**3
_FOLDER = "extensions/lab/scenarios"  # Of the bundled scenarios, below the package


def _percent(text: str) -> float:
    return parse_number(text.strip().removesuffix("%"))


Bytes = Annotated[Size, Field(gt=0)]
Seconds = Annotated[Duration, Field(ge=0)]
BytesPerSecond = Annotated[Rate, Field(gt=0)]
Positive = Annotated[Number, Field(gt=0)]
AtOnce = Annotated[Integer, Field(ge=1, le=4096)]
Share = Annotated[
    float,
    parsed(lambda text: _percent(text) / (100 if text.strip().endswith("%") else 1)),
    Field(gt=0, le=1, allow_inf_nan=False),
    value_schema("percent"),
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

    def parameters(self) -> ServiceParameters:
        """Return the parameters of the simulated service."""
        return ServiceParameters(self.latency_s, self.sigma, self.stream_bytes_per_s or 0.0)


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
    times = parse_number(text.strip()[:-1])
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


class Slower(Document):
    """Writes that become slower after a number of bytes, and stay slower."""

    after_bytes: Bytes = Field(alias="after", description="Bytes written at full speed.")
    to: Share = Field(description="Speed of writes afterwards, such as 30%.")


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
        default="device", description="device: limits are exact; volume: not always reached."
    )


class NoiseBlock(Document):
    """Noise around the volume."""

    jitter: Jitter | None = Field(default=None, description="Variation of the speed.")
    neighbour: Bursts | None = Field(
        default=None, description="Load of other clients on the device."
    )
    steal: Bursts | None = Field(default=None, description="CPU time stolen from the client.")

    def parameters(self) -> NoiseParameters:
        """Return the parameters of the simulated noise."""
        jitter = self.jitter
        neighbour, steal = (
            BurstNoise(**burst.model_dump()) if burst else BurstNoise()
            for burst in (self.neighbour, self.steal)
        )
        return NoiseParameters(
            jitter=jitter.size if jitter else 0.0,
            jitter_memory_s=jitter.memory_s if jitter else 1.0,
            reaches_limits=jitter is not None and jitter.of == "volume",
            neighbour=neighbour,
            steal=steal,
        )


class Expected(Document):
    """Expected results of a client with a constant number of requests in flight.

    Names are those of `volbench.extensions.lab.expected_results.Truth`; all figures are optional.
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


def _checked_name(text: str) -> str:
    if not re.fullmatch("[A-Za-z0-9_-]{1,60}", text):
        reject(Fault(f"must be up to 60 letters, digits, - and _, not {text!r}"))
    return text


class Scenario(Document):
    """A simulated volume; its numbers are the true values that measurements must reproduce."""

    name: Annotated[Text, AfterValidator(_checked_name)] = Field(
        description="Letters, digits, - _."
    )
    description: Text = Field(default="", description="What the scenario represents.")
    size_bytes: Bytes = Field(
        alias="size", le=_MAX_BYTES, description="Capacity.", examples=["64m"]
    )
    block_bytes: Bytes = Field(default=65536, alias="block", description="Unit of first touches.")
    seed: Integer = Field(default=1, ge=0, description="Seed of all random numbers.")
    restored: Boolean = Field(
        default=False, description="Whether every block holds data, as in a restored snapshot."
    )
    service: Services = Field(
        description="Service time of a request.", examples=["{read: 1ms, write: 1ms}"]
    )
    limits: VolumeLimits = Field(default=VolumeLimits(), description="Limits of the provider.")
    burst: Burst = Field(default=Burst(), description="Credits that run out.")
    first_touch: FirstTouch = Field(default=FirstTouch(), description="Cost of a cold block.")
    unwritten_reads: Literal["served", "instant"] = Field(
        default="served", description="Reads of unwritten blocks: like any other, or immediate."
    )
    cache: Cache | None = Field(default=None, description="Write-back cache.")
    slower: Slower | None = Field(
        default=None, description="Speed after a number of bytes, as of an exhausted SLC cache."
    )
    noise: NoiseBlock | None = Field(default=None, description="Noise around the volume.")
    stalls: tuple[Stall, ...] = Field(default=(), description="Times without any completion.")
    steps: tuple[Step, ...] = Field(default=(), description="Changes of speed.")
    drift_percent_per_minute: Percent = Field(
        default=0.0, alias="drift", ge=-100, le=1000, description="Linear change of speed a minute."
    )
    clock: Literal["first-request", "first-write"] = Field(
        default="first-request", description="Start of the clock for stalls, steps and drift."
    )
    truth: tuple[Expected, ...] = Field(default=(), description="Expected results of some clients.")

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        faults = [
            (self.size_bytes % 4096 != 0, "size", "must be a multiple of 4k"),
            (self.block_bytes % 512 != 0, "block", "must be a multiple of 512"),
            (
                self.cache is not None and self.first_write_s > 0,
                "cache",
                "a write cache hides first touches: leave out first_touch: write",
            ),
            (
                any(a.at_s + a.length_s > b.at_s for a, b in pairwise(self.stalls)),
                "stalls",
                "stalls must be in order and must not overlap",
            ),
            (
                any(a.at_s >= b.at_s for a, b in pairwise(self.steps)),
                "steps",
                "steps must be in order",
            ),
        ]
        if any(is_wrong for is_wrong, _, _ in faults):
            reject(*(Fault(message, at=(key,)) for is_wrong, key, message in faults if is_wrong))
        return self

    @property
    def first_write_s(self) -> float:
        """Additional time of the first write of a block."""
        return self.first_touch.write.of(self.service.write)

    @property
    def first_read_s(self) -> float:
        """Additional time of the first read of a block."""
        return self.first_touch.read.of(self.service.read)

    def resized(self, size_bytes: int) -> Scenario:
        """Return the same volume with another size."""
        values = self.model_dump() | {"size_bytes": size_bytes, "truth": ()}
        try:
            return Scenario.model_validate(values)
        except ValidationError as error:
            reason = next(faults_of(error, Scenario)).message
            raise InputError(
                f"{self.name} cannot have {size_bytes} bytes: size {reason}",
                hint="use a multiple of 4k, up to 16g; the data is kept in memory",
            ) from error

    def parameters(self) -> DiskParameters:
        """Return the parameters of the simulated disk."""
        cache = self.cache
        return DiskParameters(
            size_bytes=self.size_bytes,
            block_bytes=self.block_bytes,
            seed=self.seed,
            read=self.service.read.parameters(),
            write=self.service.write.parameters(),
            slots=self.service.slots or 0,
            request_buckets=_buckets(self.limits.iops, self.burst.iops),
            byte_buckets=_buckets(self.limits.bandwidth_bytes_per_s, self.burst.bandwidth),
            first_write_s=self.first_write_s,
            first_read_s=self.first_read_s,
            first_touches=self.first_touch.parallel or 0,
            restored=self.restored,
            instant_unwritten=self.unwritten_reads == "instant",
            cache=CacheParameters(**cache.model_dump(exclude={"when_full"})) if cache else None,
            stalls=tuple((stall.at_s, stall.length_s) for stall in self.stalls),
            steps=tuple((step.at_s, step.to) for step in self.steps),
            drift_per_s=self.drift_percent_per_minute / 100 / 60,
            clock_starts_at_write=self.clock == "first-write",
            slower_after_bytes=self.slower.after_bytes if self.slower else 0,
            slower_to=self.slower.to if self.slower else 1.0,
            noise=self.noise.parameters() if self.noise else None,
        )


def _buckets(
    limit: float | None, burst: IopsBurst | BandwidthBurst | None
) -> tuple[BucketParameters, ...]:
    buckets = [BucketParameters(limit)] if limit else []
    if burst:
        buckets.append(BucketParameters(burst.to))
        buckets.append(BucketParameters(burst.baseline, depth=burst.credits))
    return tuple(buckets)


def load_scenario(text: str, *, path: str) -> Scenario:
    """Parse a scenario."""
    needs = "a name, a size and a service"
    return read_document(text, Scenario, path=path, what="a scenario", needs=needs)


def scenario_names() -> tuple[str, ...]:
    """Return the names of the bundled scenarios, sorted."""
    return bundled_names(_FOLDER)


def scenario_text(name_or_path: str) -> tuple[str, str]:
    """Return text and displayed path of a scenario: a bundled one by name, or a file."""
    return read_named(name_or_path, folder=_FOLDER, what="scenario")


def read_scenario(name_or_path: str) -> Scenario:
    """Return a scenario: a bundled one by name, or a file."""
    text, path = scenario_text(name_or_path)
    return load_scenario(text, path=path)
