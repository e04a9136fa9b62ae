"""fio options of a profile and its matrix, as written and in canonical form."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Collection, Container, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, ClassVar, Self

from pydantic import (
    Field,
    PlainValidator,
    ValidationInfo,
    WithJsonSchema,
    field_validator,
    model_validator,
)

from volbench.errors import InputError
from volbench.model.document.document_model import Document, Filled, Text
from volbench.model.document.located_errors import NULL, Fault, fault_error, input_fault, reject
from volbench.model.profile.fio_options import OptionTable
from volbench.model.profile.option_policy import check_option
from volbench.model.profile.profile_model import JobSettings, Options
from volbench.model.profile.profile_settings import Name

# More is a typing error: at 10 s each they run for a day. Noticed by:
# tests/model/profile/test_option_policy.py
_MAX_COMBINATIONS = 10_000
_WORD = re.compile(r"\{(.*?)\}")
_SPEAKING = frozenset({"rw", "ioengine"})  # Options whose values need no option name in job names


@dataclass
class OptionReader:
    """Parser of option values for a fio version; the validation context of a profile."""

    table: OptionTable  # fio's options
    # accept options that run programs or access files outside the run's folder
    allow_exec: bool = False
    profile_keys: Collection[str] = ()  # names that belong to the top of a profile
    _known: dict[tuple[str, object], tuple[str, str | None]] = field(default_factory=dict)

    def read(self, name: str, value: object) -> tuple[str, str | None]:
        """Return canonical name and value of an option; None for null, which removes it."""
        if isinstance(value, Mapping | list):
            kind = "a mapping" if isinstance(value, Mapping) else "a list"
            raise InputError(
                f"must be a single value, not {kind}",
                hint="write one value here; a list in a job is a job for each of its values",
            )
        key = (name, str(value) if value is not NULL else NULL)
        if key not in self._known:
            self._known[key] = self._read_value(name, value)
        return self._known[key]

    def _read_value(self, name: str, value: object) -> tuple[str, str | None]:
        option = self.table.find(name)
        if option is None and name in self.profile_keys:
            raise InputError("is a key of the profile", hint=f"write `{name}:` at its top")
        if option is not None and (value is NULL or value is None):
            return option.name, None
        return check_option(self.table, name, value, allow_exec=self.allow_exec)

    def canonical_name(self, name: str) -> str:
        """Return fio's canonical name of an option or alias."""
        return option.name if (option := self.table.find(name)) else name


@dataclass(frozen=True)
class WrittenOption:
    """An option of a profile."""

    key: str  # key in the file
    label: str  # value as written, for job names
    value: str | None  # canonical value; None to remove an inherited option


def reader_of(info: ValidationInfo) -> OptionReader:
    """Return the reader in the validation context."""
    if not isinstance(info.context, OptionReader):
        raise TypeError("a profile is validated with an OptionReader as its context")
    return info.context


def label_of(value: object) -> str:
    """Return the form of a value in job names."""
    if value is NULL or value is None or value == "":
        return "none"
    return str(int(value)) if isinstance(value, bool) else str(value)


def _read_options(value: object, info: ValidationInfo) -> dict[str, WrittenOption]:
    reader = reader_of(info)
    if value is NULL:
        raise fault_error(Fault("has no value"))
    if not isinstance(value, Mapping):
        kind = "a list" if isinstance(value, list) else "a single value"
        reject(Fault(f"must be a mapping, not {kind}", "write it like {rw: randread, bs: 4k}"))
    options: dict[str, WrittenOption] = {}
    faults = []
    for key, raw in value.items():
        if isinstance(raw, tuple):
            faults += _axes_of(reader, {key: [*raw]})[1]
            continue
        try:
            name, canonical = reader.read(key, raw)
        except InputError as error:
            is_container = isinstance(raw, Mapping | list)
            faults.append(input_fault(error, at=(key,), on_key=not is_container))
            continue
        if name in options:
            faults.append(Fault("is given twice, once as an alias", "keep one", (key,), True))
        options[name] = WrittenOption(key, label_of(raw), canonical)
    if faults:
        reject(*faults)
    return options


