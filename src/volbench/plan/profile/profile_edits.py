"""Edits of a profile's document by ``--set KEY=VALUE``, before it is validated."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any, get_args

from pydantic import BaseModel

from volbench.errors import InputError
from volbench.model.document.document_model import Document
from volbench.model.document.located_errors import NULL, Location
from volbench.model.profile.profile_model import JobSettings, Phase, Profile, Start
from volbench.plan.profile.limits_document import LimitsDocument, by_role
from volbench.plan.profile.option_values import (
    MatrixDocument,
    OptionReader,
    canonical_options,
    with_combinations,
)
from volbench.plan.profile.profile_document import JobDocument, ProfileDocument

Content = dict[str, Any]  # Plain values of a document, or of a part of one

# Keys of a profile that can be set, in addition to `limits`
PROFILE_KEYS = (
    *("repeat", "rounds", "order", "seed", "sample", "device_sample", "cold_probe", "start"),
    *("stagger", "clients", "expect"),
)

# Keys of a job that can be set, in addition to its options
JOB_KEYS = ("until", "shared", "within")

_NOT_SET = (None, NULL)
_JOB_DOCUMENT_KEYS = {field.alias or name for name, field in JobDocument.model_fields.items()}
_LIMIT_KEYS = {field.alias or name for name, field in LimitsDocument.model_fields.items()} - {
    *("type", "size", "name")
}


@dataclass
class ProfileEdit:
    """Content of a profile file that settings change, one after the other."""

    name: str
    content: Content  # jobs of the matrix are among its jobs; options have fio's names
    reader: OptionReader
    places: list[tuple[Location, str]] = field(default_factory=list)  # of the applied settings

    def apply(self, setting: str) -> None:
        """Apply one ``KEY=VALUE``, or the option that stands for a key."""
        key, equals, value = (side.strip() for side in setting.partition("="))
        if not equals or not key:
            raise InputError(f"--set {setting!r} has no value", hint="write it like size=64m")
        try:
            location = self._set(key, value)
        except InputError as error:
            message = error.message.removeprefix(f"{key.rpartition('.')[2]}: ")
            raise InputError(f"--set {setting:.200}: {message}", hint=error.hint) from error
        self.places.append((location, setting))

    def _set(self, key: str, value: str) -> Location:
        """Set one key; return the edited location."""
        first, *rest = key.split(".")
        if first in PROFILE_KEYS:
            number = self.content.get("repeat")
            is_of_profile = number is None or ("repeat",) not in dict(self.places)
            if key == "repeat.until" and is_of_profile and not isinstance(number, dict):
                self.content["repeat"] = {}  # instead of the number
            _set_below(self.content, [first, *rest], value, model=ProfileDocument)
            if first == "start" and value != Start.STAGGERED:
                self.content.pop("stagger", None)
            return (first, *rest)
        if first == "limits":
            return self._set_limits(rest, value)
        return self._set_in_jobs(key, value)

    def _set_limits(self, path: list[str], value: str) -> Location:
        """Set limits: of all roles (``limits.iops``, ``limits=aws/gp3``), or of one role."""
        limits: Content = self.content.setdefault("limits", {})
        if not path:
            self.content["limits"] = {"*": value}
            return ("limits",)
        if path[0] in _LIMIT_KEYS:
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
            name, text = self.reader.read(option, value or None)
            jobs[owner]["sections"][section][name] = text
        elif not value and self.reader.table.find(key) is None and self._remove_jobs(key):
            return ("jobs",)
        elif not rest:
            self._set_everywhere(key, value)
        elif owner not in jobs:
            raise InputError(
                f"profile {self.name} has no job {owner!r}", hint=f"it has {', '.join(jobs)}"
            )
        elif option and section not in JOB_KEYS:
            raise InputError(
                f"job {owner} has no section {section!r}",
                hint="write JOB.OPTION=VALUE, or JOB.SECTION.OPTION=VALUE",
            )
        else:
            self._set_in_job(jobs[owner], rest, value)
        return ()

    def _groups(self) -> list[dict[str, Content]]:
        return [*self.content.get("phases", {}).values(), self.content["jobs"]]

    def _jobs(self) -> Iterator[tuple[str, Content]]:
        for group in self._groups():
            yield from group.items()

    def _remove_jobs(self, pattern: str) -> bool:
        """Remove the jobs that match a pattern; return whether there were any."""
        names = [name for name, _ in self._jobs() if fnmatchcase(name, pattern)]
        for group in self._groups():
            for name in names:
                group.pop(name, None)
        for name in names:
            self.content.get("expect", {}).pop(name, None)
        if names and not self.content["jobs"]:
            raise InputError("no job would be measured", hint="keep a measured job")
        phases = self.content.get("phases", {})
        self.content["phases"] = {phase: jobs for phase, jobs in phases.items() if jobs}
        return bool(names)

    def _set_everywhere(self, key: str, value: str) -> None:
        name, text = self.reader.read(key, value or None)
        defaults: Content = self.content.setdefault("defaults", {})
        if text is None:
            defaults.pop(name, None)
        else:
            defaults[name] = text
        for _, job in self._jobs():
            _replace(job, name, text)

    def _set_in_job(self, job: Content, key: str, value: str) -> None:
        if key.partition(".")[0] in JOB_KEYS:
            _set_below(job, key.split("."), value, model=JobSettings)
        else:
            name, text = self.reader.read(key, value or None)
            _replace(job, name, text)
            job[name] = text


def editable(content: Mapping[str, Any], reader: OptionReader) -> Content:
    """Return the content of a valid profile file as `ProfileEdit` changes it."""
    phases = {
        phase: _named_options(jobs, reader) for phase, jobs in content.get("phases", {}).items()
    }
    measured = phases.pop(Phase.MEASURED.value, {})
    jobs = measured | _named_options(
        with_combinations(content.get("jobs", {}), reader, keys=JobDocument.model_fields), reader
    )
    edited: Content = {**content, "phases": phases, "jobs": jobs}
    if "defaults" in content:
        edited["defaults"] = _canonical_names(content["defaults"], reader)
    if "matrix" in content:
        matrix = MatrixDocument.model_validate(edited.pop("matrix"), context=reader)
        cells = [*matrix.cells(), *(entry.options for entry in matrix.include)]
        settings: dict[str, str | None] = {"role": matrix.role, "note": matrix.note}
        edited["jobs"] |= {matrix.job_name(c): settings | canonical_options(c) for c in cells}
    if "limits" in content:
        edited["limits"] = {
            role: LimitsDocument.model_validate(limits).limits().document()
            for role, limits in by_role(content["limits"]).items()
        }
    return edited


def _named_options(jobs: Mapping[str, Any], reader: OptionReader) -> dict[str, Content]:
    """Return jobs whose options, including the options of sections, have fio's own names."""
    named = {}
    for name, written in jobs.items():
        job = _canonical_names({} if written is NULL else written, reader)
        if "sections" in job:
            job["sections"] = {
                section: {} if options is NULL else _canonical_names(options, reader)
                for section, options in job["sections"].items()
            }
        named[name] = job
    return named


