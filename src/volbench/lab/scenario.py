"""A scenario's YAML in, a Scenario out, or every problem in it with file, line and column."""

from __future__ import annotations

from importlib.resources import files
from itertools import pairwise
from pathlib import Path
from typing import Literal, Self

from pydantic import Field, ValidationError, model_validator

from volbench.errors import InputError, Problems
from volbench.lab.disk_parameters import (
    BucketParameters,
    CacheParameters,
    DiskParameters,
    ServiceParameters,
)
from volbench.lab.scenario_fields import (
    Burst,
    Bytes,
    Cache,
    Caps,
    FirstTouch,
    Part,
    Percent,
    Positive,
    Rate,
    Seconds,
    Service,
    Services,
    Stall,
    Step,
    Whole,
)
from volbench.lab.validation_errors import hint, words
from volbench.lab.yaml_text import read_document
from volbench.model.profile.fio_option import nearest

MOST_BYTES = 16 * 1024**3
"""What is written to the volume is kept in memory."""

_FILE_LIMIT = 1 << 20


class Expected(Part):
    """What a client must find who keeps `iodepth` requests of one kind and size in flight.

    Every figure may be left out. Names are those of `volbench.lab.truth.Truth`.
    """

    rw: Literal["read", "write"]
    bs: Bytes
    iodepth: Whole = Field(ge=1)
    iops: Positive | None = None
    bandwidth: Rate | None = None
    bottleneck: str | None = None
    cold_iops: Positive | None = None
    penalty: Percent | None = None
    warm_after: Seconds | None = None
    fast_iops: Positive | None = None
    fast_for: Seconds | None = None
    stall_for: Seconds | None = None


