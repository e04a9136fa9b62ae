"""Models of a profile file, and the conflicts among its settings and options."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Annotated, ClassVar, Self

from pydantic import BeforeValidator, Field, ValidationInfo, model_validator

from volbench.errors import nearest
from volbench.model.campaign.planned_run import Run, VolumeKind
from volbench.model.document.document_model import Document
from volbench.model.document.located_errors import Fault, Location, reject, suggestion
from volbench.model.profile.expect_setting import expect_faults
from volbench.model.profile.option_policy import (
    MAX_JOBS,
    Conflict,
    doubtful,
    fio_conflicts,
    lacks_block_size,
    lacks_pattern,
    on_export,
    unintended,
)
from volbench.model.profile.profile_model import (
    MIN_STAGGER_S,
    Job,
    JobSettings,
    Options,
    Phase,
    Profile,
    ProfileSettings,
    Start,
)
from volbench.model.profile.profile_settings import NAME_PATTERN, TRACK_HINT, Name
from volbench.plan.profile.limits_document import LimitsDocument, RoleLimits
from volbench.plan.profile.option_values import (
    Combination,
    MatrixDocument,
    WrittenOption,
    WrittenOptions,
    canonical_options,
    check_combinations,
    may_be_empty,
    reader_of,
    with_combinations,
)
from volbench.plan.profile.shared_conflicts import shared_conflicts
from volbench.units import SECTOR_BYTES, parse_duration

_MAX_NAMED = 3  # Jobs that a warning names before it counts the others
_SET_BY_WARMING = (
    *("rw", "offset", "offset_increment", "runtime", "time_based", "io_size", "loops", "verify"),
    *("number_ios", "fill_device", "nrfiles", "bssplit", "bsrange", "steadystate", "thinktime"),
)
_SET_BY_SEARCH = (
    *("rate", "rate_iops", "rate_min", "rate_iops_min", "rate_process", "latency_target"),
)
# fio's rate_iops counts each of their I/Os as one of the smallest block
_UNLIKE_BLOCKS = ("bssplit", "bsrange")
# What is meant by words that people write at the top of a profile
_OTHER_WORDS = {
    "measured jobs stand below `jobs:`": ("benchmarks", "tests", "workloads"),
    "options of all jobs stand below `defaults:`": ("fio", "global", "options"),
    "write it as `matrix: {bs: [4k, 16k]}`": ("grid", "parameters", "sweep"),
    "write `phases: {warmup: {NAME: ...}}`": ("precondition", "preconditioning", "warmup"),
    "write it into a job, or into `matrix:`": ("role", "roles"),
    "write `repeat: 3`": ("iterations", "loops", "repetitions", "runs", "times"),
    "write `runtime: 60s` below `defaults:`": ("duration", "time"),
    "name hosts when it runs: --inventory FILE, or --on HOST:/PATH": ("host", "hosts", "inventory"),
    "name the volume when it runs: --on /PATH": ("device", "disk", "path", "target", "volume"),
}


def job_conflicts(job: Job, defaults: Options) -> Iterator[Conflict]:
    """Yield the conflicts of a job."""
    yield from _until_conflict(job, defaults)
    yield from _within_conflict(job, defaults)
    yield from warming_conflict(job)
    yield from shared_conflicts(job, effective_options(job, defaults))
    sections = effective_options(job, defaults)
    jobs = sum(int(options.get("numjobs", "1")) for options in sections.values())
    if jobs > MAX_JOBS:
        message = f"its sections have {jobs} jobs together, and fio runs at most {MAX_JOBS}"
        yield Conflict(message, "decrease numjobs", "sections")
    for section, options in sections.items():
        for conflict in (*fio_conflicts(options), *unintended(options)):
            yield replace(conflict, section=section)


def effective_options(job: Job, defaults: Options) -> dict[str, dict[str, str]]:
    """Return the effective options of each section; the usual single one is named ``""``."""
    return {
        section: {
            name: value
            for name, value in {**defaults, **job.options, **options}.items()
            if value is not None
        }
        for section, options in (job.sections or {"": {}}).items()
    }


def _until_conflict(job: Job, defaults: Options) -> Iterator[Conflict]:
    if job.until is None:
        return
    if job.warming is not None:
        yield Conflict("a warm-up ends once every block has been touched", "remove until", "until")
        return
    for options in effective_options(job, defaults).values():
        runtime_s, window_s = parse_duration(options.get("runtime", "0")), job.until.window_s
        if not (runtime_s > 0 and options.get("time_based", "0") != "0"):
            message = "until: steady needs a runtime, which is its deadline, and time_based"
            yield Conflict(message, "add runtime: 30m and time_based: 1", "until")
        elif runtime_s < window_s:
            message = f"a window of {window_s:g} s does not fit a runtime of {runtime_s:g} s"
            yield Conflict(message, "increase runtime, or decrease until.window", "until")
        else:
            continue
        return


def _within_conflict(job: Job, defaults: Options) -> Iterator[Conflict]:
    """Yield the first reason why no rate of a job can be searched, if any."""
    if not job.within:
        return
    if job.phase is not Phase.MEASURED:
        yield Conflict("preparation is not measured", "remove within", "within")
    elif job.until is not None:
        yield Conflict("each rate of a search runs for as long", "remove until", "within")
    elif len(job.sections) > 1:
        message = "a search has one rate, and several sections have several"
        yield Conflict(message, "keep one section", "within")
    else:
        for options in effective_options(job, defaults).values():
            if wrong := next((name for name in _SET_BY_SEARCH if name in options), ""):
                yield Conflict(f"a search sets {wrong} itself", f"remove {wrong}", "within")
            elif wrong := next((name for name in _UNLIKE_BLOCKS if name in options), ""):
                message = f"fio counts bytes, not I/Os, where {wrong} and a rate are set"
                yield Conflict(message, "write one block size: bs", "within")
            elif options.get("time_based", "0") == "0" or "runtime" not in options:
                hint = "add runtime: 10s and time_based: 1"
                yield Conflict("a search needs a runtime, and time_based", hint, "within")


def warming_conflict(job: Job) -> Iterator[Conflict]:
    """Yield the first reason why a job cannot warm a volume, if any."""
    if job.warming is None:
        return
    if job.sections:
        message = "only a job without sections can warm a volume"
        yield Conflict(message, "remove warming", "warming")
    elif job.phase is Phase.MEASURED:
        message = "warming is preparation, not measurement"
        yield Conflict(message, "move the job to phases: precondition: or warmup:", "warming")
    else:
        wrong = [name for name in _SET_BY_WARMING if job.options.get(name) is not None]
        if wrong:
            message = f"a warm-up sets {wrong[0]} itself"
            yield Conflict(message, f"remove {wrong[0]}", "warming")
        else:
            yield from _warming_values(job.options)


def _warming_values(options: Options) -> Iterator[Conflict]:
    for name in ("bs", "numjobs", "size"):
        value = options.get(name)
        if value is not None and not value.isdecimal():
            message = f"{name} of a warm-up must be a single number"
            yield Conflict(message, f"write it like {name}: 1m", "warming")
            return
    block = options.get("bs")
    if block is not None and (int(block) <= 0 or int(block) % SECTOR_BYTES):
        message = f"bs of a warm-up must be a multiple of {SECTOR_BYTES} bytes"
        yield Conflict(message, "write it like bs: 1m", "warming")


def rounds_fault(profile: Profile) -> Fault | None:
    """Return the fault of a profile's rounds, or None."""
    if profile.rounds is None:
        return None
    if profile.repeats.planned > 1:
        return Fault("rounds already repeat the jobs", "remove repeat, or rounds")
    measured = {job.name: job for job in profile.jobs if job.phase is Phase.MEASURED}
    for track in profile.rounds.track:
        job = measured.get(track.job)
        if job is None:
            near = nearest(track.job, list(measured))
            hint = f"did you mean `{near}.{track.metric}`?" if near else TRACK_HINT
            return Fault(f"track {track.name}: there is no measured job {track.job}", hint)
    if len(set(profile.rounds.track)) < len(profile.rounds.track):
        return Fault("a variable is tracked twice", "name each once")
    return None


