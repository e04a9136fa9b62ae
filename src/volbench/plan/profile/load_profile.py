"""Loading of profile files with located problems, dumping, and their JSON Schema."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from pydantic import ValidationError

from volbench.errors import InputError, Problems
from volbench.model.document.document_model import document_schema
from volbench.model.document.located_errors import (
    Fault,
    Node,
    faults_of,
    note_fault,
    plain,
    validate,
)
from volbench.model.document.yaml_text import parse_document, yaml_text
from volbench.model.profile.fio_options import Option, OptionKind, OptionTable
from volbench.model.profile.option_policy import OWN
from volbench.model.profile.profile_model import Job, Profile
from volbench.plan.profile.option_values import OptionReader
from volbench.plan.profile.profile_document import ProfileDocument, with_conflicts
from volbench.plan.profile.profile_edits import ProfileEdit, editable

Schema = dict[str, Any]

_BOOLEAN: Schema = {"enum": [True, False, 0, 1, "0", "1", "yes", "no", "on", "off", None]}
_OPTIONS: Schema = {"$ref": "#/$defs/options"}


def load_profile(
    text: str,
    *,
    path: str,
    table: OptionTable,
    settings: Sequence[str] = (),
    allow_exec: bool = False,
) -> Profile:
    """Return the profile in a text, changed by settings.

    ``size=64m`` applies to every job and replaces the job's own value, but does not restore an
    option that a job removed with null. ``test1.bs=8k`` applies to one job, ``oltp.log.size=2g``
    to one of its sections; ``repeat=3`` and ``limits.iops=900`` to the profile;
    ``test1.until=steady`` and ``test1.until.window=1m`` to one job. ``KEY=`` removes an option,
    ``test1=`` or ``*-512=`` whole jobs.

    Args:
        text: YAML 1.2.
        path: path for messages.
        table: options of the fio that executes the profile.
        settings: list of ``KEY=VALUE``, applied in order.
        allow_exec: accept options that run programs or access files outside the run's folder.
    """
    problems = Problems(path)
    node = parse_document(text, problems, what="a profile", needs="a name and jobs")
    reader = OptionReader(table, allow_exec=allow_exec)
    if node is not None:
        document = validate(ProfileDocument, node, problems, context=reader)
        if sound := document or _sound_jobs(node, problems, reader):
            profile, conflicts = with_conflicts(sound)
            for fault, _ in conflicts:
                note_fault(problems, node, fault)
            problems.raise_if_any()
            if not settings:
                return profile
            content: Mapping[str, Any] = plain(node)  # type: ignore[assignment]  # a mapping: it is valid
            edit = ProfileEdit(profile.name, editable(content, reader), reader)
            for setting in settings:
                edit.apply(setting)
            return _edited_profile(edit)
    problems.raise_if_any()
    raise AssertionError("a document without a model has a problem")


def _sound_jobs(node: Node, problems: Problems, reader: OptionReader) -> ProfileDocument | None:
    """Return the jobs of an invalid profile that have no fault of their own, or None."""
    wrong = [f"{problem.key}." for problem in problems.found]
    if any(reader.table.find(key.split(".")[0]) or key.startswith("defaults.") for key in wrong):
        return None  # what is wrong may be what a job lacks
    tops = {entry.name: entry.value for entry in node.entries or ()}
    jobs = tops["jobs"].entries or () if "jobs" in tops else ()
    sound = [
        entry for entry in jobs if not any(key.startswith(f"{entry.value.key}.") for key in wrong)
    ]
    content = {name: plain(value) for name, value in tops.items() if name == "defaults"}
    content |= {"name": "sound", "jobs": {entry.name: plain(entry.value) for entry in sound}}
    with suppress(ValidationError):
        return ProfileDocument.model_validate(content, context=reader, by_alias=True, by_name=False)
    return None


def _edited_profile(edit: ProfileEdit) -> Profile:
    try:
        document = ProfileDocument.model_validate(
            edit.content, context=edit.reader, by_alias=True, by_name=False
        )
    except ValidationError as error:
        raise _setting_error(edit, next(faults_of(error, ProfileDocument)), None) from error
    profile, conflicts = with_conflicts(document)
    if conflicts:
        raise _setting_error(edit, *conflicts[0])
    return profile


def _setting_error(edit: ProfileEdit, fault: Fault, job: Job | None) -> InputError:
    edits = edit.places
    causes = [
        setting
        for at, setting in edits
        if (length := min(len(at), len(fault.at))) and at[:length] == fault.at[:length]
    ]
    causes = causes or [setting for _, setting in edits]
    given = " ".join(f"--set {setting:.200}" for setting in causes)
    if job is not None:
        hint = f"{fault.hint}; set one job alone with {job.name}.OPTION=VALUE"
        return InputError(f"{given}: job {job.name}: {fault.message}", hint=hint)
    key = ".".join(str(key) for key in fault.at if key not in {"*", "options"})
    hint = fault.hint or "see the keys: volbench help profile.md"
    return InputError(f"{given}: {key}: {fault.message:.500}", hint=hint)


def dump_profile(profile: Profile) -> str:
    """Return a profile as YAML; values are canonical: bytes, whole seconds, 0 and 1."""
    return yaml_text(profile.document())


def json_schema(table: OptionTable) -> Schema:
    """Return the JSON Schema (2020-12) of a profile for the options of one fio."""
    schema = document_schema(ProfileDocument)
    options = {
        name: _option_schema(option)
        for option in table.options.values()
        if option.name not in OWN
        for name in (option.name, *option.aliases)
    }
    models, keys = schema["$defs"], schema["properties"]
    models["options"] = {"type": "object", "properties": options, "additionalProperties": False}
    job = models["JobDocument"]
    del job["properties"]["options"]
    job["properties"] = {**options, **job["properties"]}
    job["type"] = ["object", "null"]
    job["properties"]["sections"]["additionalProperties"] = {"anyOf": [_OPTIONS, {"type": "null"}]}
    matrix = models["MatrixDocument"]["properties"]
    del matrix["axes"]
    axes: Schema = {
        name: {"type": "array", "items": option, "minItems": 1} for name, option in options.items()
    }
    models["MatrixDocument"]["properties"] = {**axes, **matrix}
    models["MatrixEntry"] = _OPTIONS
    keys["defaults"] = {**_OPTIONS, "description": keys["defaults"]["description"]}
    return {
        **schema,
        "title": "volbench profile",
        "description": f"Options of fio {table.fio_version}.",
        "anyOf": [{"required": [name]} for name in ("jobs", "matrix", "phases")],
    }


def _option_schema(option: Option) -> Schema:
    described: Schema = {"description": option.help} if option.help else {}
    if option.kind in {OptionKind.BOOLEAN, OptionKind.FLAG}:
        return {**_BOOLEAN, **described}
    if option.kind is OptionKind.CHOICE:
        pattern = "|".join(re.sub(r"[^\w]", r"\\\g<0>", choice) for choice in option.choices)
        return {
            **described,
            "anyOf": [
                {"enum": [*option.choices, *(int(c) for c in option.choices if c.isdecimal())]},
                {"type": "string", "pattern": f"^({pattern})(:.*)?$"},
                {"type": "null"},
            ],
        }
    return {"type": ["string", "number", "boolean", "null"], **described}
