"""Conflicting settings and options of a job, and invalid rounds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from volbench.errors import nearest
from volbench.model.document.located_errors import Fault
from volbench.model.profile.option_policy import (
    MOST_JOBS,
    Conflict,
    dd_conflicts,
    fio_conflicts,
    unintended,
)
from volbench.model.profile.profile_model import Job, Options, Phase, Profile, Tool
from volbench.model.profile.profile_settings import TRACK_HINT, Metric
from volbench.units import parse_duration

SECTOR_BYTES = 512
_SET_BY_WARMING = (
    "rw",
    "offset",
    "offset_increment",
    "runtime",
    "time_based",
    "io_size",
    "loops",
    "verify",
    "number_ios",
    "fill_device",
    "nrfiles",
    "bssplit",
    "bsrange",
    "steadystate",
    "thinktime",
)


def job_conflicts(job: Job, defaults: Options) -> Iterator[Conflict]:
    """Yield the conflicts of a job."""
    yield from _until_conflict(job, defaults)
    yield from warming_conflict(job)
    yield from _burst_runtime_conflict(job, defaults)
    if job.pause_before_s and job.warming is not None:
        yield Conflict("a warm-up does not pause", "remove pause_before", "pause_before")
    if job.tool is Tool.DD:
        yield from dd_conflicts(job.options)
        return
    sections = effective_options(job, defaults)
    jobs = sum(int(options.get("numjobs", "1")) for options in sections.values())
    if jobs > MOST_JOBS:
        message = f"its sections have {jobs} jobs together, and fio runs at most {MOST_JOBS}"
        yield Conflict(message, "decrease numjobs", "sections")
    for section, options in sections.items():
        for conflict in (*fio_conflicts(options), *unintended(options)):
            yield replace(conflict, section=section)


def effective_options(job: Job, defaults: Options) -> dict[str, dict[str, str]]:
    """Return the effective options of each section; the usual single one is named ``""``."""
    return {
        section: {
            name: value
            for name, value in {**defaults, **job.options, **own}.items()
            if value is not None
        }
        for section, own in (job.sections or {"": {}}).items()
    }


def _is_timed(options: Mapping[str, str]) -> bool:
    return parse_duration(options.get("runtime", "0")) > 0 and options.get("time_based", "0") != "0"


def _until_conflict(job: Job, defaults: Options) -> Iterator[Conflict]:
    if job.until is None:
        return
    if job.tool is not Tool.FIO:
        yield Conflict("only fio can run until it is steady", "use tool: fio", "until")
        return
    if job.warming is not None:
        yield Conflict("a warm-up ends when every block was touched", "remove until", "until")
        return
    for options in effective_options(job, defaults).values():
        runtime_s, window_s = parse_duration(options.get("runtime", "0")), job.until.window_s
        if not _is_timed(options):
            message = "until: steady needs a runtime, which is its deadline, and time_based"
            yield Conflict(message, "add runtime: 30m and time_based: 1", "until")
        elif runtime_s < window_s:
            message = f"a window of {window_s:g} s does not fit a runtime of {runtime_s:g} s"
            yield Conflict(message, "increase runtime, or decrease until.window", "until")
        else:
            continue
        return


def _burst_runtime_conflict(job: Job, defaults: Options) -> Iterator[Conflict]:
    if job.burst_runtime is None:
        return
    usual = effective_options(job, defaults).get("", {})
    if job.tool is not Tool.FIO or job.warming is not None or not _is_timed(usual):
        yield Conflict(
            "burst_runtime extends the runtime of a time_based fio job without sections",
            "add runtime: 45m and time_based: 1, and remove sections",
            "burst_runtime",
        )


def warming_conflict(job: Job) -> Iterator[Conflict]:
    """Yield the first reason why a job cannot warm a volume, if any."""
    if job.warming is None:
        return
    if job.tool is not Tool.FIO or job.sections:
        message = "only an fio job without sections can warm a volume"
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
    if profile.repeat > 1:
        return Fault("rounds repeat the jobs already", "remove repeat, or rounds")
    measured = {job.name: job for job in profile.jobs if job.phase is Phase.MEASURED}
    for track in profile.rounds.track:
        job = measured.get(track.job)
        if job is None:
            near = nearest(track.job, list(measured))
            hint = f"did you mean `{near}.{track.metric}`?" if near else TRACK_HINT
            return Fault(f"track {track.name}: there is no measured job {track.job}", hint)
        if job.tool is Tool.DD and track.metric is not Metric.BW:
            return Fault(
                f"track {track.name}: dd reports its bandwidth only", f"track {track.job}.bw"
            )
    if len(set(profile.rounds.track)) < len(profile.rounds.track):
        return Fault("a variable is tracked twice", "name each once")
    return None
