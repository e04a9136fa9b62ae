"""Expansion of profiles into the ordered runs of a campaign, with their declared limits."""

from __future__ import annotations

import hashlib
import random
import secrets
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

from volbench.errors import InputError
from volbench.model.campaign.host import Policy
from volbench.model.campaign.planned_run import (
    Campaign,
    Consent,
    OnError,
    Run,
    Section,
    Volume,
    VolumeKind,
)
from volbench.model.profile.option_policy import changing_option
from volbench.model.profile.profile_model import Job, Order, Phase, Profile
from volbench.model.profile.profile_settings import MAX_TRIALS, MIN_REPEATS, Limits
from volbench.plan.expansion.extents import Basis, Touch, given_bytes, touches
from volbench.plan.expansion.shared_file import layouts
from volbench.plan.profile.limit_sources import known_limits, within_machine

_NEED_NO_SIZE = frozenset({"null", "cpuio", "filestat", "filedelete", "dircreate", "dirstat"})
_SEED_LIMIT = 2**31
_STARTS = ("offset", "offset_increment")
# Default file names of fio (fio HOWTO, filename_format)
USUAL_FORMAT = "$jobname.$jobnum.$filenum"
# Assumed size of a volume to warm in plans that are only checked or displayed
EXAMPLE_BYTES = 1 << 30
# The plan is kept in memory. Noticed by:
# tests/plan/expansion/test_estimate.py::test_endless_campaigns_are_refused
MAX_RUNS = 100_000


def with_known_limits(run: Run) -> Run:
    """Return a run with evaluated limits, if the size of its volume is known."""
    volume, machine = run.limits.wanted, run.limits.machine
    if volume is None:
        is_bound = not machine or run.limits.machine_limits
        return run if is_bound else _with_limits(run, within_machine(run.limits))
    if volume.size_bytes is None:
        volume = volume.model_copy(update={"size_bytes": run.volume.size_bytes})
    limits = known_limits(volume, writes=_writes(run))
    if limits is None:
        return run
    limits = limits.model_copy(update={"machine": machine, "origin": run.limits.origin})
    return _with_limits(run, within_machine(limits) if machine else limits)


def _with_limits(run: Run, limits: Limits) -> Run:
    return run.model_copy(update={"limits": limits})


def check_known_limits(runs: tuple[Run, ...]) -> None:
    """Refuse limits that depend on an unknown size."""
    for run in runs:
        if run.limits.wanted is not None:
            raise InputError(
                f"the limits of {run.limits.name} depend on the size of the volume, and "
                f"{run.volume.target} is not a device that reports its size",
                hint=f'write the size with the type: "{run.limits.name} size=100g"',
            )


def check_sizes(runs: tuple[Run, ...]) -> None:
    """Refuse jobs without a size in a directory: their files are new, so they have none.

    Named files that are only read may exist: the guard sees whether they do. Refuse an offset with
    the ioengine mmap, which begins at the first byte all the same (fio 3.33).
    """
    for run in runs:
        sections = [run.effective(section) for section in run.sections]
        mapped = (each for each in sections if each.get("ioengine") == "mmap")
        if any(each.get(name, "0").strip("0%") for each in mapped for name in _STARTS):
            raise InputError(
                f"job {run.job} has an offset, which fio's ioengine mmap ignores",
                hint="use ioengine: psync, or leave out offset and offset_increment",
            )
        may_exist = all("filename" in each and not changing_option(each) for each in sections)
        if run.volume.kind is not VolumeKind.DIRECTORY or may_exist:
            continue
        if has_none := missing_size(run):
            raise InputError(
                f"job {run.job} {has_none}, which files in {run.volume.target} need",
                hint="write size: 1g, or --set size=1g; a device, or a file that is the volume "
                "(--on FILE), has a size of its own",
            )


def missing_size(run: Run) -> str:
    """Return why a run cannot make a new file, such as ``has no size``; empty if it can."""
    for options in map(run.effective, run.sections):
        named = (options.get(name, "0") for name in ("size", "filesize", "io_size"))
        has_size = any(value.strip("0%") and not value.endswith("%") for value in named)
        is_open = any(name in options for name in ("fill_device", "fill_fs", "read_iolog"))
        if not (has_size or is_open or options.get("ioengine") in _NEED_NO_SIZE):
            return "has no size"
    return ""


