"""Overrides of a profile: ``--set KEY=VALUE`` edits its document, which is then revalidated."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from typing import Any, get_args

from pydantic import BaseModel, ValidationError

from volbench.errors import InputError
from volbench.model.document.document_model import Document
from volbench.model.document.located_errors import Fault, Location, faults_of
from volbench.model.profile.fio_options import OptionTable
from volbench.model.profile.profile_model import Job, JobSettings, Profile, Start, Tool
from volbench.plan.profile.limits_document import LimitsDocument
from volbench.plan.profile.load_profile import ProfileDocument, with_conflicts
from volbench.plan.profile.option_values import OptionReader

Content = dict[str, Any]  # Plain values of a document, or of a part of one

# Keys of a profile that can be set, in addition to `limits`
PROFILE_KEYS = (
    "repeat",
    "rounds",
    "order",
    "seed",
    "sample",
    "device_sample",
    "latency_log",
    "cold_probe",
    "start",
    "stagger",
    "clients",
)

# Keys of a job that can be set, in addition to its options
JOB_KEYS = ("until", "burst_runtime", "pause_before")

_SHARED_WITH_DD = ("size", "bs")


def apply_overrides(
    profile: Profile, settings: Sequence[str], *, table: OptionTable, allow_exec: bool = False
) -> Profile:
    """Return a profile with overrides applied in order.

    ``size=64m`` applies to every job and replaces the job's own value, but does not restore an
    option that a job removed with null. ``test1.bs=8k`` applies to one job, ``oltp.log.size=2g``
    to one of its sections; `PROFILE_KEYS` and ``limits.iops`` to the profile;
    ``test1.until=steady`` and ``test1.until.window=1m`` to one job. ``KEY=`` removes an option,
    ``test1=`` or ``*-512=`` whole jobs.

    Args:
        settings: list of ``KEY=VALUE``.
    """
    if not settings:
        return profile
    edit = _Edit(profile, OptionReader(table, allow_exec=allow_exec))
    for setting in settings:
        edit.apply(setting)
    return edit.result()


class _Edit:
    """Editor of a profile's document."""

    def __init__(self, profile: Profile, reader: OptionReader) -> None:
        self._reader = reader
        self._content: Content = profile.document()
        self._settings: list[tuple[Location, str]] = []
        self._name = profile.name

    def apply(self, setting: str) -> None:
        """Apply one setting."""
        key, equals, value = (part.strip() for part in setting.partition("="))
        if not equals or not key:
            raise InputError(f"--set {setting!r} has no value", hint="write it like size=64m")
        try:
            place = self._set(key, value)
        except InputError as error:
            words = error.message.removeprefix(f"{key.rpartition('.')[2]}: ")
            raise InputError(f"--set {setting}: {words}", hint=error.hint) from error
        self._settings.append((place, setting))

    def result(self) -> Profile:
        """Return the edited profile."""
        try:
            document = ProfileDocument.model_validate(
                self._content, context=self._reader, by_alias=True, by_name=False
            )
        except ValidationError as error:
            fault = next(faults_of(error, ProfileDocument))
            raise self._error(fault, None) from error
        profile, conflicts = with_conflicts(document)
        if conflicts:
            raise self._error(*conflicts[0])
        return profile

    def _error(self, fault: Fault, job: Job | None) -> InputError:
        """Return the error of a fault, with the settings that caused it."""
        own = [
            setting
            for place, setting in self._settings
            if place and place == fault.at[: len(place)]
        ]
        given = " ".join(
            f"--set {setting}" for setting in own or [setting for _, setting in self._settings]
        )
        if job is not None:
            hint = f"{fault.hint}; set one job alone with {job.name}.OPTION=VALUE"
            return InputError(f"{given}: job {job.name}: {fault.message}", hint=hint)
        key = ".".join(str(part) for part in fault.at if part not in {"*", "options"})
        hint = fault.hint or "see the keys in docs/reference/profile.md"
        return InputError(f"{given}: {key}: {fault.message}", hint=hint)

    def _set(self, key: str, value: str) -> Location:
        """Set one key; return the edited location."""
        first, *rest = key.split(".")
        if first in PROFILE_KEYS:
            _set_below(self._content, [first, *rest], value, model=ProfileDocument)
            if first == "start" and value != Start.STAGGERED:
                self._content.pop("stagger", None)
            return (first, *rest)
        if first == "limits":
            return self._set_limits(rest, value)
        return self._set_in_jobs(key, value)

    def _set_limits(self, path: list[str], value: str) -> Location:
        """Set limits: of all roles (``limits.iops``, ``limits=aws/gp3``), or of one role."""
        fields = LimitsDocument.model_fields
        keys = {field.alias or name for name, field in fields.items()} - {"type", "size", "name"}
        limits: Content = self._content.setdefault("limits", {})
        if not path:
            self._content["limits"] = {"*": value}
            return ("limits",)
        if path[0] in keys:
            for role in dict.fromkeys((*limits, "*")):
                _set_below(limits, [role, *path], value, model=None)
        else:
            _set_below(limits, path, value, model=None)
        return ("limits", *path)

    def _set_in_jobs(self, key: str, value: str) -> Location:
        jobs = dict(self._jobs())
        owner, _, rest = key.partition(".")
        section, _, option = rest.partition(".")
        if option and section in jobs.get(owner, {}).get("sections", {}):
            name, canonical = self._option(option, value)
            jobs[owner]["sections"][section][name] = canonical
        elif not value and self._reader.table.find(key) is None and self._removed(key):
            return ("jobs",)
        elif key == "pause_before":
            for job in jobs.values():
                if key in job:
                    _set_below(job, [key], value, model=JobSettings)
        elif not rest:
            self._set_everywhere(key, value)
        elif owner not in jobs:
            raise InputError(
                f"profile {self._name} has no job {owner!r}", hint=f"it has {', '.join(jobs)}"
            )
        else:
            if option and section not in JOB_KEYS:
                hint = "write JOB.OPTION=VALUE, or JOB.SECTION.OPTION=VALUE"
                raise InputError(f"job {owner} has no section {section!r}", hint=hint)
            self._set_in_job(jobs[owner], rest, value)
        return ()

    def _jobs(self) -> Iterator[tuple[str, Content]]:
        for group in self._groups():
            yield from group.items()

    def _groups(self) -> list[dict[str, Content]]:
        return [*self._content.get("phases", {}).values(), self._content["jobs"]]

    def _removed(self, pattern: str) -> bool:
        """Remove the jobs that match a pattern; return whether there were any."""
        found = [name for name, _ in self._jobs() if fnmatchcase(name, pattern)]
        for group in self._groups():
            for name in found:
                group.pop(name, None)
        if found and not self._content["jobs"]:
            raise InputError("no job would be measured", hint="keep a measured job")
        phases = self._content.get("phases", {})
        self._content["phases"] = {phase: jobs for phase, jobs in phases.items() if jobs}
        return bool(found)

    def _option(self, key: str, value: str) -> tuple[str, str | None]:
        return self._reader.read(key, value or None)

    def _set_everywhere(self, key: str, value: str) -> None:
        """Set an option in defaults and every fio job, and in dd jobs where dd has it too."""
        jobs = [job for _, job in self._jobs()]
        if all(job.get("tool") == Tool.DD for job in jobs):
            for job in jobs:
                self._set_in_dd(job, key, value)
            return
        name, canonical = self._option(key, value)
        defaults: Content = self._content.setdefault("defaults", {})
        if canonical is None:
            defaults.pop(name, None)
        else:
            defaults[name] = canonical
        for job in jobs:
            if job.get("tool") != Tool.DD:
                _replace(job, name, canonical)
            elif name in _SHARED_WITH_DD:
                self._set_in_dd(job, name, value)

    def _set_in_job(self, job: Content, key: str, value: str) -> None:
        if key.partition(".")[0] in JOB_KEYS:
            _set_below(job, key.split("."), value, model=JobSettings)
        elif job.get("tool") == Tool.DD:
            self._set_in_dd(job, key, value)
        else:
            name, canonical = self._option(key, value)
            _replace(job, name, canonical)
            job[name] = canonical

    def _set_in_dd(self, job: Content, key: str, value: str) -> None:
        name, canonical = self._reader.read(key, value or _ANY_VALUE.get(key, "1"), Tool.DD)
        if value:
            job[name] = canonical
        else:
            job.pop(name, None)


