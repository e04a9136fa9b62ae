"""Profile and Job models, with all keys of a profile file.

Each field is one key of the file: the alias is the key, the description is the help text in the
JSON Schema and docs/reference/profile.md, the type defines parsing and validation. Options are
canonical (see `volbench.model.profile.fio_options`): fio's names, and values as written to a job
file. None removes an inherited option.
"""

from __future__ import annotations

import re
from enum import StrEnum
from typing import Annotated, ClassVar

from pydantic import Field

from volbench.model.document.document_model import (
    Boolean,
    Document,
    Duration,
    Filled,
    Integer,
    Nullable,
    Text,
)
from volbench.model.profile.expect_setting import Conditions, Expect
from volbench.model.profile.profile_settings import (
    Interval,
    Limits,
    Name,
    Repeat,
    Rounds,
    Source,
    Until,
    Warming,
)

Options = dict[str, str | None]

MAX_SEED = 2**31 - 1  # Seeds have 31 bits, as those of runs
# Processes in parallel; more on one host would measure its memory. Noticed by:
# tests/profiles/too-many-clients
MAX_CLIENTS = 1000
# fio starts within about 50 ms of the requested time (measured with 3.33). Noticed by:
# tests/profiles/bad-stagger
MIN_STAGGER_S = 0.1

_WHOLE = re.compile(r"0|[1-9][0-9]{0,18}")


class Phase(StrEnum):
    """Phase of a run: once before everything, before each repeat, or measured."""

    PRECONDITION = "precondition"
    WARMUP = "warmup"
    MEASURED = "measured"


class Order(StrEnum):
    """Order of the measured jobs within one repeat, and of the arms within one block."""

    LISTED = "listed"
    SHUFFLED = "shuffled"


class Start(StrEnum):
    """Start of a run on several clients: together, i x stagger later, or in turn."""

    TOGETHER = "together"
    STAGGERED = "staggered"
    SEQUENTIAL = "sequential"


class Tool(StrEnum):
    """The program that does the I/O; ``watch`` for a load that volbench does not make itself."""

    FIO = "fio"
    WATCH = "watch"


class JobSettings(Document):
    """The keys of a job that are not options of fio."""

    role: Name = Field(default="data", description="Role of the volume the job works on.")
    roles: dict[Name, Name] = Field(
        default_factory=dict,
        description="Section to the role of another volume; each volume has a process of its own.",
    )
    note: Text = Field(default="", description="Remark for the report and the job file.")
    arm: Name | None = Field(
        default=None,
        description="[Variant](profile/runs.md#variants) of the job, with which its name ends.",
    )
    until: Until | None = Field(
        default=None,
        description="End the job when its [IOPS are steady](profile/runs.md#until-steady); "
        "`runtime` is the deadline.",
    )
    warming: Warming | None = Field(
        default=None,
        description="[Touch every block once](../how-to/warm-up-a-volume.md); in the phases "
        "`precondition` and `warmup` only.",
    )
    shared: Name | None = Field(
        default=None,
        description="Name of a file that all clients of a host "
        "[read together](profile/runs.md#shared-file), beside files of their own.",
    )
    within: Conditions = Field(
        default=(),
        description="[Highest rate within](../how-to/rate-within-a-latency.md) `p99 < 5ms`.",
    )


class Job(JobSettings):
    """One benchmark job: one fio process, usually with one section."""

    name: str  # unique in its profile
    phase: Phase = Phase.MEASURED  # precondition, warmup or measured
    # options of the job; these override the profile's defaults
    options: Options = Field(default_factory=dict)
    # several fio sections that run in parallel; empty for the usual single one
    sections: dict[str, Options] = Field(default_factory=dict)
    limits: Limits | None = None  # limits of the job; None for those of the profile

    @property
    def workload(self) -> str:
        """Name without the arm: jobs of one workload form a block in each repeat."""
        return self.name.removesuffix(f"-{self.arm}")

    always_dumped: ClassVar[tuple[str, ...]] = ("role",)

    def by_volume(self) -> tuple[Job, ...]:
        """Return the job for each volume that its sections work on at the same time."""
        roles = {name: self.roles.get(name, self.role) for name in self.sections}
        parts = tuple(
            self.model_copy(
                update={
                    "role": role,
                    "roles": {},
                    "sections": {
                        name: options
                        for name, options in self.sections.items()
                        if roles[name] == role
                    },
                }
            )
            for role in dict.fromkeys(roles.values())
        )
        return parts if self.roles else (self,)

    def document(self) -> dict[str, object]:
        """Return the content of the job in a profile file."""
        content = super().document()
        for key in ("name", "phase", "options", "sections"):
            content.pop(key, None)
        content |= written_options(self.options)
        if self.sections:
            content["sections"] = {
                name: written_options(options) for name, options in self.sections.items()
            }
        return content