def _writes(run: Run) -> bool | None:
    """Return whether a run only writes (True), only reads (False), or may do both (None)."""
    accesses = {
        run.effective(section).get("rw", "").partition(":")[0].removeprefix("rand")
        for section in run.sections
    }
    return {frozenset({"write"}): True, frozenset({"read"}): False}.get(frozenset(accesses))


Arm = TypeVar("Arm")


@dataclass(frozen=True)
class Terms:
    """Parameters of a campaign other than profiles and volumes."""

    name: str = ""
    created_utc: str = ""  # time of creation, ISO 8601
    seed: int | None = None  # None for that of the first profile, or a random one; always recorded
    repeat: int | None = None  # None for that of each profile
    on_error: OnError = OnError.CONTINUE  # action after a failed run
    consent: Consent = field(default_factory=Consent)
    command: tuple[str, ...] = ()  # the command line, for the record
    policy: Policy = Policy.ALL  # number of hosts that must complete a run for its totals to count
    quorum: int = 0  # that number when the policy is ``quorum``
    # of the volumes that jobs warm, by role, where known
    bases: Mapping[str, Basis] = field(default_factory=dict)
    # names of the clients of the campaign that this one repeats: a client of another name has the
    # seeds of one that does not take part again
    clients_before: tuple[str, ...] = ()
    # each measured job runs with so many of the clients, and so many; empty for all of them
    client_counts: tuple[int, ...] = ()
    ladders: tuple[tuple[str, ...], ...] = ()  # see `Campaign`


@dataclass(frozen=True)
class Step:
    """A planned run without ID and volume."""

    # index of the job in the order, and of the run within a warm-up; both from 0
    place: tuple[int, int]
    profile: Profile  # profile of the job
    job: Job  # the job
    repeat: int  # 1-based
    touch: Touch | None  # its part of a warm-up; None for other jobs
    block: int = 0  # number of its block, from 1; 0 for preparation
    lane: int = 0  # number of its volume among those of the job, from 1; 0 for the only one

    @property
    def label(self) -> str:
        """Name in IDs, such as ``boot`` or ``fill-write-01of16``."""
        return self.touch.label if self.touch else self.job.name

    @property
    def workload(self) -> str:
        """Label without the arm: arms of a block read and write at the same random offsets."""
        return self.touch.label if self.touch else self.job.workload


def expand(profiles: Sequence[Profile], volumes: Mapping[str, Volume], terms: Terms) -> Campaign:
    """Return a campaign that runs profiles one after another.

    For each profile, the preconditions run once, followed by the warm-ups and the measured jobs of
    each repeat, listed or shuffled within the repeat. The arms of a workload are a block: they
    run one after another, in an order that is balanced over the repeats, or drawn for each.
    """
    check_length(profiles, terms, clients=1)
    root = root_seed(profiles, terms)
    planned = steps_of(profiles, volumes, terms, root=root)
    width = index_width(len(planned))
    runs = tuple(
        run_of(
            step,
            id_=f"{index:0{width}d}-{step.label}-r{step.repeat}",
            volume=volumes[step.job.role],
            seed=derive(root, step.profile.name, step.workload, str(step.repeat)),
        )
        for index, step in enumerate(planned, start=1)
    )
    return campaign_of(profiles, runs, terms, root=root)


def root_seed(profiles: Sequence[Profile], terms: Terms) -> int:
    """Return the root seed: the user's, a profile's, or a random one."""
    seeds = (terms.seed, *(profile.seed for profile in profiles))
    chosen = next((seed for seed in seeds if seed is not None), None)
    return secrets.randbelow(_SEED_LIMIT) if chosen is None else chosen


def index_width(count: int) -> int:
    """Return the number of digits of the indexes in IDs."""
    return max(3, len(str(count)))


def steps_of(
    profiles: Sequence[Profile], volumes: Mapping[str, Volume], terms: Terms, *, root: int
) -> list[Step]:
    """Return the steps of a client, in order."""
    blocks = [
        (profile, jobs, number)
        for profile in profiles
        for jobs, number in _ordered(profile, repeats_of(profile, terms), root)
    ]
    steps, ordinal, block = list[Step](), 0, 0
    for profile, jobs, number in blocks:
        block += jobs[0].phase is Phase.MEASURED
        for job in jobs:
            own = block if job.phase is Phase.MEASURED else 0
            parts = job.by_volume()
            steps += [
                Step((ordinal, place), profile, part, number, touch, own, lane if parts[1:] else 0)
                for lane, part in enumerate(parts, start=1)
                for place, touch in enumerate(_touches(profile, part, volumes, terms))
            ]
            ordinal += 1
    return steps


