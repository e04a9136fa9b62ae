"""Loading of profile files with located problems, and dumping."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, ClassVar, Self

from pydantic import BeforeValidator, Field, model_validator

from volbench.errors import Problems
from volbench.model.document.located_errors import (
    Fault,
    Location,
    note_fault,
    reject,
    suggestion,
    validate,
)
from volbench.model.document.yaml_text import parse_document, yaml_text
from volbench.model.profile.fio_options import OptionTable
from volbench.model.profile.profile_model import (
    LEAST_STAGGER_S,
    Job,
    JobSettings,
    Phase,
    Profile,
    ProfileSettings,
    Start,
    Tool,
)
from volbench.model.profile.profile_settings import NAME_PATTERN, Name
from volbench.plan.profile.job_conflicts import job_conflicts, rounds_fault
from volbench.plan.profile.limits_document import LimitsDocument, RoleLimits
from volbench.plan.profile.option_values import (
    Combination,
    MatrixDocument,
    OptionReader,
    WrittenOption,
    WrittenOptions,
    canonical,
    canonical_options,
    may_be_empty,
)


def load_profile(text: str, *, path: str, table: OptionTable, allow_exec: bool = False) -> Profile:
    """Return the profile in a text.

    Args:
        text: YAML 1.2.
    """
    problems = Problems(path)
    node = parse_document(text, problems, what="a profile", needs="a name and jobs")
    if node is not None:
        reader = OptionReader(table, allow_exec=allow_exec)
        document = validate(ProfileDocument, node, problems, context=reader)
        if document is not None:
            profile, conflicts = with_conflicts(document)
            for fault, _ in conflicts:
                note_fault(problems, node, fault)
            problems.raise_if_any()
            return profile
    problems.raise_if_any()
    raise AssertionError("a document without a model has a problem")


def dump_profile(profile: Profile) -> str:
    """Return a profile as YAML; values are canonical: bytes, whole seconds, 0 and 1."""
    return yaml_text(profile.document())


def with_conflicts(document: ProfileDocument) -> tuple[Profile, list[tuple[Fault, Job | None]]]:
    """Return the profile of a document, and its conflicts.

    Returns:
        The profile; and each conflict once, with the first job that has it, or None for a conflict
        outside jobs.
    """
    profile = document.profile()
    found: dict[tuple[Location, str], tuple[Fault, Job | None]] = {}
    for fault, job in _conflicts(document, profile):
        found.setdefault((fault.at, fault.message), (fault, job))
    return profile, list(found.values())


def _conflicts(document: ProfileDocument, profile: Profile) -> Iterator[tuple[Fault, Job | None]]:
    for origin in document.origins:
        for conflict in job_conflicts(origin.job, profile.defaults):
            place, on_key = (*origin.place, conflict.key), False
            if conflict.option:
                place, on_key = origin.option_place(conflict.option, conflict.section)
            yield Fault(conflict.message, conflict.hint, place, on_key), origin.job
    if fault := rounds_fault(profile):
        yield Fault(fault.message, fault.hint, ("rounds",), True), None


class JobDocument(JobSettings):
    """A job: one fio process. All other keys are fio options, or options of dd."""

    gathered: ClassVar[str] = "options"

    limits: LimitsDocument | None = Field(
        default=None, description="[Declared limits](#limits) of this job instead of its role's."
    )
    options: WrittenOptions = Field(default_factory=dict)
    sections: dict[Name, Annotated[WrittenOptions, BeforeValidator(may_be_empty)]] = Field(
        default_factory=dict,
        min_length=1,
        description="fio sections that run in parallel in one process, with their own options; "
        "with `wait_for: NAME` after the section NAME above.",
    )

    @model_validator(mode="before")
    @classmethod
    def _inherits_all(cls, value: object) -> object:
        return may_be_empty(value)

    @model_validator(mode="after")
    def _only_fio_has_sections(self) -> Self:
        if self.tool is Tool.DD and self.sections:
            reject(Fault("is not possible with tool: dd", at=("sections",), on_key=True))
        return self

    def job(self, name: str, phase: Phase) -> Job:
        """Return the job in canonical form."""
        settings = {field: getattr(self, field) for field in JobSettings.model_fields}
        return Job(
            name=name,
            phase=phase,
            options=canonical_options(self.options),
            sections={key: canonical_options(own) for key, own in self.sections.items()},
            limits=None if self.limits is None else self.limits.limits(),
            **settings,
        )


@dataclass(frozen=True)
class Origin:
    """A job with its location in the file."""

    job: Job  # job in canonical form
    place: Location  # location of the job
    on_key: bool  # whether errors refer to its key instead of its value
    # locations of its options with the options there, most specific first
    options: tuple[tuple[Location, Mapping[str, WrittenOption]], ...]

    def option_place(self, name: str, section: str) -> tuple[Location, bool]:
        """Return the location of an option, or else of the job, and whether to report the key."""
        for place, options in self.options:
            is_other_section = "sections" in place and place[-1] != section
            if name in options and not is_other_section:
                return (*place, options[name].key), True
        return self.place, self.on_key


Jobs = Annotated[dict[Name, JobDocument], Field(min_length=1)]


class ProfileDocument(ProfileSettings):
    """Complete content of a profile file."""

    limits: RoleLimits = Field(
        default_factory=dict,
        description="[Declared limits](#limits) of the volumes, of all roles or by role: numbers, "
        "or a [volume type](volume-types.md).",
    )
    defaults: WrittenOptions = Field(
        default_factory=dict, description="fio options that every fio job inherits."
    )
    jobs: Jobs | None = Field(default=None, description="Measured [jobs](#jobs) by name.")
    matrix: MatrixDocument | None = Field(
        default=None, description="A measured job for each [combination](#matrix) of values."
    )
    phases: dict[Phase, Jobs] = Field(
        default_factory=dict,
        description="Jobs by [phase](#phases): `precondition`, `warmup` and `measured`.",
    )

    @model_validator(mode="after")
    def _can_work(self) -> Self:
        faults = [*_start_faults(self), *_job_faults(self), *_limit_faults(self)]
        if self.latency_log and not self.sample_s:
            faults.append(
                Fault("needs samples, but sample is 0", "write sample: 1s", ("latency_log",), True)
            )
        if faults:
            reject(*faults)
        return self

    @cached_property
    def origins(self) -> list[Origin]:
        """Return all jobs with their locations, ordered by phase."""
        found: list[Origin] = []
        for phase, jobs in self.phases.items():
            found += self._listed(jobs, phase, ("phases", phase.value))
        found += self._listed(self.jobs or {}, Phase.MEASURED, ("jobs",))
        if self.matrix is not None:
            found += self._of_matrix(self.matrix)
        order = list(Phase)
        return sorted(found, key=lambda origin: order.index(origin.job.phase))

    def _listed(
        self, jobs: Mapping[str, JobDocument], phase: Phase, place: Location
    ) -> Iterator[Origin]:
        for name, document in jobs.items():
            own = (*place, name)
            sections = (
                ((*own, "sections", key), options) for key, options in document.sections.items()
            )
            places = (*sections, (own, document.options), (("defaults",), self.defaults))
            yield Origin(document.job(name, phase), own, True, places)

    def _of_matrix(self, matrix: MatrixDocument) -> Iterator[Origin]:
        for cell in matrix.cells():
            yield self._cell(matrix, cell, ("matrix",))
        for index, entry in enumerate(matrix.include):
            yield self._cell(matrix, entry.options, ("matrix", "include", index))

    def _cell(self, matrix: MatrixDocument, cell: Combination, place: Location) -> Origin:
        job = Job(
            name=matrix.job_name(cell),
            role=matrix.role,
            note=matrix.note,
            options=canonical(cell),
        )
        return Origin(job, place, False, ((place, cell), (("defaults",), self.defaults)))

    def profile(self) -> Profile:
        """Return the profile in canonical form."""
        settings = {field: getattr(self, field) for field in ProfileSettings.model_fields}
        return Profile(
            defaults=canonical_options(self.defaults),
            limits={role: limits.limits() for role, limits in self.limits.items()},
            jobs=tuple(origin.job for origin in self.origins),
            **settings,
        )


def _start_faults(document: ProfileDocument) -> Iterator[Fault]:
    stagger_s, start = document.stagger_s, document.start
    if "stagger_s" in document.model_fields_set and stagger_s < LEAST_STAGGER_S:
        yield Fault("is too short to separate the starts", "write at least 100ms", ("stagger",))
    elif start is Start.STAGGERED and not stagger_s:
        yield Fault("needs the time between two starts", "add stagger: 20s", ("start",), True)
    elif stagger_s and start is not Start.STAGGERED:
        hint = "add start: staggered, or remove stagger"
        yield Fault(f"has no effect with start: {start.value}", hint, ("stagger",), True)


def _job_faults(document: ProfileDocument) -> Iterator[Fault]:
    """Yield the faults of the set of jobs: none, none measured, invalid or duplicate names."""
    if not (document.jobs or document.matrix or document.phases):
        yield Fault("a profile needs jobs, a matrix or phases", at=("jobs",))
        return
    origins = document.origins
    if not any(origin.job.phase is Phase.MEASURED for origin in origins):
        yield Fault("no job is measured", "add jobs", at=("jobs",))
    places: dict[str, Origin] = {}
    for origin in origins:
        name = origin.job.name
        if not re.fullmatch(NAME_PATTERN, name):
            hint = "write a template of names that uses letters, digits, - and _"
            yield Fault(f"{name!r} is not a valid name of a job", hint, origin.place)
        if name in places:
            other = ".".join(map(str, places[name].place))
            hint = "rename one"
            yield Fault(f"a job {name} exists already: {other}", hint, origin.place, origin.on_key)
        places.setdefault(name, origin)


def _limit_faults(document: ProfileDocument) -> Iterator[Fault]:
    """Yield limits of roles that no job uses."""
    roles = sorted({origin.job.role for origin in document.origins})
    for role in document.limits:
        if roles and role not in {"*", *roles}:
            yield Fault(
                f"no job uses the role {role!r}", suggestion(role, roles), ("limits", role), True
            )