class ProfileSettings(Document):
    """The keys of a profile, except jobs, options and limits."""

    name: Name = Field(description="Name of the profile.", examples=["my-profile"])
    description: Text = Field(default="", description="One paragraph.")
    source: Source | None = Field(default=None, description="Where the profile comes from.")
    volumes: dict[Name, Filled] = Field(
        default_factory=dict,
        description="Role to device, file, directory or NBD URI; `--on` takes precedence.",
        examples=["{data: /mnt/data}"],
    )
    repeats: Repeat = Field(
        default_factory=Repeat,
        alias="repeat",
        description="Number of times the warm-up and measured jobs run, or "
        "[until the medians are precise](profile/runs.md#repeat-until-precise).",
    )
    rounds: Rounds | None = Field(
        default=None,
        description="[Repeat until steady](profile/runs.md#rounds) instead of `repeat`.",
    )
    order: Order = Field(
        default=Order.LISTED,
        description="Order of the measured jobs within each repeat. Variants alternate in "
        "[blocks](profile/runs.md#variants) (A B, B A); `shuffled` draws their order too.",
    )
    seed: Nullable[Annotated[Integer, Field(ge=0, le=MAX_SEED)]] = Field(
        default=None,
        description="Seed of the order and of random offsets; drawn and recorded by default.",
    )
    sample_s: Interval = Field(
        default=1.0,
        alias="sample",
        description="Interval of the time series, at least 100ms; 0 for none.",
    )
    device_sample_s: Interval = Field(
        default=1.0,
        alias="device_sample",
        description="Interval of the [device counters](../how-to/see-the-device.md), at least "
        "100ms; 0 for none.",
    )
    cold_probe: Boolean = Field(
        default=False,
        description="[Check whether volumes are cold](../how-to/warm-up-a-volume.md#is-it-cold) "
        "before the first run.",
    )
    start: Start = Field(
        default=Start.TOGETHER,
        description="When the [clients](profile/runs.md#clients) start each measured job.",
    )
    stagger_s: Duration = Field(
        default=0.0,
        alias="stagger",
        description="Time between the starts of two clients, at least 100ms; only with "
        "`start: staggered`.",
    )
    clients: Integer = Field(
        default=1,
        ge=1,
        le=MAX_CLIENTS,
        description="Processes that run the jobs in parallel, "
        "[spread over the hosts](profile/runs.md#clients).",
    )
    expect: Expect = Field(
        default_factory=dict,
        description="[Expectations](profile/expectations.md) of the results: job to metric to "
        "bound.",
        examples=["{NAME: {p99: '< 5ms'}}"],
    )


class Profile(ProfileSettings):
    """A benchmark definition with canonical values and expanded matrix."""

    defaults: Options = Field(default_factory=dict)  # options of every fio job
    # role to declared limits; the key ``*`` applies to every role
    limits: dict[str, Limits] = Field(default_factory=dict)
    jobs: tuple[Job, ...]  # all jobs of all phases, in file order

    @property
    def roles(self) -> set[str]:
        """Roles of the volumes that its jobs work on."""
        return {part.role for job in self.jobs for part in job.by_volume()}

    @property
    def lanes(self) -> int:
        """Most volumes that a job works on at the same time."""
        return max(len(job.by_volume()) for job in self.jobs)

    always_dumped: ClassVar[tuple[str, ...]] = ("repeats", "order", "sample_s", "device_sample_s")

    def document(self) -> dict[str, object]:
        """Return the content of the profile file; values are canonical."""
        content = super().document()
        if self.rounds is not None:
            del content["repeat"]
        elif self.repeats.until is None:
            content["repeat"] = self.repeats.times
        if self.defaults:
            content["defaults"] = written_options(self.defaults)
        phases = {
            phase: {job.name: job.document() for job in self.jobs if job.phase is phase}
            for phase in Phase
        }
        jobs = phases.pop(Phase.MEASURED)
        if prepared := {phase.value: found for phase, found in phases.items() if found}:
            content["phases"] = prepared
        content["jobs"] = jobs
        return content


def written_options(options: Options) -> dict[str, object]:
    """Return options with whole numbers as numbers, which is equivalent and more readable."""
    return {
        name: int(value) if value is not None and _WHOLE.fullmatch(value) else value
        for name, value in options.items()
    }