# A valid value of each non-numeric dd option, to check the name only
_ANY_VALUE = {
    "if": "/dev/zero",
    "oflag": "direct",
    "iflag": "direct",
    "conv": "fsync",
    "rw": "read",
}


def _replace(job: Content, name: str, canonical: str | None) -> None:
    """Replace a job's own values of an option, including its sections; null is kept."""
    for options in (job, *job.get("sections", {}).values()):
        if options.get(name) is not None:
            options[name] = canonical


def _set_below(
    content: Content, path: Sequence[str], value: str, *, model: type[BaseModel] | None
) -> None:
    """Set or remove a key of nested mappings; a shorthand sets its field."""
    first, *rest = path
    inner = _model_of(model, first)
    if rest:
        known = content.get(first)
        if known is None and inner is not None and not _is_enough(inner, rest[0]):
            raise InputError(f"there is no {first}", hint=f"set {first} before")
        if not isinstance(known, dict):
            shorthand = inner.shorthand if inner else LimitsDocument.shorthand
            content[first] = {} if known is None else {shorthand: known}
        _set_below(content[first], rest, value, model=inner)
    elif not value:
        content.pop(first, None)
    elif inner is not None and inner.shorthand and isinstance(content.get(first), dict):
        content[first] = {**content[first], inner.shorthand: value}
    else:
        content[first] = value.split(",") if first == "track" else value


def _is_enough(model: type[Document], key: str) -> bool:
    """Return whether a mapping is valid with this key alone."""
    needed = {f.alias or name for name, f in model.model_fields.items() if f.is_required()}
    return needed == {key}


def _model_of(model: type[BaseModel] | None, key: str) -> type[Document] | None:
    """Return the model of the mapping at a key; None where its value is not a mapping."""
    if model is None:
        return None
    for name, field in model.model_fields.items():
        if key == (field.alias or name):
            choices = (field.annotation, *get_args(field.annotation))
            found = [c for c in choices if isinstance(c, type) and issubclass(c, Document)]
            return found[0] if found else None
    return None


def settings_by_profile(profiles: Sequence[Profile], settings: Sequence[str]) -> list[list[str]]:
    """Return the settings of each profile.

    A setting of a job, a pattern of jobs or the number of rounds applies to the profiles that have
    these; if none has, it is passed to all of them and refused there.

    Args:
        settings: list of ``KEY=VALUE``.
    """
    meant: list[list[str]] = [[] for _ in profiles]
    for setting in settings:
        key, _, value = setting.partition("=")
        having = [_has(profile, key.strip(), value.strip()) for profile in profiles]
        for own, is_meant in zip(meant, having, strict=True):
            if is_meant or not any(having):
                own.append(setting)
    return meant


def _has(profile: Profile, key: str, value: str) -> bool:
    """Return whether a profile has the part named by a key."""
    if key == "rounds.max":
        return profile.rounds is not None
    if any(key.startswith(f"{job.name}.") for job in profile.jobs):
        return True
    return not value and any(fnmatchcase(job.name, key) for job in profile.jobs)