class Scenario(Part):
    """A simulated volume; every number is the truth that a measurement must find.

    Attributes:
        name: letters, digits, - and _.
        description: what it stands for.
        size_bytes: capacity; ``size``.
        block_bytes: unit of first touches; ``block``.
        seed: of the random spread.
        restored: whether every block holds data already, as after a restored snapshot.
        service: how long the device works on a request.
        caps: what the provider allows.
        burst: credits that run out.
        first_touch: what the first touch of a block costs.
        unwritten_reads: ``served`` like any other, or answered at once: ``instant``.
        cache: write-back cache.
        stalls: times in which nothing completes.
        steps: changes of speed.
        drift_percent_per_minute: change of speed, of the normal one; ``drift``.
        clock: whether `stalls`, `steps` and `drift` count from the ``first-request`` or the
            ``first-write``.
        truth: what follows from all that for some clients.
    """

    name: str = Field(pattern=r"^[A-Za-z0-9_-]{1,60}$")
    description: str = ""
    size_bytes: Bytes = Field(alias="size", le=MOST_BYTES)
    block_bytes: Bytes = Field(default=65536, alias="block")
    seed: Whole = Field(default=1, ge=0)
    restored: bool = False
    service: Services
    caps: Caps = Caps()
    burst: Burst = Burst()
    first_touch: FirstTouch = FirstTouch()
    unwritten_reads: Literal["served", "instant"] = "served"
    cache: Cache | None = None
    stalls: tuple[Stall, ...] = ()
    steps: tuple[Step, ...] = ()
    drift_percent_per_minute: Percent = Field(default=0.0, alias="drift", ge=-100, le=1000)
    clock: Literal["first-request", "first-write"] = "first-request"
    truth: tuple[Expected, ...] = ()

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        if self.size_bytes % 4096 or self.block_bytes % 512:
            raise ValueError("size must be a multiple of 4k, and block of 512")
        if self.cache and self.first_write_s:
            raise ValueError("a write cache hides first touches: leave out first_touch: write")
        if any(a.at_s + a.length_s > b.at_s for a, b in pairwise(self.stalls)):
            raise ValueError("stalls must be in order and apart")
        if any(a.at_s >= b.at_s for a, b in pairwise(self.steps)):
            raise ValueError("steps must be in order")
        return self

    @property
    def first_write_s(self) -> float:
        """What the first write of a block costs."""
        return self.first_touch.write.of(self.service.write)

    @property
    def first_read_s(self) -> float:
        """What the first read of a block costs."""
        return self.first_touch.read.of(self.service.read)

    @property
    def blocks(self) -> int:
        """Number of units of first touches."""
        return -(-self.size_bytes // self.block_bytes)

    def resized(self, size_bytes: int) -> Scenario:
        """Return the same volume in another size.

        Raises:
            InputError: no volume can have that size.
        """
        values = self.model_dump() | {"size_bytes": size_bytes, "truth": ()}
        try:
            return Scenario.model_validate(values)
        except ValidationError as error:
            raise InputError(
                f"{self.name} can't have {size_bytes} bytes: {words(error.errors()[0])}",
                hint="a multiple of 4k, up to 16g; what is written is kept in memory",
            ) from error

    def parameters(self) -> DiskParameters:
        """Return what the simulated disk is told."""
        cache = self.cache
        return DiskParameters(
            size_bytes=self.size_bytes,
            block_bytes=self.block_bytes,
            seed=self.seed,
            read=_service(self.service.read),
            write=_service(self.service.write),
            slots=self.service.slots or 0,
            request_buckets=self._request_buckets(),
            byte_buckets=self._byte_buckets(),
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
        )

    def _request_buckets(self) -> tuple[BucketParameters, ...]:
        burst = self.burst.iops
        caps = [BucketParameters(self.caps.iops)] if self.caps.iops else []
        if burst:
            caps.append(BucketParameters(burst.to))
            caps.append(BucketParameters(burst.baseline, depth=burst.credits_ios))
        return tuple(caps)

    def _byte_buckets(self) -> tuple[BucketParameters, ...]:
        cap, burst = self.caps.bandwidth_bytes_per_s, self.burst.bandwidth
        caps = [BucketParameters(cap)] if cap else []
        if burst:
            caps.append(BucketParameters(burst.to))
            caps.append(BucketParameters(burst.baseline, depth=float(burst.credits_bytes)))
        return tuple(caps)


def _service(service: Service) -> ServiceParameters:
    return ServiceParameters(service.latency_s, service.sigma, service.stream_bytes_per_s or 0.0)


def load_scenario(text: str, *, path: str) -> Scenario:
    """Read a scenario.

    Args:
        text: YAML 1.2.
        path: for messages.

    Raises:
        ProfileError: everything that is wrong in it, in file order.
    """
    problems = Problems(path)
    document = read_document(text, problems)
    problems.raise_if_any()
    try:
        return Scenario.model_validate(document.values)
    except ValidationError as error:
        for found in error.errors():
            line, column = document.place(found["loc"])
            key = ".".join(map(str, found["loc"]))
            problems.add(
                words(found),
                line=line,
                column=column,
                key=key,
                hint=hint(found, (Scenario, *Part.__subclasses__())),
            )
    problems.raise_if_any()
    raise AssertionError("a scenario that is not valid has a problem")


def scenario_names() -> tuple[str, ...]:
    """Return the names of the bundled scenarios, sorted."""
    entries = (entry.name for entry in (files("volbench.lab") / "scenarios").iterdir())
    return tuple(sorted(name.removesuffix(".yaml") for name in entries if name.endswith(".yaml")))


def scenario_text(name_or_path: str) -> tuple[str, str]:
    """Return text and displayed path of a scenario: a bundled one by its name, or a file.

    Raises:
        InputError: there is neither, or the file can't be read.
    """
    names = scenario_names()
    if name_or_path in names:
        bundled = files("volbench.lab") / "scenarios" / f"{name_or_path}.yaml"
        return bundled.read_text("utf-8"), f"{name_or_path}.yaml"
    path = Path(name_or_path)
    if not path.is_file():
        near = nearest(name_or_path, list(names))
        raise InputError(
            f"there is no scenario {name_or_path!r}, neither bundled nor a file",
            hint=f"did you mean `{near}`?" if near else f"bundled are {', '.join(names)}",
            context={"scenario": name_or_path},
        )
    try:
        with path.open(encoding="utf-8") as stream:
            return stream.read(_FILE_LIMIT), str(path)
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(
            f"{path} can't be read: {error}", hint="a scenario is a YAML file in UTF-8"
        ) from error


def read_scenario(name_or_path: str) -> Scenario:
    """Return a scenario: a bundled one by its name, or a file.

    Raises:
        InputError: there is neither, or the file can't be read or is wrong.
    """
    text, path = scenario_text(name_or_path)
    return load_scenario(text, path=path)
