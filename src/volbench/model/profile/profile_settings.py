"""Settings in a profile: limits, until, rounds, warming, source.

As in `volbench.model.profile.profile_model`, each field is one key of a profile file.
"""

from __future__ import annotations

import math
import re
from enum import StrEnum
from typing import Annotated, ClassVar, Literal, Self

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    StringConstraints,
    WithJsonSchema,
    model_validator,
)

from volbench.errors import InputError
from volbench.model.document.document_model import (
    Document,
    Duration,
    Filled,
    Integer,
    Number,
    Rate,
    Text,
    parsed,
    shortest,
    value_schema,
)
from volbench.model.document.located_errors import Fault, reject
from volbench.model.frozen_model import Frozen
from volbench.units import parse_count, parse_size

NAME_PATTERN = "^(?!global)[A-Za-z0-9_-]{1,100}$"
MIN_SAMPLE_S = 0.1  # Shorter ones hold few I/Os. Noticed by: tests/profiles/sample-too-short
# fio reports its rate twice per second while running; a block needs two of these. Noticed by:
# tests/plan/profile/test_rounds_setting.py
MIN_BLOCK_S = 1.0
MIN_BLOCKS = (
    8  # Fewer give no drift with a bound. Noticed by: tests/plan/profile/test_rounds_setting.py
)
MIN_ROUNDS = 5  # SNIA's steady-state criterion covers five rounds (PTS 2.0.2, 2.1.24)
# More is a typing error. Noticed by: tests/engine/campaign/test_round_stopping.py
MAX_ROUNDS = 1000
MAX_REPEATS = 10_000  # More is a typing error. Noticed by: tests/profiles/too-many-repeats
MIN_REPEATS = 3  # Fewer have no interval. Noticed by: test_repeat_stopping.py
# Repeats of a workload that does not become precise. A trade-off: twice as many narrow an interval
# by 30 %. Noticed by: test_repeat_stopping.py
USUAL_MAX_REPEATS = 30
# Most runs of a search for the highest rate within a latency: a bracket of a twentieth needs ten.
# Noticed by: tests/analyse/compare/test_rate_search.py::test_answers_are_within_five_percent
MAX_TRIALS = 12
MAX_EXTENTS = 1000  # Each is a run with a folder. Noticed by: tests/cli/test_help.py

TRACK_HINT = "name a job and a metric of it, such as r0-4k.iops"


def _checked_name(text: str) -> str:
    if not re.fullmatch(NAME_PATTERN, text):
        reject(
            Fault(
                f"{text!r} is not a valid name",
                "use letters, digits, - and _, not starting with global",
            )
        )
    return text


# Name of a profile, job, section or role
Name = Annotated[
    Filled,
    AfterValidator(_checked_name),
    WithJsonSchema({"type": "string", "pattern": NAME_PATTERN, "$comment": "name"}),
]

Bytes = Annotated[float, parsed(parse_size), value_schema("size")]

# A number of I/Os, or of I/Os per second, such as 3000 or 200k
Count = Annotated[float, parsed(parse_count), Field(allow_inf_nan=False), value_schema("number")]

Year = Annotated[Integer, Field(ge=1000, le=9999)]


def _sampled(seconds: float) -> float:
    if 0 < seconds < MIN_SAMPLE_S:
        reject(Fault("must be 0 or at least 100ms", "shorter windows distort the measurement"))
    return seconds


Interval = Annotated[Duration, AfterValidator(_sampled)]


class LimitNumbers(Document):
    """Declared limits of a volume; None where not declared."""

    iops: Count | None = Field(default=None, description="I/O operations per second, sustained.")
    bandwidth_bytes_per_s: Rate | None = Field(
        default=None,
        alias="bandwidth",
        description="Bytes per second, sustained, such as 125MB/s or 120MiB/s.",
    )
    burst_iops: Count | None = Field(
        default=None,
        description="I/O operations per second while credits last; must be above `iops`.",
    )
    burst_ios: Count | None = Field(
        default=None,
        description="I/O credits in a full bucket, such as 5400000; they refill at `iops`.",
    )
    burst_bandwidth_bytes_per_s: Rate | None = Field(
        default=None,
        alias="burst_bandwidth",
        description="Bytes per second while credits last; must be above `bandwidth`.",
    )
    burst_bytes: Bytes | None = Field(
        default=None,
        description="Byte credits in a full bucket, such as 1t; they refill at `bandwidth`.",
    )
    time_percent: Number | None = Field(
        default=None,
        lt=100,
        description="Percentage of the time for which the limits are promised, such as 99.9.",
    )
    machine: str = Field(
        default="",
        description="Machine type, such as azure/Standard_B2s, whose limits apply where they are "
        "lower.",
    )


