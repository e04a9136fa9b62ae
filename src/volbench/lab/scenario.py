"""Scenario of a simulated volume: file format, and conversion to disk parameters."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, ValidationError, model_validator

from volbench.errors import InputError
from volbench.lab.disk_parameters import (
    BucketParameters,
    BurstNoise,
    CacheParameters,
    DiskParameters,
    FlashParameters,
    NoiseParameters,
    ServiceParameters,
)
from volbench.lab.scenario_fields import (
    BandwidthBurst,
    Burst,
    Bursts,
    Bytes,
    Cache,
    Expected,
    FirstTouch,
    IopsBurst,
    NoiseBlock,
    Percent,
    Service,
    Services,
    Ssd,
    Stall,
    Step,
    VolumeLimits,
)
from volbench.model.document.document_model import Boolean, Document, Integer, Text
from volbench.model.document.located_errors import Fault, faults_of, reject
from volbench.model.document.yaml_text import read_document
from volbench.plan.bundled import bundled_names, read_named

MOST_BYTES = 16 * 1024**3  # Maximum size: the data of the volume is kept in memory

_FOLDER = "lab/scenarios"  # Of the bundled scenarios, below the package
_NAME = re.compile(r"[A-Za-z0-9_-]{1,60}")


def _check_name(text: str) -> str:
    if not _NAME.fullmatch(text):
        reject(Fault(f"must be up to 60 letters, digits, - and _, not {text!r}"))
    return text


class Scenario(Document):
    """A simulated volume; its numbers are the true values that measurements must reproduce."""

    name: Annotated[Text, AfterValidator(_check_name)] = Field(description="Letters, digits, - _.")
    description: Text = Field(default="", description="What the scenario represents.")
    size_bytes: Bytes = Field(
        alias="size", le=MOST_BYTES, description="Capacity.", examples=["64m"]
    )
    block_bytes: Bytes = Field(default=65536, alias="block", description="Unit of first touches.")
    seed: Integer = Field(default=1, ge=0, description="Seed of all random numbers.")
    restored: Boolean = Field(
        default=False, description="Whether every block holds data, as in a restored snapshot."
    )
    service: Services = Field(
        description="Service time of a request.",
        examples=["{read: 1ms, write: 1ms}"],
    )
    limits: VolumeLimits = Field(default=VolumeLimits(), description="Limits of the provider.")
    burst: Burst = Field(default=Burst(), description="Credits that run out.")
    first_touch: FirstTouch = Field(default=FirstTouch(), description="Cost of a cold block.")
    unwritten_reads: Literal["served", "instant"] = Field(
        default="served", description="Reads of unwritten blocks: like any other, or immediate."
    )
    cache: Cache | None = Field(default=None, description="Write-back cache.")
    ssd: Ssd | None = Field(default=None, description="Behaviour of flash.")
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

    @property
    def blocks(self) -> int:
        """Number of units of first touches."""
        return -(-self.size_bytes // self.block_bytes)

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
            read=_service(self.service.read),
            write=_service(self.service.write),
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
            flash=_flash(self.ssd) if self.ssd else None,
            noise=_noise(self.noise) if self.noise else None,
        )


def _flash(ssd: Ssd) -> FlashParameters:
    values: dict[str, float] = {}
    if ssd.slc_cache:
        values |= {"slc_bytes": ssd.slc_cache.size_bytes, "slc_after": ssd.slc_cache.after}
        values["refill_bytes_per_s"] = ssd.slc_cache.refill_bytes_per_s
    if ssd.garbage_collection:
        collection = ssd.garbage_collection
        values |= {"spare_bytes": collection.spare_bytes, "collecting_speed": collection.speed}
        values |= {"collecting_sigma": collection.sigma, "recover_s": collection.recover_s}
    if ssd.thermal:
        values |= {"hot_after_s": ssd.thermal.after_s, "hot_speed": ssd.thermal.speed}
        values["cooling"] = ssd.thermal.cooling
    if ssd.ramp_up:
        values |= {"ramp_s": ssd.ramp_up.for_s, "ramp_speed": ssd.ramp_up.start}
    return FlashParameters(**values)  # type: ignore[arg-type]  # sizes are integers


def _noise(noise: NoiseBlock) -> NoiseParameters:
    jitter = noise.jitter
    return NoiseParameters(
        jitter=jitter.size if jitter else 0.0,
        jitter_memory_s=jitter.memory_s if jitter else 1.0,
        reaches_limits=jitter is not None and jitter.of == "volume",
        neighbour=_bursts(noise.neighbour),
        steal=_bursts(noise.steal),
    )


def _bursts(bursts: Bursts | None) -> BurstNoise:
    return BurstNoise(**bursts.model_dump()) if bursts else BurstNoise()


def _buckets(
    limit: float | None, burst: IopsBurst | BandwidthBurst | None
) -> tuple[BucketParameters, ...]:
    found = [BucketParameters(limit)] if limit else []
    if burst:
        found.append(BucketParameters(burst.to))
        found.append(BucketParameters(burst.baseline, depth=burst.credits))
    return tuple(found)


def _service(service: Service) -> ServiceParameters:
    return ServiceParameters(service.latency_s, service.sigma, service.stream_bytes_per_s or 0.0)


def load_scenario(text: str, *, path: str) -> Scenario:
    """Parse a scenario.

    Args:
        text: YAML 1.2.
    """
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
