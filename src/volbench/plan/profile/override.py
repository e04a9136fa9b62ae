"""``--set KEY=VALUE`` in, a changed Profile out."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from volbench.errors import InputError
from volbench.model.profile.canonical import check_option
from volbench.model.profile.contradictions import contradictions
from volbench.model.profile.dd_option import check_dd_option
from volbench.model.profile.fio_option import OptionTable, nearest
from volbench.model.profile.profile_model import (
    Job,
    Limits,
    Options,
    Order,
    Phase,
    Profile,
    Start,
    Tool,
)
from volbench.plan.expansion.extents import warming_problem
from volbench.plan.profile.burst_runtime import outlast_problem, set_outlast
from volbench.plan.profile.crosscheck import dd_problems, effective
from volbench.plan.profile.declared_limits import LIMIT_KEYS, limit_problem
from volbench.plan.profile.load_profile import LEAST_SAMPLE_S, MOST_REPEATS, MOST_SEED, UNSAMPLED
from volbench.plan.profile.rounds_setting import rounds_problem, set_rounds
from volbench.plan.profile.start_policy import MOST_CLIENTS, read_stagger, start_problem
from volbench.plan.profile.until_setting import set_until, until_problem, window_problem
from volbench.plan.profile.volume_type_limits import is_type, limits_from_text, with_limit
from volbench.units import parse_duration

_START_KEYS = ("start", "stagger")
_WHOLE = {"repeat": (1, MOST_REPEATS), "seed": (0, MOST_SEED), "clients": (1, MOST_CLIENTS)}
_OWN_KEYS = ("until", "outlast", "pause_before")
_ANSWERS = ("latency_log", "cold_probe")
_KEYS = ("order", "sample", "device_sample", *_ANSWERS, *_WHOLE, *_START_KEYS)


def apply_overrides(
    profile: Profile, settings: Sequence[str], *, table: OptionTable, allow_exec: bool = False
) -> Profile:
    """Return a profile with overrides applied in order.

    ``size=64m`` holds for every job, replacing what a job says itself, but never brings back an
    option that a job took away with null. ``test1.bs=8k`` holds for one job, ``oltp.log.size=2g``
    for one of its sections; ``repeat``, ``order``, ``seed``, ``sample``, ``device_sample``,
    ``latency_log``, ``cold_probe``, ``start``, ``stagger``, ``clients`` and ``limits.iops`` for the
    profile. ``test1.until=steady`` and ``test1.until.window=1m`` hold for one job. ``KEY=`` takes
    an option away, and ``test1=`` or ``*-512=`` whole jobs.

    Args:
        profile: as loaded.
        settings: ``KEY=VALUE`` each.
        table: the options of the fio that will run it.
        allow_exec: accept options that run programs or leave the Run's folder.

    Raises:
        InputError: no ``=``, an unknown key, a bad value, or values that can't work together.
    """
    asked = profile
    fio = _Fio(table, allow_exec=allow_exec)
    for setting in settings:
        key, equals, value = setting.partition("=")
        if not equals or not key:
            raise InputError(f"--set {setting!r} has no value", hint="write it like size=64m")
        try:
            profile = _apply(profile, key.strip(), value.strip(), fio=fio)
        except InputError as error:
            raise InputError(f"--set {setting}: {error.message}", hint=error.hint) from error
    _check_together(asked, profile, settings)
    return profile


@dataclass(frozen=True)
class _Fio:
    """What fio can do, and what of it is allowed."""

    table: OptionTable
    allow_exec: bool

    def check(self, key: str, value: str) -> tuple[str, str | None]:
        """Return canonical name and value; None for an empty value: it takes the option away."""
        if value:
            return check_option(self.table, key, value, allow_exec=self.allow_exec)
        option = self.table.find(key)
        if option is None:
            check_option(self.table, key, "1")
            raise InputError(f"fio has no option {key!r}", hint="see `fio --cmdhelp=all`")
        return option.name, None


def _check_together(asked: Profile, changed: Profile, settings: Sequence[str]) -> None:
    """Refuse contradictions that the settings brought; fio would fail only when it runs."""
    for role, limits in changed.limits.items():
        if problem := limit_problem(limits):
            raise InputError(f"limits of {role}: {problem[1]}", hint="set both, the base first")
    if wrong := start_problem(changed.start, changed.stagger_s):
        raise InputError(
            f"--set {wrong[0]}: {wrong[1]}", hint="set both: start=staggered and stagger=20s"
        )
    if changed.latency_log and not changed.sample_s:
        raise InputError(UNSAMPLED, hint="set both, such as sample=1s")
    if problem := rounds_problem(changed.rounds, changed.jobs, repeat=changed.repeat):
        raise InputError(f"rounds: {problem[0]}", hint=problem[1])
    before = {job.name: job for job in asked.jobs}
    for after in changed.jobs:
        known = set(_contradictions(before[after.name], asked))
        for message, hint in _contradictions(after, changed):
            if (message, hint) not in known:
                given = " ".join(f"--set {setting}" for setting in settings)
                raise InputError(
                    f"{given}: job {after.name}: {message}",
                    hint=f"{hint}; one job alone is set by {after.name}.OPTION=VALUE",
                )


def _contradictions(job: Job, profile: Profile) -> Iterator[tuple[str, str]]:
    if job.tool is Tool.DD:
        yield from ((message, hint) for _, message, hint in dd_problems(job.options))
        return
    if problem := (job.until and window_problem(job.until)) or until_problem(job, profile.defaults):
        yield problem
    if problem := warming_problem(job):
        yield problem
    if found := outlast_problem(job, profile.defaults):
        yield found[1:]
    for options in effective(job, profile.defaults).values():
        yield from ((message, hint) for _, message, hint in contradictions(options))


def _apply(profile: Profile, key: str, value: str, *, fio: _Fio) -> Profile:
    if key in _KEYS:
        return _set_key(profile, key, value)
    match key.partition(".")[0]:
        case "limits":
            return _set_limit(profile, key.split(".")[1:], value)
        case "rounds":
            return profile.model_copy(update={"rounds": set_rounds(profile.rounds, key, value)})
    return _set_in_jobs(profile, key, value, fio=fio)


def _set_in_jobs(profile: Profile, key: str, value: str, *, fio: _Fio) -> Profile:
    if found := _section(profile, key):
        return _set_in_section(profile, found, value, fio=fio)
    if not value and fio.table.find(key) is None and (left := _without(profile, key)):
        return left
    if key == "pause_before":
        waiting = {job.name for job in profile.jobs if job.pause_before_s}
        return _in_jobs(profile, waiting, lambda job: _set_own(job, key, value))
    owner, dot, option = key.partition(".")
    if option.partition(".")[0] not in _OWN_KEYS:
        owner, dot, option = key.rpartition(".")
    if not dot:
        return _set_everywhere(profile, key, value, fio=fio)
    if owner not in {job.name for job in profile.jobs}:
        names = ", ".join(job.name for job in profile.jobs)
        raise InputError(f"profile {profile.name} has no job {owner!r}", hint=f"it has {names}")
    return _in_jobs(profile, {owner}, lambda job: _set_in_job(job, option, value, fio=fio))


def _in_jobs(profile: Profile, names: set[str], change: Callable[[Job], Job]) -> Profile:
    """Return a profile with some of its jobs changed."""
    jobs = tuple(change(job) if job.name in names else job for job in profile.jobs)
    return profile.model_copy(update={"jobs": jobs})


def _without(profile: Profile, pattern: str) -> Profile | None:
    """Return a profile without the jobs that a pattern names; None when it names none."""
    left = tuple(job for job in profile.jobs if not fnmatchcase(job.name, pattern))
    if len(left) == len(profile.jobs):
        return None
    if not any(job.phase is Phase.MEASURED for job in left):
        raise InputError("nothing would be measured any more", hint="leave a job in it")
    return profile.model_copy(update={"jobs": left})


def _section(profile: Profile, key: str) -> tuple[str, str, str] | None:
    """Return job, section and option of a key such as ``oltp.log.size``; None for others."""
    job, _, rest = key.partition(".")
    section, dot, option = rest.partition(".")
    known = {(one.name, own) for one in profile.jobs for own in one.sections}
    return (job, section, option) if dot and (job, section) in known else None


def _set_in_section(
    profile: Profile, place: tuple[str, str, str], value: str, *, fio: _Fio
) -> Profile:
    owner, section, option = place
    name, canonical = fio.check(option, value)
    jobs = {job.name: job for job in profile.jobs}
    sections = jobs[owner].sections
    changed = {**sections, section: {**sections[section], name: canonical}}
    jobs[owner] = jobs[owner].model_copy(update={"sections": changed})
    return profile.model_copy(update={"jobs": tuple(jobs.values())})


def _set_key(profile: Profile, key: str, value: str) -> Profile:
    if key in _START_KEYS:
        return _set_start(profile, key, value)
    if key == "order":
        if value not in set(Order):
            raise InputError(f"{value!r} is no order", hint=f"choose {' or '.join(Order)}")
        return profile.model_copy(update={"order": Order(value)})
    if key in {"sample", "device_sample"}:
        sample_s = parse_duration(value)
        if 0 < sample_s < LEAST_SAMPLE_S:
            raise InputError(f"{key} must be 0 or at least 100ms", hint="write it like 1s, or 0")
        return profile.model_copy(update={f"{key}_s": sample_s})
    if key in _ANSWERS:
        if value not in {"true", "false", "1", "0", "yes", "no"}:
            raise InputError(f"{value!r} is neither true nor false", hint=f"write {key}=true")
        return profile.model_copy(update={key: value in {"true", "1", "yes"}})
    least, most = _WHOLE[key]
    if not re.fullmatch(r"[0-9]{1,10}", value) or not least <= int(value) <= most:
        raise InputError(
            f"{value!r} is no whole number from {least} to {most}", hint="write digits only"
        )
    return profile.model_copy(update={key: int(value)})


def _set_start(profile: Profile, key: str, value: str) -> Profile:
    """Return a profile with another start; one that is not staggered drops the stagger."""
    if key == "stagger":
        stagger_s = read_stagger(value) if value else 0.0
        return profile.model_copy(update={"stagger_s": stagger_s})
    if value not in set(Start):
        raise InputError(f"{value!r} is no start", hint=f"choose {' or '.join(Start)}")
    start = Start(value)
    kept_s = profile.stagger_s if start is Start.STAGGERED else 0.0
    return profile.model_copy(update={"start": start, "stagger_s": kept_s})


def _set_limit(profile: Profile, path: list[str], value: str) -> Profile:
    known = {job.role for job in profile.jobs}
    if is_typed := len(path) < 2 and not set(path) & set(LIMIT_KEYS) and is_type(value):
        role, name = (path[0] if path else "*"), ""
    else:
        role, name = ("*", path[0]) if len(path) == 1 else (path[0], path[1]) if path else ("", "")
    if not is_typed and (len(path) > 2 or name not in LIMIT_KEYS):
        known_names = ", ".join(f"limits.{one}" for one in LIMIT_KEYS)
        raise InputError(
            "no such limit", hint=f"there are {known_names}; or name a type: limits=azure/P15"
        )
    if role not in {"*", *known}:
        near = nearest(role, sorted(known))
        raise InputError(
            f"no job works on the role {role!r}",
            hint=f"did you mean `{near}`?" if near else f"jobs work on {', '.join(sorted(known))}",
        )
    if is_typed:
        typed = limits_from_text(value)
        limits = {"*": typed} if role == "*" else {**profile.limits, role: typed}
        return profile.model_copy(update={"limits": limits})
    number = LIMIT_KEYS[name].read(value) if value else None
    roles = set(profile.limits) | {role} if role == "*" else {role}
    limits = dict(profile.limits)
    for one in roles:
        limits[one] = with_limit(limits.get(one, Limits()), name, number)
    return profile.model_copy(update={"limits": limits})


def _set_everywhere(profile: Profile, key: str, value: str, *, fio: _Fio) -> Profile:
    """Set a fio option in defaults and every fio job; what dd has too, in its jobs as well."""
    if all(job.tool is Tool.DD for job in profile.jobs):
        jobs = tuple(_set_in_dd(job, key, value) for job in profile.jobs)
        return profile.model_copy(update={"jobs": jobs})
    name, canonical = fio.check(key, value)
    defaults = dict(profile.defaults)
    if canonical:
        defaults[name] = canonical
    else:
        defaults.pop(name, None)
    jobs = tuple(_follow(job, name, value, canonical) for job in profile.jobs)
    return profile.model_copy(update={"defaults": defaults, "jobs": jobs})


def _follow(job: Job, name: str, value: str, canonical: str | None) -> Job:
    """Return a job that follows an override of all jobs; dd shares size and bs with fio."""
    if job.tool is Tool.DD:
        return _set_in_dd(job, name, value) if name in _SHARED else job
    return _replace(job, name, canonical)


_SHARED = ("size", "bs")


def _replace(job: Job, name: str, canonical: str | None) -> Job:
    """Return a job whose own values of an option are replaced; null stays null."""
    sections = {section: _replaced(own, name, canonical) for section, own in job.sections.items()}
    options = _replaced(job.options, name, canonical)
    return job.model_copy(update={"options": options, "sections": sections})


def _replaced(options: Options, name: str, canonical: str | None) -> Options:
    return options if options.get(name) is None else {**options, name: canonical}


def _set_in_job(job: Job, option: str, value: str, *, fio: _Fio) -> Job:
    if job.tool is Tool.DD:
        return _set_in_dd(job, option, value)
    if option.partition(".")[0] in _OWN_KEYS:
        return _set_own(job, option, value)
    name, canonical = fio.check(option, value)
    changed = _replace(job, name, canonical)
    return changed.model_copy(update={"options": {**job.options, name: canonical}})


def _set_own(job: Job, option: str, value: str) -> Job:
    """Return a job with a key set that is volbench's own."""
    match option.partition(".")[0]:
        case "until":
            return job.model_copy(update={"until": set_until(job.until, option, value)})
        case "outlast":
            return job.model_copy(update={"outlast": set_outlast(job.outlast, option, value)})
    if option != "pause_before":
        raise InputError(f"there is no {option}", hint="write pause_before=5m")
    return job.model_copy(update={"pause_before_s": parse_duration(value or "0")})


def _set_in_dd(job: Job, option: str, value: str) -> Job:
    """Return a dd job with an option set, or taken away by an empty value."""
    name, canonical = check_dd_option(option, value or _ANY_VALUE.get(option, "1"))
    others = {known: own for known, own in job.options.items() if known != name}
    return job.model_copy(update={"options": {**others, name: canonical} if value else others})


_ANY_VALUE = {
    "if": "/dev/zero",
    "oflag": "direct",
    "iflag": "direct",
    "conv": "fsync",
    "rw": "read",
}
"""A good value of each dd option that takes words, so that only its name is checked."""