# Options by canonical name; validated with an `OptionReader` as the context
WrittenOptions = Annotated[
    dict[str, WrittenOption], PlainValidator(_read_options), WithJsonSchema({"type": "object"})
]


def may_be_empty(value: object) -> object:
    """Return an empty mapping for a key without a value; for jobs and sections."""
    return {} if value is NULL or value is None else value


def canonical_options(options: Mapping[str, WrittenOption]) -> Options:
    """Return canonical names and values."""
    return {name: option.value for name, option in options.items()}


Axes = dict[str, tuple[WrittenOption, ...]]


def _read_axes(value: Mapping[str, object], info: ValidationInfo) -> Axes:
    axes, faults = _axes_of(reader_of(info), value)
    if faults:
        reject(*faults)
    return axes


def _axes_of(reader: OptionReader, value: Mapping[str, object]) -> tuple[Axes, list[Fault]]:
    axes: Axes = {}
    faults: list[Fault] = []
    for key, items in value.items():
        name = reader.canonical_name(key)
        if isinstance(items, Fault):
            faults.append(replace(items, at=(key,)))
        elif name in axes:
            faults.append(Fault("is given twice, once as an alias", "keep one", (key,), True))
        elif not isinstance(items, list):
            is_empty = items is NULL  # its place would be that of the next key
            hint = f"write {key}: [...]"
            faults.append(Fault("must be a list of values", hint, (key,), is_empty))
        elif not items:
            faults.append(Fault("has no values", "name at least one", (key,), True))
        else:
            faults += _read_axis(reader, key, items, axes)
    return axes, faults


def _read_axis(reader: OptionReader, key: str, items: list[object], axes: Axes) -> Iterator[Fault]:
    values: dict[str | None, WrittenOption] = {}
    for index, item in enumerate(items):
        try:
            name, canonical = reader.read(key, item)
        except InputError as error:
            yield input_fault(error, at=(key, index))
            if reader.table.find(key) is None:  # said once, whatever its values
                break
            continue
        if canonical is None:
            yield Fault("has no value", "write one, or remove it", (key, index))
        elif canonical in values:
            first = values[canonical].label
            yield Fault(
                f"{label_of(item)} is the same as {first}", "keep one of them", (key, index)
            )
        else:
            values[canonical] = WrittenOption(key, label_of(item), canonical)
            axes[name] = tuple(values.values())


# Lists of values by canonical option; validated with an `OptionReader` as the context
WrittenAxes = Annotated[Axes, PlainValidator(_read_axes), WithJsonSchema({"type": "object"})]


Combination = dict[str, WrittenOption]


class MatrixEntry(Document):
    """Partial or complete combination of a matrix."""

    gathered: ClassVar[str] = "options"

    options: WrittenOptions = Field(default_factory=dict)