class VolumeOfType(Frozen):
    """A volume of a volume type, whose limits depend on its size or on the access pattern."""

    type: str  # name of the volume type, such as ``aws/gp3``
    size_bytes: int | None = None  # None to detect it
    iops: float | None = None  # provisioned IOPS; None for the included amount
    # provisioned bandwidth; None for the included amount
    bandwidth_bytes_per_s: float | None = None


class Limits(LimitNumbers):
    """Limits that the provider declares for a volume."""

    name: str = ""  # volume type of the limits, such as ``aws/gp2``; may be empty
    wanted: VolumeOfType | None = None  # source of the limits, until its size is known
    # fields that are limits of the machine, which are lower than those of the volume
    machine_limits: tuple[str, ...] = ()
    machine_iops: float | None = None  # of all volumes of the machine together, sustained
    machine_bandwidth_bytes_per_s: float | None = None
    # what named the volume type, such as ``StorageClass gp3``; empty for a profile, an option or
    # an inventory. Declared limits replace those of an origin.
    origin: str = ""
    checked: str = ""  # date when the catalogue was compared with the provider's page

    def document(self) -> dict[str, object]:
        """Return the content of the limits in a profile."""
        if self.wanted is None:
            return super(Limits, self.model_copy(update={"origin": ""})).document()
        provisioned = {
            "size": self.wanted.size_bytes,
            "iops": self.wanted.iops,
            "bandwidth": self.wanted.bandwidth_bytes_per_s,
        }
        known = {
            key: shortest(float(value)) for key, value in provisioned.items() if value is not None
        }
        return {"type": self.name, **known, **({"machine": self.machine} if self.machine else {})}


class Until(Document):
    """End the job when its IOPS are steady; `runtime` is the deadline."""

    shorthand: ClassVar[str] = "state"
    always_dumped: ClassVar[tuple[str, ...]] = ("state", "window_s", "block_s")

    state: Literal["steady"] = Field(default="steady", description="The only supported state.")
    window_s: Duration = Field(
        default=300.0,
        alias="window",
        description="Length of the window that must be steady: at least 8 blocks, at most the "
        "`runtime`.",
    )
    block_s: Duration = Field(
        default=10.0,
        alias="block",
        description="Length of the blocks whose medians are compared; at least 1s.",
    )

    @model_validator(mode="after")
    def _long_enough(self) -> Self:
        if self.block_s < MIN_BLOCK_S:
            reject(Fault(f"block must be at least {MIN_BLOCK_S:g} s", "make the blocks longer"))
        if self.window_s < MIN_BLOCKS * self.block_s:
            reject(
                Fault(
                    f"a window of {self.window_s:g} s has fewer than {MIN_BLOCKS} blocks of "
                    f"{self.block_s:g} s",
                    "make the window longer, or the blocks shorter",
                )
            )
        return self


class Metric(StrEnum):
    """Metric of a job tracked over rounds, aggregated over directions and sections."""

    IOPS = "iops"
    BW = "bw"
    LAT_MEAN = "lat_mean"


class Track(Frozen):
    """A tracking variable: a metric of a measured job."""

    job: str  # name of the job
    metric: Metric  # metric of that job

    @property
    def name(self) -> str:
        """Name in a profile, such as ``r0-4k.iops``."""
        return f"{self.job}.{self.metric.value}"

    def __str__(self) -> str:
        """Return the name."""
        return self.name


def _track(value: object) -> object:
    if not isinstance(value, str):
        return value
    job, _, metric = value.rpartition(".")
    if not job or metric not in set(Metric):
        known = ", ".join(item.value for item in Metric)
        reject(Fault(f"{value!r} is not a tracking variable", f"{TRACK_HINT}; metrics: {known}"))
    return {"job": job, "metric": metric}