def with_conflicts(document: ProfileDocument) -> tuple[Profile, list[tuple[Fault, Job | None]]]:
    """Return the profile of a document, and its conflicts.

    Returns:
        The profile; and each conflict once, with the first job that has it, or None for a conflict
        outside jobs.
    """
    profile = document.profile()
    conflicts: dict[tuple[Location, str], tuple[Fault, Job | None]] = {}
    for fault, job in _conflicts(document, profile):
        conflicts.setdefault((fault.at, fault.message), (fault, job))
    return profile, list(conflicts.values())


def _conflicts(document: ProfileDocument, profile: Profile) -> Iterator[tuple[Fault, Job | None]]:
    for origin in document.origins:
        for conflict in job_conflicts(origin.job, profile.defaults):
            location, on_key = (*origin.place, conflict.key), False
            if conflict.option:
                location, on_key = origin.option_place(conflict.option, conflict.section)
            yield Fault(conflict.message, conflict.hint, location, on_key), origin.job
    if fault := rounds_fault(profile):
        yield Fault(fault.message, fault.hint, ("rounds",), True), None


class JobDocument(JobSettings):
    """A job: one fio process. All other keys are fio options."""

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

    def job(self, name: str, phase: Phase) -> Job:
        """Return the job in canonical form."""
        settings = {field: getattr(self, field) for field in JobSettings.model_fields}
        return Job(
            name=name,
            phase=phase,
            options=canonical_options(self.options),
            sections={key: canonical_options(options) for key, options in self.sections.items()},
            limits=None if self.limits is None else self.limits.limits(),
            **settings,
        )