def _canonical_names(options: Mapping[str, Any], reader: OptionReader) -> Content:
    return {
        key if key in _JOB_DOCUMENT_KEYS else reader.canonical_name(key): value
        for key, value in options.items()
    }


def _replace(job: Content, name: str, text: str | None) -> None:
    """Replace a job's own values of an option, including its sections; null is kept."""
    for options in (job, *job.get("sections", {}).values()):
        if options.get(name) not in _NOT_SET:
            options[name] = text


def _set_below(
    content: Content, path: Sequence[str], value: str, *, model: type[BaseModel] | None
) -> None:
    """Set or remove a key of nested mappings; a shorthand sets its field."""
    first, *rest = path
    inner = _model_of(model, first)
    if rest:
        known = content.get(first)
        fields = inner.model_fields.items() if inner else ()
        needed = {f.alias or name for name, f in fields if f.is_required()}
        if known is None and inner is not None and needed != {rest[0]}:
            keys = ", ".join(f"{first}.{name}" for name in sorted(needed))
            hint = f"set {keys or first} first, in another --set before this one"
            raise InputError(f"{first} is not set here", hint=hint)
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


def _model_of(model: type[BaseModel] | None, key: str) -> type[Document] | None:
    """Return the model of the mapping at a key; None where its value is not a mapping."""
    for name, key_field in model.model_fields.items() if model else ():
        if key == (key_field.alias or name):
            choices = (key_field.annotation, *get_args(key_field.annotation))
            models = [c for c in choices if isinstance(c, type) and issubclass(c, Document)]
            return models[0] if models else None
    return None


def settings_by_profile(profiles: Sequence[Profile], settings: Sequence[str]) -> list[list[str]]:
    """Return the settings of each profile.

    A setting of a job, a pattern of jobs or the number of rounds applies to the profiles that have
    these; if none has, it is passed to all of them and refused there.
    """
    chosen: list[list[str]] = [[] for _ in profiles]
    for setting in settings:
        key, _, value = setting.partition("=")
        having = [_has(profile, key.strip(), value.strip()) for profile in profiles]
        for own_settings, has_part in zip(chosen, having, strict=True):
            if has_part or not any(having):
                own_settings.append(setting)
    return chosen


def _has(profile: Profile, key: str, value: str) -> bool:
    if key == "rounds.max":
        return profile.rounds is not None
    first, _, rest = key.partition(".")
    named = rest.partition(".")[0] if first == "expect" else first
    if (rest or first == "expect") and any(job.name == named for job in profile.jobs):
        return True
    return not value and any(fnmatchcase(job.name, key) for job in profile.jobs)