def _share(text: str) -> float:
    try:
        share = float(text.strip().removesuffix("%")) / 100
    except ValueError:
        share = math.nan
    if not text.strip().endswith("%") or not 0.001 <= share <= 0.5:
        raise InputError(f"{text!r} must be a percentage from 0.1% to 50%", hint="write it like 3%")
    return share


# A share of 1, written as a percentage
Percentage = Annotated[
    float, parsed(_share), Field(gt=0, lt=1), value_schema("percentage, such as 3%")
]


class Repeat(Document):
    """How often the warm-up and measured jobs run: a number, or until medians are precise."""

    shorthand: ClassVar[str] = "times"

    times: Integer = Field(default=1, ge=1, le=MAX_REPEATS, description="A fixed number.")
    until: Percentage | None = Field(
        default=None,
        description="Stop each workload once the interval of its median IOPS is within ± this "
        "percentage.",
    )
    least: Integer = Field(
        default=MIN_REPEATS,
        alias="min",
        ge=MIN_REPEATS,
        le=MAX_REPEATS,
        description="Fewest repeats.",
    )
    most: Integer = Field(
        default=USUAL_MAX_REPEATS,
        alias="max",
        ge=MIN_REPEATS,
        le=MAX_REPEATS,
        description="Most repeats.",
    )

    @model_validator(mode="after")
    def _is_one_of_both(self) -> Self:
        is_plain = self == Repeat.model_construct(times=self.times)
        if self.until is None and not is_plain:
            reject(Fault("min and max need until", "add until: 3%, or write repeat: 5"))
        if self.until is not None and self.times > 1:
            reject(
                Fault(
                    "a fixed number excludes until",
                    "leave out one of them; max is the most repeats",
                )
            )
        if self.least > self.most:
            reject(Fault("min is above max", "swap them"))
        return self

    @property
    def planned(self) -> int:
        """Number of repeats that are planned; with `until` the most."""
        return self.times if self.until is None else self.most


class Rounds(Document):
    """Repeat the measured jobs until all tracking variables are steady (SNIA PTS 2.0.2)."""

    always_dumped: ClassVar[tuple[str, ...]] = ("max_rounds", "until")

    max_rounds: Integer = Field(
        default=25,
        alias="max",
        ge=MIN_ROUNDS,
        le=MAX_ROUNDS,
        description="Maximum number of rounds.",
    )
    until: Literal["snia"] = Field(default="snia", description="Steady-state criterion.")
    track: tuple[
        Annotated[
            Track,
            BeforeValidator(
                _track,
                json_schema_input_type=Annotated[
                    str, StringConstraints(pattern=r"^[A-Za-z0-9_-]+\.(iops|bw|lat_mean)$")
                ],
            ),
        ],
        ...,
    ] = Field(
        min_length=1,
        examples=["[r0-4k.iops]"],
        description="Tracking variables `JOB.METRIC`; metrics are `iops`, `bw` and `lat_mean`, "
        "over all directions of the job.",
    )


class WarmingMode(StrEnum):
    """Access of a warm-up, which touches every block of its volume once."""

    WRITE = "write"
    READ = "read"
    READ_WRITTEN = "read-written"
    WRITE_READ = "write-read"
    RANDOM = "random"
    SPRANDOM = "sprandom"


class Warming(Document):
    """Touch every block of the volume once, in extents of one run each."""

    shorthand: ClassVar[str] = "mode"
    always_dumped: ClassVar[tuple[str, ...]] = ("extents",)

    mode: WarmingMode = Field(description="`random`, `sprandom`: writes.")
    extents: Integer = Field(
        default=0, ge=0, le=MAX_EXTENTS, description="About how many extents; 0: by size."
    )


class Source(Document):
    """Publication that a profile comes from."""

    shorthand: ClassVar[str] = "title"

    title: Text = Field(description="Title of the article, paper or specification.")
    author: Text = Field(default="", description="Author.")
    year: Year | None = Field(default=None, description="Year of publication.")
    url: Text = Field(default="", description="Address.")