class VariantDocument(Document):
    """A variant: options that take precedence over the options of each measured job."""

    gathered: ClassVar[str] = "options"

    role: Name | None = Field(
        default=None, description="Role of the volume, if the variant works on another one."
    )
    options: WrittenOptions = Field(default_factory=dict)

    @model_validator(mode="before")
    @classmethod
    def _may_change_nothing(cls, value: object) -> object:
        return may_be_empty(value)


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

    def variant(self, name: str, document: VariantDocument) -> Origin:
        """Return the job as an arm of its workload."""
        job = self.job.model_copy(
            update={
                "name": f"{self.job.name}-{name}",
                "arm": name,
                "role": document.role or self.job.role,
                "options": {**self.job.options, **canonical_options(document.options)},
            }
        )
        return replace(
            self, job=job, options=((("variants", name), document.options), *self.options)
        )


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
    jobs: Jobs | None = Field(
        default=None,
        description="Measured [jobs](#jobs) by name.",
        examples=["{NAME: {rw: randread, bs: 4k}, ...}"],
    )
    matrix: MatrixDocument | None = Field(
        default=None,
        description="A measured job for each [combination](#matrix) of values.",
        examples=["{rw: [randread, randwrite], bs: [4k, 64k]}"],
    )
    variants: dict[Name, VariantDocument] = Field(
        default_factory=dict,
        description="[Variants](profile/runs.md#variants) of each measured job: name to fio "
        "options, compared in blocks.",
        examples=["{NAME: {iodepth: 1}, NAME: {iodepth: 32}}"],
    )
    phases: dict[Phase, Jobs] = Field(
        default_factory=dict,
        description="Jobs by [phase](#phases): `precondition`, `warmup` and `measured`.",
        examples=["{warmup: {NAME: {rw: write, bs: 1m}}}"],
    )

    @model_validator(mode="before")
    @classmethod
    def _has_its_form(cls, value: object, info: ValidationInfo) -> object:
        """Put a fault in the place of options of fio at the top and other words for keys."""
        if not isinstance(value, Mapping):
            return value
        reader, found = reader_of(info), dict(value)
        known = reader.profile_keys = [f.alias or name for name, f in cls.model_fields.items()]
        for key in [key for key in value if key not in known]:
            if hint := next((hint for hint, words in _OTHER_WORDS.items() if key in words), ""):
                found[key] = Fault("is not a key of a profile", hint, on_key=True)
            elif reader.table.find(key):
                advice = "put it below `defaults:`, or into a job"
                found[key] = Fault("is an option of fio", advice, on_key=True)
            elif near := nearest(key, known):  # what is below a misspelt key is checked too
                found.setdefault(near, value[key])
        if isinstance(jobs := found.get("jobs"), Mapping):
            found["jobs"] = with_combinations(jobs, reader, keys=JobDocument.model_fields)
        return found

    @model_validator(mode="after")
    def _can_work(self) -> Self:
        faults = [*_start_faults(self), *_job_faults(self), *_limit_faults(self)]
        faults += expect_faults(
            self.expect, {o.job.name for o in self.origins if o.job.phase is Phase.MEASURED}
        )
        if faults:
            reject(*faults)
        return self

    @cached_property
    def origins(self) -> list[Origin]:
        """Return all jobs with their locations, ordered by phase."""
        origins: list[Origin] = []
        for phase, jobs in self.phases.items():
            origins += self._listed(jobs, phase, ("phases", phase.value))
        origins += self._listed(self.jobs or {}, Phase.MEASURED, ("jobs",))
        if matrix := self.matrix:
            origins += [self._cell(matrix, cell, ("matrix",)) for cell in matrix.cells()]
            origins += [
                self._cell(matrix, entry.options, ("matrix", "include", index))
                for index, entry in enumerate(matrix.include)
            ]
        check_combinations(len(origins) * len(self.variants), "variants")
        order = list(Phase)
        origins.sort(key=lambda origin: order.index(origin.job.phase))
        return [
            each if name is None else each.variant(name, self.variants[name])
            for each in origins
            for name in ((each.job.phase is Phase.MEASURED and self.variants) or [None])
        ]

    def _listed(
        self, jobs: Mapping[str, JobDocument], phase: Phase, place: Location
    ) -> Iterator[Origin]:
        for name, document in jobs.items():
            location = (*place, name)
            sections = (
                ((*location, "sections", key), options)
                for key, options in document.sections.items()
            )
            places = (*sections, (location, document.options), (("defaults",), self.defaults))
            yield Origin(document.job(name, phase), location, True, places)

    def _cell(self, matrix: MatrixDocument, cell: Combination, place: Location) -> Origin:
        name, options = matrix.job_name(cell), canonical_options(cell)
        job = Job(name=name, role=matrix.role, note=matrix.note, options=options)
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
    if "stagger_s" in document.model_fields_set and stagger_s < MIN_STAGGER_S:
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
    yield from _arm_faults(document)
    yield from _matrix_fault(document)
    places: dict[str, Origin] = {}
    for origin in origins:
        name = origin.job.name
        if not re.fullmatch(NAME_PATTERN, name):
            hint = "write a template of names that uses letters, digits, - and _"
            yield Fault(f"{name!r} is not a valid name of a job", hint, origin.place)
        if name in places:
            other = ".".join(map(str, places[name].place))
            hint = "rename one"
            yield Fault(f"a job {name} already exists: {other}", hint, origin.place, origin.on_key)
        places.setdefault(name, origin)