def campaign_of(
    profiles: Sequence[Profile], runs: tuple[Run, ...], terms: Terms, *, root: int
) -> Campaign:
    """Return the campaign of ordered runs."""
    return Campaign(
        name=terms.name,
        created_utc=terms.created_utc,
        runs=runs,
        seed=root,
        order=profiles[0].order,
        arms=tuple(dict.fromkeys(job.arm for p in profiles for job in p.jobs if job.arm)),
        on_error=terms.on_error,
        **terms.consent.model_dump(),
        command=terms.command,
        cold_probe_roles=tuple(
            dict.fromkeys(job.role for p in profiles if p.cold_probe for job in p.jobs)
        ),
        rounds={profile.name: profile.rounds for profile in profiles if profile.rounds is not None},
        repeats={p.name: p.repeats for p in profiles if p.repeats.until is not None},
        expect={profile.name: profile.expect for profile in profiles if profile.expect},
        ladders=terms.ladders,
    )


def check_length(profiles: Sequence[Profile], terms: Terms, *, clients: int) -> None:
    """Refuse plans with too many runs."""
    total = clients * sum(repeats_of(profile, terms) * len(profile.jobs) for profile in profiles)
    if total > MAX_RUNS:
        message = f"{total} runs are planned; the maximum is {MAX_RUNS}"
        raise InputError(message, hint="decrease repeat, or remove jobs")


def repeats_of(profile: Profile, terms: Terms) -> int:
    """Return the number of repeats of the measured jobs; the maximum where results decide."""
    if profile.rounds is None:
        if profile.repeats.until is not None and terms.repeat is not None:
            raise InputError(
                f"profile {profile.name} repeats its jobs until they are precise",
                hint="leave out --repeat; the most repeats are set with "
                f"--set repeat.max={max(MIN_REPEATS, terms.repeat)}",
            )
        return terms.repeat or profile.repeats.planned
    if terms.repeat is not None:
        raise InputError(
            f"profile {profile.name} repeats its jobs in rounds until they are steady",
            hint=f"leave out --repeat, or write --set rounds.max={max(5, terms.repeat)}",
        )
    return profile.rounds.max_rounds


def _ordered(profile: Profile, repeats: int, root: int) -> Iterator[tuple[Sequence[Job], int]]:
    by_phase = {phase: [job for job in profile.jobs if job.phase is phase] for phase in Phase}
    arms: dict[str, list[Job]] = {}
    for job in by_phase[Phase.MEASURED]:
        arms.setdefault(job.workload if job.arm else job.name, []).append(job)
    yield from (([job], 1) for job in (*layouts(profile), *by_phase[Phase.PRECONDITION]))
    is_search = any(job.within for job in by_phase[Phase.MEASURED])
    for number in range(1, max(repeats, MAX_TRIALS if is_search else 0) + 1):
        due = [
            jobs for jobs in arms.values() if number <= (MAX_TRIALS if jobs[0].within else repeats)
        ]
        blocks = [balanced(jobs, number - 1 + place) for place, jobs in enumerate(due)]
        if profile.order is Order.SHUFFLED:
            draw = random.Random(f"{root}/{profile.name}/{number}")  # noqa: S311 - an order, no secret
            draw.shuffle(blocks)
            for jobs in blocks:
                draw.shuffle(jobs)
        warmups = by_phase[Phase.WARMUP] if number <= repeats else ()
        yield from (([job], number) for job in warmups)
        yield from ((jobs, number) for jobs in blocks)


def balanced(arms: Sequence[Arm], block: int) -> list[Arm]:
    """Return the order of arms in a block, from 0: A B, B A, B A, A B for two arms.

    Each arm has each place equally often over twice as many blocks as arms, so that a volume that
    becomes slower or faster with time favours none of them.
    """
    start = block // 2 % len(arms)
    turned = [*arms[start:], *arms[:start]]
    return turned if block % 2 == 0 else turned[::-1]