class MatrixDocument(Document):
    """A job for each combination of the listed values; all other keys are fio options."""

    gathered: ClassVar[str] = "axes"

    role: Name = Field(default="data", description="As for a job.")
    note: Text = Field(default="", description="As for a job.")
    axes: WrittenAxes = Field(default_factory=dict)
    template: Filled = Field(
        default="", alias="name", description="Template of job names, such as {rw}-{bs}."
    )
    exclude: tuple[MatrixEntry, ...] = Field(
        default=(),
        description="Combinations, or parts of them, to exclude.",
        examples=["[{rw: randread, bs: 4k}]"],
    )
    include: tuple[MatrixEntry, ...] = Field(
        default=(), description="Combinations to add.", examples=["[{rw: randread, bs: 4k}]"]
    )

    @model_validator(mode="before")
    @classmethod
    def _without_job_keys(cls, value: object) -> object:
        job_keys = {field.alias or name for name, field in JobSettings.model_fields.items()}
        job_keys |= {"limits", "sections"}
        if isinstance(value, Mapping) and (wrong := [key for key in value if key in job_keys]):
            fault = Fault("is not possible in a matrix", "write such jobs in `jobs`", on_key=True)
            return {**value, **{key: fault for key in wrong if key not in cls.model_fields}}
        return value

    @field_validator("template")
    @classmethod
    def _of_axes(cls, template: str, info: ValidationInfo) -> str:
        """Replace aliases in a template with fio's canonical names."""
        reader, axes = reader_of(info), info.data.get("axes", {})
        for word in _WORD.findall(template):
            if reader.canonical_name(word) not in axes:
                hint = f"its options are {', '.join(axes)}"
                reject(Fault(f"{{{word}}} is not an option of the matrix", hint))
        return _WORD.sub(lambda match: f"{{{reader.canonical_name(match[1])}}}", template)

    @model_validator(mode="after")
    def _has_combinations(self) -> Self:
        check_combinations(math.prod(map(len, self.axes.values())))
        every = [set(canonical_options(cell).items()) for cell in self._every()]
        unused = [
            Fault("matches no combination", "check its values", at=("exclude", index))
            for index, entry in enumerate(self.exclude)
            if not any(_matches(entry, cell) for cell in every)
        ]
        if unused:
            reject(*unused)
        if not self.include and not any(True for _ in self.cells()):
            reject(Fault("no combination is left", "add lists of values"))
        return self

    def cells(self) -> Iterator[Combination]:
        """Yield the combinations that are not excluded; the last axis varies fastest."""
        for cell in self._every():
            options = set(canonical_options(cell).items())
            if not any(_matches(entry, options) for entry in self.exclude):
                yield cell

    def _every(self) -> Iterator[Combination]:
        for values in itertools.product(*self.axes.values()) if self.axes else ():
            yield dict(zip(self.axes, values, strict=True))

    def job_name(self, cell: Combination) -> str:
        """Return the job name of a combination, from the values as written."""
        if self.template and set(cell) >= set(_WORD.findall(self.template)):
            name = _WORD.sub(lambda match: cell[match[1]].label, self.template)
        else:
            name = "-".join(
                option.label if key in _SPEAKING else f"{key}{option.label}"
                for key, option in cell.items()
            )
        return _file_name(name)


def check_combinations(total: int, *at: str) -> None:
    """Refuse too many jobs before they are made."""
    if total > _MAX_COMBINATIONS:
        problem = f"{total} combinations; the maximum is {_MAX_COMBINATIONS}"
        reject(Fault(problem, "leave out values", at))


def with_combinations(
    jobs: Mapping[str, Any], reader: OptionReader, *, keys: Container[str]
) -> dict[str, Any]:
    """Return jobs, with one for each combination of the values that a job lists for options.

    Args:
        keys: keys of a job that are not options.
    """
    found, total = dict[str, Any](), 0
    for name, job in jobs.items():
        items = job.items() if isinstance(job, Mapping) else ()
        axes = {key: own for key, own in items if isinstance(own, list) and key not in keys}
        wrong = {key: tuple(own) for key, own in axes.items() if _axes_of(reader, {key: own})[1]}
        if wrong:  # reported where the options are read; the other lists stand with one value
            found[name] = {**job, **{key: own[0] for key, own in axes.items() if own}, **wrong}
            continue
        check_combinations(total := total + math.prod(map(len, axes.values())), "jobs", name)
        for values in itertools.product(*axes.values()):
            chosen = dict(zip(axes, values, strict=True))
            labels = (
                label_of(value) if key in _SPEAKING else f"{key}{label_of(value)}"
                for key, value in chosen.items()
            )
            combined = _file_name("-".join([name, *labels])) if axes else name
            found[combined] = {**job, **chosen} if axes else job
    return found


def _file_name(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9_-]+", "_", text)


def _matches(entry: MatrixEntry, options: set[tuple[str, str | None]]) -> bool:
    return bool(entry.options) and set(canonical_options(entry.options).items()) <= options
