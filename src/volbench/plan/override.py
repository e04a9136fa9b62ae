"""``--set KEY=VALUE`` in, a changed Profile out."""

from __future__ import annotations

from collections.abc import Sequence

from volbench.errors import InputError
from volbench.model.canonical import check_option
from volbench.model.ddoption import NAMES as DD_NAMES
from volbench.model.ddoption import check_dd_option
from volbench.model.option import OptionTable
from volbench.model.profile import Job, Limits, Options, Order, Profile, Tool
from volbench.plan.load import MOST_REPEATS, MOST_SEED
from volbench.units import parse_duration, parse_rate

_KEYS = ("repeat", "order", "seed", "sample")


def apply_overrides(profile: Profile, settings: Sequence[str], *, table: OptionTable) -> Profile:
    """Return a profile with overrides applied in order.

    ``size=64m`` holds for every job, replacing what a job says itself, but never brings back an
    option that a job took away with null. ``test1.bs=8k`` holds for one job, ``repeat``, ``order``,
    ``seed``, ``sample`` and ``limits.iops`` for the profile. ``KEY=`` takes an option away.

    Raises:
        InputError: no ``=``, an unknown key, or a bad value.
    """
    for setting in settings:
        key, equals, value = setting.partition("=")
        if not equals or not key:
            raise InputError(f"--set {setting!r} has no value", hint="write it like size=64m")
        try:
            profile = _apply(profile, key.strip(), value.strip(), table=table)
        except InputError as error:
            raise InputError(f"--set {setting}: {error.message}", hint=error.hint) from error
    return profile


def _apply(profile: Profile, key: str, value: str, *, table: OptionTable) -> Profile:
    if key in _KEYS:
        return _set_key(profile, key, value)
    if key == "limits" or key.startswith("limits."):
        return _set_limit(profile, key.split(".")[1:], value)
    owner, dot, option = key.rpartition(".")
    if not dot:
        return _set_everywhere(profile, key, value, table=table)
    if owner not in {job.name for job in profile.jobs}:
        names = ", ".join(job.name for job in profile.jobs)
        raise InputError(f"profile {profile.name} has no job {owner!r}", hint=f"it has {names}")
    jobs = tuple(
        _set_in_job(job, option, value, table=table) if job.name == owner else job
        for job in profile.jobs
    )
    return profile.model_copy(update={"jobs": jobs})


def _set_key(profile: Profile, key: str, value: str) -> Profile:
    if key == "order":
        if value not in set(Order):
            raise InputError(f"{value!r} is no order", hint=f"choose {' or '.join(Order)}")
        return profile.model_copy(update={"order": Order(value)})
    if key == "sample":
        sample_s = parse_duration(value)
        if 0 < sample_s < 0.1:
            raise InputError("sample must be 0 or at least 100ms", hint="fio distorts shorter ones")
        return profile.model_copy(update={"sample_s": sample_s})
    least, most = (1, MOST_REPEATS) if key == "repeat" else (0, MOST_SEED)
    if not value.isdecimal() or not least <= int(value) <= most:
        raise InputError(
            f"{value!r} is no whole number from {least} to {most}", hint="write digits only"
        )
    return profile.model_copy(update={key: int(value)})


def _set_limit(profile: Profile, path: list[str], value: str) -> Profile:
    role, name = ("*", path[0]) if len(path) == 1 else (path[0], path[1]) if path else ("", "")
    if len(path) > 2 or name not in {"iops", "bandwidth"}:
        raise InputError("no such limit", hint="write limits.iops=1100 or limits.bandwidth=125MB/s")
    number = parse_rate(value) if value else None
    if number is not None and number <= 0:
        raise InputError("a limit is above 0", hint="leave the value out to take it away")
    attribute = "iops" if name == "iops" else "bandwidth_bytes_per_s"
    roles = set(profile.limits) | {role} if role == "*" else {role}
    limits = dict(profile.limits)
    for one in roles:
        limits[one] = limits.get(one, Limits()).model_copy(update={attribute: number})
    return profile.model_copy(update={"limits": limits})


def _set_everywhere(profile: Profile, key: str, value: str, *, table: OptionTable) -> Profile:
    """Set a fio option in defaults and every fio job; what dd has too, in its jobs as well."""
    has_fio = any(job.tool is Tool.FIO for job in profile.jobs)
    only_dd = not has_fio and key in DD_NAMES
    name, canonical = (key, value) if only_dd else _check(key, value, table=table)
    defaults = dict(profile.defaults)
    if canonical:
        defaults[name] = canonical
    else:
        defaults.pop(name, None)
    jobs = tuple(_shrink(job, name, value, canonical) for job in profile.jobs)
    return profile.model_copy(update={"defaults": defaults if has_fio else {}, "jobs": jobs})


def _check(key: str, value: str, *, table: OptionTable) -> tuple[str, str | None]:
    """Return canonical name and value; None for an empty value, which takes the option away."""
    if value:
        return check_option(table, key, value)
    option = table.find(key)
    if option is None:
        check_option(table, key, "1")
        raise InputError(f"fio has no option {key!r}", hint="see `fio --cmdhelp=all`")
    return option.name, None


def _shrink(job: Job, name: str, value: str, canonical: str | None) -> Job:
    """Return a job that follows an override of all jobs."""
    if job.tool is Tool.DD:
        if name not in {"size", "bs"} or not value:
            return job
        return job.model_copy(
            update={"options": {**job.options, name: check_dd_option(name, value)[1]}}
        )
    sections = {
        section: _replaced(options, name, canonical) for section, options in job.sections.items()
    }
    options = _replaced(job.options, name, canonical)
    return job.model_copy(update={"options": options, "sections": sections})


def _replaced(options: Options, name: str, canonical: str | None) -> Options:
    """Return options with their own value of one replaced; null stays null."""
    if options.get(name) is None:
        return options
    return {**options, name: canonical}


def _set_in_job(job: Job, option: str, value: str, *, table: OptionTable) -> Job:
    if job.tool is Tool.DD:
        name, canonical = check_dd_option(option, value)
        return job.model_copy(update={"options": {**job.options, name: canonical}})
    pair = _check(option, value, table=table)
    sections = {section: _replaced(options, *pair) for section, options in job.sections.items()}
    return job.model_copy(
        update={"options": {**job.options, pair[0]: pair[1]}, "sections": sections}
    )