def _touches(
    profile: Profile, job: Job, volumes: Mapping[str, Volume], terms: Terms
) -> Sequence[Touch | None]:
    """Return the parts of a warm-up; a single None for any other job."""
    volume = volumes.get(job.role)
    if volume is None:
        raise InputError(
            f"job {job.name} of profile {profile.name} works on the role {job.role!r}, "
            "which has no volume",
            hint=f"add --on {job.role}=PATH (a device, file or directory)",
        )
    if job.shared is not None and volume.kind is not VolumeKind.DIRECTORY:
        raise InputError(
            f"job {job.name} of profile {profile.name}: {job.shared} is a file that clients share, "
            f"and {volume.target} is not a directory",
            hint=f"name a directory: --on {job.role}=DIR; on a device, make a file system first",
        )
    if job.warming is None:
        return (None,)
    if volume.parts:
        raise InputError(
            f"job {job.name} warms one volume, not several", hint="warm each by itself"
        )
    basis = terms.bases.get(job.role)
    whole_bytes = basis.size_bytes if basis else 0
    size_bytes = given_bytes(job, profile.defaults) or whole_bytes or EXAMPLE_BYTES
    if size_bytes > whole_bytes > 0 and volume.kind is not VolumeKind.FILE:
        raise InputError(
            f"job {job.name}: the warm-up covers {size_bytes} bytes, but {volume.target} has only "
            f"{whole_bytes}",
            hint="remove the size",
        )
    parts = touches(job, profile.defaults, size_bytes=size_bytes, kind=volume.kind, basis=basis)
    return tuple(
        replace(touch, extent=touch.extent.model_copy(update={"whole_bytes": whole_bytes}))
        for touch in parts
    )


def _shared_and_sections(profile: Profile, job: Job) -> tuple[dict[str, str], tuple[Section, ...]]:
    """Return the options shared by all sections, and the sections with their own options."""
    if not job.sections:
        inherited = {k: v for k, v in profile.defaults.items() if k not in job.options}
        return _given(inherited), (Section(name=job.name, options=_given(job.options)),)
    shared = _given({**profile.defaults, **job.options})
    # An option removed in one section cannot be set for the others in [global].
    sections = job.sections.values()
    gone = {name for each in sections for name, value in each.items() if value is None}
    moved: dict[str, str | None] = {name: shared.pop(name) for name in gone & shared.keys()}
    return shared, tuple(
        Section(name=name, options=_given({**moved, **options}))
        for name, options in job.sections.items()
    )


def _given(options: Mapping[str, str | None]) -> dict[str, str]:
    return {name: value for name, value in options.items() if value is not None}


def run_of(step: Step, *, id_: str, volume: Volume, seed: int, limits: Limits | None = None) -> Run:
    """Return the run of a step for a single client.

    The limits of its host take precedence, unless they have an origin: then they are the default.
    """
    profile, job, touch = step.profile, step.job, step.touch
    declared = job.limits or profile.limits.get(job.role) or profile.limits.get("*")
    first, second = (declared, limits) if limits and limits.origin else (limits, declared)
    shared, sections = ({}, (touch.section,)) if touch else _shared_and_sections(profile, job)
    run = Run(
        id=id_,
        profile=profile.name,
        job=touch.job if touch else job.name,
        volume=volume,
        phase=job.phase,
        repeat=step.repeat,
        seed=seed,
        options=shared,
        sections=sections,
        note=job.note,
        limits=first or second or Limits(),
        sample_s=profile.sample_s,
        device_sample_s=profile.device_sample_s,
        until=job.until,
        within=job.within,
        extent=touch.extent if touch else None,
        arm=job.arm or "",
        block=step.block if job.arm else 0,
        shared=job.shared,
    )
    run = with_files_of(run, job.workload) if job.arm else run
    return with_known_limits(run)


def with_files_of(run: Run, job: str) -> Run:
    """Return a run whose files in a directory are named after another job, unless it names them."""
    if run.volume.kind is not VolumeKind.DIRECTORY:
        return run
    format_ = USUAL_FORMAT.replace("$jobname", job)
    sections = tuple(
        section
        if section.name != run.job
        or {"filename", "filename_format"} & run.effective(section).keys()
        else section.model_copy(update={"options": section.options | {"filename_format": format_}})
        for section in run.sections
    )
    return run.model_copy(update={"sections": sections})


def derive(root: int, *names: str) -> int:
    """Return a seed that differs between runs and is reproducible for the same plan."""
    digest = hashlib.sha256("/".join([str(root), *names]).encode()).digest()
    return int.from_bytes(digest[:4], "big") % _SEED_LIMIT