def _arm_faults(document: ProfileDocument) -> Iterator[Fault]:
    """Yield a lone variant, and arms that the names of their jobs do not show."""
    if len(document.variants) == 1:
        yield Fault("one variant has nothing to be compared with", "add another", ("variants",))
    for origin in document.origins:
        job = origin.job
        if job.arm and not job.name.endswith(f"-{job.arm}"):
            hint = f"name the job {job.name}-{job.arm}, or remove arm"
            yield Fault("is not the end of the job's name", hint, (*origin.place, "arm"), True)
        elif job.arm and job.phase is not Phase.MEASURED:
            yield Fault("is only possible for measured jobs", "", (*origin.place, "arm"), True)


def _matrix_fault(document: ProfileDocument) -> Iterator[Fault]:
    """Yield the options that a matrix beside jobs lacks: it does not multiply these jobs."""
    matrix, jobs = document.matrix, [*(document.jobs or {}).values()]
    if matrix is None or not jobs:
        return
    cells = [*matrix.cells(), *(entry.options for entry in matrix.include)]
    for name, is_default in (("rw", lacks_pattern), ("bs", lacks_block_size)):
        options = ({**document.defaults, **cell} for cell in cells)
        if any(map(is_default, map(canonical_options, options))):
            written = [job.options[name].label for job in jobs if name in job.options]
            values = ", ".join(dict.fromkeys(written)) or "..."
            yield Fault(
                f"it has no {name}: a matrix adds jobs of its own and does not multiply those of "
                f"`jobs`",
                f"write {name}: [{values}] into the matrix, and remove jobs that it replaces",
                ("matrix",),
                True,
            )


def profile_warnings(profile: Profile, runs: Collection[Run] = ()) -> Iterator[str]:
    """Yield settings of a profile that fio accepts, but that measure something else, each once.

    Args:
        runs: planned runs, whose volumes may be NBD exports; without them, those of the profile.
    """
    exported = {role for role, target in profile.volumes.items() if target.startswith("nbd")}
    if runs:
        others = {run.volume.role for run in runs if run.volume.kind is not VolumeKind.NBD}
        exported = profile.roles - others
    jobs: dict[str, list[str]] = {}
    for job in profile.jobs:
        if job.warming is not None:
            continue
        sections = effective_options(job, profile.defaults)
        for section, options in sections.items():
            given = {*job.options, *job.sections.get(section, {})}
            is_exported = job.roles.get(section, job.role) in exported
            for text in doubtful(on_export(options) if is_exported else options, own=given):
                jobs.setdefault(text, []).append(section or job.name)
        if len(sections) > 1 and any("group_reporting" in given for given in sections.values()):
            text = "group_reporting is left out, so that each of its sections is a row of its own"
            jobs.setdefault(text, []).append(job.name)
    for text, names in jobs.items():
        more = f" and {len(names) - _MAX_NAMED} more" if len(names) > _MAX_NAMED else ""
        yield f"{'jobs' if names[1:] else 'job'} {', '.join(names[:_MAX_NAMED])}{more}: {text}"


def _limit_faults(document: ProfileDocument) -> Iterator[Fault]:
    """Yield limits of roles that no job uses."""
    jobs = (part for origin in document.origins for part in origin.job.by_volume())
    roles = sorted({job.role for job in jobs})
    for role in document.limits:
        if roles and role not in {"*", *roles}:
            yield Fault(
                f"no job uses the role {role!r}", suggestion(role, roles), ("limits", role), True
            )
